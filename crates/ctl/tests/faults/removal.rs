//! Everything is deleted, and all is as it was before.

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{PATIENCE, get, wait_for_text};
use crate::node::{sh, wait_for_sessions, wait_until_well};
use crate::snapshot::Snapshot;

const NODES: [&str; 3] = ["control", "worker1", "worker2"];
/// Where the lab's own configuration of peers is.
const PEERS: [&str; 3] = ["frrconfiguration", "peers", "--namespace=frr-k8s-system"];

/// What the machines are like.
pub struct State {
    nodes: Vec<Snapshot>,
    tor: String,
}

/// How the machines are like before anything is asked of them.
pub fn before(lab: &LabUnderTest) -> State {
    for node in NODES {
        wait_for_sessions(lab, node);
        wait_until_well(lab, node);
    }
    wait_for("nothing to change any more", PATIENCE, || {
        let (one, two) = (look(lab), look(lab));
        let changes = changes(&two, &one);
        if changes.is_empty() { Ok(two) } else { Err(changes.join("\n")) }
    })
}

fn look(lab: &LabUnderTest) -> State {
    // Routes that peers tell are forgotten with the peers; their rows are new ones afterwards.
    let nodes = NODES.iter().map(|node| Snapshot::with_southbound(lab, node).without_identities()).collect();
    State {
        nodes,
        tor: sh(lab, "tor", "ip route | sed -E 's/ nhid [0-9]+//'; ip -6 route | sed -E 's/ nhid [0-9]+//'"),
    }
}

fn changes(now: &State, before: &State) -> Vec<String> {
    let mut lines = Vec::new();
    for (node, (now, before)) in NODES.iter().zip(now.nodes.iter().zip(&before.nodes)) {
        lines.extend(now.since(before).into_iter().map(|line| format!("{node}: {line}")));
    }
    if now.tor != before.tor {
        lines.push(format!("tor: {} instead of {}", now.tor, before.tor));
    }
    lines
}

/// Deletes all that the other steps made, and the peers, which the lab made. These come back at the end.
pub fn leaves_no_trace(lab: &LabUnderTest, before: &State) {
    lab.kubectl(&["delete", "routeadvertisements", "--all"]).ok();
    lab.kubectl(&["delete", "deployment,service", "web"]).ok();
    lab.kubectl(&["delete", "pods", "--selector=app=extra"]).ok();
    let mut peers = get(lab, &PEERS);
    lab.kubectl(&[&["delete"], &PEERS[..]].concat()).ok();
    for node in NODES {
        let show = ["vtysh", "-c", "show running-config"];
        wait_for_text(lab, "FRR without peers", node, &show, |text| {
            !text.contains("router bgp") && !text.contains("underlay/")
        });
    }
    wait_for("states of sessions to go", PATIENCE, || {
        let states = get(lab, &["bgpsessionstates", "--all-namespaces"]);
        if states["items"].as_array().is_some_and(Vec::is_empty) { Ok(()) } else { Err(states.to_string()) }
    });
    let metadata = peers["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| ["name", "namespace", "labels"].contains(&key.as_str()));
    let file = lab.file("peers.json", &Value::to_string(&peers));
    lab.kubectl(&["create", "--filename", &file.to_string_lossy()]).ok();
    for node in NODES {
        wait_for_sessions(lab, node);
    }
    wait_for("all as it was before", PATIENCE, || {
        let changes = changes(&look(lab), before);
        if changes.is_empty() { Ok(()) } else { Err(changes.join("\n")) }
    });
}
