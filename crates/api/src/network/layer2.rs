//! Networks with one switch for all nodes, as they are written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IpamSpec, RoleName, rules};

/// A network with one switch for all nodes. It is fixed once it is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["role"], "x-kubernetes-validations" = rules::layer2()))]
pub struct Layer2Spec {
    /// What the network is to its pods. `Primary`: the one that carries their traffic, for every pod of the namespace.
    /// `Secondary`: a further one, for pods that ask for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleName>,

    /// The subnets that pods have their addresses in, at most one of each family. Left out if `ipam.mode` is
    /// `Disabled`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::cidr_of_each_family")]
    pub subnets: Vec<String>,

    /// Who gives pods their addresses, and how long they keep them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipam: Option<IpamSpec>,

    /// The addresses of the pods' default gateway, one of each family that the network has: those that virtual machines
    /// from elsewhere know. Without them, the first of each subnet. Only for primary networks.
    #[serde(rename = "defaultGatewayIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::ip_of_each_family")]
    pub default_gateway_ips: Vec<String>,

    /// Parts of the subnets that pods get addresses from only by asking for one. Only for primary networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::kept_cidrs")]
    pub reserved_subnets: Vec<String>,

    /// Parts of the subnets for the network's own gateway and management ports, and never for pods. Only for primary
    /// networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::infrastructure_cidrs")]
    pub infrastructure_subnets: Vec<String>,

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
