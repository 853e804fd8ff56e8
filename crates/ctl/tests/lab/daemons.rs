//! Daemons are killed and come back, and what they carried comes back with them.

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::pods::{fetch, get, pod_on, pods};
use crate::{PATIENCE, daemon, wait_until_well, wires};

/// Kills daemons of a machine, all at once, without a chance to say goodbye.
fn kill(lab: &LabUnderTest, machine: &str, names: &[&str]) -> Value {
    let before = lab.status();
    let numbers: Vec<String> =
        names.iter().map(|name| daemon(&before, machine, name)["pid"].to_string()).collect();
    let mut command = vec!["kill", "-9"];
    command.extend(numbers.iter().map(String::as_str));
    lab.exec(machine, &command).ok();
    before
}

/// Waits until killed daemons run again under another number, and all is well.
fn wait_until_back(lab: &LabUnderTest, machine: &str, names: &[&str], before: &Value) -> Value {
    for name in names {
        wait_for(&format!("{name} of {machine} to be started again"), PATIENCE, || {
            let status = lab.status();
            let (old, new) = (daemon(before, machine, name), daemon(&status, machine, name));
            if new["state"] == "up" && new["pid"] != old["pid"] { Ok(()) } else { Err(new.to_string()) }
        });
    }
    wait_until_well(lab);
    lab.status()
}

/// Kills and waits; each daemon must have been started again once, and show how it ended.
fn kill_and_wait(lab: &LabUnderTest, machine: &str, names: &[&str]) -> Value {
    let before = kill(lab, machine, names);
    let status = wait_until_back(lab, machine, names, &before);
    for name in names {
        let daemon = daemon(&status, machine, name);
        assert_eq!(daemon["restarts"], 1, "{daemon}");
        assert_eq!(daemon["lastExit"], "SIGKILL", "{daemon}");
    }
    status
}

pub fn worker_daemons_come_back(lab: &LabUnderTest) {
    let addresses = ["172.30.0.11/24", "fd00:172:30::11/64"];
    let has_addresses = |text: &str| addresses.iter().all(|address| text.contains(address));
    let show = ["ip", "-o", "address", "show", "dev", "br-ex"];
    assert!(has_addresses(&lab.exec("worker1", &show).ok()));

    let status = kill_and_wait(lab, "worker1", &["bgpd"]);
    let log = daemon(&status, "worker1", "bgpd")["log"].as_array().expect("the end of its log");
    assert!((1..=5).contains(&log.len()), "{log:?}");
    wires::has_learned_route(lab);

    // A new switch may make its bridge anew: whatever the bridge lost, the node gets its addresses and routes back.
    lab.exec("worker1", &["ip", "address", "flush", "dev", "br-ex", "scope", "global"]).ok();
    kill_and_wait(lab, "worker1", &["ovs-vswitchd"]);
    let text = lab.exec("worker1", &show).ok();
    assert!(has_addresses(&text), "{text}");
    let two = pod_on(lab, "worker2");
    for address in &two.addresses {
        wait_for("a pod of the other worker to answer", PATIENCE, || fetch(lab, "worker1", address));
    }

    kill_and_wait(
        lab,
        "worker1",
        &["ovsdb-server", "ovn-nb", "ovn-sb", "ovn-northd", "ovn-controller", "zebra"],
    );
    let table = lab.cli(&["status"]).ok();
    assert!(table.contains("worker1 ovs-vswitchd: last SIGKILL\n    "), "{table}");
    assert!(!table.contains("worker1 bfdd: last"), "it was left alone: {table}");
}

pub fn pods_outlive_their_runtime(lab: &LabUnderTest) {
    let mut before: Vec<String> = pods(lab).into_iter().map(|pod| pod.name).collect();
    // One after the other: a kubelet that finds no runtime gives up once more.
    kill_and_wait(lab, "worker2", &["containerd"]);
    let table = lab.cli(&["status"]).ok();
    assert!(
        table.contains("worker2 containerd: last SIGKILL\n"),
        "it says nothing, but it was killed: {table}"
    );
    kill_and_wait(lab, "worker2", &["kubelet"]);
    let after = pods(lab);
    assert!(after.iter().all(|pod| pod.restarts == 0), "{after:?}");
    let mut names: Vec<String> = after.into_iter().map(|pod| pod.name).collect();
    before.sort();
    names.sort();
    assert_eq!(names, before);
    // The new runtime knows the old pods.
    let pod = pod_on(lab, "worker2");
    let exec = ["exec", &pod.name, "--", "hostname"];
    let answer = wait_for("exec in an old pod", PATIENCE, || lab.kubectl(&exec).result());
    assert_eq!(answer.trim(), pod.name);
}

pub fn control_plane_comes_back(lab: &LabUnderTest) {
    let uid = |lab: &LabUnderTest| get(lab, &["deployment", "web"])["metadata"]["uid"].clone();
    let before = (uid(lab), pods(lab).len());
    let names = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    let status = kill(lab, "control", &names);
    // How often each was started again is a matter of who came back first.
    wait_until_back(lab, "control", &names, &status);
    assert_eq!((uid(lab), pods(lab).len()), before);
}
