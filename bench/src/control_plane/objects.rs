//! What users and nodes give the cluster manager to do: nodes, tenants, peers, an advertisement.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Namespace, Node};
use serde_json::json;
use underlay_api::{ClusterUserDefinedNetwork, FRRConfiguration, RouteAdvertisements};

/// Where peers are configured.
pub const SPEAKERS: &str = "frr";
/// The number of the autonomous system that nodes peer with first.
pub const PEER: u32 = 64513;

/// A node as its agent presents it.
pub fn node(number: usize) -> Result<Node> {
    let name = format!("node-{number:04}");
    let (third, fourth) = (number / 250, number % 250 + 1);
    let address = format!("172.20.{third}.{fourth}/16");
    let annotations = json!({
        "k8s.ovn.org/node-primary-ifaddr": json!({ "ipv4": address }).to_string(),
        "k8s.ovn.org/host-cidrs": json!([address]).to_string(),
        "k8s.ovn.org/node-chassis-id": format!("00000000-0000-4000-8000-{number:012}"),
    });
    let labels = json!({ "kubernetes.io/hostname": name });
    let metadata = json!({ "name": name, "labels": labels, "annotations": annotations });
    Ok(serde_json::from_value(json!({ "metadata": metadata }))?)
}

/// A namespace, by its name.
pub fn namespace(name: &str) -> Result<Namespace> {
    let labels = json!({ "tenant": name, "k8s.ovn.org/primary-user-defined-network": "" });
    Ok(serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } }))?)
}

/// The name of a tenant.
pub fn tenant(number: usize) -> String {
    format!("tenant-{number:03}")
}

/// The network of a tenant. All have the same range, as tenants do.
pub fn network(name: &str) -> Result<ClusterUserDefinedNetwork> {
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": "10.64.0.0/12", "hostSubnet": 24 }] });
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "tenant": name } },
        "network": { "topology": "Layer3", "layer3": layer3 },
    });
    Ok(serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec }))?)
}

/// Peers of all nodes.
pub fn peers() -> Result<FRRConfiguration> {
    let neighbors =
        json!([{ "address": "172.20.255.1", "asn": PEER }, { "address": "172.20.255.2", "asn": PEER }]);
    let metadata = json!({ "name": "peers", "namespace": SPEAKERS, "labels": { "use": "advertise" } });
    let spec = json!({ "bgp": { "routers": [{ "asn": 64512, "neighbors": neighbors }] } });
    Ok(serde_json::from_value(json!({ "metadata": metadata, "spec": spec }))?)
}

/// Tells the peers of the nodes' pods.
pub fn advertisement() -> Result<RouteAdvertisements> {
    let spec = json!({
        "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
        "nodeSelector": {},
        "frrConfigurationSelector": { "matchLabels": { "use": "advertise" } },
        "advertisements": ["PodNetwork"],
    });
    Ok(serde_json::from_value(json!({ "metadata": { "name": "default" }, "spec": spec }))?)
}
