//! A node as we see it: what the cluster gave it and what it says about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1;
use k8s_openapi::jiff::Timestamp;
use underlay_api::annotations::{
    Annotation, ChassisId, EncapIps, Gateway, HostCidrs, L3Gateway, NodeId, NodeSubnets, PrimaryAddresses,
    RefusedRoutes, TransitAddresses,
};
use underlay_net::Family;

use crate::Version;

/// What the keys of our annotations begin with: those of our family, and those that are ours alone.
const ANNOTATIONS: [&str; 2] = ["k8s.ovn.org/", "underlay/"];

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its identity: another node of the same name has another one.
    pub uid: String,
    /// Which writing of it this is.
    pub version: Version,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations of our family, as they are written.
    pub annotations: BTreeMap<String, String>,
    /// Addresses by which the cluster knows it.
    pub addresses: BTreeSet<IpAddr>,
    /// Whether its kubelet says that it is ready.
    pub ready: bool,
    /// The first of them of each family: the one that others speak to.
    pub internal: Vec<IpAddr>,
    /// Its number.
    pub id: Option<NodeId>,
    /// Its subnets, by network.
    pub subnets: NodeSubnets,
    /// Its addresses on the switch between nodes.
    pub transit: TransitAddresses,
    /// Addresses of its primary interface.
    pub primary: PrimaryAddresses,
    /// All its addresses.
    pub host_cidrs: HostCidrs,
    /// Name of its chassis.
    pub chassis: Option<String>,
    /// Ends of its tunnels.
    pub encap: Vec<IpAddr>,
    /// Its way to the world.
    pub gateway: Option<Gateway>,
    /// Routes for which its networks had no room.
    pub refused: RefusedRoutes,
    /// Annotations that say nothing we understand; what they should say counts as missing.
    pub problems: Vec<String>,
}

impl Node {
    /// Reads a node.
    pub fn read(object: &v1::Node) -> Self {
        let metadata = &object.metadata;
        let mut problems = Vec::new();
        macro_rules! annotation {
            ($kind:ty) => {
                <$kind>::of(metadata).unwrap_or_else(|problem| {
                    problems.push(problem.to_string());
                    None
                })
            };
        }
        let gateway = match annotation!(L3Gateway) {
            Some(L3Gateway::Enabled(gateway)) => Some(gateway),
            _ => None,
        };
        let (id, subnets) = (annotation!(NodeId), annotation!(NodeSubnets).unwrap_or_default());
        let transit = annotation!(TransitAddresses).unwrap_or_default();
        let primary = annotation!(PrimaryAddresses).unwrap_or_default();
        let host_cidrs = annotation!(HostCidrs).unwrap_or_default();
        let chassis = annotation!(ChassisId).map(|ChassisId(name)| name);
        let encap = annotation!(EncapIps).unwrap_or_default().0;
        let refused = annotation!(RefusedRoutes).unwrap_or_default();
        let mut conditions = object.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let addresses = addresses(object);
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: Version::of(object),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            labels: metadata.labels.clone().unwrap_or_default(),
            annotations: metadata
                .annotations
                .iter()
                .flatten()
                .filter(|(key, _)| ANNOTATIONS.iter().any(|ours| key.starts_with(ours)))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            internal: first_of_each(&addresses),
            addresses: addresses.into_iter().collect(),
            ready: conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True"),
            id,
            subnets,
            transit,
            primary,
            host_cidrs,
            chassis,
            encap,
            gateway,
            refused,
            problems,
        }
    }

    /// Its subnets in a network.
    pub fn subnets_in(&self, network: &str) -> &[IpNet] {
        self.subnets.0.get(network).map_or(&[], Vec::as_slice)
    }
}

/// Addresses by which the cluster knows a node, in the order in which the node told them.
fn addresses(object: &v1::Node) -> Vec<IpAddr> {
    let status = object.status.iter().flat_map(|status| status.addresses.iter().flatten());
    status
        .filter(|address| address.type_ == "InternalIP")
        .filter_map(|address| address.address.parse().ok())
        .collect()
}

fn first_of_each(addresses: &[IpAddr]) -> Vec<IpAddr> {
    let first = |family| addresses.iter().copied().find(|address| Family::of(*address) == family);
    Family::ALL.into_iter().filter_map(first).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn others_speak_to_the_first_address_of_each_family() {
        let address = |kind: &str, text: &str| json!({ "type": kind, "address": text });
        let addresses = [
            address("Hostname", "n1"),
            address("ExternalIP", "192.0.2.1"),
            address("InternalIP", "fd00::9"),
            address("InternalIP", "172.18.0.9"),
            address("InternalIP", "172.18.0.2"),
            address("InternalIP", "not an address"),
        ];
        let object = json!({ "metadata": { "name": "n1" }, "status": { "addresses": addresses } });
        let node = Node::read(&serde_json::from_value(object).unwrap());
        let internal = ["172.18.0.9", "fd00::9"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(node.internal, internal);
        assert_eq!(node.addresses.len(), 3);
    }
}
