//! From facts to an overview: a row for each node, network and advertisement, and everything that is wrong.

use kube::ResourceExt;
use serde::Serialize;
use underlay_api::RouteAdvertisements;
use underlay_api::conditions::{get, is_true};
use underlay_api::frr::SUCCESS;
use underlay_api::route_advertisements::{ACCEPTED, READY};
use underlay_runtime::report::AgentReport;
use underlay_world::select::picks;

use super::default::{self, DefaultRow};
use super::networks::{self, NetworkRow};
use crate::cluster::facts::{Agent, ESTABLISHED, Facts, NodeFacts, Readiness};
use crate::names::some_of;
use crate::problem::Problem;
use crate::routes::dammed;

/// A cluster on one screen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// Nodes.
    pub nodes: Vec<NodeRow>,
    /// The default network, if an agent tells of it.
    pub default_network: Option<DefaultRow>,
    /// Networks of tenants.
    pub networks: Vec<NetworkRow>,
    /// Advertisements.
    pub advertisements: Vec<AdvertisementRow>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Whether Kubernetes counts on it.
    pub ready: bool,
    /// Its number.
    pub id: Option<u16>,
    /// Its subnets of pods.
    pub subnets: Vec<String>,
    /// What its agent says: `ready`, what it waits for, or why it says nothing.
    pub agent: String,
    /// Whether its pods are told to BGP peers, if the agent tells.
    pub advertised: Option<bool>,
    /// Sessions that stand.
    pub sessions_up: usize,
    /// Sessions that should.
    pub sessions: usize,
}

/// An advertisement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AdvertisementRow {
    /// Its name.
    pub name: String,
    /// What is said of it.
    pub status: String,
    /// Whether its routes are there: `True`, `False`, or nothing if nobody says.
    pub ready: String,
}

/// Judges.
pub fn judge(facts: &Facts) -> Overview {
    let mut overview = Overview {
        nodes: facts.nodes.values().map(|node| node_row(facts, node)).collect(),
        default_network: default::row(facts),
        networks: facts.networks.iter().map(|network| networks::row(facts, network)).collect(),
        advertisements: facts.advertisements.iter().map(advertisement_row).collect(),
        problems: facts.missing.iter().map(|kind| missing(kind)).collect(),
    };
    if facts.nodes.is_empty() {
        overview.problems.push(Problem::new("cluster", "it has no nodes", "kubelets register them"));
    }
    if facts.agents.values().any(|agent| *agent == Agent::Forbidden) {
        let hint = "ask for the right to get nodes/proxy";
        overview.problems.push(Problem::new("agents", "you may not ask them", hint));
    }
    for node in facts.nodes.values() {
        of_node(facts, node, &mut overview.problems);
    }
    overview.problems.extend(default::problem(facts));
    let told = facts.agents.keys().filter_map(|node| facts.report(node));
    overview.problems.extend(told.flat_map(|report| dammed(facts, report)));
    overview.problems.extend(networks::problems(facts));
    overview.problems.extend(facts.advertisements.iter().filter_map(of_advertisement));
    overview.problems.extend(facts.of_pods().filter_map(|object| uncovered(facts, object)));
    overview
}

fn missing(kind: &str) -> Problem {
    Problem::new(kind, "the API server does not know this resource", "kubectl apply -f deploy/crds")
}

fn node_row(facts: &Facts, NodeFacts { node, readiness }: &NodeFacts) -> NodeRow {
    let sessions = facts.sessions(&node.name);
    NodeRow {
        name: node.name.clone(),
        ready: *readiness == Readiness::Ready,
        id: node.id.map(|id| id.0),
        subnets: facts.subnets(&node.name).iter().map(ToString::to_string).collect(),
        agent: match facts.agents.get(&node.name) {
            Some(Agent::Told(report)) => match &report.waiting {
                Some(what) => format!("waiting for {what}"),
                None => "ready".to_owned(),
            },
            Some(Agent::Silent(_)) => "unreachable".to_owned(),
            Some(Agent::Forbidden) | None => "unknown".to_owned(),
        },
        advertised: facts.report(&node.name).and_then(|report| Some(report.plan.as_ref()?.advertised)),
        sessions_up: sessions.iter().filter(|(_, state)| *state == ESTABLISHED).count(),
        sessions: sessions.len(),
    }
}

fn of_node(facts: &Facts, NodeFacts { node, readiness }: &NodeFacts, problems: &mut Vec<Problem>) {
    let about = format!("node {}", node.name);
    let mut add = |what: String, hint: &str| problems.push(Problem::new(&about, what, hint));
    if let Readiness::NotReady(message) = readiness {
        add(format!("is not ready: {message}"), "kubectl describe node tells more");
    }
    if facts.subnets(&node.name).is_empty() || node.id.is_none() {
        add("has no subnet for pods".to_owned(), "underlay-cluster gives it: is it running?");
    }
    for text in &node.problems {
        add(text.clone(), "whoever wrote the annotation has to mend it");
    }
    match facts.agents.get(&node.name) {
        Some(Agent::Silent(why)) => {
            let hint = "is underlay-agent running there, with port 9411 open to the API server?";
            add(format!("its agent cannot be reached: {why}"), hint);
        }
        Some(Agent::Told(report)) => of_agent(report, facts.speakers.contains_key(&node.name), &mut add),
        Some(Agent::Forbidden) | None => {}
    }
    of_speaker(facts, &node.name, &mut add);
}

/// Where FRR's state is told in an object, it is not told twice.
fn of_agent(report: &AgentReport, speaker_told: bool, add: &mut impl FnMut(String, &str)) {
    let log = "the log of underlay-agent there tells more";
    if let Some(what) = &report.waiting {
        add(format!("its agent waits for {what}"), log);
    }
    for (name, edge) in report.edges.iter().filter(|(name, _)| !speaker_told || *name != "frr") {
        if let Some(error) = &edge.error {
            add(format!("{name} failed: {error}"), log);
        }
    }
    if let Some(problem) = report.plan.as_ref().and_then(|plan| plan.address_problem.as_ref()) {
        add(format!("a pod has no address: {problem}"), "kubectl underlay explain POD tells more");
    }
}

fn of_speaker(facts: &Facts, node: &str, add: &mut impl FnMut(String, &str)) {
    if let Some(state) = facts.speakers.get(node) {
        for (failed, result) in [
            ("not all its FRRConfigurations are used", &state.last_conversion_result),
            ("FRR did not take the last change", &state.last_reload_result),
        ] {
            if !result.is_empty() && result != SUCCESS {
                add(format!("{failed}: {result}"), "kubectl get frrnodestate -o yaml tells all of it");
            }
        }
    }
    for (peer, published, state) in facts.outdated_sessions(node) {
        let hint = "ask again in a second; if it stays so, the agent's log tells more";
        add(format!("the BGPSessionState to {peer} says {published}, but FRR says {state}"), hint);
    }
    for (peer, state) in facts.sessions(node) {
        if state != ESTABLISHED {
            let hint = "does the peer answer, expect this node, with the same AS numbers and password?";
            add(format!("the BGP session to {peer} is {state}"), hint);
        }
    }
}

fn advertisement_row(object: &RouteAdvertisements) -> AdvertisementRow {
    let status = object.status.clone().unwrap_or_default();
    AdvertisementRow {
        name: object.name_any(),
        status: if status.status.is_empty() { "Pending".to_owned() } else { status.status },
        ready: get(&status.conditions, READY).map(|ready| ready.status.clone()).unwrap_or_default(),
    }
}

fn of_advertisement(object: &RouteAdvertisements) -> Option<Problem> {
    let about = format!("RouteAdvertisements {}", object.name_any());
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let Some(accepted) = get(conditions, ACCEPTED) else {
        let hint = "underlay-cluster does that: is it running?";
        return Some(Problem::new(&about, "was not looked at yet", hint));
    };
    if !is_true(conditions, ACCEPTED) {
        let hint = "change it, or bring what it waits for";
        return Some(Problem::new(&about, format!("is not accepted: {}", accepted.message), hint));
    }
    let ready = get(conditions, READY).filter(|ready| ready.status == "False")?;
    let hint = "kubectl underlay explain PREFIX tells which link is broken";
    Some(Problem::new(&about, format!("is not ready: {}", ready.message), hint))
}

/// Nodes that no FRRConfiguration covers tell nobody of their pods.
fn uncovered(facts: &Facts, object: &RouteAdvertisements) -> Option<Problem> {
    let conditions = object.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let meant = |node: &&NodeFacts| picks(&object.spec.node_selector, &node.node.labels).unwrap_or(false);
    let nodes = facts.nodes.values().filter(meant);
    let nodes = nodes.filter(|node| facts.sources(object, &node.node).next().is_none());
    let names: Vec<String> = nodes.map(|node| node.node.name.clone()).collect();
    if names.is_empty() || !is_true(conditions, ACCEPTED) {
        return None;
    }
    let about = format!("RouteAdvertisements {}", object.name_any());
    let what = format!("no FRRConfiguration that it selects is for {}", some_of(&names));
    Some(Problem::new(&about, what, "create one with the BGP neighbours of these nodes"))
}
