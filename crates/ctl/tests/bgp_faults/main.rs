//! What happens when BGP breaks, or somebody says nonsense in it: traffic goes on by what is left, what is wrong is said
//! with its place, nobody else notices, and all is well again once it is mended.

#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;
#[allow(dead_code, reason = "shared with the tests of faults")]
#[path = "../faults/node.rs"]
mod node;
#[allow(dead_code, reason = "shared with the tests of topologies")]
#[path = "../topologies/place.rs"]
mod place;
#[allow(dead_code, reason = "shared with the tests of faults")]
#[path = "../faults/traffic.rs"]
mod traffic;

mod apart;
mod deleted;
mod flows;
mod links;
mod looks;
mod mistakes;
mod peers;
mod removed;

use std::path::PathBuf;
use std::time::Instant;

use place::Place;
use underlay_testkit::turn;

type Step = (&'static str, fn(&Place));

const STEPS: &[Step] = &[
    ("two ways share the load", links::two_ways_share_the_load),
    ("a cut link: traffic goes on by the other way", links::a_cut_link_leaves_the_other_way),
    ("a router's bgpd dies: nothing is lost", links::a_router_restarts),
    ("a node's bgpd dies: nobody notices, sessions return", links::a_speaker_restarts),
    ("a wrong password, a wrong AS number", mistakes::a_wrong_neighbor_is_alone),
    ("text that is no configuration, and one that contradicts another", mistakes::one_object_is_left_out),
    ("a peer that tells of everything", peers::a_default_route),
    ("a peer that tells of our own pods", peers::our_own_pods),
    ("a peer that tells too much", peers::more_than_fits),
    ("networks are kept apart", apart::strictly),
    ("networks meet outside, where that is allowed", apart::loosely),
    ("what is generated comes back", deleted::generated_ones_come_back),
    ("nobody to peer with, and back", deleted::without_peers),
    ("an advertisement goes and comes", deleted::an_advertisement_toggles),
    ("a node goes for good, and one comes in its place", removed::a_node_goes),
];

#[test]
fn bgp_faults() {
    let _turn = turn();
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/bgp_faults");
    let place = Place::up_from("bgp", directory);
    carry_out("everything is told and reached", || looks::prepare(&place));
    let only = std::env::var("BGP_FAULTS_STEPS").ok();
    for (number, (name, step)) in STEPS.iter().enumerate() {
        if only.as_ref().is_some_and(|only| !only.split(',').any(|text| text == number.to_string())) {
            continue;
        }
        carry_out(name, || step(&place));
        looks::wait_until_all_is_well(&place);
    }
}

fn carry_out(name: &str, step: impl FnOnce()) {
    let started = Instant::now();
    println!("step: {name}");
    step();
    println!("      {:.1} s", started.elapsed().as_secs_f64());
}
