//! Daemons are killed while traffic flows.

use std::thread::sleep;
use std::time::Duration;

use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::PATIENCE;
use crate::node::{RECOVERY, a_new_pod_works, kill, wait_for_sessions, wait_until_back, wait_until_well};
use crate::snapshot::Snapshot;
use crate::traffic::{Background, Gap, Traffic};

/// Longer than anything takes that follows a start.
const AFTERMATH: Duration = Duration::from_millis(1500);

/// Our own daemons, the API server, and bgpd, whose peers and kernel keep its routes until it is back.
pub fn nobody_notices(lab: &LabUnderTest) {
    let (before, ready) = (Snapshot::at_rest(lab, "worker1"), ready_since(lab));
    let lossless = |machine: &str, daemon: &str, settled: &dyn Fn()| {
        let gaps = under_traffic(lab, machine, daemon, settled);
        wait_until_as_before(&before, || Snapshot::of(lab, "worker1"));
        let lost: Vec<String> = gaps.iter().filter(|gap| gap.lost > 0).map(ToString::to_string).collect();
        assert_eq!(lost, [] as [&str; 0], "{daemon} is missed");
    };
    lossless("worker1", "underlay-agent", &|| wait_until_well(lab, "worker1"));
    lossless("control", "underlay-cluster", &|| {});
    let (tor, node) = (watch_routes(lab, "tor"), watch_routes(lab, "worker1"));
    lossless("worker1", "bgpd", &|| wait_for_sessions(lab, "worker1"));
    let lost = |text: &str| {
        text.lines().filter(|line| line.contains("Deleted") && line.contains("proto bgp")).count()
    };
    assert_eq!(lost(&tor.stop(lab)), 0, "the peer keeps the routes");
    println!("      bgpd: the node's kernel lost {} routes for a moment", lost(&node.stop(lab)));
    lossless("control", "kube-apiserver", &|| {
        wait_for("the API server", PATIENCE, || lab.kubectl(&["get", "--raw", "/readyz"]).result().map(drop));
    });
    assert_eq!(ready_since(lab), ready, "the kubelet has not noticed either");
}

/// When worker1 became ready for pods.
fn ready_since(lab: &LabUnderTest) -> String {
    let path = "--output=jsonpath={.status.conditions[?(@.type==\"Ready\")]['status','lastTransitionTime']}";
    lab.kubectl(&["get", "node", "worker1", path]).ok()
}

/// The switch and OVN's daemons.
pub fn all_else_recovers(lab: &LabUnderTest) {
    let before = Snapshot::at_rest(lab, "worker1");
    for daemon in ["ovn-controller", "ovn-nb", "ovn-sb", "ovn-northd", "ovsdb-server", "ovs-vswitchd"] {
        let gaps = under_traffic(lab, "worker1", daemon, &|| {});
        let longest = gaps.iter().map(|gap| gap.longest).max().unwrap_or_default();
        assert!(longest < RECOVERY, "{daemon}: {longest:?}");
        if daemon == "ovs-vswitchd" {
            // Without the switch the node has no link, and forgets for a while what it learned over it.
            wait_until_as_before(&before.clone().without_identities(), || {
                Snapshot::of(lab, "worker1").without_identities()
            });
        } else {
            wait_until_as_before(&before, || Snapshot::of(lab, "worker1"));
        }
        a_new_pod_works(lab, &format!("after-{daemon}"));
    }
}

fn watch_routes(lab: &LabUnderTest, machine: &str) -> Background {
    Background::start(lab, machine, "ip monitor route")
}

/// Kills a daemon under traffic and waits until all is well again.
fn under_traffic(lab: &LabUnderTest, machine: &str, daemon: &str, settled: &dyn Fn()) -> Vec<Gap> {
    let traffic = Traffic::start(lab);
    let old = kill(lab, machine, daemon);
    wait_until_back(lab, machine, daemon, &old);
    settled();
    sleep(AFTERMATH);
    traffic.wait_until_flowing();
    let gaps = traffic.stop(lab);
    let longest = gaps.iter().max_by_key(|gap| gap.longest).expect("traffic");
    let lost: usize = gaps.iter().map(|gap| gap.lost).sum();
    println!("      {daemon}: {lost} lost; longest gap: {longest}");
    wait_until_well(lab, "worker1");
    gaps
}

fn wait_until_as_before(before: &Snapshot, look: impl Fn() -> Snapshot) {
    wait_for("the node as before", RECOVERY, || match look().since(before) {
        lines if lines.is_empty() => Ok(()),
        lines => Err(lines.join("\n")),
    });
}
