//! What is said of a definition: conditions in the words that users and programs of the ecosystem know, and events.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use underlay_api::conditions::{Outcome, Verdict};
use underlay_api::network::conditions::{
    self, ALLOCATED, ALLOCATION_FAILED, ALLOCATION_SUCCEEDED, ATTACHMENT_CREATED, ATTACHMENT_DELETED,
    ATTACHMENT_SYNC_ERROR, CREATED, DELETED, INTERNAL_ERROR, NETWORK_ALLOCATION_SUCCEEDED, NETWORK_CREATED,
    SYNC_ERROR, TRANSPORT_ACCEPTED,
};
use underlay_world::Scope;

use super::Tenant;
use super::carried::transport;
use crate::cluster::verdict::listed;

/// The conditions that are ours.
pub const CONDITIONS: [&str; 3] = [NETWORK_CREATED, NETWORK_ALLOCATION_SUCCEEDED, TRANSPORT_ACCEPTED];

/// Nodes for which there is an event each.
const NODES: usize = 10;

/// All conditions of a definition. `failures` are nodes without their part, and why.
pub fn outcomes(tenant: &Tenant<'_>, failures: &[(String, String)]) -> Vec<Outcome> {
    let mut outcomes = vec![created(tenant)];
    if let Some(network) = tenant.stays() {
        if !tenant.wanted.is_empty() || !tenant.made.is_empty() {
            outcomes.push(allocated(failures));
        }
        let judged = transport(network);
        outcomes.extend(
            judged.map(|(verdict, reason, message)| outcome(TRANSPORT_ACCEPTED, verdict, reason, message)),
        );
    }
    outcomes
}

/// What is told as events: what is wrong with the whole, and every node that goes without.
pub fn events(tenant: &Tenant<'_>, failures: &[(String, String)]) -> Vec<(&'static str, String)> {
    let mut events = Vec::new();
    if let Some(problem) = problem(tenant) {
        events.push((sync_error(tenant), problem));
    }
    let node = |(node, why): &(String, String)| {
        (ALLOCATION_FAILED, conditions::allocation_failed_because(node, why))
    };
    events.extend(failures.iter().take(NODES).map(node));
    events
}

/// What keeps the network, or a part of it, from being as it should.
fn problem(tenant: &Tenant<'_>) -> Option<String> {
    match &tenant.network {
        Err(problem) if !tenant.definition.ending => Some(problem.clone()),
        _ => {
            let mut problems = tenant.problems.clone();
            problems.sort();
            (!problems.is_empty()).then(|| problems.join("\n"))
        }
    }
}

fn sync_error(tenant: &Tenant<'_>) -> &'static str {
    match tenant.definition.scope() {
        Scope::Cluster => ATTACHMENT_SYNC_ERROR,
        Scope::Namespace => SYNC_ERROR,
    }
}

/// The condition of a network whose attachments could not be written.
pub fn not_written(scope: Scope, problem: String) -> Outcome {
    let reason = match scope {
        Scope::Cluster => ATTACHMENT_SYNC_ERROR,
        Scope::Namespace => SYNC_ERROR,
    };
    outcome(NETWORK_CREATED, Verdict::False, reason, problem)
}

fn created(tenant: &Tenant<'_>) -> Outcome {
    if let Some(problem) = problem(tenant) {
        return outcome(NETWORK_CREATED, Verdict::False, sync_error(tenant), problem);
    }
    let scope = tenant.definition.scope();
    if tenant.definition.ending {
        let left: Vec<String> = tenant.made.iter().map(|attachment| attachment.key.to_string()).collect();
        let message = match scope {
            Scope::Cluster => conditions::deleted_in(&left.iter().map(String::as_str).collect::<Vec<_>>()),
            Scope::Namespace => DELETED.to_owned(),
        };
        return outcome(NETWORK_CREATED, Verdict::False, ATTACHMENT_DELETED, message);
    }
    let message = match scope {
        Scope::Cluster => conditions::created_in(&tenant.wanted.iter().copied().collect::<Vec<_>>()),
        Scope::Namespace => CREATED.to_owned(),
    };
    outcome(NETWORK_CREATED, Verdict::True, ATTACHMENT_CREATED, message)
}

fn allocated(failures: &[(String, String)]) -> Outcome {
    if failures.is_empty() {
        let (verdict, message) = (Verdict::True, ALLOCATED.to_owned());
        return outcome(NETWORK_ALLOCATION_SUCCEEDED, verdict, ALLOCATION_SUCCEEDED, message);
    }
    let names: Vec<String> = failures.iter().map(|(node, _)| node.clone()).collect();
    let message = conditions::allocation_failed(&listed(&names));
    outcome(NETWORK_ALLOCATION_SUCCEEDED, Verdict::False, INTERNAL_ERROR, message)
}

/// A condition.
pub fn outcome(type_: &str, verdict: Verdict, reason: &str, message: String) -> Outcome {
    Outcome {
        type_: type_.to_owned(),
        verdict,
        reason: reason.to_owned(),
        message,
        observed_generation: None,
    }
}

/// Writes conditions as statuses have them, without their times.
pub fn serialize<S: Serializer>(outcomes: &[Outcome], serializer: S) -> Result<S::Ok, S::Error> {
    let texts = outcomes.iter().map(|outcome| {
        BTreeMap::from([
            ("type", outcome.type_.as_str()),
            ("status", outcome.verdict.as_str()),
            ("reason", outcome.reason.as_str()),
            ("message", outcome.message.as_str()),
        ])
    });
    texts.collect::<Vec<_>>().serialize(serializer)
}
