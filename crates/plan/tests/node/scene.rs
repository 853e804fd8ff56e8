//! A small cluster that plans are made for.

use std::sync::Arc;

use k8s_openapi::api::core::v1;
use serde_json::json;
use underlay_api::FRRConfiguration;
use underlay_desired::ovn::{Column, Row, RowId, Rows, Table};
use underlay_net::alloc::SubnetRange;
use underlay_plan::node::{Zone, plan};
use underlay_world::local::Bridge;
use underlay_world::{EndpointSlice, Key, Kind, Local, Node, Pod, Service, Settings, World};

/// An object from its JSON.
pub fn object<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> T {
    serde_json::from_value(value).expect("an object")
}

/// A cluster with both families.
pub fn settings() -> Settings {
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

/// A node of this number.
pub fn node(name: &str, id: u8) -> Node {
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

/// A pod of namespace `shop` on node `one`.
pub fn pod(name: &str) -> Pod {
    Pod::read(&object::<v1::Pod>(json!({
        "metadata": { "namespace": "shop", "name": name, "uid": format!("uid-{name}") },
        "spec": { "nodeName": "one", "containers": [] },
    })))
}

/// Two nodes, two pods and the API server.
pub fn world() -> World {
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

/// What node `one` sees of itself.
pub fn local() -> Local {
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
            patches: [("patch-br-ex_one-to-br-int".to_owned(), 2)].into(),
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

/// The plan of node `one`.
pub fn zone(world: &World, local: &Local) -> Zone {
    zone_with(&settings(), world, local)
}

/// The plan of node `one` in a cluster with these settings.
pub fn zone_with(settings: &Settings, world: &World, local: &Local) -> Zone {
    plan("one", world, settings, local).zone.expect("nothing is missing")
}

/// A row of a plan.
pub fn row<'a>(rows: &'a Rows, table: Table, id: &str) -> &'a Row {
    rows.get(&RowId::new(table, id)).unwrap_or_else(|| panic!("no {id}"))
}

/// The text in a column.
pub fn text<'a>(row: &'a Row, column: &str) -> &'a str {
    match &row.columns[column] {
        Column::Text(text) => text,
        other => panic!("{column} is {other:?}"),
    }
}

/// A generated configuration of a node's speaker.
fn generated(advertisement: &str, node: &str, prefix: &str) -> FRRConfiguration {
    let configuration: FRRConfiguration = object(json!({
        "metadata": {
            "namespace": "frr", "name": "ovnk-generated-1",
            "labels": { "k8s.ovn.org/route-advertisements": advertisement },
        },
        "spec": {
            "nodeSelector": { "matchLabels": { "kubernetes.io/hostname": node } },
            "bgp": { "routers": [{
                "asn": 64512, "prefixes": [prefix],
                "neighbors": [{
                    "address": "172.30.0.1", "asn": 64513,
                    "toAdvertise": { "allowed": { "mode": "filtered", "prefixes": [prefix] } },
                }],
            }] },
        },
    }));
    configuration
}

/// Tells a node's peers of a prefix.
pub fn advertise(world: &mut World, node: &str, prefix: &str) {
    advertise_by(world, "default", node, prefix);
}

/// Tells a node's peers of a prefix, because an advertisement of this name asks for it.
pub fn advertise_by(world: &mut World, advertisement: &str, node: &str, prefix: &str) {
    let record = generated(advertisement, node, prefix).read().expect("always kept");
    world.frr_configurations.insert(Key::new("frr", "ovnk-generated-1"), record);
}
