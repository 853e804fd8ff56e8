//! A network as somebody has defined it: a ClusterUserDefinedNetwork or a UserDefinedNetwork, read once.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, ObjectMeta};
use kube::core::Selector;
use underlay_api::annotations::{Annotation, NetworkId};
use underlay_api::network::{self, FINALIZER, FieldError, Network, OWN_ANNOTATIONS};
use underlay_api::{ClusterUserDefinedNetwork, UserDefinedNetwork};

use crate::kind::key_of;
use crate::{Key, Version};

/// What kubectl remembers of a manifest: no annotation of the user's, and as long as the object itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Which of the two resources defines a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// A ClusterUserDefinedNetwork: for the namespaces it selects.
    Cluster,
    /// A UserDefinedNetwork: for its own namespace.
    Namespace,
}

impl Scope {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Cluster, Self::Namespace];

    /// The kind of the object.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cluster => "ClusterUserDefinedNetwork",
            Self::Namespace => "UserDefinedNetwork",
        }
    }
}

/// A definition of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Namespace, if it has one, and name.
    pub key: Key,
    /// Its identity: another definition of the same name has another one.
    pub uid: String,
    /// Which writing of it this is.
    pub version: Version,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the user's; neither ours nor kubectl's.
    pub annotations: BTreeMap<String, String>,
    /// The network, or which field is wrong.
    pub network: Result<Network, FieldError>,
    /// The namespaces that are to have it, or why they cannot be told. Nothing where it is the definition's own.
    pub namespaces: Option<Result<Selector, String>>,
    /// The number of the network, once that is recorded.
    pub id: Option<NetworkId>,
    /// What was said of it.
    pub conditions: Vec<Condition>,
    /// Whether it stays until we let it go.
    pub protected: bool,
    /// Whether it is on its way out.
    pub ending: bool,
}

impl Definition {
    /// Reads a ClusterUserDefinedNetwork.
    pub fn of_cluster(object: ClusterUserDefinedNetwork) -> Self {
        let (network, version) = (object.spec.network(), Version::of(&object));
        let selector = selector(object.spec.namespace_selector);
        let conditions = object.status.map(|status| status.conditions).unwrap_or_default();
        Self::new(object.metadata, version, network, Some(selector), conditions)
    }

    /// Reads a UserDefinedNetwork.
    pub fn of_namespace(object: UserDefinedNetwork) -> Self {
        let (network, version) = (object.spec.network(), Version::of(&object));
        let conditions = object.status.map(|status| status.conditions).unwrap_or_default();
        Self::new(object.metadata, version, network, None, conditions)
    }

    fn new(
        metadata: ObjectMeta,
        version: Version,
        network: Result<Network, FieldError>,
        namespaces: Option<Result<Selector, String>>,
        conditions: Vec<Condition>,
    ) -> Self {
        let own = |key: &String| key.starts_with(OWN_ANNOTATIONS) || key == LAST_APPLIED;
        Self {
            key: key_of(&metadata),
            // Of a number that cannot be read nothing is lost: the network is given one.
            id: NetworkId::of(&metadata).ok().flatten(),
            uid: metadata.uid.unwrap_or_default(),
            version,
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.into_iter().flatten().filter(|(key, _)| !own(key)).collect(),
            network,
            namespaces,
            conditions,
            protected: metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER),
            ending: metadata.deletion_timestamp.is_some(),
        }
    }

    /// Which of the two resources it is.
    pub fn scope(&self) -> Scope {
        if self.namespaces.is_some() { Scope::Cluster } else { Scope::Namespace }
    }

    /// The name of its network.
    pub fn network_name(&self) -> String {
        match self.scope() {
            Scope::Cluster => network::cluster_network_name(&self.key.name),
            Scope::Namespace => network::namespaced_network_name(&self.key.namespace, &self.key.name),
        }
    }
}

fn selector(written: LabelSelector) -> Result<Selector, String> {
    Selector::try_from(written).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_that_are_not_the_users_are_left_out() {
        let object = json!({
            "metadata": {
                "name": "blue",
                "uid": "u",
                "annotations": { "team": "a", "k8s.ovn.org/network-id": "7", LAST_APPLIED: "{}" },
                "finalizers": ["theirs", FINALIZER],
            },
            "spec": { "namespaceSelector": {}, "network": { "topology": "Layer3" } },
        });
        let read = Definition::of_cluster(serde_json::from_value(object).unwrap());
        assert_eq!(read.annotations, BTreeMap::from([("team".to_owned(), "a".to_owned())]));
        assert_eq!((read.id, read.protected, read.ending), (Some(NetworkId(7)), true, false));
        assert_eq!((read.scope(), read.network_name().as_str()), (Scope::Cluster, "cluster_udn_blue"));
        assert!(read.network.is_err(), "it has no subnets");
    }

    #[test]
    fn one_of_a_namespace_has_its_name_in_the_networks() {
        let object = json!({ "metadata": { "name": "blue", "namespace": "red" }, "spec": {} });
        let read = Definition::of_namespace(serde_json::from_value(object).unwrap());
        assert_eq!((read.scope(), read.network_name().as_str()), (Scope::Namespace, "red_blue"));
    }
}
