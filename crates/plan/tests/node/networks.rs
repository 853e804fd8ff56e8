//! User-defined networks on a node: any number side by side, none in another's way.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use underlay_api::annotations::{Annotation, PodNetworks, Role};
use underlay_desired::ovn::{Column, Row, RowId, Rows, Table};
use underlay_plan::node::Zone;
use underlay_plan::node::addresses::PlacedPod;
use underlay_world::local::Assigned;
use underlay_world::{EndpointSlice, Key, Kind, Local, Nad, Namespace, Node, Pod, Service, World};

use super::scene::{local, object, row, text, world, zone};

/// Subnets of both nodes in a network, as annotations give them.
const SUBNETS: [&str; 2] = ["10.10.2.0/24", "10.10.3.0/24"];

pub fn nad(namespace: &str, name: &str, id: Option<u16>) -> Nad {
    let config = json!({
        "cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay",
        "name": format!("{namespace}_{name}"), "netAttachDefName": format!("{namespace}/{name}"),
        "topology": "layer3", "role": "primary", "subnets": "10.10.0.0/16/24", "mtu": 1300,
    });
    let mut annotations = serde_json::Map::new();
    annotations.extend(id.map(|id| ("k8s.ovn.org/network-id".to_owned(), json!(id.to_string()))));
    Nad::read(&object(json!({
        "metadata": { "namespace": namespace, "name": name, "annotations": annotations },
        "spec": { "config": config.to_string() },
    })))
    .expect("one of ours")
}

pub fn add_nad(world: &mut World, nad: Nad) {
    world.nads.insert(nad.key.clone(), Arc::new(nad));
}

/// Gives both nodes their subnets of a network.
fn give_subnets(world: &mut World, network: &str) {
    for (name, subnet) in ["one", "two"].into_iter().zip(SUBNETS) {
        let mut node = Node::clone(world.node(name).expect("a node"));
        node.subnets.0.insert(network.to_owned(), vec![subnet.parse().expect("a subnet")]);
        world.nodes.insert(Key::cluster(name), Arc::new(node));
    }
}

fn add_pod(world: &mut World, namespace: &str, name: &str) {
    let pod = Pod::read(&object(json!({
        "metadata": { "namespace": namespace, "name": name, "uid": format!("uid-{name}") },
        "spec": { "nodeName": "one", "containers": [] },
    })));
    world.pods.insert(pod.key.clone(), Arc::new(pod));
}

/// The world with networks `red_net` and `blue_net`, of the same addresses, each with a pod.
pub fn two_networks() -> World {
    let mut world = world();
    for (namespace, id) in [("blue", 1), ("red", 2)] {
        add_nad(&mut world, nad(namespace, "net", Some(id)));
        give_subnets(&mut world, &format!("{namespace}_net"));
        add_pod(&mut world, namespace, "web");
    }
    world
}

/// What node `one` sees once the networks' patch ports are there.
pub fn local_with_patches() -> Local {
    let mut local = local();
    let patches = [("patch-br-ex_blue_net_one-to-br-int", 7), ("patch-br-ex_red_net_one-to-br-int", 8)];
    let bridge = local.bridge.as_mut().expect("a bridge");
    bridge.patches.extend(patches.map(|(name, port)| (name.to_owned(), port)));
    local
}

/// What node `one` sees once a plan was carried out: it remembers what it gave to pods.
fn after(zone: &Zone, local: Local) -> Local {
    let given = |(key, pod): (&Key, &PlacedPod)| {
        let own = pod.primary.iter().map(|own| (own.attachment.clone(), &own.part));
        let networks = own.chain([("default".to_owned(), &pod.network)]);
        let networks =
            networks.map(|(name, part)| (name, part.addresses.iter().map(ipnet::IpNet::addr).collect()));
        let (uid, networks) = (pod.uid.clone(), networks.collect());
        (key.clone(), Assigned { uid, networks, locked: pod.locked() })
    };
    Local { assigned: zone.pods.pods.iter().map(given).collect(), ..local }
}

fn ids(rows: &Rows) -> BTreeSet<&RowId> {
    rows.iter().map(|row| &row.id).collect()
}

fn of_network<'a>(rows: &'a Rows, network: &'a str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.id.id.contains(network) || reason(row, network)).collect()
}

fn reason(row: &Row, network: &str) -> bool {
    let namespace = network.trim_end_matches("_net");
    row.why.objects().any(|object| object.namespace.as_deref() == Some(namespace))
}

fn map<'a>(row: &'a Row, column: &str, key: &str) -> &'a str {
    match &row.columns[column] {
        Column::Map(map) => map.get(key).map_or("", String::as_str),
        other => panic!("{column} is {other:?}"),
    }
}

fn web<'a>(zone: &'a Zone, namespace: &str) -> &'a PlacedPod {
    &zone.pods.pods[&Key::new(namespace, "web")]
}

#[test]
fn what_only_the_node_understands_does_not_leave_by_a_port_that_is_not_known_yet() {
    let zone = zone(&two_networks(), &local());
    let mut guards = zone.flows["br-ex"].keys().filter(|flow| flow.table == 0 && flow.priority == 1);
    let guard = guards.next().expect("a flow");
    assert_eq!((guard.matches.as_str(), guard.actions.as_str()), ("ip,nw_src=169.254.0.0/17", "drop"));
}

#[test]
fn a_network_has_a_vrf_where_the_kernel_has_such_devices() {
    let (world, local) = (two_networks(), local_with_patches());
    let without = zone(&world, &local);
    assert!(without.host.vrfs.is_empty());

    let with = zone(&world, &Local { has_vrf: true, ..local });
    for (name, vrf) in &with.host.vrfs {
        let members = with.host.links.iter().filter(|(_, link)| link.vrf.as_ref() == Some(name));
        let members: Vec<_> = members.map(|(name, _)| format!("{name} in {}", vrf.table)).collect();
        let id = vrf.table - 1000;
        assert_eq!(members, [format!("ovn-k8s-mp{id} in {}", vrf.table)]);
        assert_eq!(with.host.sysctls[&format!("net.ipv4.conf.{name}.forwarding")].value, "1");
    }
    assert_eq!(with.host.vrfs.len(), 2);
    assert_eq!(with.host.routes, without.host.routes, "the table is the same");
    assert_eq!(with.host.rules, without.host.rules, "and so is the way into it");
}

#[test]
fn networks_with_the_same_addresses_stand_side_by_side() {
    let zone = zone(&two_networks(), &local_with_patches());
    let rows = &zone.northbound;
    for (network, id) in [("blue_net", 1_u32), ("red_net", 2)] {
        let router = row(rows, Table::LogicalRouter, &format!("GR_{network}_one"));
        let stand = format!("169.254.0.{}", 9 + 2 * id);
        assert_eq!(map(router, "external_ids", "physical_ips"), format!("172.30.0.12,{stand}"));
        assert_eq!(map(router, "external_ids", "k8s.ovn.org/network"), network);
        assert_eq!(map(router, "options", "snat-ct-zone"), "");
        let nat = row(rows, Table::Nat, &format!("GR_{network}_one/snat/10.10.0.0/16"));
        assert_eq!(text(nat, "external_ip"), stand);
        let nat = row(rows, Table::Nat, &format!("{network}_ovn_cluster_router/snat/10.10.2.0/24"));
        assert_eq!(text(nat, "external_ip"), format!("169.254.0.{}", 10 + 2 * id));
        assert_eq!(text(nat, "match"), "eth.dst == 0a:58:0a:0a:02:02");
        let transit = row(rows, Table::LogicalSwitch, &format!("{network}_transit_switch"));
        let key = (16_711_683 + id).to_string();
        assert_eq!(map(transit, "other_config", "requested-tnl-key"), key);
        let far = format!("{network}_ovn_cluster_router/to/10.10.3.0/24/100.88.0.3");
        assert_eq!(
            map(row(rows, Table::LogicalRouterStaticRoute, &far), "external_ids", "k8s.ovn.org/network"),
            network
        );
        let port = row(
            rows,
            Table::LogicalSwitchPort,
            &format!("{}_{}", network.replace('_', "."), {
                format!("{}_web", network.trim_end_matches("_net"))
            }),
        );
        assert_eq!(port.columns["addresses"], Column::Texts(["0a:58:0a:0a:02:03 10.10.2.3".into()].into()));
        let link = format!("ovn-k8s-mp{id}");
        assert_eq!(zone.switch.ports[&link].mtu, 1300);
        assert!(zone.host.addresses.keys().all(|address| address.link != link));
        let table = 1000 + id;
        let ways = zone.host.routes.keys().filter(|route| route.table == table).count();
        assert_eq!((ways, zone.host.rules.keys().filter(|rule| rule.table == table).count()), (6, 3));
    }
    let main: Vec<_> = zone.host.routes.keys().filter(|route| route.table == 254).collect();
    assert!(main.iter().all(|route| !route.destination.to_string().starts_with("10.10.")), "{main:?}");
}

#[test]
fn the_bridge_keeps_networks_apart() {
    let zone = zone(&two_networks(), &local_with_patches());
    let flows: Vec<String> = zone.flows["br-ex"]
        .keys()
        .map(|flow| format!("{} {} {} {}", flow.table, flow.priority, flow.matches, flow.actions))
        .collect();
    for (patch, stand, pods, mark) in [(7, 11, 12, "0x4"), (8, 13, 14, "0x5")] {
        let want = [
            format!(
                "0 100 in_port={patch},dl_src=02:00:00:00:00:12,ip,nw_src=169.254.0.{stand} \
                 ct(commit,zone=64000,nat(src=172.30.0.12),exec(set_field:{mark}->ct_mark)),output:1"
            ),
            format!("0 90 in_port={patch},ip drop"),
            format!("1 100 ip,ct_state=+trk+est,ct_mark={mark} output:{patch}"),
            format!(
                "0 550 in_port=LOCAL,ip,nw_src=169.254.0.{pods},nw_dst=10.96.0.0/16 ct(commit,zone=64001,table=2)"
            ),
            format!("2 200 ip,nw_src=169.254.0.{pods} drop"),
        ];
        for flow in want {
            assert!(flows.contains(&flow), "{flow} is not in\n{}", flows.join("\n"));
        }
    }
    assert!(flows.contains(&"0 111 in_port=1,arp output:2,output:7,output:8,LOCAL".to_owned()));
    assert!(
        flows.contains(&"2 300 ip,nw_dst=10.96.0.1 set_field:02:00:00:00:00:12->eth_dst,output:2".to_owned())
    );
}

#[test]
fn the_default_network_does_not_notice_and_gets_everything_back() {
    let mut networks = two_networks();
    let plain = zone(&world(), &local());
    let full = zone(&networks, &after(&plain, local_with_patches()));
    for row in plain.northbound.iter() {
        // Ports of pods are on the switch, and pods of the networks have one there too.
        let same = full.northbound.get(&row.id) == Some(row);
        assert!(same || row.id.id == "one", "{:?}", row.id);
    }
    assert!(plain.host.routes.keys().all(|route| full.host.routes.contains_key(route)));
    assert_eq!(full.pods.pods[&Key::new("shop", "a")], plain.pods.pods[&Key::new("shop", "a")]);

    networks.nads.clear();
    networks.pods.retain(|key, _| key.namespace == "shop");
    networks.nodes = world().nodes;
    assert_eq!(zone(&networks, &local_with_patches()), zone(&world(), &local_with_patches()));
}

#[test]
fn what_happens_in_one_network_is_not_seen_in_another() {
    let mut world = two_networks();
    let before = zone(&world, &local_with_patches());
    add_pod(&mut world, "blue", "more");
    add_nad(&mut world, nad("green", "net", Some(3)));
    give_subnets(&mut world, "green_net");
    let local = after(&before, local_with_patches());
    let later = zone(&world, &local);
    let red =
        |zone: &Zone| -> Vec<Row> { of_network(&zone.northbound, "red_net").into_iter().cloned().collect() };
    assert!(!red(&before).is_empty());
    assert!(red(&before) == red(&later), "rows of the other network have changed");

    world.nads.remove(&Key::new("green", "net"));
    world.nads.remove(&Key::new("blue", "net"));
    let gone = zone(&world, &local);
    assert!(red(&gone) == red(&before), "rows of the other network have changed");
    assert!(ids(&gone.northbound).iter().all(|id| !id.id.contains("blue_net")));
    assert!(!gone.switch.ports.contains_key("ovn-k8s-mp1") && gone.switch.ports.contains_key("ovn-k8s-mp2"));
    let tables: BTreeSet<u32> = gone.host.rules.keys().map(|rule| rule.table).collect();
    assert_eq!(tables, BTreeSet::from([7, 1002]), "the node's own and that of the network which is left");
}

#[test]
fn a_network_that_waits_is_in_nobodys_way() {
    let mut world = world();
    add_nad(&mut world, nad("blue", "net", None));
    add_nad(&mut world, nad("red", "net", Some(2)));
    add_pod(&mut world, "blue", "web");
    let zone = zone(&world, &local());
    assert!(zone.waiting["blue_net"].contains("a number"), "{:?}", zone.waiting);
    assert!(zone.waiting["red_net"].contains("a subnet of network red_net for node one"));
    assert_eq!(zone.pods.pods[&Key::new("shop", "a")].waiting, None);
    let web = web(&zone, "blue");
    assert!(web.waiting.as_ref().is_some_and(|what| what.contains("number")), "{:?}", web.waiting);
    assert!(web.locked() && web.primary.is_none(), "it is not let loose meanwhile");
}

#[test]
fn a_namespace_made_for_a_network_waits_for_it() {
    let mut world = world();
    let namespace = Namespace::read(object(json!({
        "metadata": { "name": "blue", "labels": { "k8s.ovn.org/primary-user-defined-network": "" } },
    })));
    world.namespaces.insert(Key::cluster("blue"), Arc::new(namespace));
    add_pod(&mut world, "blue", "web");
    let early = zone(&world, &local());
    let waiting = web(&early, "blue").waiting.clone();
    assert_eq!(waiting.as_deref(), Some("a primary network for namespace blue"));
    assert!(web(&early, "blue").locked());
    add_nad(&mut world, nad("blue", "net", Some(1)));
    give_subnets(&mut world, "blue_net");
    let later = zone(&world, &after(&early, local()));
    assert!(web(&later, "blue").primary.is_some() && web(&later, "blue").waiting.is_none());
}

#[test]
fn a_pod_of_a_network_has_two_ports_and_hears_only_its_node_on_the_first() {
    let zone = zone(&two_networks(), &local());
    let web = web(&zone, "blue");
    assert_eq!(web.network.gateways, [] as [std::net::IpAddr; 0]);
    let own = web.primary.as_ref().expect("a network of its own");
    assert_eq!((own.attachment.as_str(), own.mtu), ("blue/net", 1300));
    assert_eq!(own.part.gateways, ["10.10.2.1".parse::<std::net::IpAddr>().expect("an address")]);
    let record = PodNetworks::decode(web.record.as_deref().expect("to be written")).expect("readable");
    assert_eq!(record.0["default"].role, Some(Role::InfrastructureLocked));
    assert_eq!(record.0["blue/net"].role, Some(Role::Primary));

    let group = "default-network-controller:UDNIsolation:SecondaryPods";
    let ports = &row(&zone.northbound, Table::PortGroup, group).columns["ports"];
    let locked = ["blue_web", "red_web"].map(|port| RowId::new(Table::LogicalSwitchPort, port));
    assert_eq!(*ports, Column::Rows(locked.into()));
    let allowed = row(&zone.northbound, Table::Acl, &format!("{group}/AllowHostPrimaryUDN/to-lport"));
    assert!(text(allowed, "match").ends_with("(ip4.src == 10.244.2.2 || ip6.src == fd00:10:244:2::2)"));
}

#[test]
fn what_was_decided_for_a_pod_stays() {
    let mut world = two_networks();
    let mut local = local();
    let given = |networks: &[(&str, &str)], locked| Assigned {
        uid: "uid-web".to_owned(),
        networks: networks
            .iter()
            .map(|(name, address)| {
                let mut addresses = vec![address.parse().expect("an address")];
                if *name == "default" {
                    addresses.push("fd00:10:244:2::9".parse().expect("an address"));
                }
                ((*name).to_owned(), addresses)
            })
            .collect(),
        locked,
    };
    // It ran before there was a network.
    local.assigned.insert(Key::new("blue", "web"), given(&[("default", "10.244.2.9")], false));
    let early = zone(&world, &local);
    assert!(!web(&early, "blue").locked() && web(&early, "blue").primary.is_none());

    // Its network goes, and it does not get to the default one instead.
    let both = given(&[("default", "10.244.2.9"), ("blue/net", "10.10.2.9")], true);
    local.assigned.insert(Key::new("blue", "web"), both);
    let own = |zone: &Zone| web(zone, "blue").primary.as_ref().map(|own| own.part.addresses[0].to_string());
    assert_eq!(own(&zone(&world, &local)).as_deref(), Some("10.10.2.9/24"));
    let nad_of_blue = world.nads.remove(&Key::new("blue", "net")).expect("it was there");
    let late = zone(&world, &local);
    assert!(web(&late, "blue").locked() && own(&late).is_none());

    // A second one makes it impossible to tell for new pods; those that run stay where they are.
    world.nads.insert(nad_of_blue.key.clone(), nad_of_blue);
    add_nad(&mut world, nad("blue", "second", Some(9)));
    give_subnets(&mut world, "blue_second");
    add_pod(&mut world, "blue", "new");
    let torn = zone(&world, &local);
    assert_eq!(own(&torn).as_deref(), Some("10.10.2.9/24"));
    let problem = &torn.pods.problems[&Key::new("blue", "new")];
    assert!(problem.contains("blue/net") && problem.contains("blue/second"), "{problem}");
    assert!(!torn.pods.problems.contains_key(&Key::new("blue", "web")));
}

#[test]
fn networks_that_cannot_be_carried_are_a_problem_of_their_pods() {
    let mut world = two_networks();
    // The same number as another; what comes first by name has it.
    add_nad(&mut world, nad("green", "net", Some(2)));
    give_subnets(&mut world, "green_net");
    let mut layer2 = nad("grey", "net", Some(4));
    let text = layer2.text.replace("layer3", "layer2").replace("/24\"", "\"");
    layer2.config = underlay_api::nad::NetConf::parse(&text);
    add_nad(&mut world, layer2);
    for namespace in ["green", "grey"] {
        add_pod(&mut world, namespace, "web");
    }
    let zone = zone(&world, &local());
    let problem = |namespace: &str| zone.pods.problems.get(&Key::new(namespace, "web")).cloned();
    assert!(problem("red").is_some_and(|text| text.contains("number 2 of network green_net")));
    assert!(problem("grey").is_some_and(|text| text.contains("layer2")), "{:?}", problem("grey"));
    assert_eq!((problem("blue"), problem("green")), (None, None));
}

#[test]
fn services_are_in_the_network_of_their_namespace_and_two_are_for_all() {
    let mut world = two_networks();
    let service = Service::read(&object(json!({
        "metadata": { "namespace": "blue", "name": "api" },
        "spec": { "clusterIPs": ["10.96.0.9"], "ports": [{ "port": 80 }] },
    })));
    world.services.insert(Key::new("blue", "api"), Arc::new(service.expect("a service")));
    for (name, label, address) in
        [("a", "kubernetes.io/service-name", "10.244.2.3"), ("b", "k8s.ovn.org/service-name", "10.10.2.3")]
    {
        let slice = EndpointSlice::read(&object(json!({
            "metadata": {
                "namespace": "blue", "name": name,
                "labels": { label: "api", "k8s.ovn.org/endpointslice-network": "blue_net" },
            },
            "addressType": "IPv4", "endpoints": [{ "addresses": [address] }], "ports": [{ "port": 8080 }],
        })));
        world.slices.insert(Key::new("blue", name), Arc::new(slice.expect("a slice")));
    }
    let rows = zone(&world, &local()).northbound;
    let balancers: Vec<&str> = rows
        .iter()
        .filter(|row| row.id.table == Table::LoadBalancer && row.id.id.contains("blue/api"))
        .map(|row| row.id.id.as_str())
        .collect();
    assert_eq!(balancers, ["blue_net_Service_blue/api_TCP_cluster"]);
    let balancer = row(&rows, Table::LoadBalancer, balancers[0]);
    assert_eq!(map(balancer, "vips", "10.96.0.9:80"), "10.10.2.3:8080");
    let way =
        row(&rows, Table::LogicalRouterStaticRoute, "blue_net_ovn_cluster_router/to/10.96.0.1/10.10.2.2");
    let key = "k8s.ovn.org/udn-enabled-default-service";
    assert_eq!(map(way, "external_ids", key), "default/kubernetes");
}

#[test]
fn reasons_references_and_repetition() {
    let (world, local) = (two_networks(), local_with_patches());
    let zone = zone(&world, &local);
    for row in zone.northbound.iter() {
        assert!(row.why.objects().next().is_some(), "{:?}", row.id);
        for column in row.columns.values() {
            let Column::Rows(ids) = column else { continue };
            assert!(ids.iter().all(|id| zone.northbound.get(id).is_some()), "{:?}", row.id);
        }
    }
    let (nads, mut again) = (world.nads.clone(), World { nads: [].into(), ..world });
    again.nads.extend(nads.into_iter().rev());
    assert!(super::scene::zone(&again, &local) == zone, "the order of objects does not matter");
}

#[test]
fn definitions_of_other_plugins_are_not_read() {
    let foreign: underlay_api::NetworkAttachmentDefinition = object(json!({
        "metadata": { "namespace": "blue", "name": "other" },
        "spec": { "config": r#"{"type":"macvlan","role":"primary"}"# },
    }));
    assert!(foreign.read().is_none());
}
