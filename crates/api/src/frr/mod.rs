//! The resources of frr-k8s: what FRR is to do on the nodes, and how it fares.
//!
//! The same whether frr-k8s runs in the cluster or our agent takes its place. A real manifest read and written again
//! means the same: fields that a later frr-k8s adds are handed on, because it refuses to merge two descriptions of one
//! neighbor that differ. Absent, empty and default values are one value here, as they are for frr-k8s, so that what we
//! wrote and what the API server made of it compare as equal.

mod evpn;
mod neighbor;
mod router;
mod state;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use evpn::route_target;
pub use evpn::{AdvertisedPrefixes, AdvertisedVnis, Evpn, L2Vni, L3Vni};
pub use neighbor::{
    AddressFamilies, AddressFamily, Advertise, AllowMode, AllowedIn, AllowedOut, CommunityPrefixes,
    DynamicAsn, LocalPrefPrefixes, Neighbor, NextHop, PrefixSelector, Receive, SecretReference,
};
pub use router::{BfdProfile, Bgp, Import, Router};
pub use state::{
    BGPSessionState, BGPSessionStateSpec, BGPSessionStateStatus, FRRNodeState, FRRNodeStateSpec,
    FRRNodeStateStatus, SUCCESS,
};

use crate::{Unknown, is_default, schema};

/// A part of the FRR configuration of some nodes. All parts that select a node are merged.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "frrk8s.metallb.io",
    version = "v1beta1",
    kind = "FRRConfiguration",
    status = "FRRConfigurationStatus",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "A part of the configuration of FRR on some nodes."
)]
#[serde(default, rename_all = "camelCase")]
pub struct FRRConfigurationSpec {
    /// BGP: routers, their neighbors, and what they tell each other.
    #[serde(skip_serializing_if = "is_default")]
    pub bgp: Bgp,

    /// Text for FRR's configuration file, for what cannot be said otherwise.
    #[serde(skip_serializing_if = "is_default")]
    pub raw: RawConfig,

    /// The nodes that this part is for. Without it, or when it is empty, all nodes.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(schema_with = "schema::label_selector")]
    pub node_selector: LabelSelector,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Text that is put at the end of FRR's configuration file as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RawConfig {
    /// Order among the texts of several parts: a higher number comes later.
    #[serde(skip_serializing_if = "is_default")]
    pub priority: i32,

    /// The text.
    #[serde(skip_serializing_if = "is_default")]
    pub raw_config: String,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Nothing is reported here: see the FRRNodeState of a node and the BGPSessionStates of its sessions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FRRConfigurationStatus {}
