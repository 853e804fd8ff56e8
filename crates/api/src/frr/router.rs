//! BGP routers and BFD profiles.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Evpn, Neighbor};
use crate::shared::{items, list};
use crate::{Shared, Unknown, is_default};

/// The BGP part of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Bgp {
    /// The routers, at most one for each VRF.
    #[serde(with = "items", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Router>", length(max = 50))]
    pub routers: Vec<Arc<Router>>,

    /// BFD profiles that neighbors refer to by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bfd_profiles: Vec<BfdProfile>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// The BGP router of one VRF.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["asn"]))]
pub struct Router {
    /// The number of our own autonomous system.
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub asn: u32,

    /// The router ID, written like an IPv4 address. Without it, FRR takes one of the node's addresses.
    #[serde(skip_serializing_if = "is_default")]
    pub id: String,

    /// The VRF of the node in which the router runs. Without it, the default VRF.
    #[serde(skip_serializing_if = "is_default")]
    pub vrf: String,

    /// The peers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<Neighbor>,

    /// Prefixes that the router originates. A neighbor hears of those that its `toAdvertise` lets through.
    #[serde(with = "list", skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub prefixes: Shared<String>,

    /// VRFs whose routes are taken over into this one.
    #[serde(with = "list", skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<Import>")]
    pub imports: Shared<Import>,

    /// Ethernet VPN: what this router does with VXLAN networks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evpn: Option<Evpn>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A VRF to take routes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Import {
    /// Its name; `default` is the default VRF.
    #[serde(skip_serializing_if = "is_default")]
    pub vrf: String,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// How BFD watches over a session: it finds a dead peer faster than BGP would.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["name"]))]
pub struct BfdProfile {
    /// The name that neighbors refer to.
    pub name: String,

    /// The shortest time between two packets that we can take from the peer, in milliseconds. FRR takes 300 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 60000))]
    pub receive_interval: Option<u32>,

    /// The shortest time between two packets that we want to send, in milliseconds. FRR takes 300 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 60000))]
    pub transmit_interval: Option<u32>,

    /// After how many missing packets the peer counts as dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 255))]
    pub detect_multiplier: Option<u32>,

    /// The shortest time between two echo packets that we can take, in milliseconds. FRR takes 50 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 60000))]
    pub echo_interval: Option<u32>,

    /// Sends echo packets, which the peer's forwarding plane returns. Only for peers on the same link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_mode: Option<bool>,

    /// Waits for the peer to begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passive_mode: Option<bool>,

    /// For peers more than one hop away: the lowest TTL with which their packets are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 254))]
    pub minimum_ttl: Option<u32>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
