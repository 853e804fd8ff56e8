//! A node's plan: whatever the order of what is known, complete, and with a reason for every item.

mod advertised;
mod egress;
mod networks;
mod scene;

use std::collections::BTreeSet;
use std::sync::Arc;

use scene::{advertise, local, pod, row, settings, text, world, zone};
use underlay_desired::ovn::{Column, Table};
use underlay_plan::node::site::Waiting;
use underlay_plan::node::{NodePlan, Zone, plan};
use underlay_world::local::Assigned;
use underlay_world::{Key, Local, Node, World};

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
        networks: [(
            "default".to_owned(),
            [v4, "fd00:10:244:2::9"].map(|ip| ip.parse().expect("an address")).into(),
        )]
        .into(),
        locked: false,
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
fn what_the_node_sends_to_services_leaves_with_the_routers_address() {
    let zone = zone(&world(), &local());
    for (port, shown) in [("rtoj-GR_one", "100.64.0.2"), ("rtoe-GR_one", "172.30.0.12")] {
        let nat = row(&zone.northbound, Table::Nat, &format!("GR_one/snat/169.254.0.0/17/{port}"));
        assert_eq!(text(nat, "external_ip"), shown);
        assert_eq!(text(nat, "match"), format!("outport == \"{port}\""));
    }
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
fn learned_routes_are_taken_except_our_own_ranges() {
    let zone = zone(&world(), &local());
    let policy = &zone.imports[0];
    assert_eq!(
        (policy.router.as_str(), policy.port.as_str(), policy.table),
        ("GR_one", "rtoe-GR_one", Some(254))
    );
    let judge = |destination: &str, hops: &[&str]| {
        let hops = hops.iter().map(|hop| (hop.parse().expect("an address"), "br-ex"));
        let taken = policy.judge(&destination.parse().expect("a prefix"), hops);
        taken.map(|gateways| gateways.len()).map_err(|refusal| refusal.to_string())
    };
    assert_eq!(judge("203.0.113.0/24", &["172.30.0.1", "172.30.0.2"]), Ok(2));
    assert_eq!(judge("0.0.0.0/0", &["172.30.0.1"]), Ok(1));
    for (destination, hop, want) in [
        ("10.244.3.0/24", "172.30.0.13", "it lies in the cluster's own range 10.244.0.0/16"),
        ("100.64.0.0/24", "172.30.0.1", "it lies in the cluster's own range 100.64.0.0/16"),
        (
            "192.0.2.0/24",
            "fd00:172:30::1",
            "none of its next hops is at br-ex, the only link that OVN has to the world",
        ),
        ("172.30.0.0/24", "172.30.0.1", "it is the node's own link 172.30.0.0/24"),
    ] {
        assert_eq!(judge(destination, &[hop]), Err(want.to_owned()));
    }
    let (everything, gateway) = ("0.0.0.0/0".parse().unwrap(), "172.30.0.1".parse().unwrap());
    assert!(policy.has(everything, gateway), "the node's own gateway is there anyway");
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
