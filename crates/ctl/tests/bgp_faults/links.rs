//! Links and speakers that fail.

use underlay_testkit::OutputExt;

use crate::flows::Flows;
use crate::looks::{
    NODES, ROUTERS, gateways, session, times_established, wait_for_condition, wait_for_gateways,
    wait_for_session, wait_until_all_is_well,
};
use crate::node::{kill, sh, wait_until_back};
use crate::place::Place;
use crate::traffic::Background;

/// What both routers announce.
const WORLD: &str = "203.0.113.0/24";
const BOTH: [&str; 2] = [ROUTERS[0].1, ROUTERS[1].1];

/// A prefix that both routers tell is two routes in OVN, for every network that is advertised.
pub fn two_ways_share_the_load(place: &Place) {
    for node in NODES {
        wait_for_gateways(&place.lab, node, WORLD, &BOTH);
    }
    Flows::with_outside(place, &["default", "blue", "green"]).stop_without_loss(&place.lab);
}

/// One router is cut off from the nodes. BFD tells before BGP would.
pub fn a_cut_link_leaves_the_other_way(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "green"]).and_between_pods(place, &["green"]);
    place.lab.cli(&["cut", "fabric/tor1"]).ok();
    for node in NODES {
        wait_for_session(&place.lab, node, BOTH[0], false);
        assert_eq!(session(&place.lab, node, BOTH[1]).0, "Established", "the other session of {node}");
        wait_for_gateways(&place.lab, node, WORLD, &BOTH[1..]);
    }
    let told = wait_for_condition(&place.lab, &["routeadvertisements", "most"], "Ready", |told| {
        told.status == "False" && told.message.contains("no session with 172.30.0.1")
    });
    println!("      {}", told.message);
    flows.wait_until_flowing();
    place.lab.cli(&["heal", "fabric/tor1"]).ok();
    wait_until_all_is_well(place);
    for node in NODES {
        wait_for_gateways(&place.lab, node, WORLD, &BOTH);
    }
    println!("      {} pings lost", flows.stop(&place.lab));
}

/// The speaker of a router is killed, and the nodes keep sending half of their packets to it. It is not the router through
/// which all comes in: FRR 10.3 has done with its own restart when the first of its peers is back, and forgets for a moment
/// what the others told.
pub fn a_router_restarts(place: &Place) {
    // While tor1 was cut off, it told the host outside to go by tor2, and that remembers it.
    sh(&place.lab, "outside", "ip route flush cache");
    let flows = Flows::with_outside(place, &["default", "blue", "green"]).and_between_pods(place, &["green"]);
    let changes = Background::start(&place.lab, "worker1", "ip monitor route");
    let old = kill(&place.lab, "tor2", "bgpd");
    wait_until_back(&place.lab, "tor2", "bgpd", &old);
    for node in NODES {
        assert_eq!(gateways(&place.lab, node, WORLD), BOTH.map(str::to_owned).into(), "kept by {node}");
        wait_for_session(&place.lab, node, BOTH[1], true);
    }
    wait_until_all_is_well(place);
    flows.stop_without_loss(&place.lab);
    let changes = changes.stop(&place.lab);
    assert!(!changes.contains(&format!("Deleted {WORLD}")), "{changes}");
}

/// The speaker of a node is killed.
pub fn a_speaker_restarts(place: &Place) {
    let flows =
        Flows::with_outside(place, &["default", "green"]).and_between_pods(place, &["default", "red"]);
    let before = times_established(&place.lab, "tor2", "worker2");
    let old = kill(&place.lab, "worker1", "bgpd");
    wait_until_back(&place.lab, "worker1", "bgpd", &old);
    for peer in BOTH {
        wait_for_session(&place.lab, "worker1", peer, true);
    }
    wait_until_all_is_well(place);
    assert_eq!(times_established(&place.lab, "tor2", "worker2"), before, "sessions of others");
    flows.stop_without_loss(&place.lab);
}
