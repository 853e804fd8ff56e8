//! Who holds what, and who does not.

mod properties;

use std::sync::Arc;

use serde_json::{Value, json};
use underlay_api::{EgressIP, RouteAdvertisements};
use underlay_world::settings::{NoOverlay, Routing};
use underlay_world::{Kind, Node};

use super::*;

/// A node that may hold addresses of 172.30.0.0/24.
pub fn node(number: u8, labelled: bool, ready: bool) -> Node {
    let labels = if labelled { json!({ ASSIGNABLE_LABEL: "" }) } else { json!({}) };
    let ready = if ready { "True" } else { "False" };
    let primary = format!(r#"{{"ipv4":"172.30.0.{number}/24","ipv6":"fd00:172:30::{number}/64"}}"#);
    Node::read(
        &serde_json::from_value(json!({
            "metadata": {
                "name": format!("n{number}"), "labels": labels,
                "annotations": { "k8s.ovn.org/node-primary-ifaddr": primary },
            },
            "status": {
                "conditions": [{ "type": "Ready", "status": ready }],
                "addresses": [{ "type": "InternalIP", "address": format!("172.30.0.{number}") }],
            },
        }))
        .unwrap(),
    )
}

/// A world with so many nodes that may hold addresses.
pub fn world(nodes: u8) -> World {
    let mut world = World::default();
    for number in 1..=nodes {
        put_node(&mut world, node(number, true, true));
    }
    world.namespaces.insert(Key::cluster("shop"), Arc::default());
    world
}

pub fn put_node(world: &mut World, node: Node) {
    world.nodes.insert(Key::cluster(&node.name), Arc::new(node));
}

/// Asks for addresses.
pub fn ask(world: &mut World, name: &str, addresses: &[&str]) {
    ask_with(world, name, &json!({ "egressIPs": addresses, "namespaceSelector": {} }));
}

fn ask_with(world: &mut World, name: &str, spec: &Value) {
    let object: EgressIP =
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
    let mut record = object.read().unwrap();
    if let Some(before) = world.egress_ips.get(&Key::cluster(name)) {
        Arc::make_mut(&mut record).items.clone_from(&before.items);
    }
    world.egress_ips.insert(Key::cluster(name), record);
}

/// Plans and carries it out. Returns who holds what: `<address>@<node>`.
fn settle(world: &mut World) -> Vec<String> {
    let told = plan(world, &Settings::default());
    record(&told, world);
    let again = plan(world, &Settings::default());
    assert!(again.values().all(|told| !told.news), "nothing is left to write: {again:?}");
    held(world)
}

fn held(world: &World) -> Vec<String> {
    let items = world.egress_ips.values().flat_map(|source| &source.items);
    items.map(|item| format!("{}@{}", item.address, item.node)).collect()
}

/// What is said of an egress IP.
fn problems(world: &World, name: &str) -> Vec<(&'static str, String)> {
    plan(world, &Settings::default())[&Key::cluster(name)].problems.clone()
}

#[track_caller]
fn says(world: &World, name: &str, reason: &str, parts: &[&str]) {
    let problems = problems(world, name);
    let fits = |(own, text): &&(&str, String)| *own == reason && parts.iter().all(|part| text.contains(part));
    assert!(problems.iter().any(|problem| fits(&problem)), "{reason} {parts:?}: {problems:?}");
}

#[test]
fn addresses_are_spread_and_those_of_one_egress_ip_are_on_different_nodes() {
    let mut world = world(3);
    ask(&mut world, "a", &["172.30.0.100", "172.30.0.101"]);
    ask(&mut world, "b", &["172.30.0.102"]);
    assert_eq!(settle(&mut world), ["172.30.0.100@n1", "172.30.0.101@n2", "172.30.0.102@n3"]);
    ask(&mut world, "c", &["172.30.0.110", "172.30.0.111", "172.30.0.112", "172.30.0.113"]);
    assert_eq!(settle(&mut world).len(), 6, "one too many for three nodes");
    says(&world, "c", UNASSIGNED, &["EgressIP: c could be assigned, please tag more nodes", "172.30.0.113"]);
}

#[test]
fn one_of_each_family_can_be_on_one_node() {
    let mut world = world(1);
    ask(&mut world, "a", &["172.30.0.120", "fd00:172:30::120"]);
    assert_eq!(settle(&mut world), ["172.30.0.120@n1", "fd00:172:30::120@n1"]);
}

#[test]
fn what_is_assigned_stays_until_its_node_goes() {
    let mut world = world(1);
    ask(&mut world, "a", &["172.30.0.100"]);
    ask(&mut world, "b", &["172.30.0.101"]);
    let first = ["172.30.0.100@n1", "172.30.0.101@n1"];
    assert_eq!(settle(&mut world), first);
    put_node(&mut world, node(2, true, true));
    assert_eq!(settle(&mut world), first, "a new node moves nothing");
    for (why, gone) in [("no label", node(1, false, true)), ("not ready", node(1, true, false))] {
        let mut world = world.clone();
        put_node(&mut world, gone);
        assert_eq!(settle(&mut world), ["172.30.0.100@n2", "172.30.0.101@n2"], "{why}");
    }
    world.unreachable.insert("n1".to_owned());
    assert_eq!(settle(&mut world), ["172.30.0.100@n2", "172.30.0.101@n2"], "silent");
    world.unreachable.insert("n2".to_owned());
    let before = held(&world);
    assert_eq!(settle(&mut world), before, "if nobody answers it is we who are cut off");
    world.nodes.clear();
    assert_eq!(settle(&mut world), [] as [&str; 0]);
    says(&world, "a", NO_NODE, &["172.30.0.100", "no node has the label k8s.ovn.org/egress-assignable"]);
}

#[test]
fn what_somebody_has_is_refused_with_the_field_and_the_reason() {
    let mut world = world(2);
    ask(&mut world, "a", &["172.30.0.2", "10.128.3.4", "172.16.1.9", "100.64.0.9", "172.30.0.100", "x"]);
    assert_eq!(settle(&mut world), ["172.30.0.100@n1"]);
    says(&world, "a", CONFLICT, &["spec.egressIPs[0] 172.30.0.2: it is an address of node n2"]);
    says(&world, "a", CONFLICT, &["spec.egressIPs[1]", "it is in the range of pods 10.128.0.0/14"]);
    says(&world, "a", CONFLICT, &["spec.egressIPs[2]", "the range of services"]);
    says(&world, "a", CONFLICT, &["spec.egressIPs[3]", "the join range"]);
    says(&world, "a", INVALID, &["spec.egressIPs[5] \"x\": it is no address"]);
    // Who has it keeps it, whatever the names.
    ask(&mut world, "0", &["172.30.0.100", "172.30.0.101"]);
    assert_eq!(settle(&mut world), ["172.30.0.101@n2", "172.30.0.100@n1"]);
    says(&world, "0", TAKEN, &["spec.egressIPs[0] 172.30.0.100: EgressIP a has it already"]);
    world.egress_ips.remove(&Key::cluster("a"));
    assert_eq!(settle(&mut world), ["172.30.0.100@n1", "172.30.0.101@n2"]);
}

#[test]
fn an_address_outside_all_networks_needs_an_advertisement() {
    let mut world = world(2);
    ask(&mut world, "a", &["192.0.2.7"]);
    assert_eq!(settle(&mut world), [] as [&str; 0]);
    says(
        &world,
        "a",
        NO_NODE,
        &[
            "192.0.2.7: it is in no node's network (172.30.0.0/24, fd00:172:30::/64), and no RouteAdvertisements",
        ],
    );
    let advertise = |what: &str, network: &str, labels: Value| -> RouteAdvertisements {
        serde_json::from_value(json!({
            "metadata": { "name": "ra" },
            "spec": {
                "networkSelectors": [{ "networkSelectionType": network }],
                "nodeSelector": { "matchLabels": labels },
                "frrConfigurationSelector": {},
                "advertisements": [what],
            },
        }))
        .unwrap()
    };
    let egress = |network, labels| advertise("EgressIP", network, labels);
    for (object, holds) in [
        (advertise("PodNetwork", "DefaultNetwork", json!({})), false),
        (egress("ClusterUserDefinedNetworks", json!({})), false),
        (egress("DefaultNetwork", json!({ "zone": "none" })), false),
        (egress("DefaultNetwork", json!({ ASSIGNABLE_LABEL: "" })), true),
    ] {
        world.advertisements.insert(Key::cluster("ra"), Arc::new(object));
        assert_eq!(settle(&mut world).len(), usize::from(holds));
    }
    world.advertisements.clear();
    assert_eq!(settle(&mut world), [] as [&str; 0], "nobody leads there any more");
}

#[test]
fn networks_without_overlay_are_told_and_nothing_else_changes() {
    let mut world = world(1);
    ask(&mut world, "a", &["172.30.0.100"]);
    let no_overlay = Some(NoOverlay { outbound_snat: true, routing: Routing::Managed });
    let told = plan(&world, &Settings { no_overlay, ..Settings::default() });
    let Told { items, problems, .. } = &told[&Key::cluster("a")];
    assert_eq!((items.len(), problems[0].0), (1, NOT_SUPPORTED));
    assert!(problems[0].1.contains("(default)") && problems[0].1.contains("namespaces shop"), "{problems:?}");
}

#[test]
fn a_selector_that_makes_no_sense_is_told() {
    let mut world = world(1);
    let bad = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    ask_with(&mut world, "a", &json!({ "egressIPs": ["172.30.0.100"], "namespaceSelector": bad }));
    says(&world, "a", INVALID, &["spec.namespaceSelector: "]);
}

#[test]
fn nodes_that_may_hold_something_are_watched_while_there_is_something_to_hold() {
    let mut world = world(2);
    put_node(&mut world, node(3, false, true));
    assert_eq!(watched(&world).len(), 0);
    ask(&mut world, "a", &["172.30.0.100"]);
    assert_eq!(watched(&world).keys().collect::<Vec<_>>(), ["n1", "n2"]);
    assert_eq!(
        watched(&world)["n1"],
        ["172.30.0.1", "fd00:172:30::1"].map(|text| text.parse::<IpAddr>().unwrap())
    );
}
