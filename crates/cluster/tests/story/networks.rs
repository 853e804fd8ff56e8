//! Networks of tenants on a real API server: they come to namespaces and nodes, follow labels, survive a kill, and go
//! without a trace.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use underlay_api::NetworkAttachmentDefinition;
use underlay_testkit::{ApiServer, Scratch, wait_for};

use crate::common::daemon::{Daemon, PATIENCE, apply, becomes, get, kubectl};
use crate::common::objects::{
    ATTACHMENTS, ID, condition, message, namespace, network, numbers, parts, prepare,
};

/// Networks of the rollout that is cut short.
const MANY: usize = 20;

#[test]
fn the_life_of_networks() {
    let server = &ApiServer::start();
    let scratch = Scratch::new("networks");
    prepare(server, &scratch);
    let daemon = Daemon::start(server, &scratch, "networks");
    a_network_comes(server, &scratch, &daemon);
    labels_are_followed(server, &scratch);
    a_namespace_has_its_own(server, &scratch);
    a_mistake_is_told_and_others_work(server, &scratch, &daemon);
    what_others_do_is_undone_and_theirs_is_left_alone(server, &scratch);
    let daemon = a_killed_rollout_ends_where_it_would_have(server, &scratch, daemon);
    networks_go_without_a_trace(server);
    daemon.stop();
}

fn attached(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, number)| ((*name).to_owned(), (*number).to_owned())).collect()
}

fn a_network_comes(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    apply(server, scratch, &[network("blue", "x", "10.10.0.0/16")]);
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("a/blue", "1"), ("b/blue", "1")]));
    becomes(
        server,
        &["cudn", "blue"],
        |blue| condition(blue, "NetworkCreated"),
        &"True NetworkAttachmentDefinitionCreated".to_owned(),
    );
    let blue = get(server, &["cudn", "blue"]);
    assert_eq!(
        message(&blue),
        "NetworkAttachmentDefinition has been created in following namespaces: [a, b]"
    );
    assert_eq!(condition(&blue, "NetworkAllocationSucceeded"), "True NetworkAllocationSucceeded");
    assert_eq!(condition(&blue, "TransportAccepted"), "True GeneveTransportAccepted");
    assert_eq!(blue["metadata"]["finalizers"], json!(["k8s.ovn.org/user-defined-network-protection"]));
    assert_eq!(parts(server, "n2")["cluster_udn_blue"], ["10.10.1.0/24"]);
    assert_eq!(parts(server, "n2")["default"], ["10.244.1.0/24"]);
    let made = get(server, &["network-attachment-definitions", "-n", "a", "blue"]);
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], blue["metadata"]["uid"]);
    let config: Value = serde_json::from_str(made["spec"]["config"].as_str().unwrap()).unwrap();
    assert_eq!(config["netAttachDefName"], "a/blue");
    daemon.shows(
        "/metrics",
        r#"underlay_networks{kind="ClusterUserDefinedNetwork",condition="NetworkCreated",status="True"} 1"#,
    );
    daemon.shows("/debug/desired", "cluster_udn_blue");
}

fn labels_are_followed(server: &ApiServer, scratch: &Scratch) {
    kubectl(server, &["label", "namespace", "c", "team=x", "--overwrite"]);
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("a/blue", "1"), ("b/blue", "1"), ("c/blue", "1")]));
    let networks = r#"{"a/blue":{"ip_addresses":["10.10.0.5/24"],"mac_address":"0a:58:0a:0a:00:05"}}"#;
    let metadata =
        json!({ "name": "web", "namespace": "a", "annotations": { "k8s.ovn.org/pod-networks": networks } });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    apply(
        server,
        scratch,
        &[json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })],
    );
    for name in ["a", "b"] {
        kubectl(server, &["label", "namespace", name, "team=z", "--overwrite"]);
    }
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("a/blue", "1"), ("c/blue", "1")]));
    let used = "failed to delete NetworkAttachmentDefinition [a/blue]: network in use by the following pods: [a/web]";
    becomes(server, &["cudn", "blue"], message, &used.to_owned());
    kubectl(server, &["delete", "pod", "-n", "a", "web", "--force", "--grace-period=0"]);
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("c/blue", "1")]));
    let created = "NetworkAttachmentDefinition has been created in following namespaces: [c]";
    becomes(server, &["cudn", "blue"], message, &created.to_owned());
}

fn a_namespace_has_its_own(server: &ApiServer, scratch: &Scratch) {
    let own = json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "UserDefinedNetwork",
        "metadata": { "name": "own", "namespace": "b" },
        "spec": { "topology": "Layer2", "layer2": { "role": "Primary", "subnets": ["10.12.0.0/16"] } },
    });
    apply(server, scratch, &[own]);
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("b/own", "2"), ("c/blue", "1")]));
    let transport = |own: &Value| condition(own, "TransportAccepted");
    becomes(server, &["udn", "-n", "b", "own"], transport, &"False NetworkNotSupported".to_owned());
    let created = "NetworkAttachmentDefinition has been created";
    assert_eq!(message(&get(server, &["udn", "-n", "b", "own"])), created);
    kubectl(server, &["delete", "udn", "-n", "b", "own", "--timeout=20s"]);
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("c/blue", "1")]));
}

fn a_mistake_is_told_and_others_work(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    apply(server, scratch, &[network("wrong", "z", "10.244.0.0/17"), network("right", "z", "10.11.0.0/16")]);
    let refused = |object: &Value| condition(object, "NetworkCreated");
    becomes(server, &["cudn", "wrong"], refused, &"False NetworkAttachmentDefinitionSyncError".to_owned());
    let said = message(&get(server, &["cudn", "wrong"]));
    assert!(
        said.contains(
            r#""10.244.0.0/17" overlaps cluster subnet "10.244.0.0/16" (spec.network.layer3.subnets[0])"#
        ),
        "{said}"
    );
    becomes(server, &["cudn", "right"], refused, &"True NetworkAttachmentDefinitionCreated".to_owned());
    assert_eq!(get(server, &["cudn", "right"])["metadata"]["annotations"][ID], "2");
    let events =
        ["events.events.k8s.io", "-A", "--field-selector=reason=NetworkAttachmentDefinitionSyncError"];
    becomes(
        server,
        &events,
        |list| list["items"].as_array().unwrap().iter().any(|event| event["regarding"]["name"] == "wrong"),
        &true,
    );
    daemon.shows(
        "/metrics",
        r#"underlay_networks{kind="ClusterUserDefinedNetwork",condition="NetworkCreated",status="False"} 1"#,
    );
    for name in ["wrong", "right"] {
        kubectl(server, &["delete", "cudn", name, "--timeout=20s"]);
    }
}

fn what_others_do_is_undone_and_theirs_is_left_alone(server: &ApiServer, scratch: &Scratch) {
    let one = ["network-attachment-definitions", "-n", "c", "blue"];
    let before = get(server, &one);
    kubectl(server, &["delete", "network-attachment-definitions", "-n", "c", "blue", "--timeout=20s"]);
    becomes(server, &ATTACHMENTS, numbers, &attached(&[("c/blue", "1")]));
    let after = get(server, &one);
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"], before["spec"]);
    let patch = r#"{"metadata":{"annotations":{"k8s.ovn.org/network-id":"9"},"finalizers":null},"spec":{"config":"{}"}}"#;
    kubectl(
        server,
        &["patch", "network-attachment-definitions", "-n", "c", "blue", "--type=merge", "-p", patch],
    );
    becomes(server, &one, |made| made["spec"].clone(), &before["spec"]);
    let mended = get(server, &one);
    assert_eq!(mended["metadata"]["annotations"], before["metadata"]["annotations"]);
    assert_eq!(mended["metadata"]["finalizers"], before["metadata"]["finalizers"]);

    let theirs = json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "blue", "namespace": "a" },
        "spec": { "config": r#"{"cniVersion":"0.3.1","type":"macvlan"}"# },
    });
    apply(server, scratch, &[theirs]);
    let version = |server: &ApiServer| {
        get(server, &["network-attachment-definitions", "-n", "a", "blue"])["metadata"]["resourceVersion"]
            .clone()
    };
    let before = version(server);
    kubectl(server, &["label", "namespace", "a", "team=x", "--overwrite"]);
    let foreign = "foreign NetworkAttachmentDefinition with the desired name already exist [a/blue]";
    becomes(server, &["cudn", "blue"], message, &foreign.to_owned());
    assert_eq!(version(server), before);
    kubectl(server, &["label", "namespace", "a", "team=z", "--overwrite"]);
    kubectl(server, &["delete", "network-attachment-definitions", "-n", "a", "blue"]);
    let created = "NetworkAttachmentDefinition has been created in following namespaces: [c]";
    becomes(server, &["cudn", "blue"], message, &created.to_owned());
}

fn a_killed_rollout_ends_where_it_would_have(
    server: &ApiServer,
    scratch: &Scratch,
    daemon: Daemon,
) -> Daemon {
    let name = |number: usize| format!("t{number:02}");
    let namespaces: Vec<Value> = (0..MANY).map(|number| namespace(&name(number), &name(number))).collect();
    apply(server, scratch, &namespaces);
    let networks: Vec<Value> = (0..MANY)
        .map(|number| network(&name(number), &name(number), &format!("10.{}.0.0/16", 20 + number)))
        .collect();
    let there = std::thread::scope(|scope| {
        let applied = scope.spawn(|| apply(server, scratch, &networks));
        wait_for_attachments(server, 4);
        drop(daemon);
        let there = numbers(&get(server, &ATTACHMENTS)).len() - 1;
        applied.join().unwrap();
        there
    });
    println!("killed when {there} of {MANY} networks were there");
    let daemon = Daemon::start(server, scratch, "after-the-kill");
    wait_for("every network to be there", PATIENCE, || {
        let list = get(server, &["cudn"]);
        let items = list["items"].as_array().unwrap();
        let there = |item: &&Value| condition(item, "NetworkAllocationSucceeded").starts_with("True");
        let count = items.iter().filter(there).count();
        if count == MANY + 1 { Ok(()) } else { Err(format!("{count} are\n{}", daemon.log())) }
    });
    let numbers = numbers(&get(server, &ATTACHMENTS));
    assert_eq!(numbers.len(), MANY + 1, "{numbers:?}");
    let distinct: BTreeSet<u16> = numbers.values().map(|number| number.parse().unwrap()).collect();
    assert_eq!(distinct, (1..=21).collect(), "each has its own, and none is left out");
    for (index, node) in ["n1", "n2", "n3"].into_iter().enumerate() {
        let parts = parts(server, node);
        assert_eq!(parts.len(), MANY + 2, "{parts:?}");
        for number in 0..MANY {
            let want = format!("10.{}.{index}.0/24", 20 + number);
            assert_eq!(parts[&format!("cluster_udn_{}", name(number))], [want]);
        }
    }
    daemon.stop();
    let daemon = Daemon::start(server, scratch, "after-a-restart");
    daemon.shows(
        "/metrics",
        r#"underlay_networks{kind="ClusterUserDefinedNetwork",condition="NetworkCreated",status="True"} 21"#,
    );
    let metrics = daemon.look("/metrics").unwrap();
    assert!(!metrics.contains("underlay_writes_total{"), "a restart writes nothing:\n{metrics}");
    daemon
}

/// Waits until there are so many attachment definitions, and not a moment longer.
fn wait_for_attachments(server: &ApiServer, count: usize) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let client = underlay_runtime::client::connect(Some(&server.kubeconfig())).await.unwrap();
        let api = Api::<NetworkAttachmentDefinition>::all(client);
        let began = Instant::now();
        while api.list(&ListParams::default()).await.unwrap().items.len() < count {
            assert!(began.elapsed() < PATIENCE, "no network comes");
        }
    });
}

fn networks_go_without_a_trace(server: &ApiServer) {
    kubectl(server, &["delete", "cudn", "--all", "--timeout=30s"]);
    assert_eq!(get(server, &ATTACHMENTS)["items"], json!([]));
    for node in ["n1", "n2", "n3"] {
        let parts = parts(server, node);
        assert_eq!(parts.keys().collect::<Vec<_>>(), ["default"]);
    }
}
