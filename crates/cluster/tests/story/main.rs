//! The whole program on a real API server: a cluster comes to life, advertises, makes mistakes and changes its mind.
#![allow(clippy::unwrap_used)]

mod advertise;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod common;
mod egress;
mod fabric;
mod networks;
mod slices;

use std::collections::BTreeMap;
use std::time::Instant;

use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::{Value, json};
use underlay_api::{FRRConfiguration, RouteAdvertisements, crds};
use underlay_testkit::{ApiServer, Scratch, wait_for};

use common::daemon::{Daemon, PATIENCE, apply, becomes, get, kubectl};

const GENERATED: [&str; 5] =
    ["frrconfigurations", "-n", "frr", "-l", "k8s.ovn.org/route-advertisements=default"];

#[test]
fn the_life_of_a_cluster() {
    let server = ApiServer::shared();
    let scratch = Scratch::new("cluster");
    // Nobody here waits until such a lease is over: it is given back.
    let start = |name| {
        let long = ["--leader-elect-lease-duration=300"];
        Daemon::start_with(&server.kubeconfig(), &scratch, name, &long)
    };
    let first = start("first");
    nodes_get_their_place_before_there_are_definitions(server, &scratch, &first);
    definitions_arrive(server, &scratch, &first);
    routes_are_advertised(server, &scratch, &first);
    what_others_do_to_generated_objects_is_undone(server, &scratch);
    a_mistake_is_told_and_changes_nothing(server, &first);
    what_cannot_be_written_is_told(server, &scratch, &first);
    let second = start("second");
    a_restart_writes_nothing(server, first, &second);
    advertisements_go(server, &second);
    second.stop();
}

fn node(name: &str, number: u8) -> Value {
    let address = format!("172.18.0.{number}");
    let primary = format!(r#"{{"ipv4":"{address}/16"}}"#);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": { "kubernetes.io/hostname": name },
            "annotations": { "k8s.ovn.org/node-primary-ifaddr": primary },
        },
    })
}

/// An annotation of every node, by node.
fn annotations(list: &Value, key: &str) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]);
    items.map(|metadata| (text(&metadata["name"]), text(&metadata["annotations"][key]))).collect()
}

fn by_node(texts: [&str; 3]) -> BTreeMap<String, String> {
    ["n1", "n2", "n3"].map(str::to_owned).into_iter().zip(texts.map(str::to_owned)).collect()
}

fn nodes_get_their_place_before_there_are_definitions(
    server: &ApiServer,
    scratch: &Scratch,
    daemon: &Daemon,
) {
    apply(server, scratch, &[node("n1", 1), node("n2", 2), node("n3", 3)]);
    let subnets = [
        r#"{"default":["10.244.0.0/24"]}"#,
        r#"{"default":["10.244.1.0/24"]}"#,
        r#"{"default":["10.244.2.0/24"]}"#,
    ];
    becomes(server, &["nodes"], |list| annotations(list, "k8s.ovn.org/node-subnets"), &by_node(subnets));
    becomes(server, &["nodes"], |list| annotations(list, "k8s.ovn.org/node-id"), &by_node(["2", "3", "4"]));
    let transit = ["2", "3", "4"].map(|id| format!(r#"{{"ipv4":"100.88.0.{id}/16"}}"#));
    let key = "k8s.ovn.org/node-transit-switch-port-ifaddr";
    let transit = by_node([&transit[0], &transit[1], &transit[2]]);
    becomes(server, &["nodes"], |list| annotations(list, key), &transit);
    daemon.shows("/readyz", "waiting for FRRConfiguration (the API server does not know this kind");
    let told = || daemon.log().matches("the API server does not know this kind").count();
    wait_for("all eight kinds to be told", PATIENCE, || if told() < 8 { Err(daemon.log()) } else { Ok(()) });
    assert_eq!(told(), 8, "once a kind:\n{}", daemon.log());
}

fn definitions_arrive(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    let definitions: Vec<Value> =
        crds::all().iter().map(|definition| serde_json::to_value(definition).unwrap()).collect();
    apply(server, scratch, &definitions);
    daemon.shows("/readyz", "200 OK");
    kubectl(server, &["create", "namespace", "frr"]);
    apply(server, scratch, &[peers("frr", "advertise")]);
}

fn peers(namespace: &str, label: &str) -> Value {
    json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": { "name": "peers", "namespace": namespace, "labels": { "use": label } },
        "spec": { "bgp": { "routers": [{
            "asn": 64512,
            "neighbors": [{ "address": "172.18.0.1", "asn": 64512 }, { "address": "172.18.0.100", "asn": 64512 }],
        }] } },
    })
}

fn advertisements(name: &str, label: &str) -> RouteAdvertisements {
    let spec = json!({
        "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
        "nodeSelector": {},
        "frrConfigurationSelector": { "matchLabels": { "use": label } },
        "advertisements": ["PodNetwork"],
    });
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn routes_are_advertised(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    let took = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let client = underlay_runtime::client::connect(Some(&server.kubeconfig())).await.unwrap();
        let configurations = Api::<FRRConfiguration>::namespaced(client.clone(), "frr");
        let advertise = Api::<RouteAdvertisements>::all(client);
        advertise.create(&PostParams::default(), &advertisements("default", "advertise")).await.unwrap();
        let began = Instant::now();
        while configurations.list(&ListParams::default()).await.unwrap().items.len() < 4 {
            assert!(began.elapsed() < PATIENCE, "{}", daemon.log());
        }
        began.elapsed()
    });
    println!("advertised after {took:?}");
    becomes(server, &["ra", "default"], |ra| ra["status"]["status"].clone(), &json!("Accepted"));
    let ra = get(server, &["ra", "default"]);
    let condition = &ra["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("Accepted"), &json!("True")));
    assert_eq!(condition["observedGeneration"], ra["metadata"]["generation"]);

    let list = get(server, &GENERATED);
    let from = annotations(&list, "k8s.ovn.org/route-advertisements");
    let mut from: Vec<&String> = from.values().collect();
    from.sort();
    assert_eq!(from, ["default/peers/n1", "default/peers/n2", "default/peers/n3"]);
    let of_n1 = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["spec"]["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] == "n1");
    let router = &of_n1.unwrap()["spec"]["bgp"]["routers"][0];
    assert_eq!(router["prefixes"], json!(["10.244.0.0/24"]));
    assert_eq!(router["neighbors"].as_array().unwrap().len(), 1, "n1 is no peer of itself");
    daemon.shows(
        "/metrics",
        r#"underlay_route_advertisements_condition{name="default",condition="Accepted",status="True"} 1"#,
    );
    daemon.shows("/debug/desired", "default/peers/n1");

    // A node that comes later is served too, and nobody is asked to wait meanwhile.
    apply(server, scratch, &[node("n4", 4)]);
    becomes(server, &GENERATED, |list| list["items"].as_array().unwrap().len(), &4);
    let after = get(server, &["ra", "default"]);
    assert_eq!(after["status"]["conditions"][0], *condition, "nothing new was said");
    let ready = &after["status"]["conditions"][1];
    assert_eq!((&ready["type"], &ready["reason"]), (&json!("Ready"), &json!("RoutesMissing")));
}

fn what_others_do_to_generated_objects_is_undone(server: &ApiServer, scratch: &Scratch) {
    let list = get(server, &GENERATED);
    let name = list["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    let spec = |list: &Value| list["spec"].clone();
    let want = list["items"][0]["spec"].clone();
    let one = ["frrconfiguration", "-n", "frr", &name];

    kubectl(server, &["delete", "frrconfiguration", "-n", "frr", &name]);
    wait_for("the deleted configuration", PATIENCE, || {
        let output = server.kubectl(&[&["get", "-o", "json"], &one[..]].concat());
        output.status.success().then_some(()).ok_or_else(|| "it is gone".to_owned())
    });
    becomes(server, &one, spec, &want);

    let patch = r#"{"spec":{"bgp":{"bfdProfiles":[{"name":"x"}],"routers":[]}}}"#;
    kubectl(server, &["patch", "frrconfiguration", "-n", "frr", &name, "--type=merge", "-p", patch]);
    becomes(server, &one, spec, &want);

    // What is not ours stays, whatever its name and labels.
    let foreign = |name: &str, labels: Value| {
        let metadata = json!({ "name": name, "namespace": "frr", "labels": labels });
        json!({ "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration", "metadata": metadata, "spec": {} })
    };
    let label = json!({ "k8s.ovn.org/route-advertisements": "gone" });
    let orphan = foreign("ovnk-generated-0123456789", label.clone());
    apply(server, scratch, &[foreign("ovnk-generated-mine", json!({})), foreign("theirs", label), orphan]);
    wait_for("the orphan to go", PATIENCE, || {
        let output = server.kubectl(&["get", "frrconfiguration", "-n", "frr", "ovnk-generated-0123456789"]);
        if output.status.success() { Err("it is there".to_owned()) } else { Ok(()) }
    });
    get(server, &["frrconfiguration", "-n", "frr", "ovnk-generated-mine"]);
    get(server, &["frrconfiguration", "-n", "frr", "theirs"]);
}

fn a_mistake_is_told_and_changes_nothing(server: &ApiServer, daemon: &Daemon) {
    let patch = |target: &str| {
        let patch = json!({ "spec": { "targetVRF": target } }).to_string();
        kubectl(server, &["patch", "ra", "default", "--type=merge", "-p", &patch]);
    };
    patch("blue");
    let message = "configuration error: FRRConfiguration \"peers\" selected for node \"n1\" has no VRF matching the \
                   RouteAdvertisements target VRF or any selected network";
    let condition = |ra: &Value| ra["status"]["conditions"][0]["message"].clone();
    becomes(server, &["ra", "default"], condition, &json!(message));
    assert_eq!(get(server, &["ra", "default"])["status"]["status"], format!("Not Accepted: {message}"));
    assert_eq!(get(server, &GENERATED)["items"].as_array().unwrap().len(), 4, "what works goes on");
    let events = ["events.events.k8s.io", "-A", "--field-selector=reason=ConfigurationError"];
    becomes(server, &events, |list| list["items"][0]["regarding"]["name"].clone(), &json!("default"));
    daemon.shows(
        "/metrics",
        r#"underlay_route_advertisements_condition{name="default",condition="Accepted",status="False"} 1"#,
    );
    patch("default");
    becomes(server, &["ra", "default"], |ra| ra["status"]["status"].clone(), &json!("Accepted"));
}

/// Nothing can be made in a namespace that is on its way out, and without its controller this one stays there.
fn what_cannot_be_written_is_told(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    kubectl(server, &["create", "namespace", "doomed"]);
    apply(server, scratch, &[peers("doomed", "doomed")]);
    kubectl(server, &["delete", "namespace", "doomed", "--wait=false"]);
    apply(server, scratch, &[serde_json::to_value(advertisements("doomed", "doomed")).unwrap()]);
    let condition = |ra: &Value| ra["status"]["conditions"][0]["reason"].clone();
    becomes(server, &["ra", "doomed"], condition, &json!("InternalError"));
    let status = get(server, &["ra", "doomed"])["status"]["status"].as_str().unwrap().to_owned();
    assert!(
        status.starts_with(
            "Not Accepted: failed to reconcile RouteAdvertisements \"doomed\": create FRRConfiguration"
        ) && status.contains("is being terminated"),
        "{status}"
    );
    daemon.shows("/metrics", "underlay_turns_failed_total 3");
    assert_eq!(daemon.log().matches("a write failed").count(), 4, "once a node:\n{}", daemon.log());
    kubectl(server, &["delete", "ra", "doomed"]);
}

/// Everything that we may write, by name, with its version.
fn versions(server: &ApiServer) -> BTreeMap<String, Value> {
    let list = get(server, &["nodes,frrconfigurations,ra", "-A"]);
    let items = list["items"].as_array().unwrap().iter();
    let entry = |item: &Value| {
        (
            format!("{}/{}", item["kind"], item["metadata"]["name"]),
            item["metadata"]["resourceVersion"].clone(),
        )
    };
    items.map(entry).collect()
}

fn a_restart_writes_nothing(server: &ApiServer, first: Daemon, second: &Daemon) {
    second.shows("/readyz", "200 OK");
    assert!(first.leads() && !second.leads(), "one leads");
    let before = versions(server);
    first.stop();
    wait_for("the second to lead", PATIENCE, || if second.leads() { Ok(()) } else { Err(second.log()) });
    second.shows(
        "/metrics",
        r#"underlay_route_advertisements_condition{name="default",condition="Accepted",status="True"} 1"#,
    );
    assert_eq!(versions(server), before);
    let metrics = second.look("/metrics").unwrap();
    assert!(!metrics.contains("underlay_writes_total{"), "{metrics}");
}

fn advertisements_go(server: &ApiServer, daemon: &Daemon) {
    kubectl(server, &["delete", "ra", "default"]);
    becomes(server, &GENERATED, |list| list["items"].as_array().unwrap().len(), &0);
    get(server, &["frrconfiguration", "-n", "frr", "peers"]);
    wait_for("its series to go", PATIENCE, || {
        let metrics = daemon.look("/metrics")?;
        if metrics.contains("name=\"default\"") { Err(metrics) } else { Ok(()) }
    });
}
