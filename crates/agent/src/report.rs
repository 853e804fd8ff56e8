//! What the agent tells of itself when somebody asks how a pod or a prefix fares.
//!
//! In: what the node waits for, its newest plan, how far each edge is, and FRR itself. Out: an [`AgentReport`]. It is
//! put together when asked, so nothing has to be kept up to date for a question that hardly ever comes.

mod routes;
mod speaker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use serde_json::json;
use tokio::sync::watch;
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_plan::node::addresses::Placed;
use underlay_plan::node::advertised::Originated;
use underlay_plan::node::networks::Carried;
use underlay_runtime::admin;
use underlay_runtime::edge::EdgeState;
use underlay_runtime::report::{
    AgentReport, EdgeReport, Inputs, NetworkReport, PlanReport, PodReport, Question, RouteReport,
};
use underlay_world::{Key, Settings};

use crate::importer::{Count, Learned, Routes};
use crate::surroundings::Seen;

/// What of the newest plan is told, besides its pods.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    /// The node's subnets of the default network.
    pub subnets: Vec<IpNet>,
    /// Whether its pods are told to BGP peers.
    pub advertised: bool,
    /// What BGP peers are to be told.
    pub originated: Vec<Originated>,
    /// The node's part of user-defined networks that it carries, by name.
    pub carried: BTreeMap<String, Carried>,
    /// What the other user-defined networks wait for, by name.
    pub waiting: BTreeMap<String, String>,
}

/// Tells.
#[derive(Debug)]
pub struct Reporter {
    /// The node's name.
    pub node: String,
    /// What the node waits for.
    pub waiting: watch::Receiver<Option<String>>,
    /// Its pods; nothing before the first plan.
    pub placed: watch::Receiver<Option<Arc<Placed>>>,
    /// The rest of the plan; nothing before the first one.
    pub outline: watch::Receiver<Option<Outline>>,
    /// How far each edge is.
    pub edges: Vec<(&'static str, watch::Receiver<EdgeState>)>,
    /// The routes that BGP brought.
    pub routes: Routes,
    /// Where FRR's daemons have their sockets.
    pub frr_sockets: PathBuf,
    /// What the node sees of itself.
    pub seen: watch::Receiver<Option<Seen>>,
    /// What the agent was told at its start.
    pub settings: Settings,
}

impl Reporter {
    /// For those who ask over HTTP.
    pub fn serve(self) -> admin::Report {
        let this = Arc::new(self);
        Arc::new(move |query| {
            let this = this.clone();
            Box::pin(async move { json!(this.tell(&Question::parse(&query)).await) })
        })
    }

    async fn tell(&self, question: &Question) -> AgentReport {
        let outline = self.outline.borrow().clone();
        let known = outline.clone().unwrap_or_default();
        let mut concerned = speaker::Concerned {
            subnets: &known.subnets,
            advertised: if question.routes.is_some() { routes::advertised(&known, question) } else { vec![] },
            routes: self.leading_to(&known, question),
            vrf: known.vrf(question.network.as_deref().unwrap_or(DEFAULT_NETWORK)).to_owned(),
            peers: question.peers,
        };
        let speaker = speaker::ask(&self.frr_sockets, &mut concerned).await;
        let speaker::Concerned { advertised, routes, .. } = concerned;
        let placed = self.placed.borrow().clone();
        AgentReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: self.node.clone(),
            waiting: self.waiting.borrow().clone(),
            edges: self
                .edges
                .iter()
                .map(|(name, state)| ((*name).to_owned(), edge(&state.borrow())))
                .collect(),
            pod: placed.as_deref().zip(question.pod.as_deref()).and_then(|(placed, name)| pod(placed, name)),
            plan: outline
                .zip(placed)
                .map(|(outline, placed)| summary(&outline, &placed, &self.routes.counts())),
            no_overlay: self.settings.no_overlay,
            routes,
            advertised,
            learned: if question.routes.is_some() {
                routes::learned(&self.routes, question)
            } else {
                BTreeMap::new()
            },
            speaker,
            inputs: question.local.then(|| self.inputs()).flatten(),
        }
    }

    /// Learned routes to the destination that is asked for, the longest first: that one is taken.
    fn leading_to(&self, known: &Outline, question: &Question) -> Vec<RouteReport> {
        let Some(to) = question.to.filter(|_| question.routes.is_none() && !known.subnets.is_empty()) else {
            return vec![];
        };
        let network = question.network.as_deref().unwrap_or(DEFAULT_NETWORK);
        leading_to(self.routes.learned(network, |net| net.contains(&to)))
    }

    /// What plans are made from; nothing before the node has seen itself.
    fn inputs(&self) -> Option<Inputs> {
        let seen = self.seen.borrow();
        Some(Inputs { local: seen.as_ref()?.local.clone(), settings: self.settings.clone() })
    }
}

impl Outline {
    /// The VRF in which a network is told, and so hears. The default one has no name.
    fn vrf(&self, network: &str) -> &str {
        let told = self.originated.iter().find(|one| one.network.as_deref() == Some(network));
        told.map_or("", |one| one.vrf.as_str())
    }
}

fn edge(state: &EdgeState) -> EdgeReport {
    EdgeReport { begun: state.begun, applied: state.applied, error: state.error.clone() }
}

fn summary(outline: &Outline, placed: &Placed, routes: &BTreeMap<String, Count>) -> PlanReport {
    let default = routes.get(DEFAULT_NETWORK).copied().unwrap_or_default();
    PlanReport {
        subnets: outline.subnets.clone(),
        advertised: outline.advertised,
        pods: placed.pods.len(),
        without_address: placed.problems.len(),
        address_problem: placed.problems.iter().next().map(|(key, problem)| format!("{key}: {problem}")),
        learned: default.learned,
        imported: default.imported,
        dammed: default.dammed,
        networks: networks(outline, placed, routes),
    }
}

/// User-defined networks: those that are carried, with their pods, and what the others wait for.
fn networks(
    outline: &Outline,
    placed: &Placed,
    routes: &BTreeMap<String, Count>,
) -> BTreeMap<String, NetworkReport> {
    let mut networks: BTreeMap<String, NetworkReport> = BTreeMap::new();
    for (name, carried) in &outline.carried {
        let network = networks.entry(name.clone()).or_default();
        network.subnets.clone_from(&carried.subnets);
        network.advertised = carried.advertised;
        let count = routes.get(name).copied().unwrap_or_default();
        (network.learned, network.imported, network.dammed) = (count.learned, count.imported, count.dammed);
    }
    for (name, what) in &outline.waiting {
        networks.entry(name.clone()).or_default().waiting = Some(what.clone());
    }
    for own in placed.pods.values().filter_map(|pod| pod.primary.as_ref()) {
        networks.entry(own.network.clone()).or_default().pods += 1;
    }
    networks
}

fn pod(placed: &Placed, name: &str) -> Option<PodReport> {
    let (namespace, name) = name.split_once('/')?;
    let key = Key::new(namespace, name);
    if let Some(problem) = placed.problems.get(&key) {
        return Some(PodReport { problem: Some(problem.clone()), ..PodReport::default() });
    }
    let pod = placed.pods.get(&key)?;
    let own = pod.primary.as_ref();
    Some(PodReport {
        uid: pod.uid.clone(),
        addresses: pod.network.addresses.iter().map(IpNet::addr).collect(),
        recorded: pod.record.is_none(),
        problem: None,
        locked: pod.locked(),
        network: own.map(|own| own.network.clone()),
        own_addresses: own.into_iter().flat_map(|own| &own.part.addresses).map(IpNet::addr).collect(),
        waiting: pod.waiting.clone(),
    })
}

/// Learned routes to one destination, the longest first.
fn leading_to(mut routes: Vec<Learned>) -> Vec<RouteReport> {
    routes.sort_by_key(|route| std::cmp::Reverse(route.destination.prefix_len()));
    routes.into_iter().map(routes::told).collect()
}

#[cfg(test)]
mod tests {
    use underlay_plan::node::imports::Refusal;

    use super::*;

    #[test]
    fn the_longest_route_comes_first_and_others_stay_out() {
        let route = |destination: &str, refused| Learned {
            destination: destination.parse().unwrap(),
            next_hops: vec![("172.30.0.1".parse().unwrap(), "br-ex".to_owned())],
            refused,
            kept: false,
        };
        let learned = [route("0.0.0.0/0", None), route("203.0.113.0/24", Some(Refusal::Flood(7)))];
        let found = leading_to(learned.to_vec());
        let texts: Vec<String> = found.iter().map(|route| route.destination.to_string()).collect();
        assert_eq!(texts, ["203.0.113.0/24", "0.0.0.0/0"]);
        assert_eq!(
            found[0].refused.as_deref(),
            Some("the network has 7 routes already, as many as it takes")
        );
        assert_eq!(found[1].refused, None);
    }
}
