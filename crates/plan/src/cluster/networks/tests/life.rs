//! Networks come, change and go.

use serde_json::{Value, json};
use underlay_api::network::conditions::{NETWORK_ALLOCATION_SUCCEEDED, NETWORK_CREATED, TRANSPORT_ACCEPTED};

use super::server::Server;
use super::{condition, layer2, layer3, told};

const ID: &str = "k8s.ovn.org/network-id";
const KEYS: &str = "k8s.ovn.org/tunnel-keys";
const BLUE: &str = "ClusterUserDefinedNetwork blue";

/// A network in two namespaces of three, on two nodes.
fn blue() -> Server {
    let mut server = Server::new(&["n1", "n2"]);
    for (name, team) in [("a", "x"), ("b", "x"), ("c", "y")] {
        server.namespace(name, team);
    }
    server.cluster_network("blue", "x", layer3("10.10.0.0/16", 24));
    server.settle();
    server
}

fn names(server: &Server) -> Vec<&str> {
    server.attachments.keys().map(String::as_str).collect()
}

#[test]
fn a_network_comes_to_its_namespaces_and_nodes() {
    let mut server = blue();
    let plan = server.settle();
    assert_eq!(names(&server), ["a/blue", "b/blue"]);
    let made = &server.attachments["a/blue"];
    let definition = &server.definitions[BLUE];
    assert_eq!(
        made["spec"]["config"],
        r#"{"cniVersion":"1.1.0","joinSubnet":"100.65.0.0/16,fd99::/64","name":"cluster_udn_blue","netAttachDefName":"a/blue","role":"primary","subnets":"10.10.0.0/16/24","topology":"layer3","type":"ovn-k8s-cni-overlay"}"#
    );
    assert_eq!(made["metadata"]["labels"], json!({ "k8s.ovn.org/user-defined-network": "" }));
    let annotations = json!({ ID: "1", "k8s.ovn.org/network-name": "cluster_udn_blue", KEYS: "[]" });
    assert_eq!(made["metadata"]["annotations"], annotations);
    assert_eq!(made["metadata"]["finalizers"], json!(["k8s.ovn.org/user-defined-network-protection"]));
    let owner = &made["metadata"]["ownerReferences"][0];
    assert_eq!(owner["uid"], definition["metadata"]["uid"]);
    assert_eq!((&owner["kind"], &owner["controller"]), (&json!("ClusterUserDefinedNetwork"), &json!(true)));
    assert_eq!(definition["metadata"]["finalizers"], made["metadata"]["finalizers"]);
    assert_eq!(definition["metadata"]["annotations"][ID], "1");
    assert_eq!(server.part("n1", "cluster_udn_blue"), "10.10.0.0/24");
    assert_eq!(server.part("n2", "cluster_udn_blue"), "10.10.1.0/24");
    assert_eq!(
        condition(&plan, BLUE, NETWORK_CREATED),
        "True NetworkAttachmentDefinitionCreated NetworkAttachmentDefinition has been created in following \
         namespaces: [a, b]"
    );
    assert!(
        condition(&plan, BLUE, NETWORK_ALLOCATION_SUCCEEDED).starts_with("True NetworkAllocationSucceeded")
    );
    assert!(condition(&plan, BLUE, TRANSPORT_ACCEPTED).starts_with("True GeneveTransportAccepted"));
    assert_eq!(told(&plan, BLUE).events, []);
}

#[test]
fn labels_and_annotations_are_copied_but_for_our_own() {
    let mut server = blue();
    let metadata = json!({
        "labels": { "tier": "gold" },
        "annotations": { "who": "me", "k8s.ovn.org.example/x": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
    });
    super::server::merge(server.definitions.get_mut(BLUE).unwrap(), &json!({ "metadata": metadata }));
    server.settle();
    let made = &server.attachments["a/blue"]["metadata"];
    assert_eq!(made["labels"]["tier"], "gold");
    let keys: Vec<&String> = made["annotations"].as_object().unwrap().keys().collect();
    assert_eq!(keys, [ID, "k8s.ovn.org/network-name", KEYS, "who"]);
    super::server::merge(
        server.definitions.get_mut(BLUE).unwrap(),
        &json!({ "metadata": { "labels": null, "annotations": { "who": null } } }),
    );
    server.edit("a/blue", &json!({ "metadata": { "annotations": { "k8s.ovn.org/theirs": "stays" } } }));
    server.settle();
    let made = &server.attachments["a/blue"]["metadata"];
    assert_eq!(made["labels"], json!({ "k8s.ovn.org/user-defined-network": "" }));
    assert_eq!(made["annotations"]["who"], Value::Null);
    assert_eq!(made["annotations"]["k8s.ovn.org/theirs"], "stays");
}

#[test]
fn namespaces_come_and_go_with_their_labels() {
    let mut server = blue();
    server.namespace("a", "y");
    server.namespace("c", "x");
    server.settle();
    assert_eq!(names(&server), ["b/blue", "c/blue"]);
    assert_eq!(server.annotation("c/blue", ID), "1", "one network, one number");
    server.namespaces.get_mut("c").unwrap()["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    server.settle();
    assert_eq!(names(&server), ["b/blue"]);
}

#[test]
fn what_a_pod_uses_stays() {
    let mut server = blue();
    server.pod("a", "web", "a/blue");
    server.namespace("a", "y");
    let plan = server.settle();
    assert_eq!(names(&server), ["a/blue", "b/blue"]);
    assert_eq!(
        condition(&plan, BLUE, NETWORK_CREATED),
        "False NetworkAttachmentDefinitionSyncError failed to delete NetworkAttachmentDefinition [a/blue]: network \
         in use by the following pods: [a/web]"
    );
    assert!(plan.waits_for_pods);
    server.delete(BLUE);
    server.settle();
    assert_eq!(names(&server), ["a/blue"]);
    assert_eq!(server.part("n1", "cluster_udn_blue"), "10.10.0.0/24", "the pod still runs");
    server.pod_with("a", "web", "not to be read");
    server.settle();
    assert_eq!(names(&server), ["a/blue"], "it may be in use");
    server.pods.clear();
    server.settle();
    assert_eq!(names(&server), [] as [&str; 0]);
    assert!(server.definitions.is_empty());
}

#[test]
fn a_network_that_goes_leaves_nothing() {
    let mut server = blue();
    server.delete(BLUE);
    let plan = super::super::plan(&server.world(), &server.settings, &server.known);
    assert_eq!(
        condition(&plan, BLUE, NETWORK_CREATED),
        "False NetworkAttachmentDefinitionDeleted NetworkAttachmentDefinition are being deleted: [a/blue b/blue]"
    );
    server.settle();
    assert!(server.attachments.is_empty() && server.definitions.is_empty());
    for node in ["n1", "n2"] {
        assert_eq!(server.part(node, "cluster_udn_blue"), "");
        assert!(!server.part(node, "default").is_empty());
    }
}

#[test]
fn what_others_do_to_attachments_is_undone() {
    let mut server = blue();
    let want = server.attachments.clone();
    for patch in [
        json!({ "spec": { "config": "{}" } }),
        json!({ "spec": { "config": "nonsense" } }),
        json!({ "metadata": { "labels": { "x": "y" } } }),
        json!({ "metadata": { "annotations": { ID: "7" } } }),
        json!({ "metadata": { "annotations": { ID: null, "x": "y" } } }),
        json!({ "metadata": { "finalizers": null } }),
    ] {
        server.edit("a/blue", &patch);
        server.known = super::Numbers::default();
        server.settle();
        assert_eq!(server.attachments, want, "{patch}");
    }
    for name in ["a/blue", "b/blue"] {
        server.delete(name);
    }
    server.settle();
    assert_eq!(names(&server), ["a/blue", "b/blue"]);
    assert_eq!(server.annotation("a/blue", ID), "1");
    server.pod("a", "web", "a/blue");
    server.delete("a/blue");
    server.settle();
    assert!(server.attachments["a/blue"]["metadata"]["deletionTimestamp"].is_string(), "a pod uses it");
}

#[test]
fn an_attachment_whose_network_is_gone_goes_too() {
    let mut server = blue();
    server.definitions.clear();
    server.pod("a", "web", "a/blue");
    server.settle();
    assert_eq!(names(&server), ["a/blue"]);
    assert_eq!(server.part("n1", "cluster_udn_blue"), "10.10.0.0/24");
    server.pods.clear();
    server.settle();
    assert!(server.attachments.is_empty());
    assert_eq!(server.part("n1", "cluster_udn_blue"), "");
}

#[test]
fn a_definition_made_anew_takes_over_what_the_old_one_left() {
    let mut server = blue();
    server.cluster_network("blue", "x", layer3("10.10.0.0/16", 24));
    server.settle();
    let owner = &server.attachments["a/blue"]["metadata"]["ownerReferences"];
    assert_eq!(owner.as_array().unwrap().len(), 1);
    assert_eq!(owner[0]["uid"], server.definitions[BLUE]["metadata"]["uid"]);
    assert_eq!(server.annotation("a/blue", ID), "1");
}

#[test]
fn numbers_are_the_lowest_free_and_stay() {
    let mut server = blue();
    for (name, team, cidr) in [("amber", "p", "10.20.0.0/16"), ("coral", "q", "10.21.0.0/16")] {
        server.namespace(name, team);
        server.cluster_network(name, team, layer3(cidr, 24));
    }
    server.settle();
    let numbers =
        |server: &Server| ["a/blue", "amber/amber", "coral/coral"].map(|name| server.annotation(name, ID));
    assert_eq!(numbers(&server), ["1", "2", "3"]);
    server.delete("ClusterUserDefinedNetwork amber");
    server.settle();
    server.cluster_network("amber", "p", layer3("10.20.0.0/16", 24));
    server.network("c", "own", layer3("10.22.0.0/16", 24));
    server.known = super::Numbers::default();
    server.settle();
    assert_eq!(server.annotation("c/own", ID), "2", "the first by name");
    assert_eq!(numbers(&server), ["1", "4", "3"]);
}

#[test]
fn of_two_networks_with_one_number_the_better_founded_keeps_it() {
    let mut server = blue();
    server.namespace("d", "z");
    server.cluster_network("amber", "z", layer3("10.20.0.0/16", 24));
    let copied = json!({ "metadata": { "annotations": { ID: "1" } } });
    super::server::merge(server.definitions.get_mut("ClusterUserDefinedNetwork amber").unwrap(), &copied);
    server.known = super::Numbers::default();
    server.settle();
    assert_eq!((server.annotation("a/blue", ID), server.annotation("d/amber", ID)), ("1".into(), "2".into()));
}

#[test]
fn a_node_is_written_once_for_all_networks() {
    let mut server = blue();
    for name in ["d", "e"] {
        server.namespace(name, name);
        server.cluster_network(name, name, layer3("10.20.0.0/16", 24));
    }
    server.delete(BLUE);
    let world = server.world();
    let plan = super::super::plan(&world, &server.settings, &server.known);
    let given = crate::cluster::nodes::plan(&world, &server.settings, Some(&plan.parts)).given;
    let text = given["n1"].annotations["k8s.ovn.org/node-subnets"].clone().unwrap();
    assert_eq!(
        text,
        r#"{"cluster_udn_blue":["10.10.0.0/24"],"cluster_udn_d":["10.20.0.0/24"],"cluster_udn_e":["10.20.0.0/24"],"default":["10.128.0.0/23"]}"#
    );
    assert_eq!(given["n1"].annotations.len(), 1);
}

#[test]
fn one_switch_for_all_nodes_has_tunnel_keys_and_ranges_between_its_routers() {
    let mut server = blue();
    server.namespace("d", "z");
    server.cluster_network("flat", "z", layer2("100.88.5.0/24"));
    let plan = server.settle();
    assert_eq!(server.annotation("d/flat", KEYS), "[16711685,16715779]");
    let config = server.attachments["d/flat"]["spec"]["config"].as_str().unwrap();
    assert!(config.contains(r#""transitSubnet":"100.89.0.0/16""#), "{config}");
    assert_eq!(
        condition(&plan, "ClusterUserDefinedNetwork flat", TRANSPORT_ACCEPTED),
        "False NetworkNotSupported topology Layer2 is not supported yet: nodes do not carry this network, and its \
         pods do not start"
    );
    assert_eq!(server.part("n1", "cluster_udn_flat"), "");
}

#[test]
fn a_network_of_one_namespace_is_in_it() {
    let mut server = blue();
    server.network("c", "own", layer3("10.30.0.0/16", 24));
    let plan = server.settle();
    assert_eq!(names(&server), ["a/blue", "b/blue", "c/own"]);
    assert_eq!(server.part("n2", "c_own"), "10.30.1.0/24");
    let object = "UserDefinedNetwork c/own";
    assert_eq!(
        condition(&plan, object, NETWORK_CREATED),
        "True NetworkAttachmentDefinitionCreated NetworkAttachmentDefinition has been created"
    );
    server.delete(object);
    server.settle();
    assert_eq!(names(&server), ["a/blue", "b/blue"]);
}
