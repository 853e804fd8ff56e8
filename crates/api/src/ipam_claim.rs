//! `IPAMClaim`: addresses that are kept for somebody, usually a virtual machine, from pod to pod.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{is_default, schema};

/// Condition type: the claim has addresses.
pub const IPS_ALLOCATED: &str = "IPsAllocated";
/// Reason of [`IPS_ALLOCATED`]: it is so.
pub const SUCCESSFUL_ALLOCATION: &str = "SuccessfulAllocation";
/// Reason of [`IPS_ALLOCATED`]: the network has no address left.
pub const SUBNET_EXHAUSTED: &str = "SubnetExhausted";
/// Reason of [`IPS_ALLOCATED`]: somebody else has the address that was asked for.
pub const IP_CONFLICT: &str = "IPAddressConflict";
/// Reason of [`IPS_ALLOCATED`]: somebody else has the MAC address that was asked for.
pub const MAC_CONFLICT: &str = "MACAddressConflict";
/// Reason of [`IPS_ALLOCATED`]: something else is wrong.
pub const INTERNAL_ERROR: &str = "InternalError";
/// Message of [`SUCCESSFUL_ALLOCATION`].
pub const ALLOCATED: &str = "IP addresses successfully allocated";

/// What the addresses are for.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "k8s.cni.cncf.io",
    version = "v1alpha1",
    kind = "IPAMClaim",
    plural = "ipamclaims",
    singular = "ipamclaim",
    namespaced,
    status = "IPAMClaimStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "Addresses that are kept from pod to pod."
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["network", "interface"]))]
pub struct IPAMClaimSpec {
    /// The name of the network that the addresses are in.
    pub network: String,
    /// The name of the pod's interface that has them.
    pub interface: String,
}

/// The addresses, and who has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["ips"]))]
pub struct IPAMClaimStatus {
    /// The addresses, with the lengths of their subnets.
    pub ips: Vec<String>,
    /// The pod that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner_pod: Option<OwnerPod>,
    /// `IPsAllocated` says whether the claim has addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A pod of the claim's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerPod {
    /// Its name.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,
}
