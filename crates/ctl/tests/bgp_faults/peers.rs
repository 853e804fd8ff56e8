//! Peers that tell what they should not.

use underlay_testkit::{OutputExt, wait_for};

use crate::cluster::{PATIENCE, get};
use crate::flows::Flows;
use crate::looks::{NODES, announce, condition, gateways, refusal, subnets_of, wait_for_condition};
use crate::node::metrics;
use crate::place::Place;

/// A default route is learned, but the node has one of its own: the kernel prefers that, and pods go where nodes go.
pub fn a_default_route(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "blue", "green"]).and_between_pods(place, &["red"]);
    let everything = "0.0.0.0/0";
    let before = gateways(&place.lab, "worker1", everything);
    assert_eq!(before.len(), 1, "the node's own: {before:?}");
    let learned = || {
        let look = format!("show bgp ipv4 unicast {everything} json");
        let text = place.lab.exec("worker1", &["vtysh", "-c", &look]).ok();
        if text.contains("172.30.0.2") { Ok(text) } else { Err(text) }
    };
    announce(&place.lab, "tor2", &[format!("network {everything}")]);
    wait_for("worker1 to learn it", PATIENCE, learned);
    flows.wait_until_flowing();
    assert_eq!(gateways(&place.lab, "worker1", everything), before);
    announce(&place.lab, "tor2", &[format!("no network {everything}")]);
    wait_for("worker1 to forget it", PATIENCE, || learned().map_or_else(Ok, Err));
    assert_eq!(gateways(&place.lab, "worker1", everything), before);
    flows.stop_without_loss(&place.lab);
}

/// Our own pods are ours: half of a node's subnet, told by a router, is refused on every node, and pods are reached.
pub fn our_own_pods(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "blue"]).and_between_pods(place, &["default", "red"]);
    let half = |network: &str| {
        let subnets = subnets_of(&place.lab, "worker1", &[network]);
        let subnet = subnets.first().expect("a subnet").replace("/24", "/25");
        (subnet.trim_end_matches("/25").to_owned(), subnet)
    };
    let (inside, ours) = half("default");
    let (_, blue) = half("blue");
    announce(&place.lab, "tor1", &[format!("network {ours}"), format!("network {blue}")]);
    for node in NODES {
        let told = wait_for(&format!("{node} to refuse {ours}"), PATIENCE, || {
            let told = refusal(&place.lab, node, &inside)?;
            if told.contains("cluster's own range") { Ok(told) } else { Err(told) }
        });
        println!("      {node}: {told}");
        assert!(gateways(&place.lab, node, &ours).is_empty(), "{node} took it");
    }
    for network in ["default", "blue"] {
        place.reached_from_outside(network);
    }
    let pod = place.pod("default", "worker1");
    for node in ["worker1", "worker2"] {
        let url = format!("http://{}:8080/healthz", pod.addresses[0]);
        crate::cluster::fetch_from(&place.lab, node, &url).expect("a node reaches the pod");
    }
    announce(&place.lab, "tor1", &[format!("no network {ours}"), format!("no network {blue}")]);
    wait_for("nobody to tell of it", PATIENCE, || match refusal(&place.lab, "worker1", &inside) {
        Ok(told) if told.contains("cluster's own range") => Err(told),
        _ => Ok(()),
    });
    flows.stop(&place.lab);
}

/// More routes than a network takes: those that are left out are counted, and everybody who should know is told.
pub fn more_than_fits(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "blue"]);
    let lines = |word: &str| {
        (0..16).map(|number| format!("{word} 198.51.100.{}/28", number * 16)).collect::<Vec<_>>()
    };
    announce(&place.lab, "tor1", &lines("network"));
    let most = ["routeadvertisements", "most"];
    let told = wait_for_condition(&place.lab, &most, "RoutesImported", |told| {
        told.status == "False" && NODES.iter().all(|node| told.message.contains(node))
    });
    assert_eq!(told.reason, "RouteLimitReached");
    println!("      {}", told.message);
    let (first, last) = ("198.51.100.0", "198.51.100.240");
    assert!(!gateways(&place.lab, "worker1", &format!("{first}/28")).is_empty(), "as many as fit are taken");
    assert!(gateways(&place.lab, "worker1", &format!("{last}/28")).is_empty(), "no more");
    assert_eq!(gateways(&place.lab, "worker1", "203.0.113.0/24").len(), 2, "wider ones come first");
    let reason = refusal(&place.lab, "worker1", last).expect("the last one is refused");
    assert!(reason.contains("as many as it takes"), "{reason}");
    let measured = metrics(&place.lab, "worker1").expect("metrics");
    let dammed =
        measured.lines().find(|line| line.starts_with("underlay_dammed_routes{network=\"default\"}"));
    assert!(dammed.is_some_and(|line| !line.ends_with(" 0")), "{measured}");
    wait_for("events", PATIENCE, || {
        let events = place.lab.kubectl(&["get", "events", "--all-namespaces", "--output=wide"]).ok();
        let reached = events.lines().filter(|line| line.contains("RouteLimitReached")).count();
        if reached >= NODES.len() { Ok(()) } else { Err(events) }
    });
    let node = get(&place.lab, &["node", "worker1"]);
    println!("      {}", node["metadata"]["annotations"]["underlay/refused-routes"]);
    flows.wait_until_flowing();
    announce(&place.lab, "tor1", &lines("no network"));
    wait_for_condition(&place.lab, &most, "RoutesImported", |told| told.status == "True");
    let untouched = condition(&place.lab, &["routeadvertisements", "green"], "Accepted");
    assert_eq!(untouched.status, "True", "{untouched:?}");
    flows.stop_without_loss(&place.lab);
}
