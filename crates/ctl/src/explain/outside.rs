//! The way from pods to a destination outside: a route that BGP brought, or the nodes' default route.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use underlay_runtime::report::RouteReport;

use super::chain::{Chain, Link, agent, edges};
use crate::cluster::facts::{Agent, ESTABLISHED, Facts, NodeFacts};
use crate::names::{short, some_of};

/// Explains a destination. Every agent was asked for its routes there.
pub fn judge(facts: &Facts, to: IpNet) -> Chain {
    let mut links: Vec<Link> = vec![];
    for node in facts.agents.keys() {
        if !matches!(facts.agents.get(node), Some(Agent::Told(report)) if report.waiting.is_none()) {
            links.push(agent(facts, node));
        }
    }
    // Who may not ask one agent may ask none.
    links.dedup();
    let groups = group(facts);
    let learned: Vec<&Way> = groups.keys().filter(|way| way.destination.is_some()).collect();
    let conclusion = match learned.first() {
        None if groups.is_empty() => format!("no agent could tell which way pods go to {}", short(to)),
        None => default_route(facts, to),
        Some(way) => format!("pods reach {} {}", short(to), way.told()),
    };
    for (way, nodes) in &groups {
        links.extend(way.links(facts, nodes, !learned.is_empty()));
    }
    Chain::new(short(to), links, conclusion)
}

/// How a node goes to the destination. Nodes that go the same way are told of together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    /// The route that is taken; nothing for the node's default route.
    destination: Option<IpNet>,
    hops: String,
    from: BTreeSet<String>,
    refused: Option<String>,
}

impl Way {
    fn of(routes: &[RouteReport]) -> Self {
        let Some(route) = routes.first() else {
            return Self { destination: None, hops: String::new(), from: BTreeSet::new(), refused: None };
        };
        let hops: Vec<String> =
            route.next_hops.iter().map(|hop| format!("{} at {}", hop.gateway, hop.link)).collect();
        Self {
            destination: Some(route.destination),
            hops: some_of(&hops),
            from: route.from.clone(),
            refused: route.refused.clone(),
        }
    }

    fn told(&self) -> String {
        let destination = self.destination.map(|net| net.to_string()).unwrap_or_default();
        match &self.refused {
            None => format!("by the learned route {destination} through {}", self.hops),
            Some(_) => format!("as if {destination} had not been learned"),
        }
    }

    fn links(&self, facts: &Facts, nodes: &[String], learned_elsewhere: bool) -> Vec<Link> {
        let on = format!("on {}", some_of(nodes));
        let Some(destination) = self.destination else {
            return nodes.iter().filter_map(|node| unlearned(facts, node, learned_elsewhere)).collect();
        };
        let kernel = Link::good("Kernel", format!("{destination} through {} {on}", self.hops));
        let ovn = match &self.refused {
            Some(why) => vec![Link::note("OVN", format!("does not use it {on}: {why}"))],
            None => imported(facts, nodes, &on),
        };
        self.session(facts, nodes).into_iter().chain([kernel]).chain(ovn).collect()
    }
}

impl Way {
    /// Whether those who told of the route can still be heard.
    fn session(&self, facts: &Facts, nodes: &[String]) -> Option<Link> {
        const WHAT: &str = "BGP session";
        let peers: Vec<String> = self.from.iter().cloned().collect();
        let destination = self.destination.filter(|_| !peers.is_empty())?;
        let lost: Vec<String> = nodes
            .iter()
            .flat_map(|node| peers.iter().map(move |peer| (node, peer)))
            .filter_map(|(node, peer)| Some((node, peer, facts.session(node, "", peer)?)))
            .filter(|(_, _, state)| *state != ESTABLISHED)
            .map(|(node, peer, state)| format!("from {node} to {peer} is {state}"))
            .collect();
        if lost.is_empty() {
            return Some(Link::good(WHAT, format!("{} told of {destination}", some_of(&peers))));
        }
        let hint =
            "the routes of a lost session are kept until the peer had time to restart, and then withdrawn";
        Some(Link::broken(WHAT, some_of(&lost), hint))
    }
}

fn group(facts: &Facts) -> BTreeMap<Way, Vec<String>> {
    let mut groups: BTreeMap<Way, Vec<String>> = BTreeMap::new();
    for node in facts.agents.keys() {
        if let Some(report) = facts.report(node).filter(|report| report.plan.is_some()) {
            groups.entry(Way::of(&report.routes)).or_default().push(node.clone());
        }
    }
    groups
}

/// Whether the gateway routers of these nodes have the route.
fn imported(facts: &Facts, nodes: &[String], on: &str) -> Vec<Link> {
    let detail = format!("the gateway routers {on} have it");
    let judged = nodes.iter().filter_map(|node| facts.report(node));
    let judged: Vec<Link> = judged.map(|report| edges("OVN", report, &["northbound"], &detail)).collect();
    let bad: Vec<Link> = judged.iter().filter(|link| link.detail != detail).cloned().collect();
    if bad.is_empty() { judged.into_iter().take(1).collect() } else { bad }
}

/// What is to be said of a node that has learned no route to the destination.
fn unlearned(facts: &Facts, node: &str, learned_elsewhere: bool) -> Option<Link> {
    const WHAT: &str = "BGP session";
    let down: Vec<String> = facts
        .sessions(node)
        .into_iter()
        .filter(|(_, state)| *state != ESTABLISHED)
        .map(|(peer, state)| format!("{peer} is {state}"))
        .collect();
    if !down.is_empty() {
        let hint = "a route is learned over a session that is established";
        return Some(Link::broken(WHAT, format!("on {node}: {}", some_of(&down)), hint));
    }
    learned_elsewhere.then(|| Link::note("Kernel", format!("{node} has learned no route there")))
}

fn default_route(facts: &Facts, net: IpNet) -> String {
    let to = short(net);
    let hops = |node: &NodeFacts| {
        let gateway = node.node.gateway.as_ref()?;
        let hops = gateway.next_hops.iter().filter(|hop| hop.is_ipv4() == net.addr().is_ipv4());
        Some(hops.map(ToString::to_string).collect::<Vec<_>>())
    };
    let mut all: Vec<String> = facts.nodes.values().filter_map(hops).flatten().collect();
    all.sort();
    all.dedup();
    if all.is_empty() {
        return format!("no route to {to} was learned, and no node tells of a default gateway");
    }
    format!("no route to {to} was learned: pods leave by their node's default gateway, {}", some_of(&all))
}
