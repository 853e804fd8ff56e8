//! How things are, seen with other eyes than those of the programs under test: kubectl, the routers' kernels, OVN's tools.

use std::collections::BTreeSet;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{PATIENCE, get};
use crate::node::sh;
use crate::place::Place;

/// The nodes.
pub const NODES: [&str; 3] = ["control", "worker1", "worker2"];
/// The routers, and their addresses on the nodes' side.
pub const ROUTERS: [(&str, &str); 2] = [("tor1", "172.30.0.1"), ("tor2", "172.30.0.2")];
/// Networks that are advertised.
pub const ADVERTISED: [&str; 3] = ["default", "blue", "green"];
/// All networks.
pub const ALL: [&str; 4] = ["default", "blue", "green", "red"];

/// Peers, networks, advertisements and pods.
pub fn prepare(place: &Place) {
    place.apply(&["peers.yaml", "networks.yaml", "advertisements.yaml"]);
    place.run_pods(&ALL);
    wait_until_all_is_well(place);
}

/// Waits until all sessions stand, everything advertised is accepted and on both routers, and is reached from outside.
pub fn wait_until_all_is_well(place: &Place) {
    for name in ["most", "green"] {
        for condition in ["Accepted", "Ready"] {
            wait_for_condition(&place.lab, &["routeadvertisements", name], condition, |told| {
                told.status == "True"
            });
        }
    }
    place.transport_is_accepted("green");
    for (router, _) in ROUTERS {
        wait_for_routes(&place.lab, router, |routes| missing(place, routes).is_empty());
    }
    for network in ADVERTISED {
        place.reached_from_outside(network);
    }
    for node in NODES {
        let state = get(&place.lab, &["frrnodestates", node]);
        assert_eq!(state["status"]["lastConversionResult"], "success", "{state}");
        assert_eq!(state["status"]["lastReloadResult"], "success", "{state}");
    }
}

/// The subnets of the advertised networks, on all nodes, that routes do not lead to.
fn missing(place: &Place, routes: &str) -> Vec<String> {
    let subnets = NODES.iter().flat_map(|node| subnets_of(&place.lab, node, &ADVERTISED));
    subnets.filter(|subnet| !routes.lines().any(|line| line.starts_with(subnet))).collect()
}

/// The subnets of a node in these networks.
pub fn subnets_of(lab: &LabUnderTest, node: &str, networks: &[&str]) -> BTreeSet<String> {
    let node = get(lab, &["node", node]);
    let text = node["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].as_str().unwrap_or("{}");
    let all: Value = serde_json::from_str(text).expect("JSON of the annotation");
    let asked = |name: &str| {
        networks.iter().any(|network| name == *network || name.strip_prefix("cluster_udn_") == Some(network))
    };
    let own = all.as_object().into_iter().flatten().filter(|(name, _)| asked(name));
    let own = own.flat_map(|(_, subnets)| subnets.as_array().into_iter().flatten());
    own.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Routes that a machine's kernel has from BGP.
pub fn routes(lab: &LabUnderTest, machine: &str) -> String {
    sh(lab, machine, "ip -4 route show proto bgp")
}

/// Waits until a machine's routes are as wanted.
pub fn wait_for_routes(lab: &LabUnderTest, machine: &str, wanted: impl Fn(&str) -> bool) {
    wait_for(&format!("the routes of {machine}"), PATIENCE, || {
        let routes = routes(lab, machine);
        if wanted(&routes) { Ok(()) } else { Err(routes) }
    });
}

/// What a condition says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Condition {
    pub status: String,
    pub reason: String,
    pub message: String,
}

/// A condition of an object; empty if it is not there.
pub fn condition(lab: &LabUnderTest, object: &[&str], kind: &str) -> Condition {
    let object = get(lab, object);
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found =
        conditions.into_iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Condition { status: text("status"), reason: text("reason"), message: text("message") }
}

/// Waits for a condition of an object to say something.
pub fn wait_for_condition(
    lab: &LabUnderTest,
    object: &[&str],
    kind: &str,
    wanted: impl Fn(&Condition) -> bool,
) -> Condition {
    wait_for(&format!("{kind} of {object:?}"), PATIENCE, || {
        let told = condition(lab, object, kind);
        if wanted(&told) { Ok(told) } else { Err(format!("{told:?}")) }
    })
}

/// What a session of a node is said to be: BGP and BFD.
pub fn session(lab: &LabUnderTest, node: &str, peer: &str) -> (String, String) {
    let all = get(lab, &["bgpsessionstates", "--all-namespaces"]);
    let states = all["items"].as_array().into_iter().flatten().map(|item| &item["status"]);
    let found = states.into_iter().find(|status| status["node"] == node && status["peer"] == peer);
    let found = found.cloned().unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("bgpStatus"), text("bfdStatus"))
}

/// Waits until a node's session with a peer stands, or does not.
pub fn wait_for_session(lab: &LabUnderTest, node: &str, peer: &str, stands: bool) {
    wait_for(&format!("the session of {node} with {peer}, standing: {stands}"), PATIENCE, || {
        let told = session(lab, node, peer);
        if (told.0 == "Established") == stands { Ok(()) } else { Err(format!("{told:?}")) }
    });
}

/// How often a router's session with a node was established, as the router says.
pub fn times_established(lab: &LabUnderTest, router: &str, node: &str) -> u64 {
    let address = address_of(node);
    let text = sh(lab, router, &format!("vtysh -c 'show bgp neighbors {address} json'"));
    let told: Value = serde_json::from_str(&text).expect("JSON of vtysh");
    told[address]["connectionsEstablished"].as_u64().expect("a number")
}

/// The address of a node.
pub fn address_of(node: &str) -> &'static str {
    match node {
        "control" => "172.30.0.10",
        "worker1" => "172.30.0.11",
        _ => "172.30.0.12",
    }
}

/// Tells a router something about the routes that it announces.
pub fn announce(lab: &LabUnderTest, router: &str, lines: &[String]) {
    let place = ["configure terminal", "router bgp 64513", "address-family ipv4 unicast"];
    let lines = place.into_iter().chain(lines.iter().map(String::as_str));
    let arguments: Vec<&str> = std::iter::once("vtysh").chain(lines.flat_map(|line| ["-c", line])).collect();
    lab.exec(router, &arguments).ok();
}

/// Gateways of a router of OVN to a destination.
pub fn gateways(lab: &LabUnderTest, node: &str, destination: &str) -> BTreeSet<String> {
    let text = lab.exec(node, &["ovn-nbctl", "lr-route-list", &format!("GR_{node}")]).ok();
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let fitting = lines.filter(|words| words.first() == Some(&destination));
    fitting.filter_map(|words| words.get(1).map(|gateway| (*gateway).to_owned())).collect()
}

/// Waits until a router of OVN has these gateways to a destination.
pub fn wait_for_gateways(lab: &LabUnderTest, node: &str, destination: &str, wanted: &[&str]) {
    wait_for(&format!("the gateways of {node} to {destination}: {wanted:?}"), PATIENCE, || {
        let found = gateways(lab, node, destination);
        if found.iter().eq(wanted.iter()) { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

/// What the agent of a node says of a route that it learned: why it is refused.
pub fn refusal(lab: &LabUnderTest, node: &str, to: &str) -> Result<String, String> {
    let url = format!("http://localhost:9411/debug/report?to={to}/32");
    let text = lab.exec(node, &["curl", "--silent", "--fail", "--max-time", "5", &url]).result()?;
    let report: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    let refused = report["routes"][0]["refused"].as_str().map(str::to_owned);
    refused.ok_or_else(|| report["routes"].to_string())
}
