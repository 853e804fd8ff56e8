//! Namespaces are removed as a whole, by Kubernetes' own controller, with the networks in them.

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::common::daemon::{Daemon, apply, becomes, get, kubectl};
use crate::common::objects::{ATTACHMENTS, message, namespace, numbers, parts};

pub fn go_with_their_networks(cluster: &Cluster, daemon: Daemon) -> Daemon {
    let server = &cluster.server;
    server.run_controllers("namespace-controller,garbage-collector-controller");
    let before = numbers(&get(server, &ATTACHMENTS));
    apply(server, &cluster.scratch, &[namespace("leaves", "wide"), namespace("stays", "wide")]);
    apply(server, &cluster.scratch, &[own(), wide(), pod()]);
    let mut there = before.clone();
    there.extend(["leaves/own", "leaves/wide", "stays/wide"].map(|name| (name.to_owned(), String::new())));
    let names = |list: &Value| numbers(list).into_keys().collect::<Vec<_>>();
    becomes(server, &ATTACHMENTS, names, &there.keys().cloned().collect());
    kubectl(server, &["delete", "namespace", "leaves", "--timeout=60s"]);
    becomes(server, &["cudn", "wide"], message, &created_in("stays"));
    there.retain(|name, _| !name.starts_with("leaves/"));
    assert_eq!(names(&get(server, &ATTACHMENTS)), there.keys().cloned().collect::<Vec<_>>());
    for node in ["n1", "n2", "n3"] {
        let parts = parts(server, node);
        assert!(!parts.contains_key("leaves_own") && parts.contains_key("cluster_udn_wide"), "{parts:?}");
    }
    kubectl(server, &["delete", "cudn", "wide", "--timeout=60s"]);
    kubectl(server, &["delete", "namespace", "stays", "--timeout=60s"]);
    assert_eq!(numbers(&get(server, &ATTACHMENTS)), before);
    cluster.judge(daemon)
}

fn created_in(namespace: &str) -> String {
    format!("NetworkAttachmentDefinition has been created in following namespaces: [{namespace}]")
}

/// A network of the namespace that goes.
fn own() -> Value {
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": "10.200.0.0/16", "hostSubnet": 24 }] });
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "UserDefinedNetwork",
        "metadata": { "name": "own", "namespace": "leaves" },
        "spec": { "topology": "Layer3", "layer3": layer3 },
    })
}

/// A second network, of both namespaces.
fn wide() -> Value {
    let layer3 = json!({ "role": "Secondary", "subnets": [{ "cidr": "10.201.0.0/16", "hostSubnet": 24 }] });
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": { "name": "wide" },
        "spec": {
            "namespaceSelector": { "matchLabels": { "team": "wide" } },
            "network": { "topology": "Layer3", "layer3": layer3 },
        },
    })
}

/// A pod that uses both.
fn pod() -> Value {
    let networks = r#"{"leaves/own":{"ip_addresses":["10.200.0.5/24"]},"leaves/wide":{"ip_addresses":["10.201.0.5/24"]}}"#;
    let annotations = json!({ "k8s.ovn.org/pod-networks": networks });
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "web", "namespace": "leaves", "annotations": annotations },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}
