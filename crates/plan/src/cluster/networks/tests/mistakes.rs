//! What cannot be is said, and leaves the rest alone.

use serde_json::{Value, json};
use underlay_api::network::conditions::{NETWORK_ALLOCATION_SUCCEEDED, NETWORK_CREATED, TRANSPORT_ACCEPTED};

use super::server::{Server, merge};
use super::{condition, layer2, layer3, told};
use crate::cluster::fabric::MARK;

const BLUE: &str = "ClusterUserDefinedNetwork blue";

fn server(network: Value) -> Server {
    let mut server = Server::new(&["n1", "n2"]);
    server.namespace("a", "x");
    server.namespace("b", "y");
    server.cluster_network("blue", "x", network);
    server.cluster_network("well", "y", layer3("10.20.0.0/16", 24));
    server
}

#[test]
fn a_network_that_cannot_be_is_told_with_its_field_and_others_work() {
    let overlap =
        "invalid subnet configuration: pod or join subnet overlaps with already configured internal subnets:";
    let mut with_join = layer3("10.10.0.0/16", 24);
    with_join["layer3"]["joinSubnets"] = json!(["172.16.1.0/28"]);
    let mut own_join = layer3("10.10.0.0/16", 24);
    own_join["layer3"]["joinSubnets"] = json!(["10.10.9.0/24"]);
    for (network, want) in [
        (
            layer3("10.10.0.0/33", 24),
            "spec.network.layer3.subnets[0].cidr: CIDR is invalid".to_owned(),
        ),
        (
            layer3("10.129.0.0/16", 24),
            format!(r#"{overlap} user defined subnet "10.129.0.0/16" overlaps cluster subnet "10.128.0.0/14" (spec.network.layer3.subnets[0])"#),
        ),
        (
            layer3("100.64.4.0/22", 24),
            format!(r#"{overlap} user defined subnet "100.64.4.0/22" overlaps built-in join subnet "100.64.0.0/16" (spec.network.layer3.subnets[0])"#),
        ),
        (
            layer3("100.88.0.0/16", 24),
            format!(r#"{overlap} user defined subnet "100.88.0.0/16" overlaps transit switch subnet "100.88.0.0/16" (spec.network.layer3.subnets[0])"#),
        ),
        (
            layer3("169.254.0.0/16", 24),
            format!(r#"{overlap} user defined subnet "169.254.0.0/16" overlaps masquerade subnet "169.254.0.0/17" (spec.network.layer3.subnets[0])"#),
        ),
        (
            layer2("172.16.0.0/12"),
            format!(r#"{overlap} user defined subnet "172.16.0.0/12" overlaps service subnet "172.16.1.0/24" (spec.network.layer2.subnets[0])"#),
        ),
        (
            with_join,
            format!(r#"{overlap} user defined join subnet "172.16.1.0/28" overlaps service subnet "172.16.1.0/24" (spec.network.layer3.joinSubnets[0])"#),
        ),
        (
            own_join,
            format!(r#"{overlap} user defined subnet "10.10.0.0/16" overlaps user defined join subnet "10.10.9.0/24" (spec.network.layer3.subnets[0])"#),
        ),
        (
            layer3("fd10::/48", 64),
            "invalid subnet configuration: error while parsing subnets: network cluster_udn_blue is attempting to use \
             ipv6 subnets but the cluster does not support ipv6 (spec.network.layer3.subnets)"
                .to_owned(),
        ),
    ] {
        let mut server = server(network);
        let plan = server.settle();
        let prefix = "failed to generate NetworkAttachmentDefinition: failed to render CNI network config:";
        let want = format!("False NetworkAttachmentDefinitionSyncError {prefix} {want}");
        assert_eq!(condition(&plan, BLUE, NETWORK_CREATED), want);
        assert_eq!(told(&plan, BLUE).events.len(), 1);
        assert_eq!(server.attachments.keys().collect::<Vec<_>>(), ["b/well"]);
        assert_eq!(server.part("n1", "cluster_udn_well"), "10.20.0.0/24");
    }
}

#[test]
fn what_was_made_stays_while_the_definition_is_wrong() {
    let mut server = server(layer3("10.10.0.0/16", 24));
    server.settle();
    let before = (server.attachments.clone(), server.nodes.clone());
    for wrong in [
        json!({ "network": { "layer3": { "subnets": [{ "cidr": "10.128.0.0/16" }] } } }),
        json!({ "namespaceSelector": { "matchExpressions": [{ "key": "x", "operator": "Is" }] } }),
    ] {
        let mut server = server.clone();
        merge(&mut server.definitions.get_mut(BLUE).unwrap()["spec"], &wrong);
        let plan = server.settle();
        assert!(condition(&plan, BLUE, NETWORK_CREATED).starts_with("False"), "{wrong}");
        assert_eq!((server.attachments, server.nodes), before, "{wrong}");
    }
}

#[test]
fn a_namespace_needs_the_label_for_a_primary_network() {
    let mut server = server(layer3("10.10.0.0/16", 24));
    server.namespace("c", "x");
    merge(server.namespaces.get_mut("c").unwrap(), &json!({ "metadata": { "labels": null } }));
    merge(server.namespaces.get_mut("c").unwrap(), &json!({ "metadata": { "labels": { "team": "x" } } }));
    let plan = server.settle();
    assert_eq!(
        condition(&plan, BLUE, NETWORK_CREATED),
        "False NetworkAttachmentDefinitionSyncError invalid primary network state for namespace \"c\": a valid primary \
         user defined network or network attachment definition custom resource, and required namespace label \
         \"k8s.ovn.org/primary-user-defined-network\" must both be present"
    );
    assert_eq!(
        server.attachments.keys().collect::<Vec<_>>(),
        ["a/blue", "b/well"],
        "other namespaces have it"
    );
    let mut secondary = layer3("10.40.0.0/16", 24);
    secondary["layer3"]["role"] = json!("Secondary");
    server.network("c", "more", secondary);
    let plan = server.settle();
    assert!(server.attachments.contains_key("c/more"), "no label is needed");
    assert!(
        condition(&plan, "UserDefinedNetwork c/more", TRANSPORT_ACCEPTED)
            .starts_with("False NetworkNotSupported role Secondary is not supported yet")
    );
    assert_eq!(server.part("n1", "c_more"), "10.40.0.0/24");
}

#[test]
fn a_second_primary_network_is_refused() {
    let mut server = server(layer3("10.10.0.0/16", 24));
    server.settle();
    server.cluster_network("another", "x", layer3("10.30.0.0/16", 24));
    server.network("a", "third", layer3("10.31.0.0/16", 24));
    let plan = server.settle();
    let want = r#"primary network already exist in namespace "a": "blue""#;
    assert_eq!(
        condition(&plan, "ClusterUserDefinedNetwork another", NETWORK_CREATED),
        format!("False NetworkAttachmentDefinitionSyncError {want}"),
        "who was there first keeps it, whatever the names"
    );
    assert_eq!(
        condition(&plan, "UserDefinedNetwork a/third", NETWORK_CREATED),
        format!("False SyncError {want}")
    );
    assert_eq!(server.attachments.keys().collect::<Vec<_>>(), ["a/blue", "b/well"]);
    server.delete(BLUE);
    let plan = server.settle();
    assert!(server.attachments.contains_key("a/third") != server.attachments.contains_key("a/another"));
    assert!(
        condition(&plan, "UserDefinedNetwork a/third", NETWORK_CREATED).starts_with("True"),
        "first by name"
    );
}

#[test]
fn somebody_elses_attachment_is_left_alone() {
    let mut server = server(layer3("10.10.0.0/16", 24));
    for config in
        [r#"{"type":"macvlan"}"#, r#"{"type":"ovn-k8s-cni-overlay","name":"x","topology":"layer3"}"#, "?"]
    {
        let mut server = server.clone();
        server.attachment("a", "blue", config);
        let before = server.attachments["a/blue"].clone();
        let plan = server.settle();
        assert_eq!(
            condition(&plan, BLUE, NETWORK_CREATED),
            "False NetworkAttachmentDefinitionSyncError foreign NetworkAttachmentDefinition with the desired name \
             already exist [a/blue]"
        );
        assert_eq!(server.attachments["a/blue"], before);
    }
    // Two of ours that want one name: the first keeps it.
    server.cluster_network(
        "well",
        "x",
        json!({ "topology": "Localnet", "localnet": {
        "role": "Secondary", "physicalNetworkName": "p", "ipam": { "mode": "Disabled" } } }),
    );
    server.network("a", "well", layer3("10.20.0.0/16", 24));
    let plan = server.settle();
    let said = ["UserDefinedNetwork a/well", "ClusterUserDefinedNetwork well"]
        .map(|object| condition(&plan, object, NETWORK_CREATED));
    assert_eq!(said.iter().filter(|said| said.starts_with("True")).count(), 1, "{said:?}");
}

#[test]
fn nodes_that_go_without_are_named_and_a_second_range_helps() {
    let mut server = Server::new(&["n1", "n2", "n3", "n4"]);
    server.namespace("a", "x");
    server.cluster_network("blue", "x", layer3("10.10.0.0/23", 24));
    let plan = server.settle();
    assert_eq!(
        condition(&plan, BLUE, NETWORK_ALLOCATION_SUCCEEDED),
        "False InternalError Network allocation failed for at least one node: n3, n4, check UDN events for more info."
    );
    assert_eq!(
        told(&plan, BLUE).events,
        ["n3", "n4"].map(|node| (
            "NetworkAllocationFailed",
            format!(
                "Error occurred for node {node}: no IPv4 subnet is left: add one to the network's subnets"
            )
        ))
    );
    let more = json!({ "spec": { "network": { "layer3": { "subnets": [
        { "cidr": "10.10.0.0/23", "hostSubnet": 24 }, { "cidr": "10.50.0.0/16", "hostSubnet": 24 } ] } } } });
    merge(server.definitions.get_mut(BLUE).unwrap(), &more);
    let plan = server.settle();
    let parts = ["n1", "n2", "n3", "n4"].map(|node| server.part(node, "cluster_udn_blue"));
    assert_eq!(parts, ["10.10.0.0/24", "10.10.1.0/24", "10.50.0.0/24", "10.50.1.0/24"]);
    assert!(condition(&plan, BLUE, NETWORK_ALLOCATION_SUCCEEDED).starts_with("True"));
}

#[test]
fn both_families_or_none() {
    let mut server = server(Value::Null);
    server.settings.cluster_subnets.push(super::server::range("fd01::/48", 64));
    let subnets = json!([{ "cidr": "10.10.0.0/16" }, { "cidr": "fd10::/63" }]);
    let network = json!({ "topology": "Layer3", "layer3": { "role": "Primary", "subnets": subnets } });
    server.cluster_network("blue", "x", network);
    let node = server.nodes["n1"].clone();
    server.nodes.insert("n3".to_owned(), node);
    server.nodes.get_mut("n3").unwrap()["metadata"]["name"] = "n3".into();
    server.settle();
    let parts = ["n1", "n2", "n3"].map(|node| server.part(node, "cluster_udn_blue"));
    assert_eq!(parts, ["10.10.0.0/24,fd10::/64", "10.10.1.0/24,fd10:0:0:1::/64", ""]);
}

#[test]
fn transports_that_nodes_do_not_have_are_told() {
    let mut network = layer3("10.10.0.0/16", 24);
    network["transport"] = json!("EVPN");
    network["evpn"] = json!({ "vtep": "v", "ipVRF": { "vni": 7 } });
    let mut server = server(network);
    let plan = server.settle();
    let said = condition(&plan, BLUE, TRANSPORT_ACCEPTED);
    assert!(said.starts_with("False TransportNotSupported transport EVPN is not supported yet"), "{said}");
    assert!(condition(&plan, BLUE, NETWORK_CREATED).starts_with("True"));
}

#[test]
fn what_asks_for_managed_routing_is_marked_and_nothing_else_is() {
    let mut network = layer3("10.10.0.0/16", 24);
    network["transport"] = json!("NoOverlay");
    network["noOverlay"] = json!({ "outboundSNAT": "Enabled", "routing": "Managed" });
    let mut server = server(network);
    server.settings.managed.topology = Some(underlay_world::settings::Topology::FullMesh);
    let mark = |server: &Server| {
        let definition = server.definitions[BLUE]["metadata"]["labels"][MARK].clone();
        assert_eq!(server.attachments["a/blue"]["metadata"]["labels"][MARK], definition);
        definition
    };
    let plan = server.settle();
    let first = mark(&server);
    assert!(first.is_string(), "{first}");
    assert!(told(&plan, BLUE).routed && condition(&plan, BLUE, TRANSPORT_ACCEPTED).is_empty());
    let wrong = json!({ "metadata": { "labels": { MARK: "another" } } });
    merge(server.definitions.get_mut(BLUE).unwrap(), &wrong);
    server.settle();
    assert_eq!(mark(&server), first, "it is put right");
    server.settings.managed.topology = None;
    server.settle();
    assert_eq!(mark(&server), Value::Null, "it goes with the mesh");
}

#[test]
fn there_are_only_so_many_numbers() {
    let mut server = Server::new(&[]);
    for number in 0..4096 {
        server.cluster_network(&format!("n{number:04}"), "none", layer3("10.10.0.0/16", 24));
    }
    let plan = super::super::plan(&server.world(), &server.settings, &server.known);
    assert_eq!(told(&plan, "ClusterUserDefinedNetwork n4094").number, Some(4095));
    assert_eq!(
        condition(&plan, "ClusterUserDefinedNetwork n4095", NETWORK_CREATED),
        "False NetworkAttachmentDefinitionSyncError all 4095 network numbers are taken"
    );
}
