//! Networks outside the cluster that nodes are connected to, as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IpamSpec, RoleName, rules};
use crate::is_default;
use crate::words::words;

/// A network outside the cluster that nodes are connected to. It is fixed once it is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["role", "physicalNetworkName"], "x-kubernetes-validations" = rules::localnet()))]
pub struct LocalnetSpec {
    /// What the network is to its pods: `Secondary`, a further one for pods that ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Secondary"]))]
    pub role: Option<RoleName>,

    /// The name by which the bridge mappings of the nodes know the network outside.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(length(min = 1, max = 253), extend("x-kubernetes-validations" = rules::physical_network_name()))]
    pub physical_network_name: String,

    /// The subnets that pods have their addresses in, at most one of each family. Left out if `ipam.mode` is
    /// `Disabled`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::cidr_of_each_family")]
    pub subnets: Vec<String>,

    /// Parts of the subnets that pods never get addresses from, because somebody outside the cluster has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::kept_cidrs")]
    pub exclude_subnets: Vec<String>,

    /// Who gives pods their addresses, and how long they keep them: `Enabled` or `Disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipam: Option<IpamSpec>,

    /// The size of packets. Without it, what the cluster is configured with for networks without overlay.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 65536))]
    pub mtu: Option<u32>,

    /// The VLAN of the network outside. Without it, packets are not tagged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanSpec>,
}

/// The VLAN of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["mode"], "x-kubernetes-validations" = rules::vlan()))]
pub struct VlanSpec {
    /// How pods are in the VLAN. `Access`: they are in this one, and do not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<VlanMode>,

    /// The VLAN, if the mode is `Access`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessVlan>,
}

words! {
    /// How pods are in a VLAN.
    pub enum VlanMode {
        /// They are in one, and do not see it.
        Access = "Access",
    }
}

/// The VLAN that pods are in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["id"]))]
pub struct AccessVlan {
    /// Its number.
    #[schemars(range(min = 1, max = 4094))]
    pub id: u16,
}
