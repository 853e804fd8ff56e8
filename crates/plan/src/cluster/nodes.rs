//! What every node is given: a number, a subnet of each family, and addresses between the nodes' routers.
//!
//! In: what is recorded on the nodes, the ranges, and what changes in the nodes' parts of other networks. Out:
//! annotations for nodes that lack something, all of a node's at once. What is recorded and valid stays. Of two nodes
//! with the same thing the older one keeps it and the other is given another one. The older ones are also served first:
//! one whose record somebody damaged finds what it had, before a newcomer is given it.

mod damage;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use ipnet::IpNet;
use serde::Serialize;
use serde_json::Value;
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, NodeId, NodeSubnets, Pair, TransitAddresses};
use underlay_desired::{ObjectRef, Why};
use underlay_net::Family;
use underlay_net::alloc::{Allocation, IdPool, SubnetPool};
use underlay_net::cidr::with_length_of;
use underlay_world::{Key, Node, Settings, World};

use super::Problem;
use super::networks::{NodeChanges, Parts};

/// What nodes lack, and what cannot be given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodesPlan {
    /// By name of the node; only nodes whose record must change.
    pub given: BTreeMap<String, Given>,
    /// Nodes that go without.
    pub problems: Vec<Problem>,
}

/// Annotations for a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Given {
    /// The identity of the node that is meant: another one of the same name is not.
    pub uid: String,
    /// What to set, and (nothing) what to remove.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Its reason.
    pub why: Why,
    /// What the node then has.
    #[serde(skip)]
    place: Place,
}

/// What a node is given: its number and addresses, and what changes in its subnets.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    id: Option<NodeId>,
    transit: TransitAddresses,
    subnets: NodeChanges,
}

impl Place {
    /// Annotations that lead to this place.
    fn changes_on(&self, node: &Node) -> BTreeMap<String, Option<String>> {
        let mut changes = BTreeMap::new();
        if let Some(id) = self.id.filter(|_| self.id != node.id) {
            put(&mut changes, &id);
        }
        if !self.subnets.is_empty() {
            changes.insert(NodeSubnets::KEY.to_owned(), render(&node.subnets, &self.subnets));
        }
        if self.transit != node.transit {
            put(&mut changes, &self.transit);
        }
        changes
    }
}

fn put<A: Annotation>(changes: &mut BTreeMap<String, Option<String>>, value: &A) {
    changes.insert(A::KEY.to_owned(), (!value.is_silent()).then(|| value.render()));
}

impl Given {
    /// Puts it on record in a world, as if it had been written and heard.
    pub fn record(&self, node: &str, world: &mut World) {
        let record = world.nodes.get_mut(&Key::cluster(node)).filter(|record| record.uid == self.uid);
        if let Some(record) = record {
            self.put_on(Arc::make_mut(record));
        }
    }

    fn put_on(&self, record: &mut Node) {
        (record.id, record.transit) = (self.place.id, self.place.transit);
        for (network, subnets) in &self.place.subnets {
            if subnets.is_empty() {
                record.subnets.0.remove(network.as_ref());
            } else {
                record.subnets.0.insert(network.to_string(), subnets.clone());
            }
        }
    }

    /// Whether a node became another one by this alone, and is no news to whoever has written it.
    pub fn made(&self, old: &Node, new: &Node) -> bool {
        let mut expected = old.clone();
        self.put_on(&mut expected);
        // The texts say what was read from them.
        expected.annotations.clone_from(&new.annotations);
        self.uid == new.uid && expected == *new
    }

    /// Whether a node has it on record.
    pub fn is_on(&self, node: &Node) -> bool {
        let has = |(network, subnets): &(Arc<str>, Vec<IpNet>)| node.subnets_in(network) == subnets;
        node.id == self.place.id && node.transit == self.place.transit && self.place.subnets.iter().all(has)
    }

    /// What to remember of it until it is heard, together with what was given to the same node before and is not heard
    /// of yet. The texts, which may be long, have done their duty.
    #[must_use]
    pub fn after(&self, earlier: Option<Self>) -> Self {
        let mut place = self.place.clone();
        if let Some(earlier) = earlier.filter(|earlier| earlier.uid == self.uid) {
            let mut all: BTreeMap<Arc<str>, Vec<IpNet>> = earlier.place.subnets.into_iter().collect();
            all.extend(place.subnets);
            place.subnets = all.into_iter().collect();
        }
        Self { uid: self.uid.clone(), annotations: BTreeMap::new(), why: self.why.clone(), place }
    }
}

/// Plans for all nodes. `parts` are those of networks other than the default one; without them, what is recorded of
/// such networks stays.
pub fn plan(world: &World, settings: &Settings, parts: Option<&Parts>) -> NodesPlan {
    let mut pools = Pools::of(settings);
    // First all records, then the new: nobody is given what somebody has.
    let recorded: Vec<Recorded<'_>> = by_age(world).into_iter().map(|node| pools.take_over(node)).collect();
    let mut plan = NodesPlan::default();
    for recorded in recorded {
        let node = recorded.node;
        let mut place = pools.complete(recorded, &mut plan.problems);
        let others = parts.and_then(|parts| parts.changes.get(&node.name));
        place.subnets.extend(others.into_iter().flatten().cloned());
        place.subnets.sort_by(|(one, _), (other, _)| one.cmp(other));
        plan.problems.extend(damage::found(node, &place));
        let annotations = place.changes_on(node);
        if !annotations.is_empty() {
            let why = Why::from_object(object(node));
            plan.given.insert(node.name.clone(), Given { uid: node.uid.clone(), annotations, why, place });
        }
    }
    plan
}

/// All nodes, the oldest first; those of the same age by name.
pub(super) fn by_age(world: &World) -> Vec<&Node> {
    let mut nodes: Vec<&Node> = world.nodes.values().map(AsRef::as_ref).collect();
    nodes.sort_by_key(|node| node.created);
    nodes
}

fn object(node: &Node) -> ObjectRef {
    ObjectRef::cluster("Node", &node.name)
}

/// A node, and what of its record stays.
struct Recorded<'a> {
    node: &'a Node,
    subnets: Vec<IpNet>,
}

struct Pools<'a> {
    settings: &'a Settings,
    ids: IdPool,
    subnets: SubnetPool,
}

impl<'a> Pools<'a> {
    fn of(settings: &'a Settings) -> Self {
        Self {
            settings,
            ids: IdPool::new(u32::from(NodeId::FIRST)..=u32::from(NodeId::LAST)),
            subnets: SubnetPool::new(settings.cluster_subnets.clone()),
        }
    }

    /// Takes over what is recorded and valid: a number, and the first subnet of each family.
    fn take_over<'n>(&mut self, node: &'n Node) -> Recorded<'n> {
        if let Some(NodeId(id)) = node.id {
            // A conflict means that the node is given another one.
            let _ = self.ids.record(&node.name, id.into());
        }
        let mut families = BTreeSet::new();
        let mut subnets = Vec::new();
        for subnet in node.subnets_in(DEFAULT_NETWORK) {
            let family = Family::of_net(subnet);
            if !families.contains(&family) && self.subnets.record(&node.name, *subnet).is_ok() {
                families.insert(family);
                subnets.push(*subnet);
            }
        }
        Recorded { node, subnets }
    }

    /// The place of a node: what it has, and what it lacks as far as there is any.
    fn complete(&mut self, recorded: Recorded<'_>, problems: &mut Vec<Problem>) -> Place {
        let node = recorded.node;
        let mut place = Place { id: node.id, transit: node.transit, subnets: Vec::new() };
        let mut problem = |reason, message| problems.push(Problem { object: object(node), reason, message });
        match self.id(node) {
            Ok(id) => {
                place.id = Some(id);
                match self.transit(id) {
                    Some(transit) => place.transit = transit,
                    None => problem("TransitSubnetTooSmall", transit_too_small(self.settings, id)),
                }
            }
            Err(message) => problem("NoNodeId", message),
        }
        let subnets = match self.subnets(&recorded) {
            Ok(subnets) => subnets,
            Err(message) => {
                problem("NoSubnet", message);
                recorded.subnets
            }
        };
        place.subnets.extend(default_change(node, subnets));
        place
    }

    fn id(&mut self, node: &Node) -> Result<NodeId, String> {
        let id = self.ids.allocate(&node.name).ok().and_then(|id| u16::try_from(id.into_inner()).ok());
        id.map(NodeId).ok_or_else(|| format!("all {} node numbers are taken", NodeId::LAST - 1))
    }

    /// A subnet of every family. A node that cannot have all of them is given none anew: half a network would make pods
    /// that cannot be repaired later.
    fn subnets(&mut self, recorded: &Recorded<'_>) -> Result<Vec<IpNet>, String> {
        let mut subnets = recorded.subnets.clone();
        let owner = &recorded.node.name;
        // Who is not served takes nothing from others.
        if let Some(family) = self.settings.families().find(|family| !self.subnets.has_for(owner, *family)) {
            return Err(format!("no {} subnet is left: add a range to cluster-subnets", name(family)));
        }
        for family in self.settings.families() {
            let given = self.subnets.allocate(owner, family).map(Allocation::into_inner);
            subnets.extend(given.ok().filter(|subnet| !recorded.subnets.contains(subnet)));
        }
        Ok(subnets)
    }

    /// The transit addresses that follow from a number, of the families that pods have.
    fn transit(&self, NodeId(id): NodeId) -> Option<TransitAddresses> {
        let mut pair = Pair::default();
        for family in self.settings.families() {
            let address = self.settings.transit.nth(family, id.into())?;
            match with_length_of(address, &self.settings.transit.of(family)) {
                IpNet::V4(net) => pair.ipv4 = Some(net),
                IpNet::V6(net) => pair.ipv6 = Some(net),
            }
        }
        Some(TransitAddresses(pair))
    }
}

fn transit_too_small(settings: &Settings, NodeId(id): NodeId) -> String {
    let ranges: Vec<String> =
        settings.families().map(|family| settings.transit.of(family).to_string()).collect();
    format!("node number {id} is outside the transit range {}: widen it", ranges.join(" or "))
}

fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// What changes in a node's part of the default network. An order that somebody has chosen stays.
fn default_change(node: &Node, mut subnets: Vec<IpNet>) -> Option<(Arc<str>, Vec<IpNet>)> {
    let old = node.subnets_in(DEFAULT_NETWORK);
    if old != subnets {
        subnets.sort_by_key(Family::of_net);
    }
    (old != subnets).then(|| (Arc::from(DEFAULT_NETWORK), subnets))
}

/// The annotation of a node's subnets with these changes; nothing if none are left. It may name a thousand networks on
/// each of thousands of nodes: record and changes are both in order of their names, and one walk through both writes the
/// text.
fn render(recorded: &NodeSubnets, changes: &NodeChanges) -> Option<String> {
    let (mut text, mut changes) = (String::new(), changes.iter().peekable());
    for (network, subnets) in &recorded.0 {
        while let Some((new, subnets)) = changes.next_if(|(name, _)| name.as_ref() < network.as_str()) {
            write_part(&mut text, new, subnets);
        }
        let change = changes.next_if(|(name, _)| name.as_ref() == network.as_str());
        write_part(&mut text, network, change.map_or(subnets, |(_, subnets)| subnets));
    }
    changes.for_each(|(new, subnets)| write_part(&mut text, new, subnets));
    (!text.is_empty()).then(|| text + "}")
}

fn write_part(text: &mut String, network: &str, subnets: &[IpNet]) {
    if subnets.is_empty() {
        return;
    }
    text.push(if text.is_empty() { '{' } else { ',' });
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    // Writing to a string does not fail.
    let _ = if network.bytes().all(plain) {
        write!(text, "\"{network}\":[")
    } else {
        write!(text, "{}:[", Value::from(network))
    };
    for (index, subnet) in subnets.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{subnet}\"");
    }
    text.push(']');
}

#[cfg(test)]
mod tests;
