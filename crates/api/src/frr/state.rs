//! How FRR fares: one object for each node, one for each session.
#![expect(clippy::duplicated_attributes, reason = "several columns of one type")]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::is_default;

/// What a result says when all is well.
pub const SUCCESS: &str = "success";

/// Nothing is asked for here.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "frrk8s.metallb.io",
    version = "v1beta1",
    kind = "FRRNodeState",
    status = "FRRNodeStateStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "How FRR fares on the node of the same name.",
    printcolumn(
        name = "Conversion",
        type_ = "string",
        json_path = ".status.lastConversionResult",
        description = "Whether the FRRConfigurations of the node make a configuration."
    ),
    printcolumn(
        name = "Reload",
        type_ = "string",
        json_path = ".status.lastReloadResult",
        description = "Whether FRR took it."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct FRRNodeStateSpec {}

/// The configuration of FRR on a node, and what became of the last change to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct FRRNodeStateStatus {
    /// The configuration that FRR runs with.
    #[serde(skip_serializing_if = "is_default")]
    pub running_config: String,

    /// Whether FRR took the last change: `success`, or what went wrong.
    #[serde(skip_serializing_if = "is_default")]
    pub last_reload_result: String,

    /// Whether the FRRConfigurations of the node make a configuration: `success`, or what is wrong with them.
    #[serde(skip_serializing_if = "is_default")]
    pub last_conversion_result: String,
}

/// Nothing is asked for here.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "frrk8s.metallb.io",
    version = "v1beta1",
    kind = "BGPSessionState",
    status = "BGPSessionStateStatus",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "How one BGP session of one node fares.",
    printcolumn(name = "Node", type_ = "string", json_path = ".status.node"),
    printcolumn(name = "Peer", type_ = "string", json_path = ".status.peer"),
    printcolumn(name = "VRF", type_ = "string", json_path = ".status.vrf"),
    printcolumn(name = "BGP", type_ = "string", json_path = ".status.bgpStatus"),
    printcolumn(name = "BFD", type_ = "string", json_path = ".status.bfdStatus")
)]
pub struct BGPSessionStateSpec {}

/// One session, seen from one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct BGPSessionStateStatus {
    /// The state of the session as FRR calls it, like `Established` or `Active`.
    #[serde(skip_serializing_if = "is_default")]
    pub bgp_status: String,

    /// The state of the BFD session that watches over it, like `up`; `N/A` where there is none.
    #[serde(skip_serializing_if = "is_default")]
    pub bfd_status: String,

    /// The node.
    #[serde(skip_serializing_if = "is_default")]
    pub node: String,

    /// The peer's address or interface.
    #[serde(skip_serializing_if = "is_default")]
    pub peer: String,

    /// The VRF of the session. Empty is the default VRF.
    #[serde(skip_serializing_if = "is_default")]
    pub vrf: String,
}
