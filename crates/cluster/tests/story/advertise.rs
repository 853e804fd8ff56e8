//! Networks of tenants on the wire, on a real API server: advertisements follow labels, share networks, stay out of
//! each other's way, survive what people do to their objects, and leave nothing behind.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use underlay_testkit::{ApiServer, Scratch};

use crate::common::daemon::{Daemon, apply, becomes, get, kubectl};
use crate::common::objects::{ATTACHMENTS, network, prepare};

const LABEL: &str = "k8s.ovn.org/route-advertisements";
const FINE: &str =
    "ovn-kubernetes cluster-manager validated the resource and requested the necessary configuration changes";

#[test]
fn networks_on_the_wire() {
    let server = &ApiServer::start();
    let scratch = Scratch::new("advertise");
    prepare(server, &scratch);
    apply(server, &scratch, &["n1", "n2", "n3"].map(node));
    for namespace in ["frr", "frr-two"] {
        kubectl(server, &["create", "namespace", namespace]);
        apply(
            server,
            &scratch,
            &[source(namespace, "peers", "advertise", &json!([router("", "172.18.0.100")]))],
        );
    }
    let daemon = Daemon::start(server, &scratch, "advertise");
    networks_are_selected_by_label(server, &scratch);
    two_may_advertise_one_network(server, &scratch);
    what_people_do_is_undone(server);
    networks_that_overlap_are_refused(server, &scratch);
    vrfs_are_chosen(server, &scratch);
    daemon.stop();
    let daemon = Daemon::start(server, &scratch, "advertise-again");
    a_restart_writes_nothing(&daemon);
    nothing_is_left_behind(server);
    daemon.stop();
}

fn node(name: &str) -> Value {
    let primary = format!(r#"{{"ipv4":"172.18.0.{}/16"}}"#, &name[1..]);
    let metadata = json!({
        "name": name,
        "labels": { "kubernetes.io/hostname": name },
        "annotations": { "k8s.ovn.org/node-primary-ifaddr": primary },
    });
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })
}

fn router(vrf: &str, peer: &str) -> Value {
    let mut router = json!({ "asn": 64512, "neighbors": [{ "address": peer, "asn": 64512 }] });
    if !vrf.is_empty() {
        router["vrf"] = vrf.into();
    }
    router
}

fn source(namespace: &str, name: &str, label: &str, routers: &Value) -> Value {
    json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": { "name": name, "namespace": namespace, "labels": { "use": label } },
        "spec": { "bgp": { "routers": routers } },
    })
}

/// Advertises the networks with a label to the peers of some sources.
fn advertisements(name: &str, labels: &Value, sources: &str, target: &str) -> Value {
    let selector = json!({
        "networkSelectionType": "ClusterUserDefinedNetworks",
        "clusterUserDefinedNetworkSelector": { "networkSelector": { "matchLabels": labels } },
    });
    let spec = json!({
        "targetVRF": target,
        "networkSelectors": [selector],
        "nodeSelector": {},
        "frrConfigurationSelector": { "matchLabels": { "use": sources } },
        "advertisements": ["PodNetwork"],
    });
    json!({ "apiVersion": "k8s.ovn.org/v1", "kind": "RouteAdvertisements", "metadata": { "name": name }, "spec": spec })
}

/// What was generated for an advertisement: what the first router originates, by namespace and node.
fn told(list: &Value) -> BTreeMap<String, Value> {
    let entry = |item: &Value| {
        let node = &item["spec"]["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"];
        let place = format!("{}/{}", item["metadata"]["namespace"].as_str().unwrap(), node.as_str().unwrap());
        (place, item["spec"]["bgp"]["routers"][0]["prefixes"].clone())
    };
    list["items"].as_array().unwrap().iter().map(entry).collect()
}

/// The same for every node and these namespaces; `{}` stands for the node's place.
fn everywhere(namespaces: &[&str], prefixes: &[&str]) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    for namespace in namespaces {
        for (place, node) in ["n1", "n2", "n3"].into_iter().enumerate() {
            let own: Vec<String> =
                prefixes.iter().map(|prefix| prefix.replace("{}", &place.to_string())).collect();
            all.insert(format!("{namespace}/{node}"), json!(own));
        }
    }
    all
}

fn generated(of: &str) -> [String; 4] {
    ["frrconfigurations".to_owned(), "-A".to_owned(), "-l".to_owned(), format!("{LABEL}={of}")]
}

#[track_caller]
fn tells(server: &ApiServer, name: &str, want: &BTreeMap<String, Value>) {
    let arguments = generated(name);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    becomes(server, &arguments, told, want);
}

#[track_caller]
fn says(server: &ApiServer, name: &str, want: &str) {
    let message = |ra: &Value| ra["status"]["conditions"][0]["message"].clone();
    becomes(server, &["ra", name], message, &json!(want));
}

/// Who advertises, as attachments say it.
#[track_caller]
fn attachments_say(server: &ApiServer, want: &[(&str, Option<&str>)]) {
    let said = |list: &Value| -> BTreeMap<String, Value> {
        let entry = |item: &Value| {
            let metadata = &item["metadata"];
            let name =
                format!("{}/{}", metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
            (name, metadata["annotations"][LABEL].clone())
        };
        list["items"].as_array().unwrap().iter().map(entry).collect()
    };
    let want = want.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    becomes(server, &ATTACHMENTS, said, &want);
}

fn label(server: &ApiServer, network: &str, label: &str) {
    kubectl(server, &["label", "cudn", network, label, "--overwrite"]);
}

fn networks_are_selected_by_label(server: &ApiServer, scratch: &Scratch) {
    apply(server, scratch, &[network("blue", "y", "10.1.0.0/16"), network("red", "x", "10.2.0.0/16")]);
    label(server, "blue", "wire=yes");
    apply(server, scratch, &[advertisements("tenants", &json!({ "wire": "yes" }), "advertise", "default")]);
    says(server, "tenants", FINE);
    // Two sources of one name, each in its namespace.
    tells(server, "tenants", &everywhere(&["frr", "frr-two"], &["10.1.{}.0/24"]));
    attachments_say(server, &[("a/red", None), ("b/red", None), ("c/blue", Some(r#"["tenants"]"#))]);
    label(server, "red", "wire=yes");
    tells(server, "tenants", &everywhere(&["frr", "frr-two"], &["10.1.{}.0/24", "10.2.{}.0/24"]));
    let by = Some(r#"["tenants"]"#);
    attachments_say(server, &[("a/red", by), ("b/red", by), ("c/blue", by)]);
    // A source that is no longer selected, and one that is again.
    kubectl(server, &["label", "frrconfiguration", "-n", "frr-two", "peers", "use=other", "--overwrite"]);
    tells(server, "tenants", &everywhere(&["frr"], &["10.1.{}.0/24", "10.2.{}.0/24"]));
    label(server, "red", "wire-");
    tells(server, "tenants", &everywhere(&["frr"], &["10.1.{}.0/24"]));
    attachments_say(server, &[("a/red", Some("[]")), ("b/red", Some("[]")), ("c/blue", by)]);
}

fn two_may_advertise_one_network(server: &ApiServer, scratch: &Scratch) {
    let name = json!({ "k8s.ovn.org/metadata.name": "blue" });
    apply(server, scratch, &[advertisements("blue-too", &name, "other", "")]);
    says(server, "blue-too", FINE);
    tells(server, "blue-too", &everywhere(&["frr-two"], &["10.1.{}.0/24"]));
    tells(server, "tenants", &everywhere(&["frr"], &["10.1.{}.0/24"]));
    let both = Some(r#"["blue-too","tenants"]"#);
    attachments_say(server, &[("a/red", Some("[]")), ("b/red", Some("[]")), ("c/blue", both)]);
}

fn what_people_do_is_undone(server: &ApiServer) {
    let arguments = generated("tenants");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let specs = |list: &Value| -> Vec<Value> {
        list["items"].as_array().unwrap().iter().map(|item| item["spec"].clone()).collect()
    };
    let want = specs(&get(server, &arguments));
    let list = get(server, &arguments);
    let name = |place: usize| list["items"][place]["metadata"]["name"].as_str().unwrap();
    let patch = r#"{"spec":{"bgp":{"routers":[]}}}"#;
    kubectl(server, &["patch", "frrconfiguration", "-n", "frr", name(0), "--type=merge", "-p", patch]);
    kubectl(server, &["delete", "frrconfiguration", "-n", "frr", name(1)]);
    becomes(server, &arguments, specs, &want);
    let nad = ["network-attachment-definitions", "-n", "c", "blue"];
    let annotation = format!("{LABEL}=[\"somebody\"]");
    kubectl(server, &["annotate", nad[0], nad[1], nad[2], nad[3], "--overwrite", &annotation]);
    let said = |nad: &Value| nad["metadata"]["annotations"][LABEL].clone();
    becomes(server, &nad, said, &json!(r#"["blue-too","tenants"]"#));
}

fn networks_that_overlap_are_refused(server: &ApiServer, scratch: &Scratch) {
    let mut green = network("green", "nobody", "10.1.128.0/17");
    green["metadata"]["labels"] = json!({ "wire": "yes" });
    apply(server, scratch, &[green]);
    says(
        server,
        "tenants",
        "configuration error: networks \"cluster_udn_blue\" (10.1.0.0/16) and \"cluster_udn_green\" (10.1.128.0/17) \
         overlap and cannot both be advertised in VRF \"default\"",
    );
    says(server, "blue-too", FINE);
    tells(server, "tenants", &everywhere(&["frr"], &["10.1.{}.0/24"]));
    let both = Some(r#"["blue-too","tenants"]"#);
    attachments_say(server, &[("a/red", Some("[]")), ("b/red", Some("[]")), ("c/blue", both)]);
    label(server, "green", "wire=later");
    says(server, "tenants", FINE);
    apply(server, scratch, &[advertisements("later", &json!({ "wire": "later" }), "advertise", "")]);
    let message = "configuration error: network \"cluster_udn_green\" (10.1.128.0/17) overlaps network \
                   \"cluster_udn_blue\" (10.1.0.0/16), which RouteAdvertisements";
    let begins = |ra: &Value| {
        let said = ra["status"]["conditions"][0]["message"].as_str().unwrap_or_default().to_owned();
        said.starts_with(message)
    };
    becomes(server, &["ra", "later"], begins, &true);
    kubectl(server, &["delete", "ra", "later"]);
    kubectl(server, &["delete", "cudn", "green", "--timeout=20s"]);
}

fn vrfs_are_chosen(server: &ApiServer, scratch: &Scratch) {
    let routers = json!([router("blue", "192.0.2.1"), router("red", "192.0.2.2")]);
    apply(server, scratch, &[source("frr", "lite", "lite", &routers)]);
    apply(server, scratch, &[advertisements("lite", &json!({}), "lite", "auto")]);
    says(server, "lite", FINE);
    let arguments = generated("lite");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let routers = |list: &Value| -> Value {
        let of_n2 =
            |item: &&Value| item["spec"]["nodeSelector"]["matchLabels"]["kubernetes.io/hostname"] == "n2";
        let found = list["items"].as_array().unwrap().iter().find(of_n2);
        let routers = found.map(|item| item["spec"]["bgp"]["routers"].as_array().unwrap().clone());
        let short = |router: Value| json!([router["vrf"], router["prefixes"], router["imports"]]);
        routers.unwrap_or_default().into_iter().map(short).collect()
    };
    let auto = json!([["blue", ["10.1.1.0/24"], null], ["red", ["10.2.1.0/24"], null]]);
    becomes(server, &arguments, routers, &auto);
    kubectl(server, &["patch", "ra", "lite", "--type=merge", "-p", r#"{"spec":{"targetVRF":"red"}}"#]);
    let red = json!([
        ["red", ["10.1.1.0/24", "10.2.1.0/24"], [{ "vrf": "blue" }]],
        ["blue", null, [{ "vrf": "red" }]],
    ]);
    becomes(server, &arguments, routers, &red);
    says(server, "lite", FINE);
    let by = Some(r#"["blue-too","lite","tenants"]"#);
    let red = Some(r#"["lite"]"#);
    attachments_say(server, &[("a/red", red), ("b/red", red), ("c/blue", by)]);
}

fn a_restart_writes_nothing(daemon: &Daemon) {
    for name in ["tenants", "lite", "blue-too"] {
        daemon.shows(
            "/metrics",
            &format!(
                r#"underlay_route_advertisements_condition{{name="{name}",condition="Accepted",status="True"}} 1"#
            ),
        );
    }
    let metrics = daemon.look("/metrics").unwrap();
    assert!(!metrics.contains("underlay_writes_total{"), "{metrics}");
}

fn nothing_is_left_behind(server: &ApiServer) {
    kubectl(server, &["delete", "ra", "--all"]);
    becomes(server, &["frrconfigurations", "-A", "-l", LABEL], told, &BTreeMap::new());
    let none = Some("[]");
    attachments_say(server, &[("a/red", none), ("b/red", none), ("c/blue", none)]);
}
