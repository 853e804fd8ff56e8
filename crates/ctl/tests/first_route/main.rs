//! One manifest, one packet, through the whole system: pods of a real cluster on the routed network.

mod advertise;
mod cluster;
mod dns;
mod reach;

use std::time::Instant;

use underlay_testkit::{LabUnderTest, turn};

type Step = (&'static str, fn(&LabUnderTest));

const STEPS: &[Step] = &[
    ("pods start on both workers", cluster::deploy),
    ("pods reach pods, on their node and on others", reach::pods_reach_pods),
    ("nodes reach pods, and probes pass", reach::nodes_reach_pods),
    ("pods and nodes reach services", reach::services),
    ("a service without endpoints refuses", reach::a_service_without_endpoints_refuses),
    ("pods resolve names", dns::pods_resolve_names),
    ("the name server answers at every address", dns::every_address_answers),
    ("pods leave with the node's address", reach::pods_leave_with_the_nodes_address),
    ("pods are not reached from outside", reach::pods_are_not_reached_from_outside),
    ("an advertisement: the router learns the way", advertise::the_router_learns_the_way),
    ("an advertisement: pods are reached from outside", advertise::pods_are_reached_from_outside),
    ("an advertisement: pods leave with their own address", advertise::pods_leave_with_their_own_address),
    ("an advertisement: nodes reach pods as before", reach::nodes_reach_pods),
    ("what the router announces reaches OVN", advertise::learned_routes_reach_ovn),
    ("without the advertisement all is as before", advertise::everything_is_taken_back),
];

fn carry_out(lab: &LabUnderTest, steps: &[Step]) {
    for (name, step) in steps {
        let started = Instant::now();
        println!("step: {name}");
        step(lab);
        println!("      {:.1} s", started.elapsed().as_secs_f64());
    }
}

#[test]
fn a_cluster_of_two_families() {
    let _turn = turn();
    carry_out(&LabUnderTest::up("route", &[]), STEPS);
}

/// The default lab with pods and services of one family.
fn single_family(pods: &str, services: &str) -> String {
    let mut lines = Vec::new();
    for line in underlay_lab::file::DEFAULT.lines() {
        lines.push(match line.trim_start() {
            text if text.starts_with("podSubnets:") => format!("  podSubnets: [\"{pods}\"]"),
            text if text.starts_with("serviceSubnets:") => format!("  serviceSubnets: [\"{services}\"]"),
            _ => line.to_owned(),
        });
    }
    lines.join("\n")
}

#[test]
fn a_cluster_of_ipv4() {
    let _turn = turn();
    let lab = LabUnderTest::up_from("four", &single_family("10.244.0.0/16", "10.96.0.0/16"));
    carry_out(&lab, STEPS);
}

#[test]
fn a_cluster_of_ipv6() {
    let _turn = turn();
    let lab = LabUnderTest::up_from("six", &single_family("fd00:10:244::/48", "fd00:10:96::/112"));
    carry_out(&lab, STEPS);
}
