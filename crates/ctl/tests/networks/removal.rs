//! Networks go, and all is as it was before.

use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{PATIENCE, get};
use crate::node::{wait_for_sessions, wait_until_well};
use crate::snapshot::Snapshot;
use crate::tenants::TENANTS;

const NODES: [&str; 3] = ["control", "worker1", "worker2"];

/// What the nodes are like.
pub fn before(lab: &LabUnderTest) -> Vec<Snapshot> {
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

fn look(lab: &LabUnderTest) -> Vec<Snapshot> {
    NODES.iter().map(|node| Snapshot::with_southbound(lab, node).without_identities()).collect()
}

fn changes(now: &[Snapshot], before: &[Snapshot]) -> Vec<String> {
    let pairs = NODES.iter().zip(now.iter().zip(before));
    pairs
        .flat_map(|(node, (now, before))| {
            now.since(before).into_iter().map(move |line| format!("{node}: {line}"))
        })
        .collect()
}

/// Deletes pods, networks and namespaces in one go: nothing of them stays, in the API nor on the nodes.
pub fn leaves_no_trace(lab: &LabUnderTest, before: &[Snapshot]) {
    let names = TENANTS.map(|(name, ..)| name);
    lab.kubectl(&["delete", "pod", "visitor", "--now", "--ignore-not-found"]).ok();
    let delete = ["delete", "--wait=false"];
    lab.kubectl(&[&delete[..], &["clusteruserdefinednetworks"], &names].concat()).ok();
    lab.kubectl(&[&delete[..], &["namespaces", "--selector=tenant"]].concat()).ok();
    wait_for("networks, definitions and namespaces to go", PATIENCE, || {
        let networks = get(lab, &["clusteruserdefinednetworks"]);
        let definitions = get(lab, &["network-attachment-definitions", "--all-namespaces"]);
        let namespaces = get(lab, &["namespaces", "--selector=tenant"]);
        let lists = [networks, definitions, namespaces];
        let left: Vec<_> =
            lists.iter().flat_map(|list| list["items"].as_array().into_iter().flatten()).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    for node in get(lab, &["nodes"])["items"].as_array().into_iter().flatten() {
        let subnets =
            node["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].as_str().unwrap_or_default();
        assert!(!subnets.contains("cluster_udn"), "{subnets}");
    }
    wait_for("all as it was before", PATIENCE, || {
        let changes = changes(&look(lab), before);
        if changes.is_empty() { Ok(()) } else { Err(changes.join("\n")) }
    });
}
