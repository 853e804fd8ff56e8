//! What a write was decided upon, and how the API server is told to refuse it when that is no longer so.

use kube::Resource;
use serde_json::Value;
use underlay_world::Version;

/// Whether what matters to a write is as it was.
type Still<'a, K> = &'a (dyn Fn(&K) -> bool + Sync);

/// What a write was decided upon. It is refused when that is no longer so.
pub struct Basis<'a, K> {
    pub(super) uid: &'a str,
    pub(super) version: Option<&'a Version>,
    still: Option<Still<'a, K>>,
}

impl<'a, K: Resource> Basis<'a, K> {
    /// Only that it is the very object with this uid; with none, whatever has the name.
    pub fn identity(uid: &'a str) -> Self {
        Self { uid, version: None, still: None }
    }

    /// This version of the very object with this uid, and no other.
    pub fn exactly(uid: &'a str, version: &'a Version) -> Self {
        Self { uid, version: Some(version), still: None }
    }

    /// This version of the very object with this uid. Where somebody has written since, `still` is asked whether what
    /// matters to the write is as it was.
    pub fn version(uid: &'a str, version: &'a Version, still: Still<'a, K>) -> Self {
        Self { uid, version: Some(version), still: Some(still) }
    }

    /// Whether it makes sense to look at what others have written.
    pub(super) fn may_hold_again(&self) -> bool {
        self.still.is_some()
    }

    /// Whether it holds for an object as it is now.
    pub(super) fn holds_for(&self, now: &K) -> bool {
        now.meta().uid.as_deref() == Some(self.uid) && self.still.is_some_and(|still| still(now))
    }
}

/// A patch that the API server refuses unless the object has this uid and this version, as far as they are given.
pub(super) fn conditional(mut patch: Value, uid: &str, version: Option<&Version>) -> Value {
    if !uid.is_empty() {
        patch["metadata"]["uid"] = uid.into();
    }
    if let Some(version) = version.and_then(Version::text) {
        patch["metadata"]["resourceVersion"] = version.into();
    }
    patch
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn map(uid: &str, version: &str) -> ConfigMap {
        serde_json::from_value(json!({ "metadata": { "uid": uid, "resourceVersion": version } })).unwrap()
    }

    #[test]
    fn a_patch_names_what_it_was_decided_upon() {
        let patch = || json!({ "metadata": { "annotations": { "a": "1", "b": null } } });
        assert_eq!(conditional(patch(), "", None), patch());
        assert_eq!(conditional(patch(), "", Some(&Version::default())), patch());
        let mut want = patch();
        want["metadata"]["uid"] = "u".into();
        want["metadata"]["resourceVersion"] = "7".into();
        assert_eq!(conditional(patch(), "u", Some(&Version::of(&map("u", "7")))), want);
    }

    #[test]
    fn another_object_of_the_same_name_is_never_what_was_meant() {
        let version = Version::of(&map("u", "7"));
        let basis = Basis::version("u", &version, &|_: &ConfigMap| true);
        assert!(basis.holds_for(&map("u", "8")));
        assert!(!basis.holds_for(&map("another", "8")));
        assert!(!Basis::exactly("u", &version).holds_for(&map("u", "8")));
    }
}
