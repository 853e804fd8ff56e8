//! The workflows of the documents that Underlay is built after, carried out in labs whose addresses are the documents' own:
//! manifests apply as they are written, statuses and events say what is written there, and packets travel as promised.
//!
//! Where a document was overtaken, by a newer one or by what programs around us read and write today, the test says so and
//! insists on what holds instead.

#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;
#[path = "../topologies/listener.rs"]
mod listener;

mod leaked;
mod managed;
mod said;
mod scene;
mod tenant;
mod unmanaged;
mod wire;

use std::time::Instant;

use underlay_testkit::turn;

use scene::{Scene, Worker};

/// A step of a workflow.
type Step = (&'static str, fn(&Scene));

/// Two nodes that have pods, with the addresses that they have in one example, and in others.
const WORKERS: [Worker; 2] = [
    Worker { name: "worker1", address: "192.168.111.21" },
    Worker { name: "worker2", address: "192.168.111.22" },
];
const OTHERS: [Worker; 2] =
    [Worker { name: "worker1", address: "172.18.0.3" }, Worker { name: "worker2", address: "172.18.0.4" }];
/// The same where a document names the first of them.
const NAMED: [Worker; 2] = [
    Worker { name: "ovn-worker", address: "172.18.0.3" },
    Worker { name: "ovn-worker2", address: "172.18.0.4" },
];

/// Without overlay, through a route reflector of the users' own, and then through a mesh of their own.
#[test]
fn the_default_network_with_unmanaged_routing() {
    carry_out("unmngd", include_str!("unmanaged.yaml"), WORKERS, &[unmanaged::STEPS]);
}

/// Without overlay, through a mesh that the cluster sees to, for the default network and then for a tenant's too.
#[test]
fn managed_routing() {
    carry_out("mngd", include_str!("managed.yaml"), OTHERS, &[managed::STEPS]);
}

/// A tenant's network without overlay, through a router of the users' own; and then one with overlay that is advertised.
#[test]
fn networks_of_tenants_with_unmanaged_routing() {
    carry_out("tenants", include_str!("tenants.yaml"), NAMED, &[tenant::STEPS, leaked::STEPS]);
}

fn carry_out(label: &str, lab: &str, workers: [Worker; 2], workflows: &[&[Step]]) {
    let _turn = turn();
    let scene = Scene::up(label, lab, workers);
    for (name, step) in workflows.iter().copied().flatten() {
        let started = Instant::now();
        println!("step: {name}");
        step(&scene);
        println!("      {:.1} s", started.elapsed().as_secs_f64());
    }
}
