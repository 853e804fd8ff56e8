//! Who advertises a network, told on its attachments: nodes look there.
//!
//! In: what is done to attachments for other reasons, and the advertisements of each network. Out: the same with the
//! names of the advertisements in it, so that each attachment is written once; and only where they are others than
//! those that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::json;
use underlay_api::NetworkAttachmentDefinition;
use underlay_api::annotations::{Advertisers, Annotation, NetworkName};
use underlay_desired::ObjectRef;
use underlay_world::{Attachment, Key, Scope, World};

use super::{Change, Step};

/// Adds to what is done to attachments what they say of advertisements.
pub fn announce(
    changes: &mut BTreeMap<Key, Change>,
    world: &World,
    advertisers: &BTreeMap<Arc<str>, BTreeSet<String>>,
) {
    let nobody = BTreeSet::new();
    let of = |network: Option<&str>| network.and_then(|network| advertisers.get(network)).unwrap_or(&nobody);
    for change in changes.values_mut() {
        if let Step::Create(made) | Step::Release { again: Some(made), .. } = &mut change.step {
            let network = NetworkName::of(&made.metadata).ok().flatten();
            put(made, of(network.as_ref().map(|NetworkName(name)| name.as_str())));
        }
    }
    for (key, attachment) in &world.attachments {
        let Some((Scope::Cluster, name)) = attachment.made_from() else { continue };
        if attachment.ending {
            continue;
        }
        if let Some(text) = news(attachment, of(attachment.network.as_deref())) {
            let step = Step::Repair { uid: attachment.uid.clone(), patch: json!({}) };
            let of = Some(ObjectRef::cluster(Scope::Cluster.kind(), name));
            let change = changes.entry(key.clone()).or_insert(Change { of, step });
            if let Step::Repair { uid, patch } = &mut change.step {
                patch["metadata"]["annotations"][Advertisers::KEY] = json!(text);
                patch["metadata"]["uid"] = json!(uid);
            }
        }
    }
}

/// A new attachment of a network that nobody advertises says nothing of it.
fn put(made: &mut NetworkAttachmentDefinition, advertisers: &BTreeSet<String>) {
    if !advertisers.is_empty() {
        let annotations = made.metadata.annotations.get_or_insert_default();
        Advertisers(advertisers.clone()).put(annotations);
    }
}

/// What an attachment should say, if it says something else. Whoever was the last goes with an empty list.
fn news(attachment: &Attachment, advertisers: &BTreeSet<String>) -> Option<String> {
    let said = attachment.annotations.get(Advertisers::KEY);
    let same = match said {
        None => advertisers.is_empty(),
        Some(text) => Advertisers::parse(text).is_ok_and(|said| said.0 == *advertisers),
    };
    (!same).then(|| Advertisers(advertisers.clone()).render())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use underlay_world::{AnyAttachment, Kind};

    use super::*;

    fn attachment(said: Option<&str>) -> NetworkAttachmentDefinition {
        let mut annotations = json!({ "k8s.ovn.org/network-name": "cluster_udn_blue" });
        if let Some(said) = said {
            annotations[Advertisers::KEY] = said.into();
        }
        let owner = json!({
            "apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork", "name": "blue", "uid": "u",
            "controller": true,
        });
        serde_json::from_value(json!({
            "metadata": {
                "name": "blue", "namespace": "ns", "uid": "nad", "annotations": annotations,
                "labels": { "k8s.ovn.org/user-defined-network": "" }, "ownerReferences": [owner],
            },
            "spec": { "config": "" },
        }))
        .unwrap()
    }

    fn by(names: &[&str]) -> BTreeMap<Arc<str>, BTreeSet<String>> {
        [("cluster_udn_blue".into(), names.iter().map(|name| (*name).to_owned()).collect())].into()
    }

    /// The patch for an attachment that says this.
    fn patch(said: Option<&str>, names: &[&str]) -> Option<Value> {
        let mut world = World::default();
        let key = Key::new("ns", "blue");
        world.attachments.insert(key.clone(), AnyAttachment(attachment(said)).read().unwrap());
        let mut changes = BTreeMap::new();
        announce(&mut changes, &world, &by(names));
        let change = changes.remove(&key)?;
        assert_eq!(change.of, Some(ObjectRef::cluster("ClusterUserDefinedNetwork", "blue")));
        let Step::Repair { patch, uid } = change.step else { panic!("{:?}", change.step) };
        assert_eq!((uid.as_str(), &patch["metadata"]["uid"]), ("nad", &json!("nad")));
        Some(patch["metadata"]["annotations"].clone())
    }

    #[test]
    fn only_what_is_new_is_said() {
        let said = |text: &str| Some(json!({ Advertisers::KEY: text }));
        assert_eq!(patch(None, &[]), None, "nobody ever advertised it");
        assert_eq!(patch(None, &["b", "a"]), said(r#"["a","b"]"#));
        assert_eq!(patch(Some(r#"["b","a"]"#), &["a", "b"]), None, "in whatever order");
        assert_eq!(patch(Some(r#"["a"]"#), &[]), said("[]"), "the last went");
        assert_eq!(patch(Some("[]"), &[]), None);
        assert_eq!(patch(Some("odd"), &["a"]), said(r#"["a"]"#));
    }

    #[test]
    fn what_is_written_anyway_says_it_too() {
        let key = Key::new("ns", "blue");
        let mut world = World::default();
        let create = || Step::Create(Box::new(attachment(None)));
        let mut changes = BTreeMap::from([(key.clone(), Change { of: None, step: create() })]);
        announce(&mut changes, &world, &by(&["a"]));
        let Step::Create(made) = &changes[&key].step else { panic!("{changes:?}") };
        assert_eq!(made.metadata.annotations.as_ref().unwrap()[Advertisers::KEY], r#"["a"]"#);
        let mut changes = BTreeMap::from([(key.clone(), Change { of: None, step: create() })]);
        announce(&mut changes, &world, &BTreeMap::new());
        assert_eq!(changes[&key].step, create(), "nothing to say");

        world.attachments.insert(key.clone(), AnyAttachment(attachment(None)).read().unwrap());
        let patch = json!({ "metadata": { "labels": { "a": "b" } } });
        let step = Step::Repair { uid: "nad".to_owned(), patch };
        let mut changes = BTreeMap::from([(key.clone(), Change { of: None, step })]);
        announce(&mut changes, &world, &by(&["a"]));
        let Step::Repair { patch, .. } = &changes[&key].step else { panic!("{changes:?}") };
        let want =
            json!({ "labels": { "a": "b" }, "annotations": { Advertisers::KEY: r#"["a"]"# }, "uid": "nad" });
        assert_eq!(patch["metadata"], want);
        let step = Step::Delete { uid: "nad".to_owned() };
        let mut changes = BTreeMap::from([(key.clone(), Change { of: None, step: step.clone() })]);
        announce(&mut changes, &world, &by(&["a"]));
        assert_eq!(changes[&key].step, step, "it goes");
    }
}
