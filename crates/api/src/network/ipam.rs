//! Who gives pods their addresses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::words::words;

/// Who gives pods their addresses, and how long they keep them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1, "x-kubernetes-validations" = rules::ipam()))]
pub struct IpamSpec {
    /// Who gives pods their addresses. `Enabled`, which is also meant when nothing is given: the cluster, from the
    /// network's subnets. `Disabled`: nobody, the network has no subnets; only for secondary networks. `GuestAssigned`:
    /// pods and virtual machines choose them inside the network's subnets, and the cluster routes the subnets to them
    /// without knowing who has which address; only for primary Layer2 networks. What needs to know the addresses of
    /// pods, like network policies and services, works with `Enabled` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<IpamMode>,

    /// How long addresses are kept. `Persistent`: as long as the IPAMClaim that they are recorded in, so that a virtual
    /// machine keeps them from pod to pod. Without it, as long as the pod. Only with the mode `Enabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<IpamLifecycle>,
}

words! {
    /// Who gives pods their addresses.
    pub enum IpamMode {
        /// The cluster.
        Enabled = "Enabled",
        /// Nobody: the network has no subnets.
        Disabled = "Disabled",
        /// They themselves, inside the network's subnets.
        GuestAssigned = "GuestAssigned",
    }
}

words! {
    /// How long addresses are kept.
    pub enum IpamLifecycle {
        /// As long as their IPAMClaim.
        Persistent = "Persistent",
    }
}
