//! FRRConfigurations that select a node, as one configuration.
//!
//! In: the resources in the order of their names, the labels of the node and the passwords that the resources refer to.
//! Out: one [`Config`], and what is wrong with resources that have no part in it. A resource takes part as a whole or
//! not at all: half a description of a neighbour is worse than none. Of two that contradict each other, the one that
//! comes later is left out.
//!
//! Routers of one VRF, neighbours of one router and BFD profiles of one name are the same thing described in parts.
//! Parts must agree on what can only be one way (numbers, timers, passwords), and add up in what can be many (prefixes,
//! imports).

mod read;
mod unite;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};
use underlay_api::FRRConfiguration;
use underlay_desired::ObjectRef;
use underlay_desired::frr::{Config, Peer, RawText, Vrf};
use underlay_world::select::picks;
use underlay_world::{Key, Node, Secret, World};

use read::Part;
use unite::Draft;

/// What the node's resources come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merged {
    /// What FRR should do.
    pub config: Config,
    /// What is wrong with resources that were left out.
    pub conflicts: Vec<Conflict>,
    /// Secrets that the resources take passwords from.
    pub secrets: BTreeSet<Key>,
    /// Those of them that nobody has looked at yet: until then the configuration is for people to look at, and not for
    /// FRR.
    pub unread: BTreeSet<Key>,
    /// The resources that make sense by themselves.
    parts: Vec<Part>,
    /// What is wrong with the others.
    senseless: Vec<Conflict>,
    /// The node's addresses.
    addresses: Vec<IpAddr>,
    /// Whether its kernel can have VRFs.
    has_vrf: bool,
}

/// The node that resources are merged for.
#[derive(Debug, Clone, Copy)]
pub struct Host<'a> {
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Its addresses, one of each family.
    pub addresses: &'a [IpAddr],
    /// Whether its kernel can have VRFs.
    pub has_vrf: bool,
}

impl Merged {
    /// Whether no resource selects the node.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.senseless.is_empty()
    }

    /// The same without a resource that turned out to be of no use: everything that relied on it goes too, and what only
    /// it was against comes back.
    #[must_use]
    pub fn without(self, object: &ObjectRef, field: &str, reason: &str) -> Self {
        let mut rest = self;
        rest.parts.retain(|part| part.object != *object);
        rest.senseless.push(Problem::new(field, reason).of(object));
        rest.put_together()
    }

    /// Makes of the parts what can be made of them.
    fn put_together(mut self) -> Self {
        let (mut fitting, mut conflicts) = (self.parts.clone(), self.senseless.clone());
        let draft = settle(&mut fitting, &mut conflicts);
        conflicts.sort();
        let mut config = finish(draft, &fitting);
        let mesh = fitting.iter().filter(|part| part.is_fabric);
        wait_for_higher(&mut config, mesh, &self.addresses);
        if !self.has_vrf {
            leave_out_idle(&mut config);
        }
        self.config = config;
        self.conflicts = conflicts;
        self
    }
}

/// Why a resource has no part in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// The resource.
    pub object: ObjectRef,
    /// Where in it.
    pub field: String,
    /// What is wrong there.
    pub reason: String,
}

/// Something wrong with a resource that is known from the context.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    field: String,
    reason: String,
}

impl Problem {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    fn of(self, object: &ObjectRef) -> Conflict {
        Conflict { object: object.clone(), field: self.field, reason: self.reason }
    }
}

/// Merges the resources that select a node. They come ordered by namespace and name. On a kernel without VRFs FRR is not
/// told of what could only do something in one.
pub fn merge<'a>(
    node: Host<'_>,
    configurations: impl IntoIterator<Item = &'a FRRConfiguration>,
    secrets: &BTreeMap<Key, Secret>,
) -> Merged {
    let Host { labels, addresses, has_vrf } = node;
    let mut merged = Merged { has_vrf, addresses: addresses.to_vec(), ..Merged::default() };
    let Merged { parts, senseless, secrets: wanted, .. } = &mut merged;
    for configuration in configurations {
        let object = reference(configuration);
        match selects(configuration, labels) {
            Ok(false) => {}
            Err(problem) => senseless.push(problem.of(&object)),
            Ok(true) => match read::read(object.clone(), configuration, secrets, wanted) {
                Ok(part) => parts.push(part),
                Err(problems) => senseless.extend(problems.into_iter().map(|problem| problem.of(&object))),
            },
        }
    }
    merged.unread = wanted.iter().filter(|key| !secrets.contains_key(key)).cloned().collect();
    merged.put_together()
}

/// Unites the parts and leaves out those that ask for what the whole does not have, until nothing is left to object
/// to: a part that goes may take with it what another one relied on.
fn settle(parts: &mut Vec<Part>, conflicts: &mut Vec<Conflict>) -> Draft {
    loop {
        let (draft, mut found) = unite_all(parts);
        found.extend(draft.dangling());
        if found.is_empty() {
            return draft;
        }
        let out: BTreeSet<&ObjectRef> = found.iter().map(|conflict| &conflict.object).collect();
        parts.retain(|part| !out.contains(&part.object));
        conflicts.extend(found);
    }
}

/// Unites what can be united, one part after the other.
fn unite_all(parts: &[Part]) -> (Draft, Vec<Conflict>) {
    let mut draft = Draft::default();
    let mut conflicts = Vec::new();
    for part in parts {
        let mut bigger = draft.clone();
        match bigger.unite(part) {
            Ok(()) => draft = bigger,
            Err(problem) => conflicts.push(problem.of(&part.object)),
        }
    }
    (draft, conflicts)
}

fn finish(draft: Draft, parts: &[Part]) -> Config {
    let mut texts: Vec<(i32, &ObjectRef, &RawText)> = parts
        .iter()
        .filter_map(|part| part.raw.as_ref().map(|(priority, text)| (*priority, &part.object, text)))
        .collect();
    texts.sort_by_key(|(priority, object, _)| (*priority, *object));
    draft.finish(texts.into_iter().map(|(_, _, text)| text.clone()).collect())
}

/// Lets one of two nodes of a mesh wait for the other to connect: when both do at once, FRR may end both connections.
fn wait_for_higher<'a>(config: &mut Config, mesh: impl Iterator<Item = &'a Part>, own: &[IpAddr]) {
    let is_higher = |peer: &Peer| {
        let Peer::Address(peer) = peer else { return false };
        own.iter().any(|own| own.is_ipv4() == peer.is_ipv4() && own < peer)
    };
    for router in mesh.flat_map(|part| &part.routers) {
        let Some(united) = config.routers.get_mut(&router.vrf) else { continue };
        for peer in router.neighbors.iter().map(|neighbor| &neighbor.peer).filter(|peer| is_higher(peer)) {
            united.neighbors.entry(peer.clone()).and_modify(|neighbor| neighbor.session.passive = true);
        }
    }
}

/// Leaves out routers of VRFs that have nobody to talk with, and imports from them: where the kernel has no VRF they can
/// do nothing, and FRR takes long over many of them.
fn leave_out_idle(config: &mut Config) {
    config.routers.retain(|vrf, router| vrf.is_default() || !router.neighbors.is_empty());
    let left: BTreeSet<Vrf> = config.routers.keys().cloned().collect();
    for router in config.routers.values_mut() {
        router.imports.retain(|vrf, _| vrf.is_default() || left.contains(vrf));
    }
}

/// The resources that a node's plan takes in: those that select it, and those of which nobody knows whom they select.
pub fn concerning<'a>(node: &Node, world: &'a World) -> impl Iterator<Item = &'a Arc<FRRConfiguration>> {
    let all = world.frr_configurations.values();
    all.filter(|one| picks(&one.spec.node_selector, &node.labels).unwrap_or(true))
}

fn reference(configuration: &FRRConfiguration) -> ObjectRef {
    let namespace = configuration.namespace().unwrap_or_default();
    ObjectRef::namespaced("FRRConfiguration", &namespace, &configuration.name_any())
}

fn selects(configuration: &FRRConfiguration, labels: &BTreeMap<String, String>) -> Result<bool, Problem> {
    let selector = Selector::try_from(configuration.spec.node_selector.clone())
        .map_err(|error| Problem::new("spec.nodeSelector", error.to_string()))?;
    Ok(selector.matches(labels))
}

#[cfg(test)]
mod tests;
