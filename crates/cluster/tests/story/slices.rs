//! Services of a tenant's network on a real API server: the controllers' endpoint slices have twins with the pods'
//! addresses in the network, which follow pods, services and networks, survive a kill, and go without a trace.
//!
//! No controller runs here: slices of the default network are written by hand, as their controller writes them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use underlay_api::crds;
use underlay_testkit::{ApiServer, Scratch};

use crate::common::daemon::{Daemon, apply, becomes, get, kubectl};
use crate::common::objects::namespace;

const OURS: [&str; 4] = [
    "endpointslices",
    "-A",
    "-l",
    "endpointslice.kubernetes.io/managed-by=endpointslice-mirror-controller.k8s.ovn.org",
];
/// The one that was made from `web-v4`.
const ONE: &str = "web-v4-15fc973f9a";

#[test]
fn the_life_of_endpoints() {
    let server = &ApiServer::start();
    let scratch = Scratch::new("endpoints");
    prepare(server, &scratch);
    let daemon = start(server, &scratch, "endpoints");
    endpoints_come(server, &scratch);
    pods_are_followed(server, &scratch);
    what_says_nothing_new_is_no_work(server, &daemon);
    what_others_do_is_undone(server);
    let daemon = what_happens_after_a_kill_is_caught_up_with(server, &scratch, daemon);
    services_and_networks_go_without_a_trace(server);
    daemon.stop();
}

/// Starts the program in a cluster with both families.
fn start(server: &ApiServer, scratch: &Scratch, name: &str) -> Daemon {
    let ranges =
        ["--cluster-subnets=10.244.0.0/16/24,fd00::/48/64", "--service-cidrs=10.96.0.0/16,fd96::/112"];
    Daemon::start_in(server, scratch, name, &ranges)
}

fn prepare(server: &ApiServer, scratch: &Scratch) {
    let definitions: Vec<Value> =
        crds::all().iter().map(|definition| serde_json::to_value(definition).unwrap()).collect();
    apply(server, scratch, &definitions);
    kubectl(server, &["wait", "--for=condition=Established", "crd", "--all"]);
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" } });
    apply(server, scratch, &[node, namespace("a", "x"), namespace("plain", "y")]);
    let subnets =
        json!([{ "cidr": "10.10.0.0/16", "hostSubnet": 24 }, { "cidr": "fd10::/48", "hostSubnet": 64 }]);
    let network = json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": { "name": "blue" },
        "spec": {
            "namespaceSelector": { "matchLabels": { "team": "x" } },
            "network": { "topology": "Layer3", "layer3": { "role": "Primary", "subnets": subnets } },
        },
    });
    let foreign = slice("a", "theirs", "IPv4", "me", &[], "");
    apply(server, scratch, &[network, foreign, pod("a", "one", 5), pod("a", "two", 6)]);
}

fn networks(number: u8) -> String {
    let part = |v4: &str, v6: &str, role: &str| json!({ "ip_addresses": [v4, v6], "mac_address": "0a:58:0a:0a:00:05", "role": role });
    let locked =
        part(&format!("10.244.0.{number}/24"), &format!("fd00::{number}/64"), "infrastructure-locked");
    let own = part(&format!("10.10.0.{number}/24"), &format!("fd10::{number}/64"), "primary");
    json!({ "default": locked, "a/blue": own }).to_string()
}

fn pod(namespace: &str, name: &str, number: u8) -> Value {
    let annotations = json!({ "k8s.ovn.org/pod-networks": networks(number) });
    let metadata = json!({ "name": name, "namespace": namespace, "annotations": annotations });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

/// A slice as a controller writes it for the service `web`.
fn slice(
    namespace: &str,
    name: &str,
    family: &str,
    manager: &str,
    pods: &[(&str, String)],
    service: &str,
) -> Value {
    let endpoint = |(number, (name, uid)): (usize, &(&str, String))| {
        let (family, number) = (family == "IPv4", number + 1);
        let address = if family { format!("10.244.0.{number}") } else { format!("fd00::{number}") };
        json!({
            "addresses": [address],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": "n1",
            "targetRef": { "kind": "Pod", "name": name, "namespace": namespace, "uid": uid },
        })
    };
    let endpoints: Vec<Value> = pods.iter().enumerate().map(endpoint).collect();
    let labels =
        json!({ "endpointslice.kubernetes.io/managed-by": manager, "kubernetes.io/service-name": "web" });
    let mut metadata = json!({ "name": name, "namespace": namespace, "labels": labels });
    if !service.is_empty() {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "Service", "name": "web", "uid": service,
            "controller": true, "blockOwnerDeletion": true,
        }]);
    }
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": family,
        "endpoints": endpoints,
        "ports": [{ "name": "http", "port": 8080, "protocol": "TCP" }],
    })
}

/// Writes the slices of the service `web` with these pods, of both families.
fn write_sources(server: &ApiServer, scratch: &Scratch, pods: &[&str]) {
    let uid = |arguments: &[&str]| get(server, arguments)["metadata"]["uid"].as_str().unwrap().to_owned();
    let pods: Vec<(&str, String)> = pods.iter().map(|name| (*name, uid(&["pod", "-n", "a", name]))).collect();
    let service = uid(&["service", "-n", "a", "web"]);
    let controller = "endpointslice-controller.k8s.io";
    let sources = [("web-v4", "IPv4"), ("web-v6", "IPv6")]
        .map(|(name, family)| slice("a", name, family, controller, &pods, &service));
    apply(server, scratch, &sources);
}

/// The addresses in every slice of ours, by the name of its source.
fn addresses(list: &Value) -> BTreeMap<String, Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |item: &Value| {
        let source = text(&item["metadata"]["annotations"]["k8s.ovn.org/source-endpointslice"]);
        let endpoints = item["endpoints"].as_array().cloned().unwrap_or_default();
        (source, endpoints.iter().map(|endpoint| text(&endpoint["addresses"][0])).collect())
    };
    list["items"].as_array().unwrap().iter().map(entry).collect()
}

/// What there should be for pods with these numbers.
fn twins(numbers: &[u8]) -> BTreeMap<String, Vec<String>> {
    let all = |prefix: &str| numbers.iter().map(|number| format!("{prefix}{number}")).collect();
    [("web-v4".to_owned(), all("10.10.0.")), ("web-v6".to_owned(), all("fd10::"))].into()
}

fn endpoints_come(server: &ApiServer, scratch: &Scratch) {
    let service = |namespace: &str| {
        let spec = json!({ "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] });
        let metadata = json!({ "name": "web", "namespace": namespace });
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
    };
    let plain = slice("plain", "web", "IPv4", "endpointslice-controller.k8s.io", &[], "");
    apply(server, scratch, &[service("a"), service("plain"), plain]);
    write_sources(server, scratch, &["one", "two"]);
    becomes(server, &OURS, addresses, &twins(&[5, 6]));
    let source = get(server, &["endpointslice", "-n", "a", "web-v4"]);
    let one = get(server, &["endpointslice", "-n", "a", ONE]);
    assert_eq!(one["metadata"]["ownerReferences"][0]["uid"], source["metadata"]["uid"]);
    let version = &one["metadata"]["labels"]["k8s.ovn.org/source-endpointslice-version"];
    assert_eq!(*version, source["metadata"]["resourceVersion"]);
    assert_eq!(one["metadata"]["labels"]["k8s.ovn.org/service-name"], "web");
    assert_eq!(one["metadata"]["labels"]["kubernetes.io/service-name"], Value::Null);
    let network = &one["metadata"]["annotations"]["k8s.ovn.org/endpointslice-network"];
    assert_eq!(network, "cluster_udn_blue");
    assert_eq!(one["ports"], source["ports"]);
    assert_eq!(one["endpoints"][1]["targetRef"], source["endpoints"][1]["targetRef"]);
}

fn set_networks(server: &ApiServer, name: &str, number: u8) {
    let networks = format!("k8s.ovn.org/pod-networks={}", networks(number));
    kubectl(server, &["annotate", "pod", "-n", "a", name, "--overwrite", &networks]);
}

fn pods_are_followed(server: &ApiServer, scratch: &Scratch) {
    set_networks(server, "one", 7);
    becomes(server, &OURS, addresses, &twins(&[7, 6]));
    let mut late = pod("a", "late", 8);
    late["metadata"]["annotations"] = json!({});
    apply(server, scratch, &[late]);
    write_sources(server, scratch, &["one", "two", "late"]);
    let source = get(server, &["endpointslice", "-n", "a", "web-v4"])["metadata"]["resourceVersion"].clone();
    let version = |one: &Value| one["metadata"]["labels"]["k8s.ovn.org/source-endpointslice-version"].clone();
    becomes(server, &["endpointslice", "-n", "a", ONE], version, &source);
    becomes(server, &OURS, addresses, &twins(&[7, 6]));
    set_networks(server, "late", 8);
    becomes(server, &OURS, addresses, &twins(&[7, 6, 8]));
    kubectl(server, &["delete", "pod", "-n", "a", "two", "--force", "--grace-period=0"]);
    becomes(server, &OURS, addresses, &twins(&[7, 8]));
}

fn turns(daemon: &Daemon) -> u64 {
    let metrics = daemon.look("/metrics").unwrap();
    let line = metrics.lines().find(|line| line.starts_with("underlay_turns_total ")).unwrap();
    line.split(' ').next_back().unwrap().trim().parse().unwrap()
}

/// Signs of life of a pod are no reason for a turn, and one address is a reason for one.
fn what_says_nothing_new_is_no_work(server: &ApiServer, daemon: &Daemon) {
    let before = turns(daemon);
    for time in ["00", "01", "02"] {
        let condition = json!({ "type": "Ready", "status": "True", "lastProbeTime": format!("2026-01-01T00:00:{time}Z") });
        let patch = json!({ "status": { "conditions": [condition] } }).to_string();
        kubectl(server, &["patch", "pod", "-n", "a", "one", "--subresource=status", "-p", &patch]);
    }
    set_networks(server, "one", 9);
    becomes(server, &OURS, addresses, &twins(&[9, 8]));
    daemon.shows("/metrics", &format!("underlay_turns_total {}", before + 1));
}

fn what_others_do_is_undone(server: &ApiServer) {
    let one = ["endpointslice", "-n", "a", ONE];
    let plain = |one: &Value| {
        let mut one = one.clone();
        for field in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"] {
            one["metadata"][field] = Value::Null;
        }
        one
    };
    let before = plain(&get(server, &one));
    let patch = json!({
        "metadata": {
            "labels": { "kubernetes.io/service-name": "web", "k8s.ovn.org/service-name": null },
            "annotations": { "k8s.ovn.org/endpointslice-network": "other" },
            "ownerReferences": null,
        },
        "endpoints": [{ "addresses": ["192.0.2.66"] }],
        "ports": [],
    });
    kubectl(server, &["patch", "endpointslice", "-n", "a", ONE, "--type=merge", "-p", &patch.to_string()]);
    becomes(server, &one, plain, &before);
    kubectl(server, &["delete", "endpointslice", "-n", "a", ONE]);
    becomes(server, &OURS, addresses, &twins(&[9, 8]));
    assert_eq!(plain(&get(server, &one)), before);
}

fn what_happens_after_a_kill_is_caught_up_with(
    server: &ApiServer,
    scratch: &Scratch,
    daemon: Daemon,
) -> Daemon {
    drop(daemon);
    set_networks(server, "one", 10);
    kubectl(server, &["delete", "endpointslice", "-n", "a", "web-v6"]);
    kubectl(server, &["delete", "endpointslice", "-n", "a", ONE]);
    let daemon = start(server, scratch, "after-the-kill");
    let want = BTreeMap::from([("web-v4".to_owned(), vec!["10.10.0.10".to_owned(), "10.10.0.8".to_owned()])]);
    becomes(server, &OURS, addresses, &want);
    write_sources(server, scratch, &["one", "late"]);
    becomes(server, &OURS, addresses, &twins(&[10, 8]));
    daemon.stop();
    let daemon = start(server, scratch, "after-a-restart");
    daemon.shows("/metrics", "underlay_networks{kind");
    daemon.shows("/readyz", "200 OK");
    let metrics = daemon.look("/metrics").unwrap();
    assert!(!metrics.contains("underlay_writes_total{"), "a restart writes nothing:\n{metrics}");
    daemon
}

fn names(list: &Value) -> BTreeSet<String> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

fn services_and_networks_go_without_a_trace(server: &ApiServer) {
    let foreign = ["endpointslice", "-n", "a", "theirs"];
    let version = |one: &Value| one["metadata"]["generation"].clone();
    assert_eq!(version(&get(server, &foreign)), json!(1), "nobody touched it");
    // What the collector does when a service is deleted.
    kubectl(server, &["delete", "service", "-n", "a", "web"]);
    kubectl(server, &["delete", "endpointslice", "-n", "a", "web-v6"]);
    let left = BTreeMap::from([("web-v4".to_owned(), twins(&[10, 8])["web-v4"].clone())]);
    becomes(server, &OURS, addresses, &left);
    kubectl(server, &["delete", "pod", "-n", "a", "--all", "--force", "--grace-period=0"]);
    becomes(server, &OURS, addresses, &BTreeMap::from([("web-v4".to_owned(), Vec::new())]));
    kubectl(server, &["delete", "cudn", "blue", "--timeout=20s"]);
    becomes(server, &OURS, addresses, &BTreeMap::new());
    let all = get(server, &["endpointslices", "-n", "a"]);
    assert_eq!(names(&all), BTreeSet::from(["theirs".to_owned(), "web-v4".to_owned()]));
    assert_eq!(version(&get(server, &foreign)), json!(1), "nobody touched it");
}
