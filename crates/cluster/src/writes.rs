//! Writes what comes of advertisements: generated configurations, then what is said of the advertisements.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt};
use tracing::info;
use underlay_api::route_advertisements::{ACCEPTED, READY, ROUTES_IMPORTED, RouteAdvertisementsStatus};
use underlay_api::{FRRConfiguration, RouteAdvertisements, conditions};
use underlay_plan::cluster::advertise::{LABEL, is_generated};
use underlay_plan::cluster::imported::{self, Refused};
use underlay_plan::cluster::ready::{self, Readiness};
use underlay_plan::cluster::transport::Verdicts;
use underlay_plan::cluster::{Advertised, Verdict};
use underlay_runtime::events::reference;
use underlay_runtime::feed::put;
use underlay_runtime::objects::{Basis, WriteError, diff};
use underlay_world::kind::key_of;
use underlay_world::{Key, Kind, Version};

use crate::leader::{AT_ONCE, Leader};

/// The conditions that are ours.
const CONDITIONS: [&str; 3] = [ACCEPTED, READY, ROUTES_IMPORTED];

/// A write that was made: what the object is now, or that it is gone.
type Written = Result<Option<FRRConfiguration>, WriteError>;

impl Leader {
    /// Says what became of all advertisements. `failures` are of configurations, by advertisement. Returns what is said
    /// of each in the end, and whether all is done.
    pub(crate) async fn say_of_advertisements(
        &mut self,
        advertised: &Advertised,
        failures: &BTreeMap<String, String>,
    ) -> (Verdicts, bool) {
        let (mut names, mut verdicts, mut done) = (BTreeSet::new(), Verdicts::new(), true);
        let mut refused = imported::plan(&self.world, advertised);
        for (name, readiness) in ready::plan(&self.world, advertised) {
            let failed = failures.get(&name).cloned().map(Verdict::Internal);
            let verdict = failed.as_ref().or_else(|| advertised.verdicts.get(&name));
            if let Some(verdict) = verdict {
                let refused = refused.remove(&name).unwrap_or_default();
                done &= self.say(&name, verdict, &readiness, &refused).await;
                verdicts.insert(name.clone(), verdict.clone());
            }
            names.insert(name);
        }
        let gone = self.measured.difference(&names).cloned().collect();
        for condition in CONDITIONS {
            self.tools.metrics.forget(&gone, condition);
        }
        self.measured = names;
        (verdicts, done)
    }

    /// Makes, changes and deletes configurations. Returns what failed, by name of the advertisement, and whether all is
    /// done.
    pub(crate) async fn write_configurations(
        &mut self,
        advertised: &Advertised,
    ) -> (BTreeMap<String, String>, bool) {
        let want = advertised.configurations.iter().map(|(key, generated)| (key, generated.object.as_ref()));
        let have = self.world.frr_configurations.iter().map(|(key, object)| (key, object.as_ref()));
        let changes = diff(want, have, is_generated, |one, other| one.spec == other.spec);
        let applies = stream::iter(changes.apply)
            .map(async |object| (key_of(&object.metadata), label(object), self.write(object).await));
        let mut results: Vec<(Key, String, Written)> = applies.buffer_unordered(AT_ONCE).collect().await;
        let deletes = stream::iter(changes.delete).map(async |(key, uid)| {
            let api = self.configurations(key);
            let version = self.world.frr_configurations.get(key).map(|have| Version::of(have.as_ref()));
            let version = version.unwrap_or_default();
            let basis = Basis::exactly(uid, &version);
            let written = self.tools.writer.delete(&api, &key.name, basis).await.map(|_| None);
            (key.clone(), String::new(), written)
        });
        results.extend(deletes.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await);
        self.take_note(results)
    }

    /// Makes a configuration, or makes the one that is there what it should be. It is all ours: what somebody else has put
    /// into it goes. Labels and annotations of others stay.
    async fn write(&self, object: &FRRConfiguration) -> Written {
        let key = key_of(&object.metadata);
        let api = self.configurations(&key);
        let written = match self.world.frr_configurations.get(&key) {
            None => self.tools.writer.create(&api, object).await?,
            Some(have) => {
                let mut next = have.as_ref().clone();
                next.spec = object.spec.clone();
                next.labels_mut().extend(object.labels().clone());
                next.annotations_mut().extend(object.annotations().clone());
                self.tools.writer.replace(&api, &next).await?
            }
        };
        Ok(Some(written))
    }

    fn configurations(&self, key: &Key) -> Api<FRRConfiguration> {
        Api::namespaced(self.tools.client.clone(), &key.namespace)
    }

    /// Writes count in the world at once: their echo is no news then.
    fn take_note(&mut self, results: Vec<(Key, String, Written)>) -> (BTreeMap<String, String>, bool) {
        let (mut failures, mut done) = (BTreeMap::new(), true);
        for (key, advertisement, written) in results {
            match written {
                Ok(object) => {
                    let verb = if object.is_some() { "written" } else { "deleted" };
                    info!(configuration = %key, verb, "a generated FRRConfiguration");
                    put::<FRRConfiguration>(&mut self.world, key, object.and_then(Kind::read));
                }
                Err(error) => {
                    done = false;
                    self.complain(&error);
                    if !error.is_conflict() {
                        failures.insert(advertisement, error.to_string());
                    }
                }
            }
        }
        (failures, done)
    }

    /// Says what became of an advertisement, unless that is what is said already. False if it could not be said.
    async fn say(&mut self, name: &str, verdict: &Verdict, readiness: &Readiness, refused: &Refused) -> bool {
        let key = Key::cluster(name);
        let Some(object) = self.world.advertisements.get(&key).cloned() else { return true };
        let (status, changed) = status(&object, verdict, readiness, refused);
        status.conditions.iter().for_each(|condition| self.tools.metrics.condition(name, condition));
        if !changed {
            return true;
        }
        let api = Api::<RouteAdvertisements>::all(self.tools.client.clone());
        let (uid, version) = (object.uid().unwrap_or_default(), Version::of(object.as_ref()));
        let still = |now: &RouteAdvertisements| now.status == object.status;
        let basis = Basis::version(&uid, &version, &still);
        match self.tools.writer.apply_status(&api, name, basis, &status).await {
            Ok(written) => {
                info!(name, status = status.status, "RouteAdvertisements");
                put::<RouteAdvertisements>(&mut self.world, key, written.read());
                if !matches!(verdict, Verdict::Accepted { .. }) {
                    let (reason, note) = (verdict.reason(), verdict.message(name));
                    self.tools.events.warn(&reference(object.as_ref()), "Advertise", reason, &note).await;
                }
                true
            }
            Err(error) if error.is_not_found() => true,
            Err(error) => {
                self.complain(&error);
                false
            }
        }
    }
}

fn label(object: &FRRConfiguration) -> String {
    object.labels().get(LABEL).cloned().unwrap_or_default()
}

/// The status with our conditions alone, and whether it says anything new.
fn status(
    object: &RouteAdvertisements,
    verdict: &Verdict,
    readiness: &Readiness,
    refused: &Refused,
) -> (RouteAdvertisementsStatus, bool) {
    let (name, generation) = (object.name_any(), object.metadata.generation);
    let old = object.status.clone().unwrap_or_default();
    let ours = |condition: &Condition| CONDITIONS.contains(&condition.type_.as_str());
    let mut conditions: Vec<Condition> = old.conditions.into_iter().filter(ours).collect();
    let mut changed = false;
    let said_before = conditions.iter().any(|condition| condition.type_ == ROUTES_IMPORTED);
    let outcomes = [verdict.outcome(&name, generation), readiness.outcome(generation)];
    for outcome in outcomes.into_iter().chain(refused.outcome(generation, said_before)) {
        changed |= conditions::set(&mut conditions, outcome, Time(Timestamp::now()));
    }
    let summary = verdict.summary(&name);
    let changed = changed || summary != old.status;
    (RouteAdvertisementsStatus { status: summary, conditions }, changed)
}
