//! Tenants with networks of their own, two of them with the same addresses: each reaches its own and nobody else's.

// Not everything that other tests need is needed here.
#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;
#[allow(dead_code, reason = "shared with the tests of faults")]
#[path = "../faults/node.rs"]
mod node;
#[allow(dead_code, reason = "shared with the tests of faults")]
#[path = "../faults/snapshot.rs"]
mod snapshot;

#[allow(dead_code, reason = "shared with the tests of faults")]
#[path = "../faults/traffic.rs"]
mod traffic;

mod changes;
mod isolation;
mod removal;
mod tenants;
mod told;

use std::time::Instant;

use underlay_testkit::{LabUnderTest, turn};

type Step = (&'static str, fn(&LabUnderTest));

const STEPS: &[Step] = &[
    ("three networks and their pods", tenants::create),
    ("the state is in the columns", tenants::columns_tell_the_state),
    ("pods reach their own network, across nodes", tenants::pods_reach_their_own),
    ("a tenant's own services answer, by address and by name", tenants::own_services_answer),
    ("the API server answers, by address and by name", tenants::the_api_server_answers),
    ("pods leave with the node's address", tenants::pods_leave_with_the_nodes_address),
    ("nothing crosses between networks", isolation::nothing_crosses),
    ("status has all networks", told::status_has_all_networks),
    ("explain follows a tenant's pod", told::explain_follows_a_tenants_pod),
    ("plan agrees with what is there", told::plan_agrees_with_what_is_there),
    ("neighbours come and go", changes::neighbours_come_and_go),
];

#[test]
fn tenants_have_networks_of_their_own() {
    let _turn = turn();
    let lab = LabUnderTest::up("tenant", &[]);
    let before = removal::before(&lab);
    for (name, step) in STEPS {
        carry_out(name, || step(&lab));
    }
    carry_out("everything goes with its network", || removal::leaves_no_trace(&lab, &before));
    carry_out("the same networks come again", || {
        tenants::create(&lab);
        tenants::pods_reach_their_own(&lab);
    });
    carry_out("and go again", || removal::leaves_no_trace(&lab, &before));
}

fn carry_out(name: &str, step: impl FnOnce()) {
    let started = Instant::now();
    println!("step: {name}");
    step();
    println!("      {:.1} s", started.elapsed().as_secs_f64());
}
