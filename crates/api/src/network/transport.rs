//! How packets get to pods on other nodes, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::is_default;
use crate::words::words;

words! {
    /// How packets get to pods on other nodes.
    pub enum TransportName {
        /// In Geneve tunnels.
        Geneve = "Geneve",
        /// As they are, routed by the network between the nodes.
        NoOverlay = "NoOverlay",
        /// In VXLAN, with BGP telling who is where.
        Evpn = "EVPN",
    }
}

/// How packets are routed without overlay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["outboundSNAT", "routing"]))]
pub struct NoOverlaySpec {
    /// Whether packets to the world outside the cluster leave with the node's address: `Enabled` where nobody out there
    /// has routes to pods, `Disabled` where somebody has. `Enable` and `Disable` are the same. Packets between pods
    /// always keep their addresses.
    #[serde(rename = "outboundSNAT", skip_serializing_if = "Option::is_none")]
    pub outbound_snat: Option<OutboundSnat>,

    /// Who sees to it that nodes learn each other's routes. `Managed`: the cluster, over BGP sessions between the
    /// nodes. `Unmanaged`: you, with RouteAdvertisements and FRRConfigurations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<RoutingName>,
}

words! {
    /// Whether packets to the world leave with the node's address.
    pub enum OutboundSnat {
        /// They do.
        Enabled = "Enabled" | "Enable",
        /// They keep the pod's.
        Disabled = "Disabled" | "Disable",
    }
}

words! {
    /// Who sees to it that nodes learn each other's routes.
    pub enum RoutingName {
        /// The cluster.
        Managed = "Managed",
        /// The user.
        Unmanaged = "Unmanaged",
    }
}

/// The VXLAN networks that carry a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["vtep"], "x-kubernetes-validations" = rules::evpn()))]
pub struct EvpnSpec {
    /// The VTEP that says which addresses the nodes' tunnels have.
    #[schemars(length(min = 1))]
    pub vtep: String,

    /// The one for frames. Needed by Layer2 networks, and not for others.
    #[serde(rename = "macVRF", skip_serializing_if = "Option::is_none")]
    pub mac_vrf: Option<VrfSpec>,

    /// The one for packets. Needed by Layer3 networks, and by Layer2 networks that are to be reached from others.
    #[serde(rename = "ipVRF", skip_serializing_if = "Option::is_none")]
    pub ip_vrf: Option<VrfSpec>,
}

/// A VXLAN network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["vni"]))]
pub struct VrfSpec {
    /// Its number. No other network of the cluster may have it.
    #[schemars(range(min = 1, max = 16_777_215))]
    pub vni: u32,

    /// The route target of its routes, like `65000:100` or `192.0.2.1:100`. Without it, the number of the autonomous
    /// system and that of the network.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crate::frr::route_target")]
    pub route_target: String,
}
