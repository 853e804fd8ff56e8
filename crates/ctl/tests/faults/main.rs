//! What happens when something breaks: pods must not notice, or things must mend themselves, and nobody else's property
//! is touched on the way.

// Not everything that other tests need is needed here.
#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;

mod absence;
mod foreign;
mod invalid;
mod kills;
mod node;
mod plugin;
mod removal;
mod snapshot;
mod traffic;
mod verbs;

use std::time::Instant;

use underlay_testkit::{LabUnderTest, turn};

use crate::cluster::apply;
use crate::node::wait_until_advertised;

/// The default network, told to all peers.
const ADVERTISEMENT: &str = include_str!("../../../../examples/advertise-pods.yaml");

type Step = (&'static str, fn(&LabUnderTest));

const STEPS: &[Step] = &[
    ("pods that are advertised", deploy),
    ("nobody notices when we are killed, or the API server, or bgpd", kills::nobody_notices),
    ("all else recovers by itself", kills::all_else_recovers),
    ("a killed plugin leaves nothing behind", plugin::a_killed_plugin_leaves_nothing_behind),
    ("pods come and go while the agent is down, and a restart writes nothing", absence::changes_nothing),
    ("CNI as prescribed", verbs::as_prescribed),
    ("what is not ours is left alone", foreign::is_left_alone),
    ("an agent without a place waits", absence::an_agent_without_a_place_waits),
    ("invalid advertisements change nothing", invalid::changes_nothing),
];

#[test]
fn faults() {
    let _turn = turn();
    let lab = LabUnderTest::up("faults", &[]);
    let before = removal::before(&lab);
    let only = std::env::var("FAULTS_STEPS").ok();
    for (number, (name, step)) in STEPS.iter().enumerate() {
        if only.as_ref().is_some_and(|only| !only.split(',').any(|text| text == number.to_string())) {
            continue;
        }
        carry_out(name, || step(&lab));
    }
    carry_out("what is deleted leaves no trace", || removal::leaves_no_trace(&lab, &before));
}

fn carry_out(name: &str, step: impl FnOnce()) {
    let started = Instant::now();
    println!("step: {name}");
    step();
    println!("      {:.1} s", started.elapsed().as_secs_f64());
}

fn deploy(lab: &LabUnderTest) {
    cluster::deploy(lab);
    apply(lab, "advertisement.yaml", ADVERTISEMENT);
    wait_until_advertised(lab);
}
