//! A node's plan: whatever the order of what is known, complete, and with a reason for every item.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1;
use serde_json::json;
use underlay_api::FRRConfiguration;
use underlay_desired::ovn::{Column, Row, RowId, Rows, Table};
use underlay_net::alloc::SubnetRange;
use underlay_plan::node::site::Waiting;
use underlay_plan::node::{NodePlan, Zone, plan};
use underlay_world::local::{Assigned, Bridge, LearnedRoute};
use underlay_world::{EndpointSlice, Key, Kind, Local, Node, Pod, Service, Settings, World};

fn object<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn settings() -> Settings {
    let range = |net: &str, length| SubnetRange::new(net.parse().expect("a range"), length).expect("a range");
    Settings {
        cluster_subnets: vec![range("10.244.0.0/16", 24), range("fd00:10:244::/48", 64)],
        service_subnets: vec![
            "10.96.0.0/16".parse().expect("an address"),
            "fd00:10:96::/112".parse().expect("an address"),
        ],
        ..Settings::default()
    }
}

fn node(name: &str, id: u8) -> Node {
    let subnets = format!(r#"{{"default":["10.244.{id}.0/24","fd00:10:244:{id}::/64"]}}"#);
    let transit = format!(r#"{{"ipv4":"100.88.0.{id}/16","ipv6":"fd97::{id}/64"}}"#);
    let hosts = format!(r#"["172.30.0.1{id}/24","fd00:172:30::1{id}/64"]"#);
    Node::read(&object(json!({
        "metadata": {
            "name": name, "uid": format!("uid-{name}"), "labels": { "kubernetes.io/hostname": name },
            "annotations": {
                "k8s.ovn.org/node-id": id.to_string(),
                "k8s.ovn.org/node-subnets": subnets,
                "k8s.ovn.org/node-transit-switch-port-ifaddr": transit,
                "k8s.ovn.org/node-chassis-id": name,
                "k8s.ovn.org/node-encap-ips": format!(r#"["172.30.0.1{id}"]"#),
                "k8s.ovn.org/host-cidrs": hosts,
            },
        },
    })))
}

fn pod(name: &str) -> Pod {
    Pod::read(&object::<v1::Pod>(json!({
        "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-{name}") },
        "spec": { "nodeName": "one", "containers": [] },
    })))
}

fn world() -> World {
    let mut world = World::default();
    for node in [node("one", 2), node("two", 3)] {
        world.nodes.insert(Key::cluster(&node.name), Arc::new(node));
    }
    for pod in [pod("a"), pod("b")] {
        world.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    let service = Service::read(&object(json!({
        "metadata": { "namespace": "default", "name": "kubernetes" },
        "spec": { "clusterIPs": ["10.96.0.1"], "ports": [{ "name": "https", "port": 443 }] },
    })));
    let service = service.expect("a service with an address");
    world.services.insert(service.key.clone(), Arc::new(service));
    let slice = EndpointSlice::read(&object(json!({
        "metadata": {
            "namespace": "default", "name": "kubernetes",
            "labels": { "kubernetes.io/service-name": "kubernetes" },
        },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["172.30.0.12"] }, { "addresses": ["172.30.0.13"] }],
        "ports": [{ "name": "https", "port": 6443 }],
    })));
    world.slices.insert(Key::new("default", "kubernetes"), Arc::new(slice.expect("a slice of a service")));
    world
}

fn local() -> Local {
    let addresses = ["172.30.0.12/24", "fd00:172:30::12/64"].map(|text| text.parse().expect("an address"));
    Local {
        chassis: "one".to_owned(),
        encap: vec!["172.30.0.12".parse().expect("an address")],
        bridge: Some(Bridge {
            name: "br-ex".to_owned(),
            mac: "02:00:00:00:00:12".parse().expect("an address"),
            addresses: addresses.to_vec(),
            mtu: 1500,
            uplink: Some(1),
            patch: Some(2),
            checks_size: false,
        }),
        addresses: addresses.into_iter().collect(),
        next_hops: vec![
            "172.30.0.1".parse().expect("an address"),
            "fd00:172:30::1".parse().expect("an address"),
        ],
        ..Local::default()
    }
}

fn zone(world: &World, local: &Local) -> Zone {
    plan("one", world, &settings(), local).zone.expect("nothing is missing")
}

fn row<'a>(rows: &'a Rows, table: Table, id: &str) -> &'a Row {
    rows.get(&RowId::new(table, id)).unwrap_or_else(|| panic!("no {id}"))
}

fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    match &row.columns[column] {
        Column::Text(text) => text,
        other => panic!("{column} is {other:?}"),
    }
}

fn generated(node: &str, prefix: &str) -> FRRConfiguration {
    let configuration: FRRConfiguration = object(json!({
        "metadata": {
            "namespace": "frr", "name": "ovnk-generated-1",
            "labels": { "k8s.ovn.org/route-advertisements": "default" },
        },
        "spec": {
            "nodeSelector": { "matchLabels": { "kubernetes.io/hostname": node } },
            "bgp": { "routers": [{ "asn": 64512, "prefixes": [prefix] }] },
        },
    }));
    configuration
}

fn advertise(world: &mut World, node: &str, prefix: &str) {
    let record = generated(node, prefix).read().expect("always kept");
    world.frr_configurations.insert(Key::new("frr", "ovnk-generated-1"), record);
}

#[test]
fn a_node_says_what_it_waits_for() {
    let (settings, full) = (settings(), world());
    let waiting = |world: &World, local: &Local| plan("one", world, &settings, local).waiting;
    assert_eq!(waiting(&World::default(), &local()), Some(Waiting::Node("one".to_owned())));
    let mut bare = full.clone();
    bare.nodes.insert(Key::cluster("one"), Arc::new(Node { name: "one".to_owned(), ..Node::default() }));
    assert_eq!(waiting(&bare, &local()), Some(Waiting::Id("one".to_owned())));
    assert_eq!(waiting(&full, &Local { bridge: None, ..local() }), Some(Waiting::Bridge));
    assert_eq!(waiting(&full, &Local { chassis: String::new(), ..local() }), Some(Waiting::Chassis));
    let mut narrow = local();
    narrow.bridge.as_mut().unwrap().mtu = 1450;
    let text = waiting(&full, &narrow).unwrap().to_string();
    assert!(text.contains("1450") && text.contains("1458") && text.contains("mtu 1392"), "{text}");
    assert_eq!(waiting(&full, &local()), None);
}

#[test]
fn pods_get_addresses_that_are_kept_recorded_and_never_given_twice() {
    let (mut world, mut local) = (world(), local());
    let first = zone(&world, &local).pods;
    let a = &first.pods[&Key::new("shop", "a")];
    assert_eq!(
        a.network.addresses,
        ["10.244.2.3/24".parse().expect("an address"), "fd00:10:244:2::3/64".parse().expect("an address")]
    );
    assert_eq!(a.network.mac.to_string(), "0a:58:0a:f4:02:03");
    assert!(a.record.as_ref().is_some_and(|record| record.contains("10.244.2.3/24")));

    // What was given stays given, before it is recorded and after, also when somebody edits the record.
    let assigned = |uid: &str, v4: &str| Assigned {
        uid: uid.to_owned(),
        addresses: vec![v4.parse().expect("an address"), "fd00:10:244:2::9".parse().expect("an address")],
    };
    local.assigned.insert(Key::new("shop", "b"), assigned("uid-b", "10.244.2.9"));
    let mut edited = pod("b");
    edited.networks =
        Some(underlay_api::annotations::PodNetworks([("default".to_owned(), a.network.clone())].into()));
    world.pods.insert(edited.key.clone(), Arc::new(edited));
    let second = zone(&world, &local).pods;
    let b = &second.pods[&Key::new("shop", "b")];
    assert_eq!(b.network.addresses[0].to_string(), "10.244.2.9/24");
    assert!(b.record.is_some(), "the edited record is repaired");

    // Another pod of the same name is another pod.
    local.assigned.insert(Key::new("shop", "b"), assigned("uid-older", "10.244.2.9"));
    let third = zone(&world, &local).pods;
    let all: Vec<String> = third.pods.values().map(|pod| pod.network.addresses[0].to_string()).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
}

#[test]
fn a_full_subnet_is_a_problem_of_the_pod_and_of_nobody_else() {
    let (mut world, local) = (world(), local());
    for number in 0..260 {
        let pod = pod(&format!("p{number:03}"));
        world.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    let placed = zone(&world, &local).pods;
    // 256 less network, gateway, node and broadcast.
    assert_eq!((placed.pods.len(), placed.problems.len()), (252, 10));
    let problem = placed.problems.values().next().unwrap();
    assert!(problem.contains("10.244.2.0/24") && problem.contains("node one"), "{problem}");
}

#[test]
fn translation_and_the_straight_way_in_follow_the_advertisement() {
    let (mut world, local) = (world(), local());
    let nat = "GR_one/snat/10.244.0.0/16";
    let direct = |zone: &Zone| zone.flows["br-ex"].keys().any(|flow| flow.priority == 300);
    let before = zone(&world, &local);
    assert_eq!(text(row(&before.northbound, Table::Nat, nat), "match"), "");
    assert!(!before.advertised && !direct(&before));

    // Another node's advertisement is not this one's.
    advertise(&mut world, "two", "10.244.3.0/24");
    assert!(!zone(&world, &local).advertised);

    advertise(&mut world, "one", "10.244.2.0/24");
    let after = zone(&world, &local);
    assert!(after.advertised && direct(&after));
    assert!(text(row(&after.northbound, Table::Nat, nat), "match").starts_with("ip4.dst == $a"));

    world.frr_configurations.clear();
    assert_eq!(zone(&world, &local), before, "and back again");
}

#[test]
fn services_lead_to_their_endpoints_and_to_the_node_by_another_name() {
    let zone = zone(&world(), &local());
    let vips = |kind: &str| {
        let id = format!("Service_default/kubernetes_TCP_{kind}");
        match &row(&zone.northbound, Table::LoadBalancer, &id).columns["vips"] {
            Column::Map(map) => map["10.96.0.1:443"].clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(vips("node_switch_one"), "172.30.0.12:6443,172.30.0.13:6443");
    assert_eq!(vips("node_router_one"), "169.254.0.2:6443,172.30.0.13:6443");
}

#[test]
fn learned_routes_are_imported_except_our_own_ranges() {
    let mut local = local();
    let route = |destination: &str, hops: &[&str]| LearnedRoute {
        table: 254,
        destination: destination.parse().expect("an address"),
        next_hops: hops.iter().map(|hop| (hop.parse().expect("an address"), "br-ex".to_owned())).collect(),
    };
    local.learned = vec![
        route("203.0.113.0/24", &["172.30.0.1", "172.30.0.2"]),
        route("0.0.0.0/0", &["172.30.0.1"]),
        route("10.244.3.0/24", &["172.30.0.13"]),
        route("100.64.0.0/24", &["172.30.0.1"]),
        LearnedRoute { table: 1001, ..route("198.51.100.0/24", &["172.30.0.1"]) },
        route("192.0.2.0/24", &["fd00:172:30::1"]),
        route("172.30.0.0/24", &["172.30.0.1"]),
    ];
    let zone = zone(&world(), &local);
    let ids: Vec<&str> = zone
        .northbound
        .iter()
        .filter(|row| matches!(row.columns.get("external_ids"), Some(Column::Map(ids)) if ids.contains_key("k8s.ovn.org/owner-controller")))
        .filter(|row| row.id.table == Table::LogicalRouterStaticRoute)
        .map(|row| row.id.id.as_str())
        .collect();
    let want = [
        "GR_one/to/0.0.0.0/0/172.30.0.1",
        "GR_one/to/203.0.113.0/24/172.30.0.1",
        "GR_one/to/203.0.113.0/24/172.30.0.2",
    ];
    // The route by the node's own gateway and the one that BGP brought are one.
    assert_eq!(ids, want);
    let refused: Vec<String> = zone
        .learned
        .iter()
        .filter_map(|route| Some(format!("{}: {}", route.destination, route.refused.as_ref()?)))
        .collect();
    let want = [
        "10.244.3.0/24: it lies in the cluster's own range 10.244.0.0/16",
        "100.64.0.0/24: it lies in the cluster's own range 100.64.0.0/16",
        "198.51.100.0/24: it is in the kernel's table 1001, not in the main one",
        "192.0.2.0/24: none of its next hops is at br-ex, the only link that OVN has to the world",
        "172.30.0.0/24: it is the node's own link 172.30.0.0/24",
    ];
    assert_eq!(refused, want);
}

#[test]
fn every_item_has_a_reason_and_every_reference_a_target() {
    let zone = zone(&world(), &local());
    for row in zone.northbound.iter().chain(zone.southbound.iter()) {
        assert!(row.why.objects().next().is_some(), "{:?}", row.id);
        for column in row.columns.values() {
            let Column::Rows(ids) = column else { continue };
            for id in ids {
                let found = zone.northbound.get(id).or_else(|| zone.southbound.get(id));
                assert!(found.is_some(), "{:?} refers to {id:?}", row.id);
            }
        }
    }
}

#[test]
fn what_a_node_says_of_itself_is_said_once() {
    let (mut world, local, settings) = (world(), local(), settings());
    let NodePlan { annotations, .. } = plan("one", &world, &settings, &local);
    assert!(annotations.contains_key("k8s.ovn.org/l3-gateway-config"), "{annotations:?}");
    let mut node = Node::clone(world.node("one").unwrap());
    for (key, value) in annotations {
        node.annotations.insert(key, value.expect("nothing is removed"));
    }
    world.nodes.insert(Key::cluster("one"), Arc::new(node));
    assert_eq!(plan("one", &world, &settings, &local).annotations, [].into());
}
