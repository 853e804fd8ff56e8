//! What we read of KubeVirt's resources: which pod a virtual machine is in, and where it is going.
//!
//! Only the fields we need; the definitions are KubeVirt's to install.

use std::collections::BTreeMap;

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// Label of pods, and [`LAUNCHER`] is its value in the pods that virtual machines run in.
pub const POD_LABEL: &str = "kubevirt.io";
/// The value of [`POD_LABEL`] in the pods that virtual machines run in.
pub const LAUNCHER: &str = "virt-launcher";
/// Label of such a pod: the name of the virtual machine, cut where labels end.
pub const NAME_LABEL: &str = "vm.kubevirt.io/name";
/// Annotation of such a pod: the name of the virtual machine.
pub const DOMAIN_ANNOTATION: &str = "kubevirt.io/domain";
/// Annotation of the pod that a virtual machine has moved into, set when it runs there.
pub const TARGET_READY_ANNOTATION: &str = "kubevirt.io/migration-target-ready-timestamp";
/// Annotation of a pod whose virtual machine has the pod's own address, and keeps it on another node.
pub const BRIDGE_MIGRATION_ANNOTATION: &str = "kubevirt.io/allow-pod-bridge-network-live-migration";

/// How a running virtual machine is meant to be; we read nothing of it.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "kubevirt.io",
    version = "v1",
    kind = "VirtualMachineInstance",
    plural = "virtualmachineinstances",
    namespaced,
    schema = "disabled",
    status = "VirtualMachineInstanceStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "A running virtual machine."
)]
pub struct VirtualMachineInstanceSpec {}

/// How a virtual machine fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineInstanceStatus {
    /// `Running`, `Succeeded`, `Failed` or on the way there.
    pub phase: String,
    /// The node it runs on.
    pub node_name: String,
    /// The nodes of its pods, by the pods' UIDs. While it moves there are two.
    pub active_pods: BTreeMap<String, String>,
    /// Its interfaces, as far as it told.
    pub interfaces: Vec<InterfaceStatus>,
    /// Its last move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_state: Option<MigrationState>,
}

/// An interface of a virtual machine, as seen from inside where the guest tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InterfaceStatus {
    /// The name of the network in the virtual machine's definition.
    pub name: String,
    /// Its MAC address.
    pub mac: String,
    /// Its addresses, without lengths.
    #[serde(rename = "ipAddresses")]
    pub ip_addresses: Vec<String>,
}

/// A move of a virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MigrationState {
    /// The node it comes from.
    pub source_node: String,
    /// The node it goes to.
    pub target_node: String,
    /// The pod it comes from.
    pub source_pod: String,
    /// The pod it goes to.
    pub target_pod: String,
    /// Whether it is over.
    pub completed: bool,
    /// Whether it is over and the virtual machine is where it was.
    pub failed: bool,
}

/// A wish to move a virtual machine.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "kubevirt.io",
    version = "v1",
    kind = "VirtualMachineInstanceMigration",
    plural = "virtualmachineinstancemigrations",
    namespaced,
    schema = "disabled",
    status = "VirtualMachineInstanceMigrationStatus",
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))",
    doc = "A wish to move a virtual machine to another node."
)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineInstanceMigrationSpec {
    /// The virtual machine.
    pub vmi_name: String,
}

/// How the move fares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VirtualMachineInstanceMigrationStatus {
    /// `Running`, `Succeeded`, `Failed` or on the way there.
    pub phase: String,
    /// From where to where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migration_state: Option<MigrationState>,
}
