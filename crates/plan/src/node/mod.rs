//! One node: what its own zone of OVN, its switch, its kernel and its speaker should have.
//!
//! In: the world, the settings and what the node sees of itself. Out: a [`NodePlan`]. As long as something essential is
//! missing, the plan says what it waits for, and asks for nothing but what the node can already tell others.

pub mod addresses;
pub mod advertised;
mod annotations;
mod apart;
mod bridge;
pub mod egress;
pub mod frr;
mod host;
pub mod imports;
pub mod isolation;
pub mod mesh;
mod nat;
pub mod network;
pub mod networks;
mod pods;
mod seats;
mod services;
pub mod site;
mod tables;
pub mod topology;
mod zones;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use underlay_desired::flow::{Announcement, Flows};
use underlay_desired::linux::Host;
use underlay_desired::nft::Ruleset;
use underlay_desired::ovn::Rows;
use underlay_desired::switch::Switch;
use underlay_world::{Local, Settings, World};

use addresses::Placed;
use advertised::{Originated, Told};
use imports::{Policy, Ranges};
use network::Network;
use networks::{Carried, Others};
use site::{Site, Waiting};

/// Everything a node should have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodePlan {
    /// Annotations of its object that must change: what to set, and (nothing) what to remove.
    pub annotations: BTreeMap<String, Option<String>>,
    /// What its speaker should do, and what keeps some configurations out of that.
    pub speaker: frr::Merged,
    /// Its zone; nothing while it waits.
    pub zone: Option<Zone>,
    /// What it waits for.
    pub waiting: Option<Waiting>,
}

/// Everything a node should have once it has its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Zone {
    /// Rows of its northbound database.
    pub northbound: Rows,
    /// Rows of its southbound database: where other nodes are.
    pub southbound: Rows,
    /// Ports of its switch.
    pub switch: Switch,
    /// Flows of the external bridge.
    pub flows: BTreeMap<String, Flows>,
    /// Addresses that its neighbours are told of.
    pub announced: BTreeSet<Announcement>,
    /// Its kernel's network stack.
    pub host: Host,
    /// Its packet filter.
    pub filter: Ruleset,
    /// Its pods.
    pub pods: Placed,
    /// Whether its pods are told to BGP peers.
    pub advertised: bool,
    /// What BGP peers are told.
    pub originated: Vec<Originated>,
    /// Which of the routes that BGP brought its networks take.
    pub imports: Vec<Policy>,
    /// The node's part of user-defined networks that are on it, by name.
    pub carried: BTreeMap<String, Carried>,
    /// User-defined networks that are not on the node yet, and what each waits for.
    pub waiting: BTreeMap<String, String>,
}

/// Plans a node.
pub fn plan(name: &str, world: &World, settings: &Settings, local: &Local) -> NodePlan {
    plan_without(name, world, settings, local, &BTreeSet::new())
}

/// What a node's speaker should do, and what keeps some configurations out of that. It is little work beside the rest, and
/// depends on nothing of it.
pub fn speaker(name: &str, world: &World, local: &Local) -> frr::Merged {
    let Some(node) = world.node(name) else { return frr::Merged::default() };
    let configurations = world.frr_configurations.values().map(AsRef::as_ref);
    let configurations = mesh::without_itself(configurations, node);
    let host = frr::Host { labels: &node.labels, addresses: &node.internal, has_vrf: local.has_vrf };
    frr::merge(host, configurations.iter().map(AsRef::as_ref), &world.secrets)
}

/// Plans a node, and leaves out what is of these networks alone: for those who compare two plans and know that there is
/// no difference in them.
pub fn plan_without(
    name: &str,
    world: &World,
    settings: &Settings,
    local: &Local,
    without: &BTreeSet<String>,
) -> NodePlan {
    let speaker = speaker(name, world, local);
    NodePlan { speaker, ..plan_rest(name, world, settings, local, without) }
}

/// The same without its speaker, for those who have planned that before.
pub fn plan_rest(
    name: &str,
    world: &World,
    settings: &Settings,
    local: &Local,
    without: &BTreeSet<String>,
) -> NodePlan {
    let node = world.node(name);
    let annotations = node.map(|node| annotations::plan(node, settings, local)).unwrap_or_default();
    let networks = networks::find(world, settings);
    let default = Network::default_network(settings, networks.elsewhere());
    let told = node.map(|node| Told::by(node, world)).unwrap_or_default();
    let find = |network| Site::find(name, network, world, settings, local, &told);
    match find(&default) {
        Ok(site) => {
            let zone = zone(&site, Others::find(&networks, find), &told, without);
            NodePlan { annotations, zone: Some(zone), ..NodePlan::default() }
        }
        Err(waiting) => NodePlan { annotations, waiting: Some(waiting), ..NodePlan::default() },
    }
}

/// Plans all networks. One that waits for something is in nobody's way.
fn zone(site: &Site<'_>, others: Others<'_>, told: &Told, without: &BTreeSet<String>) -> Zone {
    let placed = addresses::place(site, &others);
    let egress = egress::select(site.world);
    let (mut northbound, mut southbound) = (Rows::default(), Rows::default());
    let (mut switch, mut host) = (Switch::default(), Host::default());
    let wanted = others.sites.iter().filter(|(name, _)| !without.contains(**name));
    let wanted: Vec<&Site<'_>> = std::iter::once(site).chain(wanted.map(|(_, site)| site)).collect();
    for site in &wanted {
        topology::plan(site, &mut northbound);
        zones::plan(site, &mut northbound);
        nat::plan(site, &mut northbound);
        egress::plan(site, &placed, &egress, &mut northbound);
        services::plan(site, &mut northbound);
        services::plan_ways(site, &mut northbound);
        pods::plan(site, &placed, &mut northbound);
        host::plan_switch(site, &mut switch);
        host::plan(site, &mut host);
    }
    let all: Vec<&Site<'_>> = std::iter::once(site).chain(others.sites.values()).collect();
    let announced = all.iter().flat_map(|site| egress::announced(site, &placed, &egress)).collect();
    let advertised = all.iter().filter(|site| site.advertised());
    let ranges = Arc::new(Ranges::of(advertised.map(|site| site.network)));
    let imports = wanted.iter().map(|site| Policy::of(site, &ranges)).collect();
    isolation::plan(site, &placed, &mut northbound);
    apart::plan(site, &others, without, &mut northbound);
    zones::plan_chassis(site, &mut southbound);
    Zone {
        northbound,
        southbound,
        switch,
        announced,
        flows: BTreeMap::from([(
            site.bridge.name.clone(),
            bridge::plan(site, &others, |site| egress::shown(site, &placed, &egress)),
        )]),
        host,
        filter: host::plan_filter(site, &others),
        pods: placed,
        advertised: site.advertised(),
        originated: told.parts(&all),
        imports,
        carried: others.carried(),
        waiting: others.waiting,
    }
}
