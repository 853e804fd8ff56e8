//! Networks without overlay on a real API server: the mesh that the cluster sees to itself follows nodes and networks and
//! stays as it should be; and what is said of a network follows its advertisements.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use underlay_testkit::{ApiServer, Scratch, wait_for};

use crate::common::daemon::{Daemon, PATIENCE, apply, becomes, get, kubectl};
use crate::common::objects::{condition, namespace, network, prepare};

const LABEL: &str = "k8s.ovn.org/managed-internal-fabric";
const MARK: &str = "k8s.ovn.org/managed-network";
const FABRIC: [&str; 4] = ["frrconfigurations", "-A", "-l", "k8s.ovn.org/managed-internal-fabric=bgp"];
const MANAGED: [&str; 3] = ["ra", "-l", "k8s.ovn.org/managed-internal-fabric=bgp"];
/// What a cluster without overlay is started with.
const WITHOUT_OVERLAY: [&str; 6] = [
    "--transport=no-overlay",
    "--outbound-snat=enable",
    "--routing=managed",
    "--bgp-topology=full-mesh",
    "--bgp-as-number=64514",
    "--leader-elect-lease-duration=2",
];

#[test]
fn the_life_of_networks_without_overlay() {
    let server = &ApiServer::start();
    let scratch = Scratch::new("fabric");
    prepare(server, &scratch);
    kubectl(server, &["delete", "nodes", "--all"]);
    kubectl(server, &["create", "namespace", "ovn-kubernetes"]);
    apply(server, &scratch, &[node("m1", 1)]);
    let daemon = Daemon::start_with(&server.kubeconfig(), &scratch, "mesh", &WITHOUT_OVERLAY);
    one_node_is_a_mesh(server);
    nodes_come_and_go(server, &scratch);
    networks_of_tenants_join(server, &scratch);
    what_others_do_is_undone(server, &scratch);
    let daemon = a_restart_writes_nothing(server, &scratch, daemon);
    networks_of_tenants_leave(server);
    daemon.stop();
    let daemon = the_mesh_goes_with_the_setting(server, &scratch);
    a_network_is_accepted_while_it_is_advertised(server, &scratch, &daemon);
    a_node_that_is_left_out_is_named(server);
    managed_routing_without_a_topology_is_told(server, &scratch);
    daemon.stop();
}

fn node(name: &str, number: u8) -> Value {
    let address = format!("172.18.0.{number}");
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": { "addresses": [{ "type": "InternalIP", "address": address }] },
    })
}

fn without_overlay(name: &str, team: &str, cidr: &str, routing: &str) -> Value {
    let mut object = network(name, team, cidr);
    object["metadata"]["labels"] = json!({ "network": name });
    object["spec"]["network"]["transport"] = json!("NoOverlay");
    object["spec"]["network"]["noOverlayOptions"] = json!({ "outboundSNAT": "Enable", "routing": routing });
    object
}

/// Neighbours in the configuration that connects all nodes.
fn peers(list: &Value) -> Vec<String> {
    let neighbors = &list["items"][0]["spec"]["bgp"]["routers"][0]["neighbors"];
    let neighbors = neighbors.as_array().cloned().unwrap_or_default();
    neighbors.iter().map(|one| one["address"].as_str().unwrap_or_default().to_owned()).collect()
}

fn addresses(numbers: &[u8]) -> Vec<String> {
    numbers.iter().map(|number| format!("172.18.0.{number}")).collect()
}

/// Names and states of all advertisements that the cluster made.
fn states(list: &Value) -> BTreeSet<String> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |item: &Value| {
        let selector = &item["spec"]["networkSelectors"][0]["networkSelectionType"];
        format!("{} {}", text(selector), text(&item["status"]["status"]))
    };
    items.iter().map(entry).collect()
}

fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn events(server: &ApiServer, reason: &str) -> Vec<Value> {
    let list = get(server, &["events.events.k8s.io", "-A", &format!("--field-selector=reason={reason}")]);
    list["items"].as_array().cloned().unwrap_or_default()
}

/// A single node has nobody to speak with, and that is well.
fn one_node_is_a_mesh(server: &ApiServer) {
    becomes(server, &MANAGED, states, &set(&["DefaultNetwork Accepted"]));
    becomes(server, &FABRIC, peers, &addresses(&[1]));
    let base = get(server, &FABRIC)["items"][0].clone();
    assert_eq!(base["metadata"]["namespace"], "frr-k8s-system", "the namespace was made");
    let neighbor = &base["spec"]["bgp"]["routers"][0]["neighbors"][0];
    assert_eq!((&neighbor["asn"], &neighbor["enableGracefulRestart"]), (&json!(64514), &json!(true)));
    assert_eq!(neighbor["bfdProfile"], base["spec"]["bgp"]["bfdProfiles"][0]["name"]);
    let prefixes = json!([{ "prefix": "10.244.0.0/16", "ge": 24, "le": 24 }]);
    assert_eq!(neighbor["toReceive"]["allowed"]["prefixes"], prefixes);
    get(server, &["network-attachment-definitions", "-n", "ovn-kubernetes", "default"]);
    wait_for("the event that all is well", PATIENCE, || {
        let found = events(server, "NoOverlayConfigurationReady");
        let [event] = found.as_slice() else { return Err(format!("{found:?}")) };
        let about = (&event["regarding"]["kind"], &event["regarding"]["namespace"], &event["type"]);
        let want = (&json!("NetworkAttachmentDefinition"), &json!("ovn-kubernetes"), &json!("Normal"));
        if about == want { Ok(()) } else { Err(event.to_string()) }
    });
}

fn nodes_come_and_go(server: &ApiServer, scratch: &Scratch) {
    apply(server, scratch, &[node("m2", 2), node("m3", 3)]);
    becomes(server, &FABRIC, peers, &addresses(&[1, 2, 3]));
    let generated = ["frrconfigurations", "-n", "frr-k8s-system", "-l", "k8s.ovn.org/route-advertisements"];
    becomes(server, &generated, |list| list["items"].as_array().unwrap().len(), &3);
    kubectl(server, &["delete", "node", "m3"]);
    becomes(server, &FABRIC, peers, &addresses(&[1, 2]));
    becomes(server, &generated, |list| list["items"].as_array().unwrap().len(), &2);
    let of_m1 = |list: &Value| {
        let of =
            |item: &&Value| item["spec"]["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] == "m1";
        let found = list["items"].as_array()?.iter().find(of)?;
        Some(found["spec"]["bgp"]["routers"][0]["neighbors"].as_array()?.len())
    };
    becomes(server, &generated, of_m1, &Some(1));
    assert_eq!(get(server, &FABRIC)["items"].as_array().unwrap().len(), 1, "one object holds all neighbours");
}

fn networks_of_tenants_join(server: &ApiServer, scratch: &Scratch) {
    apply(server, scratch, &[without_overlay("blue", "x", "10.10.0.0/16", "Managed")]);
    apply(server, scratch, &[without_overlay("green", "y", "10.20.0.0/16", "Managed")]);
    let all = set(&["ClusterUserDefinedNetworks Accepted", "DefaultNetwork Accepted"]);
    becomes(server, &MANAGED, states, &all);
    becomes(server, &MANAGED, |list| list["items"].as_array().unwrap().len(), &3);
    for name in ["blue", "green"] {
        let accepted = "True NoOverlayTransportAccepted".to_owned();
        becomes(server, &["cudn", name], |object| condition(object, "TransportAccepted"), &accepted);
    }
    let mark = |name: &str| get(server, &["cudn", name])["metadata"]["labels"][MARK].clone();
    assert!(mark("blue").is_string() && mark("blue") != mark("green"));
    let attachment = get(server, &["network-attachment-definitions", "-n", "a", "blue"]);
    assert_eq!(attachment["metadata"]["labels"][MARK], mark("blue"));
    let config: Value = serde_json::from_str(attachment["spec"]["config"].as_str().unwrap()).unwrap();
    assert_eq!(config["transport"], "no-overlay");
}

/// Edits, deletions and lost labels are made good; what is not ours stays.
fn what_others_do_is_undone(server: &ApiServer, scratch: &Scratch) {
    let base = get(server, &FABRIC)["items"][0].clone();
    let name = base["metadata"]["name"].as_str().unwrap().to_owned();
    let one = ["frrconfiguration", "-n", "frr-k8s-system", name.as_str()];
    let state = |object: &Value| (object["metadata"]["labels"][LABEL].clone(), object["spec"].clone());
    let want = state(&base);
    let patch = r#"{"spec":{"bgp":{"routers":[]}}}"#;
    kubectl(server, &["patch", one[0], one[1], one[2], one[3], "--type=merge", "-p", patch]);
    becomes(server, &one, state, &want);
    kubectl(server, &["label", one[0], one[1], one[2], one[3], &format!("{LABEL}-")]);
    becomes(server, &one, state, &want);
    kubectl(server, &["delete", one[0], one[1], one[2], one[3]]);
    becomes(server, &FABRIC, peers, &addresses(&[1, 2]));

    let advertisements = get(server, &MANAGED);
    let before = states(&advertisements);
    let first = advertisements["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    kubectl(server, &["delete", "ra", &first]);
    becomes(server, &MANAGED, |list| list["items"].as_array().unwrap().len(), &3);
    becomes(server, &MANAGED, states, &before);
    kubectl(server, &["patch", "ra", &first, "--type=merge", "-p", r#"{"spec":{"targetVRF":"blue"}}"#]);
    becomes(server, &["ra", &first], |ra| ra["spec"]["targetVRF"].clone(), &Value::Null);

    let mark = get(server, &["cudn", "blue"])["metadata"]["labels"][MARK].clone();
    kubectl(server, &["label", "cudn", "blue", &format!("{MARK}-")]);
    becomes(server, &["cudn", "blue"], |object| object["metadata"]["labels"][MARK].clone(), &mark);

    let leftover = |name: &str, labels: Value| {
        json!({
            "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration",
            "metadata": { "name": name, "namespace": "frr-k8s-system", "labels": labels }, "spec": {},
        })
    };
    apply(
        server,
        scratch,
        &[leftover("ovnk-managed-mine", json!({})), leftover("ovnk-managed-old", json!({ LABEL: "bgp" }))],
    );
    becomes(server, &FABRIC, |list| list["items"].as_array().unwrap().len(), &1);
    get(server, &["frrconfiguration", "-n", "frr-k8s-system", "ovnk-managed-mine"]);
}

/// Versions of all that was made.
fn versions(server: &ApiServer) -> BTreeSet<String> {
    let list = get(server, &["frrconfigurations,ra,cudn,network-attachment-definitions", "-A"]);
    let entry =
        |item: &Value| format!("{} {}", item["metadata"]["name"], item["metadata"]["resourceVersion"]);
    list["items"].as_array().unwrap().iter().map(entry).collect()
}

fn a_restart_writes_nothing(server: &ApiServer, scratch: &Scratch, daemon: Daemon) -> Daemon {
    let accepted = "True NoOverlayTransportAccepted".to_owned();
    becomes(server, &["cudn", "blue"], |object| condition(object, "TransportAccepted"), &accepted);
    daemon.stop();
    let before = versions(server);
    let daemon = Daemon::start_with(&server.kubeconfig(), scratch, "again", &WITHOUT_OVERLAY);
    daemon.shows("/debug/desired", "10.20.0.0/16");
    daemon.shows("/readyz", "200 OK");
    assert_eq!(versions(server), before, "{}", daemon.log());
    daemon
}

fn networks_of_tenants_leave(server: &ApiServer) {
    kubectl(server, &["delete", "cudn", "blue", "green"]);
    becomes(server, &MANAGED, states, &set(&["DefaultNetwork Accepted"]));
    becomes(server, &MANAGED, |list| list["items"].as_array().unwrap().len(), &1);
}

/// Without overlay, and routed by the users: nobody advertises the default network then.
fn the_mesh_goes_with_the_setting(server: &ApiServer, scratch: &Scratch) -> Daemon {
    let arguments = [
        "--transport=no-overlay",
        "--outbound-snat=disable",
        "--routing=unmanaged",
        "--leader-elect-lease-duration=2",
    ];
    let daemon = Daemon::start_with(&server.kubeconfig(), scratch, "users", &arguments);
    becomes(server, &MANAGED, states, &set(&[]));
    becomes(server, &FABRIC, |list| list["items"].as_array().unwrap().len(), &0);
    wait_for("the event that it is not advertised", PATIENCE, || {
        let found = events(server, "NoRouteAdvertisements");
        if found.iter().any(|event| event["type"] == "Warning") { Ok(()) } else { Err(format!("{found:?}")) }
    });
    daemon
}

fn advertisement() -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": { "name": "blue" },
        "spec": {
            "nodeSelector": {},
            "frrConfigurationSelector": { "matchLabels": { "network": "blue" } },
            "networkSelectors": [{
                "networkSelectionType": "ClusterUserDefinedNetwork",
                "clusterUserDefinedNetworkSelector": {
                    "networkSelector": { "matchLabels": { "network": "blue" } },
                },
            }],
            "advertisements": ["PodNetwork"],
        },
    })
}

fn a_network_is_accepted_while_it_is_advertised(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    let is = |want: &str| {
        let said = |object: &Value| condition(object, "TransportAccepted");
        becomes(server, &["cudn", "blue"], said, &want.to_owned());
    };
    apply(server, scratch, &[without_overlay("blue", "x", "10.10.0.0/16", "Unmanaged")]);
    is("False NoOverlayRouteAdvertisementsIsMissing");
    apply(server, scratch, &[advertisement()]);
    is("False NoOverlayRouteAdvertisementsNotAccepted");
    let said = get(server, &["cudn", "blue"]);
    let conditions = said["status"]["conditions"].as_array().unwrap();
    let message =
        conditions.iter().find(|one| one["type"] == "TransportAccepted").unwrap()["message"].clone();
    let want = "RouteAdvertisements CR blue advertises the pod subnets, but its status is not accepted.";
    assert_eq!(message, want);
    let peers = json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": { "name": "blue", "namespace": "frr-k8s-system", "labels": { "network": "blue" } },
        "spec": { "bgp": { "routers": [{
            "asn": 64512, "neighbors": [{ "address": "182.18.0.5", "asn": 64512, "disableMP": true }],
        }] } },
    });
    apply(server, scratch, &[peers]);
    is("True NoOverlayTransportAccepted");
    kubectl(server, &["delete", "ra", "blue"]);
    is("False NoOverlayRouteAdvertisementsIsMissing");
    wait_for("an event about it", PATIENCE, || {
        let found = events(server, "NoOverlayRouteAdvertisementsIsMissing");
        if found.is_empty() { Err(daemon.log()) } else { Ok(()) }
    });
    apply(server, scratch, &[advertisement()]);
    is("True NoOverlayTransportAccepted");
    daemon.shows(
        "/metrics",
        r#"underlay_networks{kind="ClusterUserDefinedNetwork",condition="TransportAccepted",status="True"} 1"#,
    );
}

fn transport_message(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|one| one["type"] == "TransportAccepted");
    found.map_or_else(String::new, |one| one["message"].as_str().unwrap_or_default().to_owned())
}

fn a_node_that_is_left_out_is_named(server: &ApiServer) {
    let selector = |labels: Value| json!({ "spec": { "nodeSelector": labels } }).to_string();
    let one = ["frrconfiguration", "-n", "frr-k8s-system", "blue", "--type=merge", "-p"];
    let only = selector(json!({ "matchLabels": { "kubernetes.io/hostname": "m1" } }));
    kubectl(server, &[&["patch"], &one[..], &[&only]].concat());
    let want = "RouteAdvertisements CR blue advertises the pod subnets, but no FRRConfiguration that it selects is for \
                node m2.";
    becomes(server, &["cudn", "blue"], transport_message, &want.to_owned());
    kubectl(server, &[&["patch"], &one[..], &[&selector(Value::Null)]].concat());
    let want = "No-overlay transport has been configured.";
    becomes(server, &["cudn", "blue"], transport_message, &want.to_owned());
}

fn managed_routing_without_a_topology_is_told(server: &ApiServer, scratch: &Scratch) {
    apply(server, scratch, &[namespace("c", "y"), without_overlay("red", "y", "10.30.0.0/16", "Managed")]);
    let names_the_setting = |object: &Value| {
        let message = transport_message(object);
        message.contains("topology = full-mesh in [bgp.managed]").then_some(()).ok_or(message)
    };
    becomes(server, &["cudn", "red"], names_the_setting, &Ok(()));
    let red = get(server, &["cudn", "red"]);
    assert_eq!(condition(&red, "TransportAccepted"), "False NoOverlayRouteAdvertisementsIsMissing");
    assert_eq!(red["metadata"]["labels"][MARK], Value::Null);
}
