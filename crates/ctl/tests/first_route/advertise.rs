//! One RouteAdvertisements: the router learns the pods' subnets, and the world reaches them at their own addresses.

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{
    Capture, OUTSIDE, PATIENCE, apply, authority, fetch_from, get, in_pod, pods_on, source_seen_outside,
    wait_for_text,
};

/// The manifest that users write, as the README has it.
const ADVERTISE: &str = include_str!("../../../../examples/advertise-pods.yaml");

const NODES: [&str; 3] = ["control", "worker1", "worker2"];

/// The subnets of a node's pods.
pub fn subnets(lab: &LabUnderTest, node: &str) -> Vec<String> {
    let node = get(lab, &["node", node]);
    let text = node["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].as_str().unwrap_or_default();
    let subnets: Value = serde_json::from_str(text).expect("JSON");
    subnets["default"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The routes that the router has learned, as its kernel shows them.
fn routes_of_tor(lab: &LabUnderTest) -> String {
    let v4 = lab.exec("tor", &["ip", "-4", "route", "show", "proto", "bgp"]).ok();
    v4 + &lab.exec("tor", &["ip", "-6", "route", "show", "proto", "bgp"]).ok()
}

/// The router learns every node's subnets.
pub fn the_router_learns_the_way(lab: &LabUnderTest) {
    apply(lab, "advertise.yaml", ADVERTISE);
    let all: Vec<String> = NODES.iter().flat_map(|node| subnets(lab, node)).collect();
    assert!(all.len() == 3 || all.len() == 6, "{all:?}");
    wait_for("the router to learn all subnets", PATIENCE, || {
        let routes = routes_of_tor(lab);
        if all.iter().all(|subnet| routes.contains(subnet)) { Ok(()) } else { Err(routes) }
    });
    let advertisement = get(lab, &["routeadvertisements", "default"]);
    assert_eq!(advertisement["status"]["status"], "Accepted", "{advertisement}");
    let condition = &advertisement["status"]["conditions"][0];
    assert_eq!((condition["type"].as_str(), condition["status"].as_str()), (Some("Accepted"), Some("True")));
    assert_eq!(condition["observedGeneration"], advertisement["metadata"]["generation"]);
    wait_for("the advertisement to be ready", PATIENCE, || {
        let advertisement = get(lab, &["routeadvertisements", "default"]);
        let ready = &advertisement["status"]["conditions"][1];
        let told = (ready["type"].as_str(), ready["status"].as_str()) == (Some("Ready"), Some("True"));
        if told { Ok(()) } else { Err(ready.to_string()) }
    });
}

/// A client outside reaches a pod, and the pod sees who it is.
pub fn pods_are_reached_from_outside(lab: &LabUnderTest) {
    for node in ["worker1", "worker2"] {
        for pod in pods_on(lab, node) {
            for address in &pod.addresses {
                let client = OUTSIDE[usize::from(address.contains(':'))];
                let url = format!("http://{}/clientip", authority(address, 8080));
                wait_for(&format!("{address} to answer outside"), PATIENCE, || {
                    let seen = fetch_from(lab, "outside", &url)?;
                    if seen.contains(client) { Ok(()) } else { Err(seen) }
                });
            }
        }
    }
}

/// What a pod sends arrives outside with the pod's own address, and at other nodes with its node's.
pub fn pods_leave_with_their_own_address(lab: &LabUnderTest) {
    let pod = &pods_on(lab, "worker1")[0];
    for address in &pod.addresses {
        let v6 = usize::from(address.contains(':'));
        wait_for("the pod's own address outside", PATIENCE, || {
            let seen = source_seen_outside(lab, pod, OUTSIDE[v6]);
            if seen == *address { Ok(()) } else { Err(seen) }
        });
        let (node, other) = [("172.30.0.11", "172.30.0.12"), ("fd00:172:30::11", "fd00:172:30::12")][v6];
        let filter = ["icmp[icmptype] == icmp-echo", "icmp6 and ip6[40] == 128"][v6];
        let capture = Capture::start(lab, "worker2", "br-ex", filter);
        in_pod(lab, pod, &["ping", "-c1", "-W2", other]).expect("an answer");
        let packet = capture.packet();
        assert!(packet.contains(&format!(" {node} > {other}")), "{packet}");
    }
}

/// What the router announces is in OVN, with every next hop, and goes when it is withdrawn.
pub fn learned_routes_reach_ovn(lab: &LabUnderTest) {
    let routes = ["ovn-nbctl", "lr-route-list", "GR_worker1"];
    let (prefix, family) = if pods_on(lab, "worker1")[0].addresses[0].contains(':') {
        ("2001:db8:113::/64", "ipv6")
    } else {
        ("203.0.113.0/24", "ipv4")
    };
    wait_for_text(lab, "a learned route in OVN", "worker1", &routes, |text| text.contains(prefix));
    let speak = |line: &str| {
        let family = format!("address-family {family} unicast");
        let words =
            ["vtysh", "-c", "configure terminal", "-c", "router bgp 64513", "-c", &family, "-c", line];
        lab.exec("tor", &words).ok();
    };
    speak(&format!("no network {prefix}"));
    wait_for_text(lab, "the route to leave OVN", "worker1", &routes, |text| !text.contains(prefix));
    speak(&format!("network {prefix}"));
    wait_for_text(lab, "the route to come back", "worker1", &routes, |text| text.contains(prefix));

    // A route with two ways becomes two rows, which share the load.
    if family == "ipv4" {
        let ways =
            ["nexthop", "via", "172.30.0.1", "dev", "br-ex", "nexthop", "via", "172.30.0.12", "dev", "br-ex"];
        let add = [&["ip", "route", "add", "198.51.100.0/24", "proto", "bgp"], &ways[..]].concat();
        lab.exec("worker1", &add).ok();
        wait_for_text(lab, "both ways in OVN", "worker1", &routes, |text| {
            text.lines().filter(|line| line.contains("198.51.100.0/24")).count() == 2
        });
        lab.exec("worker1", &["ip", "route", "del", "198.51.100.0/24", "proto", "bgp"]).ok();
        wait_for_text(lab, "both ways to go", "worker1", &routes, |text| !text.contains("198.51.100.0/24"));
    }
}

/// Without the manifest all is as it was before.
pub fn everything_is_taken_back(lab: &LabUnderTest) {
    lab.kubectl(&["delete", "routeadvertisements", "default"]).ok();
    let all: Vec<String> = NODES.iter().flat_map(|node| subnets(lab, node)).collect();
    wait_for("the router to forget all subnets", PATIENCE, || {
        let routes = routes_of_tor(lab);
        if all.iter().any(|subnet| routes.contains(subnet)) { Err(routes) } else { Ok(()) }
    });
    let left =
        get(lab, &["frrconfigurations", "--all-namespaces", "--selector=k8s.ovn.org/route-advertisements"]);
    assert_eq!(left["items"].as_array().map(Vec::len), Some(0), "{left}");
    let pod = &pods_on(lab, "worker1")[0];
    for address in &pod.addresses {
        let v6 = usize::from(address.contains(':'));
        let node = ["172.30.0.11", "fd00:172:30::11"][v6];
        wait_for("the node's address outside", PATIENCE, || {
            let seen = source_seen_outside(lab, pod, OUTSIDE[v6]);
            if seen == node { Ok(()) } else { Err(seen) }
        });
    }
    crate::reach::pods_are_not_reached_from_outside(lab);
}
