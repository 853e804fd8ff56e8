//! Every topology of `examples/`, in a lab that its own file describes, proved by traffic: the host outside and the pods
//! of the default network and of two tenants reach each other, and packets between nodes travel as they should.

#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;

mod desk;
mod place;
mod wire;

use std::time::Instant;

use place::Place;
use underlay_testkit::turn;

#[test]
fn a_router_per_rack() {
    prove(
        "tor-per-rack",
        |place| {
            place.kubectl(&["label", "node", "control", "worker1", "rack=one"]);
            place.kubectl(&["label", "node", "worker2", "rack=two"]);
        },
        |_| {},
    );
}

#[test]
fn a_route_reflector() {
    prove("route-reflector", |_| {}, |_| {});
}

#[test]
fn ibgp_between_nodes_and_ebgp_to_the_world() {
    prove("ibgp-and-ebgp", |_| {}, |_| {});
}

#[test]
fn both_families() {
    prove(
        "dual-stack",
        |_| {},
        |place| {
            carry_out("routes are told as they are", || desk::routes(place));
            carry_out("sessions are told as they are", || desk::sessions(place));
            carry_out("the status is told on one screen", || desk::status(place));
            carry_out("pods and networks are explained", || desk::explanations(place));
        },
    );
}

#[test]
fn sessions_without_addresses() {
    prove("unnumbered", |_| {}, |_| {});
}

/// Brings a topology up, proves that everybody outside and inside reaches everybody as said, and then does more.
fn prove(example: &str, prepare: impl FnOnce(&Place), more: impl FnOnce(&Place)) {
    let _turn = turn();
    let place = Place::up(example);
    prepare(&place);
    place.apply(&["peers.yaml", "networks.yaml", "advertisements.yaml"]);
    place.run_pods(&["default", "blue", "green"]);
    carry_out("all is accepted", || place.all_is_accepted("everything"));
    for network in ["default", "blue", "green"] {
        carry_out(&format!("{network}: pods and the world see each other's own addresses"), || {
            place.reached_from_outside(network);
            place.seen_outside(network);
        });
    }
    carry_out("packets between nodes travel as they should", || {
        wire::between_nodes(&place, "default", wire::Travel::Tunnel);
        wire::between_nodes(&place, "blue", wire::Travel::Tunnel);
        wire::between_nodes(&place, "green", wire::Travel::AsTheyAre);
    });
    more(&place);
}

/// Without anybody who speaks BGP outside, pods reach each other all the same, and the world with their node's address.
#[test]
fn a_mesh_that_the_cluster_sees_to() {
    let _turn = turn();
    let place = Place::up("managed-mesh");
    place.apply(&["networks.yaml"]);
    place.run_pods(&["default", "blue", "green"]);
    carry_out("the transport is accepted", || place.transport_is_accepted("green"));
    carry_out("packets between nodes travel as they should", || {
        wire::between_nodes(&place, "default", wire::Travel::AsTheyAre);
        wire::between_nodes(&place, "blue", wire::Travel::Tunnel);
        wire::between_nodes(&place, "green", wire::Travel::AsTheyAre);
    });
    for network in ["default", "blue", "green"] {
        carry_out(&format!("{network}: the world sees the node"), || place.node_seen_outside(network));
    }
    carry_out("nodes, services and names are reached", || place.node_and_services_are_reached());
}

fn carry_out(name: &str, step: impl FnOnce()) {
    let started = Instant::now();
    println!("step: {name}");
    step();
    println!("      {:.1} s", started.elapsed().as_secs_f64());
}
