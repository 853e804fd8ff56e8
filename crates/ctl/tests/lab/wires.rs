//! Packets between the machines, and wires that are cut.

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::{PATIENCE, wait_until_well};

/// The router's addresses on the fabric: behind its uplink, seen from outside.
const TOR: [&str; 2] = ["172.30.0.1", "fd00:172:30::1"];
const WORKER1: [&str; 2] = ["172.30.0.11", "fd00:172:30::11"];
const WORKER2: [&str; 2] = ["172.30.0.12", "fd00:172:30::12"];

fn ping(lab: &LabUnderTest, from: &str, to: &str) -> Result<(), String> {
    lab.exec(from, &["ping", "-c1", "-W1", to]).result().map(drop)
}

fn reaches(lab: &LabUnderTest, from: &str, addresses: [&str; 2]) {
    for address in addresses {
        wait_for(&format!("{address} to answer {from}"), PATIENCE, || ping(lab, from, address));
    }
}

fn does_not_reach(lab: &LabUnderTest, from: &str, addresses: [&str; 2]) {
    for address in addresses {
        let Err(text) = ping(lab, from, address) else { panic!("{address} answers {from} over a cut wire") };
        assert!(text.contains("100% packet loss"), "{text}");
    }
}

/// What the router announces is in a worker's kernel: a moment after the session is established.
pub fn has_learned_route(lab: &LabUnderTest) {
    wait_for("worker1 to learn a route", PATIENCE, || {
        let routes = lab.exec("worker1", &["ip", "route", "show", "proto", "bgp"]).ok();
        if routes.contains("203.0.113.0/24") { Ok(()) } else { Err(routes) }
    });
}

pub fn router_answers(lab: &LabUnderTest) {
    let text = lab.exec("tor", &["vtysh", "-c", "show bgp summary json"]).ok();
    let summary: Value = serde_json::from_str(&text).expect("FRR speaks JSON");
    for family in ["ipv4Unicast", "ipv6Unicast"] {
        assert_eq!(summary[family]["as"], 64513);
        let peers = summary[family]["peers"].as_object().expect("peers");
        assert_eq!(peers.len(), 3);
        assert!(peers.values().all(|peer| peer["state"] == "Established"), "{peers:?}");
    }
    has_learned_route(lab);
    reaches(lab, "outside", TOR);
    reaches(lab, "outside", WORKER1);
}

pub fn cut_link(lab: &LabUnderTest) {
    lab.cli(&["cut", "uplink"]).ok();
    does_not_reach(lab, "outside", TOR);
    let link = lab.exec("outside", &["ip", "-o", "link", "show", "eth0"]).ok();
    assert!(link.contains("LOWER_UP"), "a cut is not a pulled cable, the carrier stays: {link}");
    lab.cli(&["heal", "uplink"]).ok();
    reaches(lab, "outside", TOR);
}

pub fn cut_one_end(lab: &LabUnderTest) {
    lab.cli(&["cut", "fabric/worker2"]).ok();
    does_not_reach(lab, "tor", WORKER2);
    reaches(lab, "tor", WORKER1);
    lab.cli(&["heal", "fabric/worker2"]).ok();
    reaches(lab, "tor", WORKER2);
    wait_until_well(lab);
}
