//! `UserDefinedNetwork`: a network for one namespace.
#![expect(clippy::duplicated_attributes, reason = "several columns of one type")]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reading::{self, FieldError, Network, Written};
use super::{Layer2Spec, Layer3Spec, NetworkStatus, TopologyName, rules, says};

/// A network of the namespace it is in.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "k8s.ovn.org",
    version = "v1",
    kind = "UserDefinedNetwork",
    shortname = "udn",
    namespaced,
    status = "NetworkStatus",
    derive = "Default",
    derive = "PartialEq",
    // Elsewhere it can be stored without a spec, and is then read with an empty one; here it cannot.
    attr = "cfg_attr(all(), serde(default), schemars(extend(\"required\" = [\"spec\"])))",
    doc = "A network that one namespace has for itself.",
    printcolumn(
        name = "Topology",
        type_ = "string",
        json_path = ".spec.topology",
        description = "How its parts on the nodes are connected."
    ),
    printcolumn(
        name = "Role",
        type_ = "string",
        json_path = ".spec.*.role",
        description = "What it is to its pods."
    ),
    printcolumn(
        name = "Created",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="NetworkCreated")].status"#,
        description = "Whether the namespace has it."
    ),
    printcolumn(
        name = "Allocated",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="NetworkAllocationSucceeded")].status"#,
        description = "Whether every node has its part of it."
    ),
    printcolumn(
        name = "Subnets",
        type_ = "string",
        json_path = ".spec.*.subnets",
        description = "Where its addresses are.",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="NetworkCreated")].message"#,
        description = "Why it is so.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["topology"], "x-kubernetes-validations" = rules::namespaced()))]
pub struct UserDefinedNetworkSpec {
    /// How the parts of the network on the nodes are connected. `Layer3` gives each node a subnet of its own, with
    /// routers between them; `Layer2` is one switch for all nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "enum" = ["Layer3", "Layer2"],
        "x-kubernetes-validations" = rules::immutable(says::TOPOLOGY_IMMUTABLE)
    ))]
    pub topology: Option<TopologyName>,

    /// The network, if its topology is `Layer3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer3: Option<Layer3Spec>,

    /// The network, if its topology is `Layer2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer2: Option<Layer2Spec>,

    /// The same as `joinSubnets` inside `layer3` or `layer2`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rules::cidr_of_each_family")]
    pub join_subnets: Vec<String>,
}

impl UserDefinedNetworkSpec {
    /// The network in one spelling, or which field is wrong.
    pub fn network(&self) -> Result<Network, FieldError> {
        reading::read(&Written {
            at: "spec",
            topology: self.topology.as_ref(),
            layer3: self.layer3.as_ref(),
            layer2: self.layer2.as_ref(),
            localnet: None,
            join_subnets: &self.join_subnets,
            transport: None,
            no_overlay: None,
            no_overlay_options: None,
            evpn: None,
            uplinks: &[],
        })
    }
}
