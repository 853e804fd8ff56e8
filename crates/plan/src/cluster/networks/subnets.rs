//! Every node's part of every network in which nodes have subnets of their own.
//!
//! In: what nodes have on record, and what is wished of each network. Out: what differs, node by node, so that one
//! write a node can carry it all. What is recorded and valid stays; of two nodes with the same subnet the older one keeps
//! it. A large cluster has millions of parts: records and wishes are both in order of their names, so one walk
//! through both at once finds everything, and nothing is copied that does not change.

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::sync::Arc;

use ipnet::IpNet;
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_net::Family;
use underlay_net::alloc::{SubnetRange, assign};
use underlay_world::World;

use crate::cluster::nodes::by_age;

/// What nodes are to have of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// A subnet of every family that these ranges have.
    Parts(Vec<SubnetRange>),
    /// What they have.
    AsItIs,
}

/// What changes on a node, in order of the networks; none is left of one without subnets.
pub type NodeChanges = Vec<(Arc<str>, Vec<IpNet>)>;

/// What changes in the nodes' parts, and what cannot be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts {
    /// By name of the node.
    pub changes: BTreeMap<String, NodeChanges>,
    /// Nodes without their part and why, by network.
    pub failures: BTreeMap<Arc<str>, Vec<(String, String)>>,
    /// Networks that nobody wishes for and some node still has.
    pub leaving: BTreeSet<Arc<str>>,
}

type Records<'a> = Peekable<btree_map::Iter<'a, String, Vec<IpNet>>>;

/// Plans the parts of all nodes.
pub fn plan(world: &World, wishes: &BTreeMap<Arc<str>, Wish>) -> Parts {
    let nodes = by_age(world);
    let mut walk = Walk {
        records: nodes.iter().map(|node| node.subnets.0.iter().peekable()).collect(),
        changes: vec![Vec::new(); nodes.len()],
        leaving: BTreeSet::new(),
    };
    let mut failures = BTreeMap::new();
    for (network, wish) in wishes {
        let recorded = walk.advance(network);
        let Wish::Parts(ranges) = wish else { continue };
        let failed = walk.give(network, ranges, &recorded);
        if !failed.is_empty() {
            let named = failed.into_iter().map(|(node, why)| (nodes[node].name.clone(), why)).collect();
            failures.insert(network.clone(), named);
        }
    }
    walk.finish();
    let all = nodes.iter().zip(walk.changes).filter(|(_, changes)| !changes.is_empty());
    let changes = all.map(|(node, changes)| (node.name.clone(), changes)).collect();
    Parts { changes, failures, leaving: walk.leaving }
}

/// A walk through the records of all nodes, network by network.
struct Walk<'a> {
    records: Vec<Records<'a>>,
    changes: Vec<NodeChanges>,
    leaving: BTreeSet<Arc<str>>,
}

impl<'a> Walk<'a> {
    /// What nodes have of a network. Networks that were passed by on the way are nobody's wish.
    fn advance(&mut self, network: &str) -> Vec<&'a [IpNet]> {
        let mut found = Vec::with_capacity(self.records.len());
        for node in 0..self.records.len() {
            while let Some((name, _)) = self.records[node].next_if(|(name, _)| name.as_str() < network) {
                self.remove(node, name);
            }
            let record = self.records[node].next_if(|(name, _)| name.as_str() == network);
            found.push(record.map_or(&[][..], |(_, subnets)| subnets.as_slice()));
        }
        found
    }

    fn finish(&mut self) {
        for node in 0..self.records.len() {
            while let Some((name, _)) = self.records[node].next() {
                self.remove(node, name);
            }
        }
    }

    fn remove(&mut self, node: usize, network: &str) {
        if network == DEFAULT_NETWORK {
            return;
        }
        let name = self.leaving.get(network).cloned().unwrap_or_else(|| {
            let name = Arc::from(network);
            self.leaving.insert(Arc::clone(&name));
            name
        });
        self.changes[node].push((name, Vec::new()));
    }

    /// Gives every node its part of a network. Returns who goes without, and why.
    fn give(
        &mut self,
        network: &Arc<str>,
        ranges: &[SubnetRange],
        recorded: &[&'a [IpNet]],
    ) -> Vec<(usize, String)> {
        let families: Vec<(Family, Vec<Option<IpNet>>)> = Family::ALL
            .into_iter()
            .filter(|family| ranges.iter().any(|range| Family::of_net(&range.net()) == *family))
            .map(|family| (family, assign(ranges, family, recorded)))
            .collect();
        let mut failed = Vec::new();
        for (node, recorded) in recorded.iter().enumerate() {
            let given = || families.iter().filter_map(|(_, given)| given[node]);
            let without = families.iter().find(|(_, given)| given[node].is_none());
            if let Some((family, _)) = without {
                let family = match family {
                    Family::V4 => "IPv4",
                    Family::V6 => "IPv6",
                };
                failed.push((node, format!("no {family} subnet is left: add one to the network's subnets")));
            }
            // Half a network would make pods that cannot be repaired later: nothing new without all of it.
            let part = || given().filter(|net| without.is_none() || recorded.contains(net));
            let same = part().count() == recorded.len() && part().all(|net| recorded.contains(&net));
            if !same {
                self.changes[node].push((Arc::clone(network), part().collect()));
            }
        }
        failed
    }
}
