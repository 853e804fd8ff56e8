//! How a tenant's network is told to the world, and whether its nodes have heard of each other where no overlay leads from
//! one to the other.

use ipnet::IpNet;
use underlay_api::network::{NoOverlay, Routing, Transport};
use underlay_runtime::report::LearnedReport;
use underlay_world::Definition;

use super::advertised::Part;
use super::chain::Link;
use crate::cluster::facts::Facts;
use crate::names::some_of;

/// How packets of a network travel without overlay, if they do.
pub fn without_overlay(definition: &Definition) -> Option<NoOverlay> {
    match definition.network.as_ref().ok()?.transport {
        Transport::NoOverlay(how) => Some(how),
        Transport::Geneve | Transport::Evpn(_) => None,
    }
}

/// Links for who tells of the network, and who has heard of it.
pub fn links(facts: &Facts, definition: &Definition) -> Vec<Link> {
    let mut links = vec![Part::of_tenant(facts, "", definition).asked()];
    links.extend(told(facts, definition));
    if let Some(how) = without_overlay(definition) {
        links.push(Link::note("Transport", words(how)));
        links.extend(heard(facts, definition, how));
    }
    links
}

fn words(how: NoOverlay) -> String {
    let routing = match how.routing {
        Some(Routing::Managed) => "managed",
        Some(Routing::Unmanaged) => "unmanaged",
        None => "not told",
    };
    let snat = if how.outbound_snat { "enabled" } else { "disabled" };
    format!("NoOverlay (routing {routing}, outbound SNAT {snat})")
}

/// Nodes that tell BGP peers of their part, and those that do not although somebody asks for it.
fn told(facts: &Facts, definition: &Definition) -> Option<Link> {
    const WHAT: &str = "Advertised";
    let carried = facts.carried(definition);
    let carried = carried.iter().filter_map(|(node, told)| Some((*node, (*told)?)));
    let (yes, no): (Vec<_>, Vec<_>) = carried.partition(|(_, told)| told.advertised);
    let names =
        |nodes: &[(&str, _)]| some_of(&nodes.iter().map(|(node, _)| (*node).to_owned()).collect::<Vec<_>>());
    let asked = facts.advertisers(definition).next().is_some();
    match (yes.is_empty(), no.is_empty()) {
        (false, true) => Some(Link::good(WHAT, format!("{} tell BGP peers of their part", names(&yes)))),
        (_, false) if asked => {
            let hint = "kubectl underlay explain with an address of such a node tells which link is broken";
            Some(Link::broken(WHAT, format!("{} tell nobody of their part", names(&no)), hint))
        }
        _ => None,
    }
}

/// Whether every node has routes to the parts of the others.
fn heard(facts: &Facts, definition: &Definition, how: NoOverlay) -> Vec<Link> {
    const WHAT: &str = "Routes";
    let name = definition.network_name();
    let nodes = facts.nodes.keys().filter_map(|node| Some((node, facts.report(node)?.learned.get(&name)?)));
    let nodes: Vec<(&String, &LearnedReport)> = nodes.collect();
    if nodes.is_empty() {
        return vec![Link::unknown(WHAT, "no agent told of its routes")];
    }
    let hint = match how.routing {
        Some(Routing::Managed) => {
            "underlay-cluster sees to the sessions between nodes: kubectl underlay bgp peers"
        }
        _ => {
            "does the peer pass on what other nodes tell, and does toReceive let it in? kubectl underlay routes"
        }
    };
    let mut links = vec![];
    for (node, learned) in &nodes {
        let lacking = lacking(facts, &name, node, learned);
        if !lacking.is_empty() {
            links.push(Link::broken(WHAT, format!("{node} has none to {}", some_of(&lacking)), hint));
        }
    }
    if links.is_empty() {
        let names: Vec<String> = nodes.iter().map(|(node, _)| (*node).clone()).collect();
        links.push(Link::good(WHAT, format!("{} have routes to the parts of all others", some_of(&names))));
    }
    links
}

/// Parts of other nodes that a node has no route to, each with its node and, if a route is not used, why.
fn lacking(facts: &Facts, network: &str, node: &str, learned: &LearnedReport) -> Vec<String> {
    let others = facts.nodes.iter().filter(|(other, _)| *other != node);
    let parts =
        others.flat_map(|(other, facts)| facts.node.subnets_in(network).iter().map(move |net| (other, net)));
    let lacking = |(other, subnet): (&String, &IpNet)| {
        let mut refused = None;
        for route in learned.routes.iter().filter(|route| route.destination.contains(subnet)) {
            match &route.refused {
                None => return None,
                Some(why) => refused = Some(why),
            }
        }
        let why = refused.map(|why| format!(" ({why})")).unwrap_or_default();
        Some(format!("{subnet} of {other}{why}"))
    };
    parts.filter_map(lacking).collect()
}
