//! Writes to the Kubernetes API: whole objects and statuses by server-side apply, annotations by merge patch.
//!
//! In: what an object should be, and what that was decided upon. Out: one request for it, counted. The comparison with
//! what is there comes first and is pure; who finds no difference makes no request.
//!
//! A request names the version of the object that it was decided upon, where that is known: the API server refuses it
//! when somebody else has written since. So a request that was under way when its sender lost the lease, and arrives
//! after the next leader has written, does nothing.

mod basis;
#[cfg(test)]
mod on_a_server;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Status;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use underlay_world::{Key, Version};

pub use basis::Basis;
use basis::conditional;

use crate::fault::text;
use crate::fence::Fence;

/// Longer than any healthy answer takes, shorter than a lease.
const PATIENCE: Duration = Duration::from_secs(8);

/// How often an object that others write too is written before that is left to the next turn.
const ATTEMPTS: usize = 5;

/// A write that failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The API server refused it.
    #[error("{what}: {}", text(.source))]
    Refused {
        /// What was to be written.
        what: String,
        /// Why not.
        source: Box<kube::Error>,
    },
    /// No answer came.
    #[error("{0}: no answer from the API server in {PATIENCE:?}")]
    Silence(String),
    /// We do not lead any more: it was not sent.
    #[error("{0}: not sent, since the lease was not renewed in time")]
    Late(String),
}

impl WriteError {
    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        self.status(404)
    }

    /// Whether the object, or what the write was decided upon, is another one by now.
    pub fn is_conflict(&self) -> bool {
        // To a patch for another uid, the API server says that uids do not change.
        let uid = |status: &Status| {
            let mut causes = status.details.iter().flat_map(|details| &details.causes);
            status.code == 422 && causes.any(|cause| cause.field == "metadata.uid")
        };
        self.status(409) || self.answer().is_some_and(uid)
    }

    fn status(&self, code: u16) -> bool {
        self.answer().is_some_and(|status| status.code == code)
    }

    fn answer(&self) -> Option<&Status> {
        let Self::Refused { source, .. } = self else { return None };
        match source.as_ref() {
            kube::Error::Api(status) => Some(status),
            _ => None,
        }
    }
}

/// Objects that we can write.
pub trait Written: Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Serialize {}

impl<K: Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Serialize> Written for K {}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WriteLabels {
    verb: &'static str,
    kind: String,
}

/// Writes in the name of one field manager, and counts.
#[derive(Debug, Clone)]
pub struct Writer {
    manager: &'static str,
    writes: Family<WriteLabels, Counter>,
    errors: Family<WriteLabels, Counter>,
    fence: Option<Fence>,
}

/// How a patch is sent.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Merged into the object.
    Merge,
    /// Merged into the object by way of its status, so that the right to write that is enough.
    Annotate,
    /// Applied to the status.
    ApplyStatus,
}

impl Writer {
    /// A writer in this name (see `underlay_desired::owner`).
    pub fn register(manager: &'static str, registry: &mut Registry) -> Self {
        let writer = Self { manager, writes: Family::default(), errors: Family::default(), fence: None };
        registry.register("underlay_writes", "Writes to the Kubernetes API", writer.writes.clone());
        registry.register("underlay_write_errors", "Writes that failed", writer.errors.clone());
        writer
    }

    /// The same writer, for one that leads: it sends nothing when the fence is closed.
    #[must_use]
    pub fn behind(self, fence: Fence) -> Self {
        Self { fence: Some(fence), ..self }
    }

    /// Makes an object have what we say; what we do not say stays. It is made if it is not there.
    pub async fn apply<K: Written>(&self, api: &Api<K>, object: &K) -> Result<K, WriteError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let params = PatchParams::apply(self.manager).force();
        self.count::<K, _>("apply", &name, api.patch(&name, &params, &Patch::Apply(object))).await
    }

    /// Makes an object that is not there. One that is, is a conflict.
    pub async fn create<K: Written>(&self, api: &Api<K>, object: &K) -> Result<K, WriteError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let params = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        self.count::<K, _>("create", &name, api.create(&params, object)).await
    }

    /// Changes what a merge patch says.
    pub async fn merge<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        basis: Basis<'_, K>,
        patch: Value,
    ) -> Result<K, WriteError> {
        self.upon(api, name, &basis, Way::Merge, patch).await
    }

    /// Sends a patch for the version it was decided upon. Where others have written to the object meanwhile, and not to
    /// what matters, it is sent again for the version that is there now.
    async fn upon<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        basis: &Basis<'_, K>,
        way: Way,
        patch: Value,
    ) -> Result<K, WriteError> {
        let mut version = basis.version.cloned();
        for _ in 1..ATTEMPTS {
            let body = conditional(patch.clone(), basis.uid, version.as_ref());
            let refused = match self.patch(api, name, way, body).await {
                Err(error) if error.is_conflict() && basis.may_hold_again() => error,
                result => return result,
            };
            let what = format!("get {} {name}", K::kind(&Default::default()));
            let now = answer(what, PATIENCE, api.get(name)).await?;
            if !basis.holds_for(&now) {
                return Err(refused);
            }
            version = Some(Version::of(&now));
        }
        self.patch(api, name, way, conditional(patch, basis.uid, version.as_ref())).await
    }

    async fn patch<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        way: Way,
        patch: Value,
    ) -> Result<K, WriteError> {
        let params = PatchParams { field_manager: Some(self.manager.to_owned()), ..PatchParams::default() };
        match way {
            Way::Merge => {
                self.count::<K, _>("merge", name, api.patch(name, &params, &Patch::Merge(patch))).await
            }
            Way::Annotate => {
                let patch = Patch::Merge(patch);
                self.count::<K, _>("annotate", name, api.patch_status(name, &params, &patch)).await
            }
            Way::ApplyStatus => {
                let (params, patch) = (params.force(), Patch::Apply(patch));
                self.count::<K, _>("apply-status", name, api.patch_status(name, &params, &patch)).await
            }
        }
    }

    /// Makes the very object with this uid stay until we let it go, or lets it go, and sets annotations and labels.
    /// Whatever else holds it is left alone: the list is read first, and written only if it is still that one. Returns the object,
    /// unless there was nothing to do or it is gone.
    pub async fn hold<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        uid: &str,
        hold: &Hold<'_>,
    ) -> Result<Option<K>, WriteError> {
        let mut refused = None;
        for _ in 0..ATTEMPTS {
            let what = format!("get {} {name}", K::kind(&Default::default()));
            let metadata = match answer(what, PATIENCE, api.get_metadata(name)).await {
                Ok(object) => object.metadata,
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            };
            let Some(patch) = hold_patch(&metadata, uid, hold) else { return Ok(None) };
            match self.patch(api, name, Way::Merge, patch).await {
                Ok(object) => return Ok(Some(object)),
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) if error.is_conflict() => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(None), Err)
    }

    /// Makes an object exactly what we say: for one that is all ours and has come to hold what others put there. It
    /// carries the version it replaces.
    pub async fn replace<K: Written>(&self, api: &Api<K>, object: &K) -> Result<K, WriteError> {
        let name = object.meta().name.clone().unwrap_or_default();
        let params = PostParams { field_manager: Some(self.manager.to_owned()), ..PostParams::default() };
        self.count::<K, _>("replace", &name, api.replace(&name, &params, object)).await
    }

    /// Makes the status of an object have what we say.
    pub async fn apply_status<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        basis: Basis<'_, K>,
        status: &impl Serialize,
    ) -> Result<K, WriteError> {
        let kind = Default::default();
        let object = json!({
            "apiVersion": K::api_version(&kind),
            "kind": K::kind(&kind),
            "metadata": { "name": name },
            "status": status,
        });
        self.upon(api, name, &basis, Way::ApplyStatus, object).await
    }

    /// Sets annotations, and removes those without a value. It goes by way of the status, so that the right to write
    /// that is enough.
    pub async fn annotate<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        basis: Basis<'_, K>,
        annotations: &BTreeMap<String, Option<String>>,
    ) -> Result<K, WriteError> {
        let patch = json!({ "metadata": { "annotations": annotations } });
        self.upon(api, name, &basis, Way::Annotate, patch).await
    }

    /// Deletes an object. One that is gone is no error. Returns whether it is gone: others may hold it.
    pub async fn delete<K: Written>(
        &self,
        api: &Api<K>,
        name: &str,
        basis: Basis<'_, K>,
    ) -> Result<bool, WriteError> {
        let uid = (!basis.uid.is_empty()).then(|| basis.uid.to_owned());
        let resource_version = basis.version.and_then(Version::text).map(str::to_owned);
        let preconditions = Some(Preconditions { uid, resource_version });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        match self.count::<K, _>("delete", name, api.delete(name, &params)).await {
            Ok(left) => Ok(left.is_right()),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn count<K: Written, T>(
        &self,
        verb: &'static str,
        name: &str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, WriteError> {
        let kind = K::kind(&Default::default()).into_owned();
        let what = format!("{verb} {kind} {name}");
        let labels = WriteLabels { verb, kind };
        let patience = self.fence.as_ref().map_or(PATIENCE, |fence| fence.left().min(PATIENCE));
        if patience.is_zero() {
            return Err(WriteError::Late(what));
        }
        self.writes.get_or_create(&labels).inc();
        let result = answer(what, patience, request).await;
        if result.is_err() {
            self.errors.get_or_create(&labels).inc();
        }
        result
    }
}

/// What the API server says, if it says anything.
async fn answer<T>(
    what: String,
    patience: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, WriteError> {
    match tokio::time::timeout(patience, request).await {
        Ok(answer) => answer.map_err(|source| WriteError::Refused { what, source: Box::new(source) }),
        Err(_) => Err(WriteError::Silence(what)),
    }
}

/// Whether an object stays until we let it go.
#[derive(Debug, Clone, Copy)]
pub struct Hold<'a> {
    /// The finalizer by which we hold it.
    pub finalizer: &'a str,
    /// Whether we do.
    pub held: bool,
    /// Annotations to set, and (nothing) to remove.
    pub annotations: &'a BTreeMap<String, Option<String>>,
    /// Labels to set, and (nothing) to remove.
    pub labels: &'a BTreeMap<String, Option<String>>,
}

/// The patch that holds an object or lets it go; nothing if that is so, or if another one is meant.
fn hold_patch(have: &ObjectMeta, uid: &str, hold: &Hold<'_>) -> Option<Value> {
    if have.uid.as_deref() != Some(uid) {
        return None;
    }
    let old: Vec<&str> = have.finalizers.iter().flatten().map(String::as_str).collect();
    let others = old.iter().copied().filter(|finalizer| *finalizer != hold.finalizer);
    let new: Vec<&str> = others.chain(hold.held.then_some(hold.finalizer)).collect();
    let none = BTreeMap::new();
    let says = |have: &Option<BTreeMap<String, String>>, want: &BTreeMap<String, Option<String>>| {
        let have = have.as_ref().unwrap_or(&none);
        want.iter().all(|(key, wanted)| have.get(key) == wanted.as_ref())
    };
    let annotated = says(&have.annotations, hold.annotations);
    let labelled = says(&have.labels, hold.labels);
    if new.len() == old.len() && annotated && labelled {
        return None;
    }
    let mut metadata = json!({ "uid": uid, "resourceVersion": have.resource_version });
    if new.len() != old.len() {
        metadata["finalizers"] = json!(new);
    }
    if !annotated {
        metadata["annotations"] = json!(hold.annotations);
    }
    if !labelled {
        metadata["labels"] = json!(hold.labels);
    }
    Some(json!({ "metadata": metadata }))
}

/// What to do to reach what should be.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes<'a, K> {
    /// Objects to apply.
    pub apply: Vec<&'a K>,
    /// Objects to delete, by key and uid.
    pub delete: Vec<(&'a Key, &'a str)>,
}

/// Compares what should be with what is there. `ours` tells which objects may be deleted; `same` compares what a kind
/// has besides metadata.
pub fn diff<'a, K: Resource>(
    want: impl Iterator<Item = (&'a Key, &'a K)>,
    have: impl Iterator<Item = (&'a Key, &'a K)>,
    ours: impl Fn(&Key, &K) -> bool,
    same: impl Fn(&K, &K) -> bool,
) -> Changes<'a, K> {
    let mut have: BTreeMap<&Key, &K> = have.collect();
    let mut apply = Vec::new();
    for (key, object) in want {
        let old = have.remove(key);
        if !old.is_some_and(|old| carries(old.meta(), object.meta()) && same(object, old)) {
            apply.push(object);
        }
    }
    let surplus = have.into_iter().filter(|(key, object)| ours(key, object));
    let identity = |(key, object): (&'a Key, &'a K)| (key, object.meta().uid.as_deref().unwrap_or_default());
    Changes { apply, delete: surplus.map(identity).collect() }
}

/// Whether metadata has all labels and annotations that we want; others' are their own affair.
pub fn carries(have: &ObjectMeta, want: &ObjectMeta) -> bool {
    let all = |have: &Option<BTreeMap<String, String>>, want: &Option<BTreeMap<String, String>>| {
        let mut wanted = want.iter().flatten();
        wanted.all(|(key, value)| have.as_ref().and_then(|have| have.get(key)) == Some(value))
    };
    all(&have.labels, &want.labels) && all(&have.annotations, &want.annotations)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(name: &str, label: Option<&str>, value: &str) -> (Key, ConfigMap) {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{name}")),
            labels: label.map(|label| BTreeMap::from([("ours".to_owned(), label.to_owned())])),
            ..ObjectMeta::default()
        };
        let data = Some(BTreeMap::from([("key".to_owned(), value.to_owned())]));
        (Key::cluster(name), ConfigMap { metadata, data, ..ConfigMap::default() })
    }

    fn names(want: &[(Key, ConfigMap)], have: &[(Key, ConfigMap)]) -> (Vec<String>, Vec<String>) {
        let want = want.iter().map(|(key, object)| (key, object));
        let ours = |_: &Key, object: &ConfigMap| object.metadata.labels.is_some();
        let have = have.iter().map(|(key, object)| (key, object));
        let changes = diff(want, have, ours, |one, other| one.data == other.data);
        let name = |object: &&ConfigMap| object.metadata.name.clone().unwrap();
        let delete = changes.delete.iter().map(|(key, uid)| format!("{key} {uid}")).collect();
        (changes.apply.iter().map(name).collect(), delete)
    }

    #[test]
    fn only_differences_are_written_and_only_ours_are_deleted() {
        let want = [map("a", Some("x"), "1"), map("b", Some("x"), "1"), map("c", Some("x"), "1")];
        let have = [
            map("a", Some("x"), "1"),
            map("b", Some("x"), "2"),
            map("d", Some("x"), "1"),
            map("e", None, "1"),
        ];
        assert_eq!(names(&want, &have), (vec!["b".into(), "c".into()], vec!["d uid-d".into()]));
        assert_eq!(names(&want, &want), (vec![], vec![]));
        let unmarked = [map("a", None, "1")];
        assert_eq!(names(&want[..1], &unmarked), (vec!["a".into()], vec![]), "the mark is missing");
    }

    #[test]
    fn holding_leaves_others_finalizers_alone() {
        let have = |finalizers: &[&str]| ObjectMeta {
            uid: Some("u".to_owned()),
            resource_version: Some("7".to_owned()),
            finalizers: Some(finalizers.iter().map(|text| (*text).to_owned()).collect()),
            ..ObjectMeta::default()
        };
        let none = BTreeMap::new();
        let hold = |held| Hold { finalizer: "ours", held, annotations: &none, labels: &none };
        let patch = |finalizers: &[&str]| {
            Some(json!({ "metadata": { "uid": "u", "resourceVersion": "7", "finalizers": finalizers } }))
        };
        assert_eq!(hold_patch(&have(&["theirs"]), "u", &hold(true)), patch(&["theirs", "ours"]));
        assert_eq!(hold_patch(&have(&["ours", "theirs"]), "u", &hold(false)), patch(&["theirs"]));
        assert_eq!(hold_patch(&have(&["ours"]), "u", &hold(true)), None);
        assert_eq!(hold_patch(&have(&[]), "another", &hold(true)), None);
        let said = BTreeMap::from([("a".to_owned(), Some("1".to_owned()))]);
        let with = Hold { annotations: &said, ..hold(true) };
        let want = json!({ "metadata": { "uid": "u", "resourceVersion": "7", "annotations": { "a": "1" } } });
        assert_eq!(hold_patch(&have(&["ours"]), "u", &with), Some(want));
        let with = Hold { labels: &said, ..hold(true) };
        let want = json!({ "metadata": { "uid": "u", "resourceVersion": "7", "labels": { "a": "1" } } });
        assert_eq!(hold_patch(&have(&["ours"]), "u", &with), Some(want));
    }
}
