//! `ClusterUserDefinedNetwork`: a network for many namespaces.
#![expect(clippy::duplicated_attributes, reason = "several columns of one type")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::reading::{self, FieldError, Network, Written};
use super::{
    EvpnSpec, Layer2Spec, Layer3Spec, LocalnetSpec, NetworkStatus, NoOverlaySpec, TopologyName,
    TransportName, rules, says,
};
use crate::schema;

/// A network, and the namespaces that have it.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "k8s.ovn.org",
    version = "v1",
    kind = "ClusterUserDefinedNetwork",
    shortname = "cudn",
    status = "NetworkStatus",
    derive = "Default",
    derive = "PartialEq",
    // Elsewhere it can be stored without a spec, and is then read with an empty one; here it cannot.
    attr = "cfg_attr(all(), serde(default), schemars(extend(\"required\" = [\"spec\"])))",
    doc = "A network that several namespaces share.",
    printcolumn(
        name = "Topology",
        type_ = "string",
        json_path = ".spec.network.topology",
        description = "How its parts on the nodes are connected."
    ),
    printcolumn(
        name = "Role",
        type_ = "string",
        json_path = ".spec.network.*.role",
        description = "What it is to its pods."
    ),
    printcolumn(
        name = "Transport",
        type_ = "string",
        json_path = ".spec.network.transport",
        description = "How packets get to other nodes. Empty is Geneve."
    ),
    printcolumn(
        name = "Created",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="NetworkCreated")].status"#,
        description = "Whether the namespaces have it."
    ),
    printcolumn(
        name = "Allocated",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="NetworkAllocationSucceeded")].status"#,
        description = "Whether every node has its part of it."
    ),
    printcolumn(
        name = "Connected",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="TransportAccepted")].status"#,
        description = "Whether pods reach those on other nodes."
    ),
    printcolumn(
        name = "Subnets",
        type_ = "string",
        json_path = ".spec.network.*.subnets",
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
#[schemars(extend("required" = ["namespaceSelector", "network"], "x-kubernetes-validations" = rules::cluster()))]
pub struct ClusterUserDefinedNetworkSpec {
    /// The namespaces that have the network. They can be changed at any time; a namespace keeps the network as long as
    /// its pods use it. An empty selector is all namespaces.
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: LabelSelector,

    /// The network itself.
    pub network: NetworkSpec,

    /// The Uplink by which the network's traffic leaves the nodes, at most one. Without it, the nodes' own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "uplinks")]
    pub uplinks: Vec<String>,
}

impl ClusterUserDefinedNetworkSpec {
    /// The network in one spelling, or which field is wrong.
    pub fn network(&self) -> Result<Network, FieldError> {
        let network = &self.network;
        reading::read(&Written {
            at: "spec.network",
            topology: network.topology.as_ref(),
            layer3: network.layer3.as_ref(),
            layer2: network.layer2.as_ref(),
            localnet: network.localnet.as_ref(),
            join_subnets: &[],
            transport: network.transport.as_ref(),
            no_overlay: network.no_overlay.as_ref(),
            no_overlay_options: network.no_overlay_options.as_ref(),
            evpn: network.evpn.as_ref(),
            uplinks: &self.uplinks,
        })
    }
}

/// A network, as it is written in a ClusterUserDefinedNetwork.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["topology"], "x-kubernetes-validations" = rules::network()))]
pub struct NetworkSpec {
    /// How the parts of the network on the nodes are connected. `Layer3` gives each node a subnet of its own, with
    /// routers between them; `Layer2` is one switch for all nodes; `Localnet` is a network outside the cluster that the
    /// nodes are connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::immutable(says::TOPOLOGY_IMMUTABLE)))]
    pub topology: Option<TopologyName>,

    /// The network, if its topology is `Layer3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer3: Option<Layer3Spec>,

    /// The network, if its topology is `Layer2`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer2: Option<Layer2Spec>,

    /// The network, if its topology is `Localnet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub localnet: Option<LocalnetSpec>,

    /// How packets get to pods on other nodes. `Geneve`, which is also meant when nothing is given, wraps them;
    /// `NoOverlay` leaves them as they are, and the network between the nodes routes them; `EVPN` wraps them in VXLAN,
    /// with BGP telling who is where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportName>,

    /// How packets are routed, if the transport is `NoOverlay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_overlay: Option<NoOverlaySpec>,

    /// Another spelling of `noOverlay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_overlay_options: Option<NoOverlaySpec>,

    /// The VXLAN networks, if the transport is `EVPN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evpn: Option<EvpnSpec>,
}

fn uplinks(_: &mut SchemaGenerator) -> Schema {
    let item = json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    });
    json_schema!({
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "items": item,
        "x-kubernetes-list-type": "atomic",
    })
}
