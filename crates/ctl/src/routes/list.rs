//! From facts to rows: each route with its direction, its way, and the reason.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::Serialize;
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_runtime::report::{AdvertisedReport, AgentReport, RouteReport};

use crate::cluster::facts::Facts;
use crate::cluster::networks::title;
use crate::names::some_of;
use crate::problem::{Problem, silent_agents};

/// The edge that brings learned routes into OVN.
const EDGE: &str = "routes";

/// Routes of all nodes that were asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// By node.
    pub nodes: Vec<NodeRoutes>,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

/// Routes of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NodeRoutes {
    /// The node.
    pub node: String,
    /// Those that are shown.
    pub routes: Vec<RouteRow>,
    /// How many more there are, by network.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, usize>,
}

/// Where a route goes, and how far it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Told to BGP peers.
    Advertised,
    /// Brought by BGP, in OVN.
    Imported,
    /// Brought by BGP, on its way to OVN.
    Learned,
    /// Brought by BGP, not used by OVN.
    Refused,
}

impl Direction {
    /// For a column.
    pub fn word(self) -> &'static str {
        match self {
            Self::Advertised => "advertised",
            Self::Imported => "imported",
            Self::Learned => "learned",
            Self::Refused => "refused",
        }
    }
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteRow {
    /// Where it goes, and how far it came.
    pub direction: Direction,
    /// The destination.
    pub prefix: IpNet,
    /// Who was told of it, or the next hops.
    pub via: Vec<String>,
    /// The network: `default`, `cudn/NAME` or `udn/NAMESPACE/NAME`. Nothing for what is no network's, like an egress IP.
    pub network: Option<String>,
    /// The VRF that it is told in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vrf: Option<String>,
    /// Who asked for it, or why it is not used.
    pub reason: String,
}

/// Makes rows of what the agents told.
pub fn listing(facts: &Facts, only_refused: bool) -> Listing {
    let mut listing = Listing { nodes: vec![], problems: silent_agents(facts) };
    for node in facts.agents.keys() {
        let Some(report) = facts.report(node) else { continue };
        listing.nodes.push(of_node(facts, report, only_refused));
        listing.problems.extend(problems(facts, report));
    }
    listing
}

fn of_node(facts: &Facts, report: &AgentReport, only_refused: bool) -> NodeRoutes {
    let titles = Titles::of(facts);
    let advertised = report.advertised.iter().filter(|_| !only_refused);
    let mut routes: Vec<RouteRow> = advertised.map(|one| advertised_row(&titles, one)).collect();
    let failure = report.edges.get(EDGE).and_then(|edge| edge.error.as_deref());
    let mut more = BTreeMap::new();
    let (default, others): (Vec<_>, Vec<_>) =
        report.learned.iter().partition(|(network, _)| *network == DEFAULT_NETWORK);
    for (network, page) in default.into_iter().chain(others) {
        let network = titles.title(network);
        routes.extend(page.routes.iter().map(|route| learned_row(&network, route, failure)));
        if page.more > 0 {
            more.insert(network, page.more);
        }
    }
    NodeRoutes { node: report.node.clone(), routes, more }
}

fn advertised_row(titles: &Titles, one: &AdvertisedReport) -> RouteRow {
    let by: Vec<&str> = one.by.iter().map(String::as_str).collect();
    let reason = format!("RouteAdvertisements {}", by.join(", "));
    RouteRow {
        direction: Direction::Advertised,
        prefix: one.prefix,
        via: one.to.iter().flatten().cloned().collect(),
        network: one.network.as_deref().map(|network| titles.title(network)),
        vrf: Some(if one.vrf.is_empty() { "default" } else { &one.vrf }.to_owned()),
        reason: match &one.to {
            Some(to) if to.is_empty() => format!("{reason}; nobody was told yet"),
            Some(_) => reason,
            None => format!("{reason}; FRR could not be asked"),
        },
    }
}

fn learned_row(network: &str, route: &RouteReport, failure: Option<&str>) -> RouteRow {
    let (direction, reason) = match (&route.refused, failure) {
        (Some(why), _) => (Direction::Refused, why.clone()),
        (None, Some(failure)) => (Direction::Learned, format!("may not be in OVN: {failure}")),
        (None, None) if route.kept => {
            (Direction::Imported, "kept for a moment: bgpd lost it while it was starting".to_owned())
        }
        (None, None) => (Direction::Imported, String::new()),
    };
    let hops = route.next_hops.iter().map(|hop| format!("{} at {}", hop.gateway, hop.link));
    RouteRow {
        direction,
        prefix: route.destination,
        via: hops.collect(),
        network: Some(network.to_owned()),
        vrf: None,
        reason,
    }
}

fn problems(facts: &Facts, report: &AgentReport) -> Vec<Problem> {
    let about = format!("node {}", report.node);
    let mut problems = vec![];
    if let Some(what) = &report.waiting {
        let hint = "the log of underlay-agent there tells more";
        problems.push(Problem::new(&about, format!("its agent waits for {what}"), hint));
    }
    if let Some(error) = report.edges.get(EDGE).and_then(|edge| edge.error.as_deref()) {
        let hint = "the agent tries again by itself; its log tells more";
        problems.push(Problem::new(&about, format!("learned routes do not get into OVN: {error}"), hint));
    }
    if let Some(problem) = &report.speaker.problem {
        let hint = "who speaks BGP there: FRR of the agent, or frr-k8s in a pod?";
        problems.push(Problem::new(&about, format!("FRR could not be asked: {problem}"), hint));
    }
    let unheard = report.advertised.iter().filter(|one| one.to.as_ref().is_some_and(BTreeSet::is_empty));
    let unheard: Vec<String> = unheard.map(|one| one.prefix.to_string()).collect();
    if !unheard.is_empty() {
        let hint = "kubectl underlay bgp peers tells which sessions stand";
        problems.push(Problem::new(&about, format!("nobody was told of {}", some_of(&unheard)), hint));
    }
    problems.extend(dammed(facts, report));
    problems
}

/// Networks that were told more than they take.
pub fn dammed(facts: &Facts, report: &AgentReport) -> Vec<Problem> {
    let titles = Titles::of(facts);
    let plan = report.plan.iter();
    let counts = plan.flat_map(|plan| {
        let others = plan.networks.iter().map(|(name, told)| (name.as_str(), told.imported, told.dammed));
        std::iter::once((DEFAULT_NETWORK, plan.imported, plan.dammed)).chain(others)
    });
    let flooded = counts.filter(|(_, _, dammed)| *dammed > 0);
    let problem = |(network, imported, dammed): (&str, usize, usize)| {
        let what = format!(
            "network {} has {imported} learned routes, as many as it takes: {dammed} are left out",
            titles.title(network)
        );
        let hint = "let the peers tell fewer, or take fewer with toReceive of the FRRConfiguration";
        Problem::new(&format!("node {}", report.node), what, hint)
    };
    flooded.map(problem).collect()
}

/// How people name networks, by the names that nodes use.
struct Titles(BTreeMap<String, String>);

impl Titles {
    fn of(facts: &Facts) -> Self {
        Self(facts.networks.iter().map(|one| (one.network_name(), title(one))).collect())
    }

    fn title(&self, network: &str) -> String {
        self.0.get(network).cloned().unwrap_or_else(|| network.to_owned())
    }
}
