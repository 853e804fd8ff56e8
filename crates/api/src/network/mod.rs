//! `ClusterUserDefinedNetwork` and `UserDefinedNetwork`: networks that tenants have for themselves.
//!
//! In: definitions, in each of the spellings that are about. Out: the same as types, and [`Network`], which has one
//! spelling and in which nothing is left to check that can be checked by looking at the definition alone.

mod cluster;
pub mod conditions;
mod ipam;
mod layer2;
mod layer3;
mod localnet;
mod namespaced;
mod reading;
mod rules;
#[cfg(test)]
pub(crate) mod samples;
mod says;
mod transport;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use underlay_net::names::CLUSTER_NETWORK;

pub use cluster::{ClusterUserDefinedNetwork, ClusterUserDefinedNetworkSpec, NetworkSpec};
pub use ipam::{IpamLifecycle, IpamMode, IpamSpec};
pub use layer2::Layer2Spec;
pub use layer3::{Layer3Spec, SubnetSpec};
pub use localnet::{AccessVlan, LocalnetSpec, VlanMode, VlanSpec};
pub use namespaced::{UserDefinedNetwork, UserDefinedNetworkSpec};
pub use reading::{
    Addressing, Evpn, FieldError, Layer2, Layer3, Localnet, Network, NetworkRole, NoOverlay, OwnAddresses,
    Routing, Subnet, Topology, Transport, Vrf,
};
pub use transport::{EvpnSpec, NoOverlaySpec, OutboundSnat, RoutingName, TransportName, VrfSpec};

use crate::schema;
use crate::words::words;

/// Label of a namespace that has a primary network of its own: its pods wait for that network. Any value will do; it
/// is set when the namespace is made.
pub const PRIMARY_NETWORK_LABEL: &str = "k8s.ovn.org/primary-user-defined-network";
/// Label of the attachment definitions that are made for a network of ours. Its value is empty.
pub const NETWORK_LABEL: &str = "k8s.ovn.org/user-defined-network";
/// Finalizer of networks and of their attachment definitions: they stay until no pod uses them.
pub const FINALIZER: &str = "k8s.ovn.org/user-defined-network-protection";
/// Annotations of a network whose keys begin like this are not copied to its attachment definitions.
pub const OWN_ANNOTATIONS: &str = "k8s.ovn.org";
/// Group and version of both resources, as owner references name them.
pub const API_VERSION: &str = "k8s.ovn.org/v1";

/// The name of the network of a ClusterUserDefinedNetwork.
pub fn cluster_network_name(name: &str) -> String {
    format!("{CLUSTER_NETWORK}{name}")
}

/// The name of the network of a UserDefinedNetwork.
pub fn namespaced_network_name(namespace: &str, name: &str) -> String {
    format!("{namespace}_{name}")
}

words! {
    /// How the parts of a network on the nodes are connected.
    pub enum TopologyName {
        /// Each node has a subnet of its own, with routers between them.
        Layer3 = "Layer3",
        /// One switch, and one subnet, for all nodes.
        Layer2 = "Layer2",
        /// A network outside the cluster that nodes are connected to.
        Localnet = "Localnet",
    }
}

words! {
    /// What a network is to its pods.
    pub enum RoleName {
        /// The one that carries their traffic.
        Primary = "Primary",
        /// A further one, for pods that ask for it.
        Secondary = "Secondary",
    }
}

/// What has become of a network.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkStatus {
    /// `NetworkCreated` says whether namespaces have the network, `NetworkAllocationSucceeded` whether every node has
    /// its part of it, `TransportAccepted` whether pods reach those on other nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
