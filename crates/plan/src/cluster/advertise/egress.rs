//! Addresses by which pods leave the cluster: each is advertised from the node that holds it.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use underlay_world::World;

use super::networks::Known;
use crate::cluster::egress::Networks;

/// The addresses that each node holds for pods of these networks, by name of the node.
pub fn egress_prefixes(world: &World, networks: &[&Known]) -> BTreeMap<String, Vec<IpNet>> {
    if world.egress_ips.is_empty() {
        return BTreeMap::new();
    }
    let names: BTreeSet<&str> = networks.iter().map(|network| network.name.as_ref()).collect();
    let namespaces = Networks::survey(world);
    let mut held: BTreeMap<String, BTreeSet<IpNet>> = BTreeMap::new();
    let wanted = |network: &String| names.contains(network.as_str());
    for source in world.egress_ips.values().filter(|source| namespaces.names(source).iter().any(wanted)) {
        for item in &source.items {
            held.entry(item.node.clone()).or_default().insert(IpNet::from(item.address));
        }
    }
    held.into_iter().map(|(node, prefixes)| (node, prefixes.into_iter().collect())).collect()
}
