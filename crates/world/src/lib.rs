//! The snapshot that a plan is made from: objects parsed once, kept small and in order.
//!
//! In: objects of the Kubernetes API as they come and go, and the settings of the cluster. Out: a [`World`] that says
//! the same whatever the order in which it heard. An object that cannot be understood stays in the world with its
//! problems, so that somebody can be told.

pub mod attached;
pub mod attachment;
pub mod definition;
pub mod egress;
pub mod kind;
pub mod local;
pub mod nad;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod secret;
pub mod select;
pub mod service;
pub mod settings;
pub mod slice;
pub mod speaker;
pub mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use underlay_api::{FRRConfiguration, RouteAdvertisements};

pub use attached::Attached;
pub use attachment::{AnyAttachment, Attachment};
pub use definition::{Definition, Scope};
pub use egress::EgressIp;
pub use kind::Kind;
pub use local::Local;
pub use nad::Nad;
pub use namespace::Namespace;
pub use node::Node;
pub use pod::{Pod, PodState};
pub use secret::Secret;
pub use service::{Endpoint, EndpointSlice, Service};
pub use settings::Settings;
pub use slice::{AnySlice, Slice};
pub use speaker::{Session, Speaker};
pub use version::Version;

/// Namespace and name; the namespace of an object of the cluster is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Key {
    /// The namespace, or nothing.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// Of an object in a namespace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// Of an object of the cluster.
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            formatter.write_str(&self.name)
        } else {
            write!(formatter, "{}/{}", self.namespace, self.name)
        }
    }
}

/// What a namespace has of objects of one kind.
pub fn within<'a, T>(
    objects: &'a BTreeMap<Key, T>,
    namespace: &'a str,
) -> impl Iterator<Item = (&'a Key, &'a T)> {
    objects.range(Key::new(namespace, "")..).take_while(move |(key, _)| key.namespace == namespace)
}

/// All that is known. Each program watches the kinds it needs; the others stay empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct World {
    /// Nodes.
    pub nodes: BTreeMap<Key, Arc<Node>>,
    /// Pods; on a node, its own only.
    pub pods: BTreeMap<Key, Arc<Pod>>,
    /// Services.
    pub services: BTreeMap<Key, Arc<Service>>,
    /// Endpoint slices.
    pub slices: BTreeMap<Key, Arc<EndpointSlice>>,
    /// Attachment definitions of networks of ours.
    pub nads: BTreeMap<Key, Arc<Nad>>,
    /// Networks that are defined for the namespaces they select.
    pub cluster_networks: BTreeMap<Key, Arc<Definition>>,
    /// Networks that are defined for their own namespace.
    pub networks: BTreeMap<Key, Arc<Definition>>,
    /// Namespaces.
    pub namespaces: BTreeMap<Key, Arc<Namespace>>,
    /// All attachment definitions, as they are written.
    pub attachments: BTreeMap<Key, Arc<Attachment>>,
    /// Living pods in networks other than the default one.
    pub attached: BTreeMap<Key, Arc<Attached>>,
    /// Endpoint slices that the cluster's controllers wrote, and those that were made from them for networks of tenants.
    pub any_slices: BTreeMap<Key, Arc<Slice>>,
    /// Advertisements.
    pub advertisements: BTreeMap<Key, Arc<RouteAdvertisements>>,
    /// Egress IPs, and the nodes that hold them.
    pub egress_ips: BTreeMap<Key, Arc<EgressIp>>,
    /// Pods of other nodes in namespaces whose egress IPs the node holds, by namespace; one that was not listed yet is
    /// missing.
    pub elsewhere: BTreeMap<String, BTreeMap<Key, Arc<Pod>>>,
    /// Nodes that do not answer, among those that may hold egress IPs.
    pub unreachable: BTreeSet<String>,
    /// Parts of the nodes' FRR configuration: the users' and those generated from them.
    pub frr_configurations: BTreeMap<Key, Arc<FRRConfiguration>>,
    /// What became of the nodes' FRR configurations.
    pub speakers: BTreeMap<Key, Speaker>,
    /// BGP sessions.
    pub sessions: BTreeMap<Key, Session>,
    /// Secrets that somebody asked for and that were looked at, also those that are not there.
    pub secrets: BTreeMap<Key, Secret>,
}

impl World {
    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&Arc<Node>> {
        self.nodes.get(&Key::cluster(name))
    }

    /// All networks that are defined.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.cluster_networks.values().chain(self.networks.values())
    }
}
