//! Several replicas: one leads and only that one writes; whoever dies or freezes is replaced, and what it still had to
//! say is refused.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use underlay_testkit::wait_for;

use crate::cluster::{Cluster, PATIENCE, same, tenant};
use crate::common::daemon::{Daemon, get, kubectl};
use crate::common::objects::{ATTACHMENTS, numbers, parts};
use crate::proxy::Proxy;
use crate::state::State;
use crate::witness::Witness;

const LEASE: [&str; 3] = ["lease", "-n", "kube-system"];
const SHORT: &str = "--leader-elect-lease-duration=2";

pub fn take_turns() {
    let cluster = Cluster::new("replicas");
    let survivor = a_killed_leader_is_replaced(&cluster);
    let survivor = a_frozen_leader_says_nothing_more(&cluster, survivor);
    let daemon = what_a_leader_said_too_late_is_refused(&cluster, survivor);
    cluster.judge(daemon).stop();
}

/// Two start at once in a rollout; the one that leads is killed in the middle of it.
fn a_killed_leader_is_replaced(cluster: &Cluster) -> Daemon {
    let server = &cluster.server;
    let witness = Witness::start(server);
    let both = ["one", "two"].map(|name| cluster.start_as_users_do(name));
    cluster.roll_out(0..4);
    wait_for("four networks", PATIENCE, || is_at_least(attachments(cluster), 4));
    let [one, two] = both;
    let (leader, other) = if one.leads() { (one, two) } else { (two, one) };
    assert!(leader.leads() && !other.leads());
    assert_eq!(other.count("underlay_writes_total"), Some(0), "only the leader writes");
    let died = thread::scope(|scope| {
        let rollout = scope.spawn(|| cluster.roll_out(4..24));
        wait_for("the rollout to begin", PATIENCE, || is_at_least(attachments(cluster), 5));
        drop(leader);
        let died = Instant::now();
        println!("the leader was killed when {} of 24 networks were there", attachments(cluster));
        rollout.join().unwrap();
        died
    });
    let lease = get(server, &[&LEASE[..], &["underlay-cluster"]].concat());
    let lasts = lease["spec"]["leaseDurationSeconds"].as_u64().unwrap();
    assert!(lasts <= 10, "a lease of {lasts} s leaves no time to go on within 15 s");
    wait_for("the other to lead", PATIENCE, || leads(&other));
    println!("the other leads {:?} after the death", died.elapsed());
    cluster.has_networks(24, &other);
    println!("the rollout was complete {:?} after the death", died.elapsed());
    witness.ends_content();
    other
}

/// A leader stops in the middle of a rollout as if its machine slept, and wakes up when another one leads.
fn a_frozen_leader_says_nothing_more(cluster: &Cluster, frozen: Daemon) -> Daemon {
    let server = &cluster.server;
    let witness = Witness::start(server);
    let other = cluster.start_as_users_do("three");
    thread::scope(|scope| {
        let rollout = scope.spawn(|| cluster.roll_out(24..34));
        wait_for("the rollout to begin", PATIENCE, || is_at_least(attachments(cluster), 26));
        frozen.signal("STOP");
        rollout.join().unwrap();
    });
    wait_for("the other to lead", PATIENCE, || leads(&other));
    kubectl(server, &["delete", "cudn", &tenant(0), &tenant(30), "--timeout=60s"]);
    cluster.roll_out(34..36);
    cluster.has_networks(34, &other);
    let before = State::of(server).versions();
    frozen.signal("CONT");
    wait_for("the frozen one to notice", PATIENCE, || {
        let log = frozen.log();
        if log.contains("the lease is lost") && !frozen.leads() { Ok(()) } else { Err(log) }
    });
    same("what it was about to write is not written", &before, &State::of(server).versions(), &frozen);
    assert!(other.leads());
    frozen.stop();
    witness.ends_content();
    other
}

/// The hard case: requests that a leader sent while it led arrive after another one has taken over and written. The API
/// server itself refuses them.
fn what_a_leader_said_too_late_is_refused(cluster: &Cluster, daemon: Daemon) -> Daemon {
    let server = &cluster.server;
    daemon.stop();
    let proxy = Proxy::start(server, &cluster.scratch);
    let old = Daemon::start_with(proxy.kubeconfig(), &cluster.scratch, "old", &[SHORT]);
    wait_for("the old one to lead", PATIENCE, || leads(&old));
    cluster.roll_out(36..40);
    cluster.has_networks(38, &old);
    let new = cluster.start("new");
    proxy.hold();
    // The old one still hears of this, and its answer is on its way from now on.
    cluster.roll_out(40..44);
    wait_for("the new one to lead", PATIENCE, || leads(&new));
    cluster.has_networks(42, &new);
    kubectl(server, &["delete", "cudn", &tenant(40), "--timeout=60s"]);
    cluster.has_networks(41, &new);
    let (refused, before) = (conflicts(cluster), State::of(server));
    let bytes = proxy.release();
    wait_for("a late write to be refused", PATIENCE, || {
        let now = conflicts(cluster);
        if now > refused {
            Ok(())
        } else {
            Err(format!("{now} conflicts, {bytes} late bytes\n{}", old.log()))
        }
    });
    wait_for("the old one to stand by", PATIENCE, || if old.leads() { Err(old.log()) } else { Ok(()) });
    // Whatever else was late has arrived too.
    thread::sleep(Duration::from_secs(1));
    println!("{bytes} bytes came late; {} writes to nodes were refused", conflicts(cluster) - refused);
    same("nothing late is written", &before.versions(), &State::of(server).versions(), &old);
    assert!(!parts(server, "n1").contains_key(&format!("cluster_udn_{}", tenant(40))));
    old.stop();
    new
}

/// Writes to nodes that the API server has refused because they were decided upon something older.
fn conflicts(cluster: &Cluster) -> u64 {
    let output = cluster.server.kubectl(&["get", "--raw", "/metrics"]);
    assert!(output.status.success());
    let metrics = String::from_utf8(output.stdout).unwrap();
    let of_nodes = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && line.contains(r#"code="409""#)
            && line.contains(r#"resource="nodes""#)
    };
    let value = |line: &str| line.rsplit_once(' ').and_then(|(_, value)| value.parse::<u64>().ok());
    metrics.lines().filter(of_nodes).filter_map(value).sum()
}

fn attachments(cluster: &Cluster) -> usize {
    let list: Value = get(&cluster.server, &ATTACHMENTS);
    numbers(&list).into_keys().filter(|name| name.starts_with('t')).count()
}

fn is_at_least(count: usize, want: usize) -> Result<(), String> {
    if count >= want { Ok(()) } else { Err(count.to_string()) }
}

fn leads(daemon: &Daemon) -> Result<(), String> {
    if daemon.leads() { Ok(()) } else { Err(daemon.log()) }
}
