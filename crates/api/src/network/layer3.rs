//! Networks in which each node has a subnet of its own, as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RoleName, rules, says};

/// A network in which each node has a subnet of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["role", "subnets"], "x-kubernetes-validations" = rules::layer3()))]
pub struct Layer3Spec {
    /// What the network is to its pods. `Primary`: the one that carries their traffic, for every pod of the namespace.
    /// `Secondary`: a further one, for pods that ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::immutable(says::ROLE_IMMUTABLE)))]
    pub role: Option<RoleName>,

    /// The subnets that nodes get theirs from, of one family or both. Of a primary network, more can be added later.
    #[schemars(length(min = 1, max = 400), extend("x-kubernetes-list-type" = "atomic"))]
    pub subnets: Vec<SubnetSpec>,

    /// Parts of the subnets that pods never get addresses from, because somebody outside the cluster has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::kept_cidrs")]
    pub exclude_subnets: Vec<String>,

    /// The size of packets. Without it, what the cluster is configured with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 65536))]
    pub mtu: Option<u32>,

    /// Subnets for the routers inside the network, at most one of each family. Without them, `100.65.0.0/16` and
    /// `fd99::/64`. Only for primary networks, and only needed where those are in use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::cidr_of_each_family")]
    pub join_subnets: Vec<String>,
}

/// A subnet that nodes get theirs from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["cidr"], "x-kubernetes-validations" = rules::subnet()))]
pub struct SubnetSpec {
    /// The subnet, like `10.10.0.0/16`.
    #[schemars(schema_with = "rules::cidr")]
    pub cidr: String,

    /// The prefix length of each node's part. Without it, 24 for IPv4 and 64 for IPv6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 127))]
    pub host_subnet: Option<u8>,
}
