//! Writes what comes of networks: definitions are held or let go, attachment definitions made, mended and removed, and
//! then it is said what became of each network.
//!
//! What was made, mended or removed counts in the world at once, and the next turn takes the next step. What others
//! still hold leaves the world when the API server says that it is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use tracing::info;
use underlay_api::conditions::{self, Outcome, Verdict};
use underlay_api::network::conditions::NETWORK_CREATED;
use underlay_api::network::{API_VERSION, FINALIZER, NetworkStatus};
use underlay_api::{ClusterUserDefinedNetwork, NetworkAttachmentDefinition, UserDefinedNetwork};
use underlay_desired::ObjectRef;
use underlay_plan::cluster::NetworksPlan;
use underlay_plan::cluster::networks::{Amend, CONDITIONS, Change, Step, Told, not_written};
use underlay_runtime::feed::put;
use underlay_runtime::objects::{Basis, Hold, WriteError};
use underlay_world::{AnyAttachment, Attachment, Definition, Key, Kind, Scope, Version};

use crate::leader::{AT_ONCE, Leader, Tools};

/// What the world keeps of a definition that was written, whichever of the two it is.
type Written = Option<Arc<Definition>>;
/// What could not be written and why, by the definition it is of.
pub(crate) type Failures = BTreeMap<Option<ObjectRef>, String>;

/// What became of an attachment.
enum Became {
    /// This.
    There(Box<NetworkAttachmentDefinition>),
    /// It is gone.
    Gone,
    /// It goes once others let it.
    Leaving,
}

impl Leader {
    /// Writes what differs, and says what became of networks, but of those whose pods are reached by advertised routes.
    /// False if something has to be done again.
    pub(crate) async fn write_networks(&mut self, plan: &NetworksPlan, failures: &mut Failures) -> bool {
        let (failed, held) = self.amend_definitions(plan).await;
        failures.extend(failed);
        let (failed, written) = self.write_attachments(&plan.attachments).await;
        failures.extend(failed);
        let told = self.say_of_networks(plan, failures, |told| !told.routed).await;
        held && written && told
    }

    /// Says what became of the networks whose pods are reached by advertised routes.
    pub(crate) async fn say_of_routed(&mut self, plan: &NetworksPlan, failures: &Failures) -> bool {
        let told = self.say_of_networks(plan, failures, |told| told.routed).await;
        let said: Vec<(&ObjectRef, Outcome)> = plan
            .told
            .iter()
            .flat_map(|(object, told)| {
                outcomes(object, told, failures).into_iter().map(move |one| (object, one))
            })
            .collect();
        self.tools.metrics.networks(said.iter().map(|(object, one)| (object.kind.as_str(), one)));
        told
    }

    /// Holds definitions, or lets them go. Returns what failed, and whether all is done.
    async fn amend_definitions(&mut self, plan: &NetworksPlan) -> (Failures, bool) {
        let wanted = plan.told.iter().filter_map(|(object, told)| Some((object, told.amend.as_ref()?)));
        let tools = &self.tools;
        let writes = stream::iter(wanted)
            .map(async |(object, amend)| (object, amend, tools.amend(object, amend).await))
            .buffer_unordered(AT_ONCE);
        let results: Vec<_> = writes.collect().await;
        let (mut failures, mut done) = (Failures::new(), true);
        for (object, amend, result) in results {
            match result {
                Ok(written) => {
                    let verb = if amend.protected { "held" } else { "let go" };
                    info!(network = %object, verb, "a definition of a network");
                    // One that was let go leaves the world when it is gone.
                    self.note(written.filter(|_| amend.protected));
                }
                Err(error) => {
                    done = false;
                    self.complain(&error);
                    if !error.is_conflict() {
                        failures.insert(Some(object.clone()), error.to_string());
                    }
                }
            }
        }
        (failures, done)
    }

    /// Makes, mends and removes attachments. Returns what failed, and whether all is done.
    async fn write_attachments(&mut self, changes: &BTreeMap<Key, Change>) -> (Failures, bool) {
        let (tools, attachments) = (&self.tools, &self.world.attachments);
        let writes = stream::iter(changes)
            .map(async |(key, change)| {
                let known = attachments.get(key).map(AsRef::as_ref);
                (key, change, tools.change(key, &change.step, known).await)
            })
            .buffer_unordered(AT_ONCE);
        let results: Vec<_> = writes.collect().await;
        let (mut failures, mut done) = (Failures::new(), true);
        for (key, change, result) in results {
            match result {
                Ok(written) => {
                    info!(attachment = %key, verb = verb(&change.step), "a NetworkAttachmentDefinition");
                    let record = match written {
                        Became::There(object) => AnyAttachment(*object).read(),
                        Became::Gone => None,
                        Became::Leaving => continue,
                    };
                    self.moved |= record.is_none();
                    put::<AnyAttachment>(&mut self.world, key.clone(), record);
                }
                // It is gone: the watch will tell.
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    done = false;
                    self.complain(&error);
                    if !error.is_conflict() {
                        failures.insert(change.of.clone(), error.to_string());
                    }
                }
            }
        }
        (failures, done)
    }

    /// Says what became of some networks, where that is not what is said already. Of one that goes nothing is said while
    /// it goes on: the next turn comes at once. False if something could not be said.
    async fn say_of_networks(
        &mut self,
        plan: &NetworksPlan,
        failures: &Failures,
        which: impl Fn(&Told) -> bool,
    ) -> bool {
        let news: Vec<_> = plan
            .told
            .iter()
            .filter(|(_, told)| which(told))
            .filter_map(|(object, told)| {
                let definition = self.definition(object)?;
                let let_go = told.amend.as_ref().is_some_and(|amend| !amend.protected);
                let goes = let_go || (definition.ending && self.moved);
                let said = outcomes(object, told, failures);
                let status = status(&definition.conditions, &said).filter(|_| !goes)?;
                Some((object, definition, status))
            })
            .collect();
        let tools = &self.tools;
        let writes = stream::iter(news)
            .map(async |(object, definition, status)| {
                let result = tools.say(object, definition, &status).await;
                if result.is_ok() {
                    tools.tell_of_network(object, &definition.uid, plan.told.get(object), &status).await;
                }
                result
            })
            .buffer_unordered(AT_ONCE);
        let results: Vec<Result<Written, WriteError>> = writes.collect().await;
        let mut done = true;
        for result in results {
            match result {
                Ok(written) => self.note(written),
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    self.complain(&error);
                    done = false;
                }
            }
        }
        done
    }

    fn definition(&self, object: &ObjectRef) -> Option<&Definition> {
        let key = key(object);
        let store =
            if object.namespace.is_some() { &self.world.networks } else { &self.world.cluster_networks };
        store.get(&key).map(AsRef::as_ref)
    }

    /// Writes count in the world at once: their echo is no news then.
    fn note(&mut self, written: Written) {
        let Some(definition) = written else { return };
        let key = definition.key.clone();
        match definition.scope() {
            Scope::Cluster => put::<ClusterUserDefinedNetwork>(&mut self.world, key, Some(definition)),
            Scope::Namespace => put::<UserDefinedNetwork>(&mut self.world, key, Some(definition)),
        };
    }
}

impl Tools {
    async fn amend(&self, object: &ObjectRef, amend: &Amend) -> Result<Written, WriteError> {
        let Amend { protected, annotations, labels, .. } = amend;
        let hold = Hold { finalizer: FINALIZER, held: *protected, annotations, labels };
        let (name, uid) = (&object.name, &amend.uid);
        Ok(match &object.namespace {
            None => {
                let api = Api::<ClusterUserDefinedNetwork>::all(self.client.clone());
                self.writer.hold(&api, name, uid, &hold).await?.and_then(Kind::read)
            }
            Some(namespace) => {
                let api = Api::<UserDefinedNetwork>::namespaced(self.client.clone(), namespace);
                self.writer.hold(&api, name, uid, &hold).await?.and_then(Kind::read)
            }
        })
    }

    /// Does something to an attachment.
    async fn change(&self, key: &Key, step: &Step, known: Option<&Attachment>) -> Result<Became, WriteError> {
        let api = Api::<NetworkAttachmentDefinition>::namespaced(self.client.clone(), &key.namespace);
        let nothing = BTreeMap::new();
        let let_go = Hold { finalizer: FINALIZER, held: false, annotations: &nothing, labels: &nothing };
        let there = |object| Became::There(Box::new(object));
        match step {
            Step::Create(object) => self.writer.create(&api, object).await.map(there),
            Step::Repair { uid, patch } => {
                let still = |now: &NetworkAttachmentDefinition| known == Some(&Attachment::read(now.clone()));
                let unknown = Version::default();
                let version = known.map_or(&unknown, |known| &known.version);
                let basis = Basis::version(uid, version, &still);
                self.writer.merge(&api, &key.name, basis, patch.clone()).await.map(there)
            }
            Step::Release { uid, again } => {
                self.writer.hold(&api, &key.name, uid, &let_go).await?;
                match again {
                    Some(object) => self.writer.create(&api, object).await.map(there),
                    None => Ok(Became::Leaving),
                }
            }
            Step::Delete { uid } => {
                let released = self.writer.hold(&api, &key.name, uid, &let_go).await?;
                let version = released.as_ref().map(Version::of).or_else(|| Some(known?.version.clone()));
                let version = version.unwrap_or_default();
                let gone = self.writer.delete(&api, &key.name, Basis::exactly(uid, &version)).await?;
                Ok(if gone { Became::Gone } else { Became::Leaving })
            }
        }
    }

    async fn say(
        &self,
        object: &ObjectRef,
        definition: &Definition,
        status: &NetworkStatus,
    ) -> Result<Written, WriteError> {
        let (name, Definition { uid, version, conditions, .. }) = (&object.name, definition);
        match &object.namespace {
            None => {
                let api = Api::<ClusterUserDefinedNetwork>::all(self.client.clone());
                let still = |now: &ClusterUserDefinedNetwork| says_the_same(now.status.as_ref(), conditions);
                let basis = Basis::version(uid, version, &still);
                self.writer.apply_status(&api, name, basis, status).await.map(Kind::read)
            }
            Some(namespace) => {
                let api = Api::<UserDefinedNetwork>::namespaced(self.client.clone(), namespace);
                let still = |now: &UserDefinedNetwork| says_the_same(now.status.as_ref(), conditions);
                let basis = Basis::version(uid, version, &still);
                self.writer.apply_status(&api, name, basis, status).await.map(Kind::read)
            }
        }
    }

    /// Tells what is new: in the log, and what is wrong as events.
    async fn tell_of_network(
        &self,
        object: &ObjectRef,
        uid: &str,
        told: Option<&Told>,
        status: &NetworkStatus,
    ) {
        let conditions: Vec<String> = status
            .conditions
            .iter()
            .map(|condition| format!("{}={} ({})", condition.type_, condition.status, condition.reason))
            .collect();
        info!(network = %object, conditions = conditions.join(", "), "what became of a network");
        let reference = ObjectReference {
            api_version: Some(API_VERSION.to_owned()),
            kind: Some(object.kind.clone()),
            namespace: object.namespace.clone(),
            name: Some(object.name.clone()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        for (reason, note) in told.iter().flat_map(|told| &told.events) {
            self.events.warn(&reference, "Synchronize", reason, note).await;
        }
    }
}

fn key(object: &ObjectRef) -> Key {
    Key::new(object.namespace.as_deref().unwrap_or_default(), &object.name)
}

fn verb(step: &Step) -> &'static str {
    match step {
        Step::Create(_) => "made",
        Step::Repair { .. } => "put right",
        Step::Release { .. } => "let go",
        Step::Delete { .. } => "deleted",
    }
}

/// What is said of a network, with what could not be written.
fn outcomes(object: &ObjectRef, told: &Told, failures: &Failures) -> Vec<Outcome> {
    let mut outcomes = told.outcomes.clone();
    if let Some(problem) = failures.get(&Some(object.clone())) {
        let scope = if object.namespace.is_some() { Scope::Namespace } else { Scope::Cluster };
        for outcome in &mut outcomes {
            if outcome.type_ == NETWORK_CREATED && outcome.verdict == Verdict::True {
                *outcome = not_written(scope, problem.clone());
            }
        }
    }
    outcomes
}

/// Whether a condition is one of ours.
fn ours(condition: &Condition) -> bool {
    CONDITIONS.contains(&condition.type_.as_str())
}

/// Whether a status has these conditions, as far as they are ours.
fn says_the_same(status: Option<&NetworkStatus>, conditions: &[Condition]) -> bool {
    let now = status.map_or(&[][..], |status| &status.conditions);
    let ours = |condition: &&Condition| ours(condition);
    now.iter().filter(ours).eq(conditions.iter().filter(ours))
}

/// The status with our conditions alone; nothing if that says nothing new.
fn status(old: &[Condition], outcomes: &[Outcome]) -> Option<NetworkStatus> {
    let ours = |condition: &&Condition| ours(condition);
    let said = |condition: &&Condition| outcomes.iter().any(|outcome| outcome.type_ == condition.type_);
    let mut changed = !old.iter().filter(ours).all(|condition| said(&condition));
    let mut conditions: Vec<Condition> = old.iter().filter(ours).filter(said).cloned().collect();
    for outcome in outcomes {
        changed |= conditions::set(&mut conditions, outcome.clone(), Time(Timestamp::now()));
    }
    changed.then_some(NetworkStatus { conditions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(type_: &str, verdict: Verdict) -> Outcome {
        let (reason, message) = ("Because".to_owned(), String::new());
        Outcome { type_: type_.to_owned(), verdict, reason, message, observed_generation: None }
    }

    #[test]
    fn a_status_is_written_only_if_it_says_something_new() {
        let both = [outcome(CONDITIONS[0], Verdict::True), outcome(CONDITIONS[1], Verdict::True)];
        let first = status(&[], &both).unwrap();
        assert_eq!(status(&first.conditions, &both), None);
        let mut with_others = first.conditions.clone();
        with_others.push(Condition { type_: "Theirs".to_owned(), ..first.conditions[0].clone() });
        assert_eq!(status(&with_others, &both), None, "others' conditions are their affair");
        let less = status(&with_others, &both[..1]).unwrap();
        assert_eq!(less.conditions, first.conditions[..1], "what is no longer said goes");
        let other = [outcome(CONDITIONS[0], Verdict::False)];
        assert_eq!(status(&with_others, &other).unwrap().conditions[0].status, "False");
    }
}
