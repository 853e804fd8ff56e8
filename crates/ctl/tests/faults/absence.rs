//! The agent is away, comes back, or has not found its place yet.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{PATIENCE, get};
use crate::node::{
    Down, RECOVERY, delete_pods, kill, metrics, sh, start_pods, wait_until_back, wait_until_running,
    wait_until_well,
};
use crate::plugin::nothing_is_left_over;
use crate::snapshot::Snapshot;
use crate::traffic::Background;
use crate::verbs::{call, config};

/// Killed and started again with nothing to do, neither manager nor agent changes anything. The killed manager leaves a
/// lease that must run out first: there is time for pods to come and go without an agent.
pub fn changes_nothing(lab: &LabUnderTest) {
    let written = written_by(lab, "underlay-cluster");
    let old = kill(lab, "control", "underlay-cluster");
    pods_come_and_go(lab);
    a_restarted_agent_writes_nothing(lab);
    wait_until_back(lab, "control", "underlay-cluster", &old);
    let look = ["curl", "--silent", "--max-time", "5", "http://127.0.0.1:9410/metrics"];
    let text = wait_for("a new leader", PATIENCE, || match lab.exec("control", &look).result()? {
        text if text.contains("underlay_leader 1") && !text.contains("underlay_turns_total 0") => Ok(text),
        text => Err(text),
    });
    assert!(!text.contains("underlay_writes_total"), "{text}");
    assert_eq!(written_by(lab, "underlay-cluster"), written);
}

/// A pod that came runs when the agent is back; one that went has left nothing, and its address is free.
fn pods_come_and_go(lab: &LabUnderTest) {
    let (leaving, coming) = (["leaving".to_owned()], ["coming".to_owned()]);
    start_pods(lab, &leaving);
    let left = wait_until_running(lab, &leaving);
    let down = Down::hold(lab, "worker1");
    start_pods(lab, &coming);
    delete_pods(lab, &leaving, false);
    assert_eq!(call(lab, &[("CNI_COMMAND", "STATUS")], &config(&json!({}))).code(), 50);
    drop(down);
    wait_until_well(lab, "worker1");
    wait_until_running(lab, &coming);
    nothing_is_left_over(lab);
    delete_pods(lab, &coming, true);
    // New pods get the address after the highest that is taken.
    let next = ["next".to_owned()];
    start_pods(lab, &next);
    let came = wait_until_running(lab, &next);
    assert_eq!(came[0].addresses, left[0].addresses, "the address is free");
    delete_pods(lab, &next, true);
    nothing_is_left_over(lab);
}

/// What the databases of a node have on disk grows with every change.
const SIZES: &str =
    "stat -L -c '%n %s' /var/lib/ovn/ovnnb_db.db /etc/openvswitch/conf.db; md5sum /etc/frr/frr.conf";

fn a_restarted_agent_writes_nothing(lab: &LabUnderTest) {
    let written = written_by(lab, "underlay-agent");
    let (sizes, before) = (sh(lab, "worker1", SIZES), Snapshot::of(lab, "worker1"));
    let old = kill(lab, "worker1", "underlay-agent");
    wait_until_back(lab, "worker1", "underlay-agent", &old);
    wait_until_well(lab, "worker1");
    // Every edge has had its turn, and the speaker looks at its sessions once a second.
    sleep(Duration::from_secs(2));
    let text = metrics(lab, "worker1").expect("metrics");
    let changes: Vec<&str> =
        text.lines().filter(|line| line.starts_with("underlay_edge_changes_total")).collect();
    assert_eq!(changes.len(), 10, "{changes:?}");
    assert!(changes.iter().all(|line| line.ends_with(" 0")), "{changes:?}");
    assert!(!text.contains("underlay_writes_total"), "{text}");
    assert_eq!(written_by(lab, "underlay-agent"), written);
    assert_eq!(sh(lab, "worker1", SIZES), sizes);
    assert_eq!(Snapshot::of(lab, "worker1").since(&before), [] as [&str; 0]);
}

/// What the API server remembers of somebody's writes: which objects, and when.
fn written_by(lab: &LabUnderTest, writer: &str) -> Vec<String> {
    let kinds = "nodes,pods,frrconfigurations,bgpsessionstates,frrnodestates,routeadvertisements";
    let list = get(lab, &[kinds, "--all-namespaces", "--show-managed-fields"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    for object in list["items"].as_array().into_iter().flatten() {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        for entry in entries.filter(|entry| entry["manager"] == writer) {
            let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
            found.push(format!("{kind} {name} at {}", text(&entry["time"])));
        }
    }
    assert!(!found.is_empty(), "{writer} wrote nothing ever");
    found
}

/// Without databases or its Node object an agent says what it waits for, and touches nothing.
pub fn an_agent_without_a_place_waits(lab: &LabUnderTest) {
    let before = Snapshot::of(lab, "worker1");
    let nowhere = "--northbound unix:/run/none --southbound unix:/run/none --switch unix:/run/none";
    waits(lab, nowhere, "waiting for the node's northbound database");
    waits(lab, "--switch unix:/run/none", "waiting for the switch's database");
    waits(lab, "", "waiting for Node nosuch to be registered: its kubelet does that");
    assert_eq!(Snapshot::of(lab, "worker1").since(&before), [] as [&str; 0]);
    sh(lab, "worker1", "rm -r /tmp/second");
}

fn waits(lab: &LabUnderTest, arguments: &str, what: &str) {
    let command = format!(
        "/opt/underlay/bin/underlay-agent --node-name nosuch --kubeconfig /etc/kubernetes/agent-worker1.kubeconfig \
         --config-file /etc/underlay/underlay.conf --cni-plugin /opt/underlay/bin/underlay-cni \
         --cni-socket /tmp/second/cni.sock --cni-bin-dir /tmp/second --cni-conf-dir /tmp/second \
         --metrics-bind-address 127.0.0.1:9499 {arguments} 2>&1"
    );
    let agent = Background::start(lab, "worker1", &command);
    let look = ["curl", "--silent", "--max-time", "5", "http://127.0.0.1:9499/readyz"];
    wait_for("what the agent waits for", RECOVERY, || match lab.exec("worker1", &look).result()? {
        text if text.trim() == what => Ok(()),
        text => Err(text),
    });
    // It has had time to do something.
    sleep(Duration::from_millis(500));
    let log = agent.stop(lab);
    assert!(log.contains(what), "{log}");
}
