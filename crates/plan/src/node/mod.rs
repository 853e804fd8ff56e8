//! One node: what its own zone of OVN, its switch, its kernel and its speaker should have.
//!
//! In: the world, the settings and what the node sees of itself. Out: a [`NodePlan`]. As long as something essential is
//! missing, the plan says what it waits for, and asks for nothing but what the node can already tell others.

pub mod addresses;
pub mod advertised;
mod annotations;
mod bridge;
pub mod frr;
mod host;
pub mod imports;
mod nat;
mod pods;
mod services;
pub mod site;
pub mod topology;
mod zones;

use std::collections::BTreeMap;

use underlay_desired::flow::Flows;
use underlay_desired::linux::Host;
use underlay_desired::nft::Ruleset;
use underlay_desired::ovn::Rows;
use underlay_desired::switch::Switch;
use underlay_world::{Local, Node, Settings, World};

use addresses::Placed;
use imports::Learned;
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
    /// Its kernel's network stack.
    pub host: Host,
    /// Its packet filter.
    pub filter: Ruleset,
    /// Its pods.
    pub pods: Placed,
    /// Whether its pods are told to BGP peers.
    pub advertised: bool,
    /// What became of the routes that BGP brought.
    pub learned: Vec<Learned>,
}

/// Plans a node.
pub fn plan(name: &str, world: &World, settings: &Settings, local: &Local) -> NodePlan {
    let node = world.node(name);
    let annotations = node.map(|node| annotations::plan(node, settings, local)).unwrap_or_default();
    let speaker = node.map(|node| speaker(node, world)).unwrap_or_default();
    match Site::find(name, world, settings, local) {
        Ok(site) => NodePlan { annotations, speaker, zone: Some(zone(&site)), waiting: None },
        Err(waiting) => NodePlan { annotations, speaker, zone: None, waiting: Some(waiting) },
    }
}

fn speaker(node: &Node, world: &World) -> frr::Merged {
    let configurations = world.frr_configurations.values().map(AsRef::as_ref);
    frr::merge(&node.labels, configurations, &frr::Secrets::new())
}

fn zone(site: &Site<'_>) -> Zone {
    let placed = addresses::place(site);
    let mut northbound = Rows::default();
    topology::plan(site, &mut northbound);
    zones::plan(site, &mut northbound);
    nat::plan(site, &mut northbound);
    let learned = imports::plan(site, &mut northbound);
    services::plan(site, &mut northbound);
    pods::plan(site, &placed, &mut northbound);
    let mut southbound = Rows::default();
    zones::plan_chassis(site, &mut southbound);
    Zone {
        northbound,
        southbound,
        switch: host::plan_switch(site),
        flows: BTreeMap::from([(site.bridge.name.clone(), bridge::plan(site))]),
        host: host::plan(site),
        filter: host::plan_filter(site),
        pods: placed,
        advertised: site.advertised,
        learned,
    }
}
