//! Networks that are the same before and after, on every node: what is of them alone need not be planned twice only to find
//! that it does not differ. In a large cluster that is nearly all of it.

use std::collections::{BTreeMap, BTreeSet};

use underlay_plan::node::network::{Network, Tenants};
use underlay_plan::node::networks::Networks;
use underlay_world::{Key, Node, World};

/// The networks that are alike in two worlds. Where it cannot be told easily, none is.
pub fn networks(before: (&World, &Networks), after: (&World, &Networks)) -> BTreeSet<String> {
    let ((old, old_networks), (new, new_networks)) = (before, after);
    let changed = changed_namespaces(old, new);
    let tenants: BTreeSet<&String> = [old_networks, new_networks]
        .into_iter()
        .flat_map(|all| all.ready.values())
        .flat_map(namespaces)
        .collect();
    // What is in the default network concerns all: everybody may use services for all, and peers are told of any.
    let concerns_all = changed.iter().any(|namespace| !tenants.contains(namespace))
        || old.frr_configurations != new.frr_configurations
        || !same_nodes(old, new);
    if concerns_all {
        return BTreeSet::new();
    }
    let alike = |(name, network): &(&String, &Network)| {
        let mut own = namespaces(network);
        new_networks.ready.get(*name) == Some(*network)
            && own.all(|namespace| {
                !changed.contains(namespace)
                    && old_networks.namespaces.get(namespace) == new_networks.namespaces.get(namespace)
                    && old_networks.reserved.contains(namespace) == new_networks.reserved.contains(namespace)
            })
            && same_parts(old, new, name)
    };
    old_networks.ready.iter().filter(alike).map(|(name, _)| name.clone()).collect()
}

fn namespaces(network: &Network) -> impl Iterator<Item = &String> {
    let own = match &network.tenants {
        Tenants::Only(own) => Some(own),
        Tenants::AllBut(_) => None,
    };
    own.into_iter().flat_map(BTreeMap::keys)
}

/// Namespaces in which services, endpoints or pods differ.
fn changed_namespaces(old: &World, new: &World) -> BTreeSet<String> {
    let mut changed = BTreeSet::new();
    differing(&old.services, &new.services, &mut changed);
    differing(&old.slices, &new.slices, &mut changed);
    differing(&old.pods, &new.pods, &mut changed);
    changed
}

fn differing<T: PartialEq>(old: &BTreeMap<Key, T>, new: &BTreeMap<Key, T>, changed: &mut BTreeSet<String>) {
    let mut compare = |one: &BTreeMap<Key, T>, other: &BTreeMap<Key, T>| {
        let differs = |(key, object): &(&Key, &T)| other.get(*key) != Some(*object);
        changed.extend(one.iter().filter(differs).map(|(key, _)| key.namespace.clone()));
    };
    compare(old, new);
    compare(new, old);
}

/// Whether nodes differ in nothing but their parts of networks.
fn same_nodes(old: &World, new: &World) -> bool {
    let without_parts = |node: &Node| Node {
        subnets: underlay_api::annotations::NodeSubnets::default(),
        annotations: BTreeMap::new(),
        ..node.clone()
    };
    old.nodes.len() == new.nodes.len()
        && old.nodes.iter().all(|(key, node)| {
            new.nodes.get(key).is_some_and(|other| without_parts(node) == without_parts(other))
        })
}

/// Whether every node has the same part of a network.
fn same_parts(old: &World, new: &World, network: &str) -> bool {
    old.nodes.iter().all(|(key, node)| {
        let other = new.nodes.get(key).map(|other| other.subnets_in(network));
        other == Some(node.subnets_in(network))
    })
}
