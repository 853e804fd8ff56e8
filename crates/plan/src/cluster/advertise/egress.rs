//! Addresses by which pods leave the cluster: each is advertised from the node that holds it.

use std::collections::BTreeMap;

use ipnet::IpNet;
use underlay_world::World;

use super::networks::Known;

/// The addresses that each node holds for pods of these networks, by name of the node. Nobody assigns any yet.
pub fn egress_prefixes(_world: &World, _networks: &[&Known]) -> BTreeMap<String, Vec<IpNet>> {
    BTreeMap::new()
}
