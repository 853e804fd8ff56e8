//! Records are removed, garbled and copied by hand, while the manager looks on and while it does not.

use serde_json::{Value, json};
use underlay_testkit::wait_for;

use crate::cluster::{Cluster, PATIENCE, tenant};
use crate::common::daemon::{Daemon, apply, becomes, get, kubectl};
use crate::common::objects::{ATTACHMENTS, ID, SUBNETS, numbers, parts};

pub fn records_are_edited_by_hand(cluster: &Cluster, daemon: Daemon) -> Daemon {
    what_is_lost_comes_back_as_it_was(cluster);
    let daemon = cluster.judge(daemon);
    let daemon = what_is_lost_while_nobody_looks_is_found_again(cluster, daemon);
    let daemon = cluster.judge(daemon);
    let daemon = conflicts_are_settled_and_told(cluster, daemon);
    cluster.judge(daemon)
}

fn annotate(cluster: &Cluster, object: &[&str], key: &str, value: Option<&str>) {
    let patch = json!({ "metadata": { "annotations": { key: value } } }).to_string();
    let arguments = [&["patch"], object, &["--type=merge", "-p", &patch]].concat();
    kubectl(&cluster.server, &arguments);
}

fn node_record(cluster: &Cluster, node: &str, key: &str) -> Value {
    get(&cluster.server, &["node", node])["metadata"]["annotations"][key].clone()
}

fn what_is_lost_comes_back_as_it_was(cluster: &Cluster) {
    let server = &cluster.server;
    for key in [SUBNETS, "k8s.ovn.org/node-id", "k8s.ovn.org/node-transit-switch-port-ifaddr"] {
        for damaged in [None, Some("{nonsense"), Some("")] {
            let want = node_record(cluster, "n2", key);
            annotate(cluster, &["node", "n2"], key, damaged);
            becomes(server, &["node", "n2"], |node| node["metadata"]["annotations"][key].clone(), &want);
        }
    }
    let before = numbers(&get(server, &ATTACHMENTS));
    let name = tenant(3);
    let attachment = ["network-attachment-definitions", &name, "-n", &name];
    for damaged in [None, Some("4"), Some("4096"), Some("x")] {
        annotate(cluster, &["cudn", &name], ID, damaged);
        annotate(cluster, &attachment, ID, damaged);
        becomes(server, &ATTACHMENTS, numbers, &before);
        let id = before[&format!("{name}/{name}")].clone();
        let recorded = |object: &Value| object["metadata"]["annotations"][ID].as_str().map(str::to_owned);
        becomes(server, &["cudn", &name], recorded, &Some(id));
    }
}

/// The hard case: a newcomer that comes first by name, and no memory of what was there.
fn what_is_lost_while_nobody_looks_is_found_again(cluster: &Cluster, daemon: Daemon) -> Daemon {
    let server = &cluster.server;
    let (want, networks) = (node_record(cluster, "n2", SUBNETS), numbers(&get(server, &ATTACHMENTS)));
    daemon.stop();
    annotate(cluster, &["node", "n2"], SUBNETS, Some("{nonsense"));
    let newcomer = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "m-new" } });
    apply(server, &cluster.scratch, &[newcomer]);
    annotate(cluster, &["cudn", &tenant(1)], ID, None);
    let name = tenant(2);
    annotate(cluster, &["network-attachment-definitions", &name, "-n", &name], ID, Some("9"));
    let daemon = cluster.start("after-damage");
    becomes(server, &["node", "n2"], |node| node["metadata"]["annotations"][SUBNETS].clone(), &want);
    becomes(server, &ATTACHMENTS, numbers, &networks);
    wait_for("the newcomer to have a part of everything", PATIENCE, || {
        let parts = parts(server, "m-new");
        if parts.len() == networks.len() { Ok(()) } else { Err(format!("{parts:?}")) }
    });
    is_told(cluster, "UnreadableAnnotation", "n2", SUBNETS);
    kubectl(server, &["delete", "node", "m-new"]);
    daemon
}

fn conflicts_are_settled_and_told(cluster: &Cluster, daemon: Daemon) -> Daemon {
    let server = &cluster.server;
    daemon.stop();
    // Two nodes with the same, of the same age or nearly so, and one with something that is nobody's to have.
    let of_n2 = node_record(cluster, "n2", SUBNETS).as_str().unwrap().to_owned();
    annotate(cluster, &["node", "n1"], SUBNETS, Some(&of_n2));
    annotate(cluster, &["node", "n1"], "k8s.ovn.org/node-id", Some("3"));
    let mut of_n3 = parts(server, "n3");
    of_n3.insert("default".to_owned(), vec!["192.168.0.0/24".to_owned()]);
    of_n3.insert(format!("cluster_udn_{}", tenant(4)), vec!["10.24.0.0/20".to_owned()]);
    annotate(cluster, &["node", "n3"], SUBNETS, Some(&serde_json::to_string(&of_n3).unwrap()));
    let daemon = cluster.start("after-conflicts");
    is_told(cluster, "SubnetReplaced", "n2", "network default: 10.244.1.0/24 is another node's");
    is_told(cluster, "SubnetReplaced", "n3", "192.168.0.0/24");
    is_told(cluster, "NodeIdReplaced", "n2", "node number 3");
    daemon
}

/// Waits for an event on a node.
#[track_caller]
fn is_told(cluster: &Cluster, reason: &str, node: &str, text: &str) {
    let field = format!("--field-selector=reason={reason}");
    wait_for(&format!("event {reason} on {node}"), PATIENCE, || {
        let list = get(&cluster.server, &["events.events.k8s.io", "-A", &field]);
        let mut events = list["items"].as_array().unwrap().iter();
        let on = |event: &&Value| event["regarding"]["name"] == node;
        let says = |event: &Value| event["note"].as_str().unwrap_or_default().contains(text);
        let found = events.by_ref().filter(on).any(says);
        found.then_some(()).ok_or_else(|| list.to_string())
    });
}
