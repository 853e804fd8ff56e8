//! A cluster with tenants, and what to read off its objects.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use underlay_api::crds;
use underlay_testkit::{ApiServer, Scratch};

use super::daemon::{apply, get, kubectl};

pub const ID: &str = "k8s.ovn.org/network-id";
pub const SUBNETS: &str = "k8s.ovn.org/node-subnets";
pub const ATTACHMENTS: [&str; 2] = ["network-attachment-definitions", "-A"];

/// Definitions of all kinds, three nodes, and three namespaces of two teams.
pub fn prepare(server: &ApiServer, scratch: &Scratch) {
    let definitions: Vec<Value> =
        crds::all().iter().map(|definition| serde_json::to_value(definition).unwrap()).collect();
    apply(server, scratch, &definitions);
    kubectl(server, &["wait", "--for=condition=Established", "crd", "--all"]);
    let nodes = ["n1", "n2", "n3"]
        .map(|name| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } }));
    apply(server, scratch, &nodes);
    apply(server, scratch, &[namespace("a", "x"), namespace("b", "x"), namespace("c", "y")]);
}

pub fn namespace(name: &str, team: &str) -> Value {
    let labels = json!({ "team": team, "k8s.ovn.org/primary-user-defined-network": "" });
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

pub fn network(name: &str, team: &str, cidr: &str) -> Value {
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": 24 }] });
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": { "name": name },
        "spec": {
            "namespaceSelector": { "matchLabels": { "team": team } },
            "network": { "topology": "Layer3", "layer3": layer3 },
        },
    })
}

/// The number on every attachment definition, by its namespace and name.
pub fn numbers(list: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |item: &Value| {
        let metadata = &item["metadata"];
        let name = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
        (name, text(&metadata["annotations"][ID]))
    };
    list["items"].as_array().unwrap().iter().map(entry).collect()
}

/// The parts of a node, by network.
pub fn parts(server: &ApiServer, node: &str) -> BTreeMap<String, Vec<String>> {
    let node = get(server, &["node", node]);
    let text = node["metadata"]["annotations"][SUBNETS].as_str().unwrap_or("{}").to_owned();
    serde_json::from_str(&text).unwrap()
}

/// A condition as `status reason`.
pub fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == type_);
    found.map_or_else(String::new, |condition| {
        format!("{} {}", condition["status"].as_str().unwrap(), condition["reason"].as_str().unwrap())
    })
}

pub fn message(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == "NetworkCreated");
    found.map_or_else(String::new, |condition| condition["message"].as_str().unwrap().to_owned())
}
