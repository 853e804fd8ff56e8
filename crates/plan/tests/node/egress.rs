//! Egress IPs on a node: its own pods go to who holds their address, and those of others leave here if it does.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use underlay_api::EgressIP;
use underlay_desired::ovn::{Column, Row, Rows, Table};
use underlay_plan::node::{Zone, egress, plan};
use underlay_world::settings::{NoOverlay, Routing};
use underlay_world::{Key, Kind, Namespace, Pod, Settings, World};

use super::networks::{local_with_patches, two_networks};
use super::scene::{advertise, local, object, settings, zone};

/// The address of tests, and who holds it.
fn assign(world: &mut World, name: &str, items: &[(&str, &str)], pods: &Value) {
    let items: Vec<Value> =
        items.iter().map(|(address, node)| json!({ "egressIP": address, "node": node })).collect();
    let record: EgressIP = object(json!({
        "metadata": { "name": name },
        "spec": {
            "egressIPs": [], "namespaceSelector": { "matchLabels": { "team": "shop" } }, "podSelector": pods,
        },
        "status": { "items": items },
    }));
    world.egress_ips.insert(Key::cluster(name), record.read().expect("always kept"));
}

/// The world with two networks, whose namespaces are selected, and a pod of each on node `two`.
fn scene() -> World {
    let mut world = two_networks();
    for name in ["shop", "red", "blue"] {
        let labels = [("team".to_owned(), "shop".to_owned())].into();
        world.namespaces.insert(Key::cluster(name), Arc::new(Namespace { labels, ending: false }));
        let networks = if name == "shop" {
            json!({ "default": { "ip_addresses": ["10.244.3.7/24"], "mac_address": "0a:58:0a:f4:03:07", "role": "primary" } })
        } else {
            json!({
                "default": {
                    "ip_addresses": ["10.244.3.8/24"], "mac_address": "0a:58:0a:f4:03:08",
                    "role": "infrastructure-locked",
                },
                format!("{name}/net"): {
                    "ip_addresses": ["10.10.3.7/24"], "mac_address": "0a:58:0a:0a:03:07", "role": "primary",
                },
            })
        };
        let pod = Pod::read(&object(json!({
            "metadata": {
                "namespace": name, "name": "far", "uid": "uid-far", "labels": { "app": "web" },
                "annotations": { "k8s.ovn.org/pod-networks": networks.to_string() },
            },
            "spec": { "nodeName": "two", "containers": [] },
        })));
        world.elsewhere.entry(name.to_owned()).or_default().insert(pod.key.clone(), Arc::new(pod));
    }
    world
}

fn texts(row: &Row, column: &str) -> BTreeSet<String> {
    match row.columns.get(column) {
        Some(Column::Texts(texts)) => texts.clone(),
        Some(Column::Text(text)) => [text.clone()].into(),
        other => panic!("{column} is {other:?}"),
    }
}

/// The rows that an egress IP made.
fn made<'a>(rows: &'a Rows, table: Table, name: &'a str) -> impl Iterator<Item = &'a Row> {
    let of_it =
        move |row: &&Row| row.why.objects().any(|object| object.kind == "EgressIP" && object.name == name);
    rows.iter().filter(move |row| row.id.table == table).filter(of_it)
}

/// Addresses in the sets of an egress IP, by the end of their names.
fn addresses(zone: &Zone, name: &str, set: &str) -> BTreeSet<String> {
    let sets = made(&zone.northbound, Table::AddressSet, name).filter(|row| row.id.id.contains(set));
    sets.flat_map(|row| texts(row, "addresses")).collect()
}

fn set<const N: usize>(items: [&str; N]) -> BTreeSet<String> {
    items.map(str::to_owned).into()
}

#[test]
fn own_pods_go_to_the_holder_wherever_it_is() {
    let mut world = scene();
    assign(
        &mut world,
        "e",
        &[("172.30.0.100", "two"), ("172.30.0.101", "one"), ("fd00:172:30::100", "two")],
        &json!({}),
    );
    let zone = zone(&world, &local());
    let hops = |router: &str, family: &str| -> BTreeSet<String> {
        let id = format!("{router}/egress/e-local/{family}");
        let mut policies =
            made(&zone.northbound, Table::LogicalRouterPolicy, "e").filter(|row| row.id.id == id);
        texts(policies.next().expect("a policy"), "nexthops")
    };
    assert_eq!(hops("ovn_cluster_router", "v4"), set(["100.64.0.2", "100.88.0.3"]));
    assert_eq!(hops("ovn_cluster_router", "v6"), set(["fd97::3"]));
    assert_eq!(hops("red_net_ovn_cluster_router", "v4"), set(["100.65.0.2", "100.88.0.3"]));
    assert_eq!(
        addresses(&zone, "e", "default-network-controller:EgressIP:e-local:v4"),
        set(["10.244.2.5", "10.244.2.6"])
    );
    assert_eq!(addresses(&zone, "e", "red_net-network-controller:EgressIP:e-local:v4"), set(["10.10.2.3"]));
}

#[test]
fn who_holds_an_address_gives_it_to_the_pods_of_all_nodes() {
    let mut world = scene();
    assign(&mut world, "e", &[("172.30.0.100", "one")], &json!({}));
    let zone = zone(&world, &local_with_patches());
    assert_eq!(addresses(&zone, "e", "default-network-controller:EgressIP:e-remote:v4"), set(["10.244.3.7"]));
    assert_eq!(addresses(&zone, "e", "red_net-network-controller:EgressIP:e-remote:v4"), set(["10.10.3.7"]));
    let nats: BTreeSet<String> = made(&zone.northbound, Table::Nat, "e")
        .map(|row| format!("{}: {:?}", row.id.id, texts(row, "external_ip")))
        .collect();
    let nat = |router: &str, net: &str| format!(r#"{router}/snat/{net}/egress/e: {{"172.30.0.100"}}"#);
    let want = [
        nat("GR_one", "10.244.0.0/16"),
        nat("GR_blue_net_one", "10.10.0.0/16"),
        nat("GR_red_net_one", "10.10.0.0/16"),
    ];
    assert_eq!(nats, want.into());
    let route = "ovn_cluster_router/from/10.244.0.0/16/100.64.0.2";
    assert!(zone.northbound.iter().any(|row| row.id.id == route), "others' packets are let through");

    // Outside, each network's connections are known by its mark, and one router answers for the address.
    let flows: Vec<String> = zone.flows["br-ex"]
        .keys()
        .filter(|flow| flow.matches.contains("172.30.0.100"))
        .map(|flow| format!("{} {} -> {}", flow.priority, flow.matches, flow.actions))
        .collect();
    let out = |port: u8, mark: &str| {
        let commit = format!("ct(commit,zone=64000,nat(src=172.30.0.100),exec(set_field:{mark}->ct_mark))");
        format!("105 in_port={port},dl_src=02:00:00:00:00:12,ip,nw_src=172.30.0.100 -> {commit},output:1")
    };
    for flow in [
        "120 in_port=1,arp,arp_op=1,arp_tpa=172.30.0.100 -> output:2".to_owned(),
        "20 ip,nw_dst=172.30.0.100 -> drop".to_owned(),
        out(2, "0x1"),
        out(7, "0x4"),
        out(8, "0x5"),
    ] {
        assert!(flows.contains(&flow), "{flow} in {flows:#?}");
    }
    assert_eq!(flows.len(), 5, "{flows:#?}");
}

#[test]
fn advertised_pods_answer_on_the_way_that_the_question_came() {
    let mut world = scene();
    assign(&mut world, "e", &[("172.30.0.100", "two")], &json!({}));
    assert_eq!(
        made(&zone(&world, &local()).northbound, Table::Qos, "e").count(),
        0,
        "nobody comes from outside"
    );
    advertise(&mut world, "one", "10.244.2.0/24");
    let zone = zone(&world, &local());
    let mark = made(&zone.northbound, Table::Qos, "e").next().expect("a rule of the switch");
    assert_eq!(mark.columns["action"], Column::Numbers([("mark".to_owned(), 42)].into()));
    let passes = zone.northbound.iter().find(|row| row.id.id == "ovn_cluster_router/answers");
    assert_eq!(texts(passes.expect("a policy"), "match"), set(["pkt.mark == 42"]));
}

/// The rows that a plan refers to, by the row and column that do.
fn references(rows: &Rows) -> BTreeSet<(String, &'static str)> {
    let sets = |row: &Row| {
        let sets = row.columns.iter().filter(|(_, column)| matches!(column, Column::Rows(_)));
        sets.map(|(name, _)| (row.id.id.clone(), *name)).collect::<Vec<_>>()
    };
    rows.iter().flat_map(sets).collect()
}

#[test]
fn what_referred_to_something_says_when_it_does_no_longer() {
    let mut world = scene();
    advertise(&mut world, "one", "10.244.2.0/24");
    let without = zone(&world, &local());
    assign(&mut world, "e", &[("172.30.0.100", "one")], &json!({}));
    let with = zone(&world, &local());
    let lost: Vec<_> = references(&with.northbound)
        .difference(&references(&without.northbound))
        .filter(|(id, _)| without.northbound.iter().any(|row| row.id.id == *id))
        .cloned()
        .collect();
    assert_eq!(lost, [], "the database keeps what somebody refers to");
}

#[test]
fn neighbours_are_told_of_addresses_they_can_have_known_elsewhere() {
    let told = |address: &str| {
        let mut world = scene();
        assign(&mut world, "e", &[(address, "one")], &json!({}));
        let zone = zone(&world, &local());
        let port = zone.northbound.iter().find(|row| row.id.id == "etor-GR_one").expect("a port").clone();
        match &port.columns["options"] {
            Column::Map(options) => options.get("nat-addresses").cloned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(told("172.30.0.100").as_deref(), Some("02:00:00:00:00:12 172.30.0.100"));
    assert_eq!(told("192.0.2.7"), None, "only BGP leads there");
    let mut world = scene();
    assign(&mut world, "e", &[("fd00:172:30::100", "one")], &json!({}));
    let announced: Vec<String> =
        zone(&world, &local()).announced.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(announced, ["fd00:172:30::100"], "OVN does not tell of this family");
}

#[test]
fn only_pods_that_are_selected_are_served_and_by_one_egress_ip() {
    let mut world = scene();
    let mut labelled = Pod::clone(&world.pods[&Key::new("shop", "a")]);
    labelled.labels.insert("app".to_owned(), "web".to_owned());
    world.pods.insert(labelled.key.clone(), Arc::new(labelled));
    assign(&mut world, "a", &[("172.30.0.100", "one")], &json!({ "matchLabels": { "app": "web" } }));
    assign(&mut world, "b", &[("172.30.0.101", "two")], &json!({}));
    let zone = zone(&world, &local());
    assert_eq!(addresses(&zone, "a", "default-network-controller:EgressIP:a-local:v4"), set(["10.244.2.5"]));
    assert_eq!(addresses(&zone, "b", "default-network-controller:EgressIP:b-local:v4"), set(["10.244.2.6"]));
    assert_eq!(made(&zone.northbound, Table::Nat, "b").count(), 0, "another node holds it");
    let namespaces: Vec<String> = egress::namespaces("one", &world).into_iter().collect();
    assert_eq!(namespaces, ["blue", "red", "shop"]);
    assert_eq!(egress::namespaces("three", &world), BTreeSet::new());
}

#[test]
fn without_an_address_or_an_overlay_all_is_as_without_egress_ips() {
    let (world, mut with) = (scene(), scene());
    assign(&mut with, "e", &[], &json!({}));
    assert_eq!(zone(&world, &local()), zone(&with, &local()));
    let no_overlay = Some(NoOverlay { outbound_snat: true, routing: Routing::Managed });
    let settings = Settings { no_overlay, ..settings() };
    assign(&mut with, "e", &[("172.30.0.100", "one")], &json!({}));
    let zone = plan("one", &with, &settings, &local()).zone.expect("nothing is missing");
    let of_default =
        |row: &&Row| row.id.id.starts_with("GR_one/") || row.id.id.starts_with("ovn_cluster_router/");
    assert_eq!(made(&zone.northbound, Table::Nat, "e").filter(of_default).count(), 0);
    assert_eq!(made(&zone.northbound, Table::LogicalRouterPolicy, "e").filter(of_default).count(), 0);
}
