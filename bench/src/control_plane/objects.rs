//! What users and nodes give the cluster manager to do: nodes, tenants, peers, an advertisement.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::{Namespace, Node};
use serde_json::json;
use underlay_api::{ClusterUserDefinedNetwork, FRRConfiguration, RouteAdvertisements};

/// Where peers are configured.
pub const SPEAKERS: &str = "frr";
/// The number of the autonomous system that nodes peer with first.
pub const PEER: u32 = 64513;

/// Where the ranges of networks begin.
const RANGES: Ipv4Addr = Ipv4Addr::new(20, 0, 0, 0);
/// Length of a node's part of a network.
pub const PART: u8 = 28;

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

/// The network of a tenant, with room for so many nodes. Each has a range of its own: they are advertised in one VRF.
pub fn network(number: usize, nodes: usize) -> Result<ClusterUserDefinedNetwork> {
    let name = tenant(number);
    let cidr = range(number, nodes).with_context(|| format!("a range for network {number}"))?;
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": PART }] });
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "tenant": name } },
        "network": { "topology": "Layer3", "layer3": layer3 },
    });
    Ok(serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec }))?)
}

/// The range with this number, of those with a part for each of so many nodes.
pub fn range(number: usize, nodes: usize) -> Option<Ipv4Net> {
    let bits = nodes.max(2).next_power_of_two().ilog2();
    let length = PART.checked_sub(u8::try_from(bits).ok()?)?;
    let number = u32::try_from(number).ok()?.checked_shl(u32::from(32 - length))?;
    Ipv4Net::new(u32::from(RANGES).checked_add(number)?.into(), length).ok()
}

/// Peers of all nodes.
pub fn peers() -> Result<FRRConfiguration> {
    let neighbors =
        json!([{ "address": "172.20.255.1", "asn": PEER }, { "address": "172.20.255.2", "asn": PEER }]);
    let metadata = json!({ "name": "peers", "namespace": SPEAKERS, "labels": { "use": "advertise" } });
    let spec = json!({ "bgp": { "routers": [{ "asn": 64512, "neighbors": neighbors }] } });
    Ok(serde_json::from_value(json!({ "metadata": metadata, "spec": spec }))?)
}

/// Tells the peers of the nodes' pods, in all networks.
pub fn advertisement() -> Result<RouteAdvertisements> {
    let spec = json!({
        "networkSelectors": [
            { "networkSelectionType": "DefaultNetwork" },
            {
                "networkSelectionType": "ClusterUserDefinedNetworks",
                "clusterUserDefinedNetworkSelector": { "networkSelector": {} },
            },
        ],
        "nodeSelector": {},
        "frrConfigurationSelector": { "matchLabels": { "use": "advertise" } },
        "advertisements": ["PodNetwork"],
    });
    Ok(serde_json::from_value(json!({ "metadata": { "name": "default" }, "spec": spec }))?)
}
