//! Networks of tenants: a row for each, and what is wrong with them and with the namespaces that should have one.

use serde::Serialize;
use underlay_api::network::{Network, NetworkRole, PRIMARY_NETWORK_LABEL, Topology, Transport};
use underlay_plan::cluster::networks::object;
use underlay_world::Definition;

use crate::cluster::facts::Facts;
use crate::cluster::networks::{State, title};
use crate::names::some_of;
use crate::problem::Problem;

/// A network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkRow {
    /// Its name: `cudn/NAME` or `udn/NAMESPACE/NAME`.
    pub name: String,
    /// How its parts are connected.
    pub topology: String,
    /// What it is to its pods.
    pub role: String,
    /// How its packets travel between nodes.
    pub transport: String,
    /// Its addresses.
    pub subnets: Vec<String>,
    /// Its number.
    pub id: Option<u16>,
    /// How many namespaces have it.
    pub namespaces: usize,
    /// Nodes that carry it.
    pub nodes_ready: usize,
    /// Nodes whose agents tell.
    pub nodes: usize,
    /// Nodes that tell BGP peers of their part.
    pub nodes_advertised: usize,
    /// Routes that BGP brought it, on all nodes.
    #[serde(flatten)]
    pub routes: Routes,
    /// How it is, in short.
    pub state: String,
    /// Whether that is well.
    #[serde(skip)]
    pub well: bool,
}

/// How many routes BGP brought a network, on all nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Routes {
    /// Brought.
    pub learned: usize,
    /// In OVN.
    pub imported: usize,
    /// Not in OVN because the network has as many as it takes.
    pub dammed: usize,
}

impl Routes {
    /// Of all nodes, each with what it learned, imported and dammed.
    pub fn sum(nodes: impl Iterator<Item = (usize, usize, usize)>) -> Self {
        nodes.fold(Self::default(), |sum, (learned, imported, dammed)| Self {
            learned: sum.learned + learned,
            imported: sum.imported + imported,
            dammed: sum.dammed + dammed,
        })
    }
}

/// A network as a row.
pub fn row(facts: &Facts, definition: &Definition) -> NetworkRow {
    let network = definition.network.as_ref().ok();
    let carried = facts.carried(definition);
    let told = || carried.values().copied().flatten();
    let ready = carried.values().filter(|told| told.is_some_and(|told| told.waiting.is_none())).count();
    let state = facts.state(definition);
    let (topology, role) = network.map(words).unwrap_or_default();
    NetworkRow {
        name: title(definition),
        topology: topology.to_owned(),
        role: role.to_owned(),
        transport: network.map(|network| transport(network).to_owned()).unwrap_or_default(),
        subnets: network
            .map(|network| network.subnets().iter().map(ToString::to_string).collect())
            .unwrap_or_default(),
        id: definition.id.map(|id| id.0),
        namespaces: facts.attachments_of(definition).count(),
        nodes_ready: ready,
        nodes: carried.len(),
        nodes_advertised: told().filter(|told| told.advertised).count(),
        routes: Routes::sum(told().map(|told| (told.learned, told.imported, told.dammed))),
        well: state.is_well(),
        state: state.short(),
    }
}

fn transport(network: &Network) -> &'static str {
    match network.transport {
        Transport::Geneve => "Geneve",
        Transport::NoOverlay(_) => "NoOverlay",
        Transport::Evpn(_) => "EVPN",
    }
}

/// Topology and role, as users spell them.
fn words(network: &Network) -> (&'static str, &'static str) {
    let topology = match network.topology {
        Topology::Layer3(_) => "Layer3",
        Topology::Layer2(_) => "Layer2",
        Topology::Localnet(_) => "Localnet",
    };
    let role = match network.role {
        NetworkRole::Primary => "Primary",
        NetworkRole::Secondary => "Secondary",
    };
    (topology, role)
}

/// What is wrong with networks and their namespaces.
pub fn problems(facts: &Facts) -> Vec<Problem> {
    let of_networks = facts.networks.iter().flat_map(|definition| of_network(facts, definition));
    of_networks.chain(without_network(facts)).collect()
}

fn of_network(facts: &Facts, definition: &Definition) -> Vec<Problem> {
    let about = object(definition).to_string();
    let problem = |what: String, hint: &str| Problem { about: about.clone(), what, hint: hint.to_owned() };
    match facts.state(definition) {
        State::Ready | State::Unused => vec![],
        State::Unseen => {
            vec![problem("was not looked at yet".to_owned(), "underlay-cluster does that: is it running?")]
        }
        State::Refused(_, message) => {
            vec![problem(format!("is refused: {message}"), &refused(facts, definition))]
        }
        State::Short(_, message) => {
            vec![problem(format!("some nodes have no part of it: {message}"), "add a subnet to the network")]
        }
        State::NotCarried(_, message) => {
            vec![problem(
                format!("is not carried: {message}"),
                "change it to what nodes carry, or do without",
            )]
        }
        State::Leaving => {
            let hint = "it goes once no pod uses it: delete those pods; kubectl describe names them";
            vec![problem("is deleted and not gone yet".to_owned(), hint)]
        }
        State::Waiting(nodes) => {
            let hint = "ask again in a second; if it stays so, bring what it waits for";
            let what =
                |(node, what): (&String, &String)| problem(format!("waits on node {node} for {what}"), hint);
            nodes.iter().map(what).collect()
        }
    }
}

/// What helps a network that is refused: the label, where that is what namespaces lack.
fn refused(facts: &Facts, definition: &Definition) -> String {
    let unlabelled: Vec<String> = facts.unlabelled(definition).map(str::to_owned).collect();
    if unlabelled.is_empty() {
        return "correct it; until then, what was made of it before stays".to_owned();
    }
    let names = some_of(&unlabelled);
    format!("label the namespaces {PRIMARY_NETWORK_LABEL}= before their pods are made: {names}")
}

/// Namespaces that are made for a network and have none: their pods wait.
fn without_network(facts: &Facts) -> impl Iterator<Item = Problem> {
    let waiting = facts.namespaces.iter().filter(|(name, namespace)| {
        namespace.wants_primary() && !namespace.ending && facts.primary(name).is_none()
    });
    waiting.map(|(name, _)| Problem {
        about: format!("namespace {name}"),
        what: "is labelled for a network of its own and has none: its pods wait".to_owned(),
        hint: "create a UserDefinedNetwork in it, or a ClusterUserDefinedNetwork that selects it".to_owned(),
    })
}
