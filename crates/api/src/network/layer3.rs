//! Networks in which each node has a subnet of its own, as they are written.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::RoleName;

/// A network in which each node has a subnet of its own.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["role", "subnets"]))]
pub struct Layer3Spec {
    /// What the network is to its pods. `Primary`: the one that carries their traffic, for every pod of the namespace.
    /// `Secondary`: a further one, for pods that ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleName>,

    /// The subnets that nodes get theirs from, of one family or both. Of a primary network, more can be added later.
    #[serde(default)]
    pub subnets: Vec<SubnetSpec>,

    /// Parts of the subnets that pods never get addresses from, because somebody outside the cluster has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_subnets: Vec<String>,

    /// The size of packets. Without it, what the cluster is configured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,

    /// Subnets for the routers inside the network, at most one of each family. Without them, `100.65.0.0/16` and
    /// `fd99::/64`. Only for primary networks, and only needed where those are in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub join_subnets: Vec<String>,
}

/// A subnet that nodes get theirs from.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["cidr"]))]
pub struct SubnetSpec {
    /// The subnet, like `10.10.0.0/16`.
    #[serde(default)]
    pub cidr: String,

    /// The prefix length of each node's part. Without it, 24 for IPv4 and 64 for IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_subnet: Option<u8>,
}
