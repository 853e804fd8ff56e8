//! The default network: how its packets travel between nodes, and whether they do.

use kube::ResourceExt;
use serde::Serialize;
use underlay_api::conditions::is_true;
use underlay_api::route_advertisements::ACCEPTED;
use underlay_runtime::report::AgentReport;
use underlay_world::settings::Routing;

use super::judge::Problem;
use crate::cluster::facts::{Agent, Facts};

/// The default network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefaultRow {
    /// `Geneve` or `NoOverlay`.
    pub transport: &'static str,
    /// How it is, in short.
    pub state: String,
    /// Whether that is well.
    #[serde(skip)]
    pub well: bool,
}

/// The default network, as agents tell it; nothing if none does.
pub fn row(facts: &Facts) -> Option<DefaultRow> {
    let Some(no_overlay) = told(facts)?.no_overlay else {
        return Some(DefaultRow {
            transport: "Geneve",
            state: "in tunnels between nodes".to_owned(),
            well: true,
        });
    };
    let routing = match no_overlay.routing {
        Routing::Managed => "managed",
        Routing::Unmanaged => "unmanaged",
    };
    let snat = if no_overlay.outbound_snat { "enabled" } else { "disabled" };
    let (accepted, others) = advertisers(facts);
    let (state, well) = match (accepted.as_slice(), others.as_slice()) {
        ([], []) => ("not advertised".to_owned(), false),
        ([], others) => (format!("{} not accepted", others.join(", ")), false),
        (accepted, _) => (format!("advertised by {}", accepted.join(", ")), true),
    };
    let state = format!("{state} (routing {routing}, outbound SNAT {snat})");
    Some(DefaultRow { transport: "NoOverlay", state, well })
}

/// What is wrong with it.
pub fn problem(facts: &Facts) -> Option<Problem> {
    let no_overlay = told(facts)?.no_overlay?;
    let (accepted, others) = advertisers(facts);
    if !accepted.is_empty() {
        return None;
    }
    let hint = match no_overlay.routing {
        Routing::Managed => {
            "underlay-cluster makes its RouteAdvertisements: is it running, with the agents' settings?"
        }
        Routing::Unmanaged => "create RouteAdvertisements that select DefaultNetwork and an FRRConfiguration",
    };
    let what = if others.is_empty() {
        "has no overlay, and nobody advertises it: pods do not reach those on other nodes"
    } else {
        "has no overlay, and is advertised by nobody who is accepted: pods may not reach those on other nodes"
    };
    Some(Problem { about: "default network".to_owned(), what: what.to_owned(), hint: hint.to_owned() })
}

/// What the first agent that tells says: all have the same settings.
fn told(facts: &Facts) -> Option<&AgentReport> {
    facts.agents.values().find_map(|agent| match agent {
        Agent::Told(report) => Some(report.as_ref()),
        _ => None,
    })
}

/// Names of its advertisements: those that are accepted, and the others.
fn advertisers(facts: &Facts) -> (Vec<String>, Vec<String>) {
    let accepted = |object: &underlay_api::RouteAdvertisements| {
        object.status.as_ref().is_some_and(|status| is_true(&status.conditions, ACCEPTED))
    };
    let (yes, no): (Vec<_>, Vec<_>) = facts.of_default_network().partition(|object| accepted(object));
    let names =
        |objects: Vec<&underlay_api::RouteAdvertisements>| objects.iter().map(|one| one.name_any()).collect();
    (names(yes), names(no))
}
