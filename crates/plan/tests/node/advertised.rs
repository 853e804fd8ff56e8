//! Networks that BGP peers are told of, with and without overlay.

use std::collections::BTreeSet;
use std::sync::Arc;

use underlay_api::annotations::Advertisers;
use underlay_desired::ovn::{Column, Row, RowId, Table};
use underlay_plan::node::Zone;
use underlay_world::settings::{Isolation, NoOverlay, Routing};
use underlay_world::{Key, Settings, World};

use super::networks::{local_with_patches, two_networks};
use super::scene::{advertise_by, row, settings, text, world, zone, zone_with};

/// The node's subnet of both networks.
const SUBNET: &str = "10.10.2.0/24";

/// Networks blue and red, of the same addresses; blue is advertised.
fn blue_advertised() -> World {
    let mut world = two_networks();
    edit_nad(&mut world, "blue", |nad| nad.advertisers = Advertisers(["ra".to_owned()].into()));
    advertise_by(&mut world, "ra", "one", SUBNET);
    world
}

fn edit_nad(world: &mut World, namespace: &str, edit: impl Fn(&mut underlay_world::Nad)) {
    let nad = world.nads.get_mut(&Key::new(namespace, "net")).expect("a definition");
    edit(Arc::make_mut(nad));
}

fn edit_node(world: &mut World, name: &str, edit: impl Fn(&mut underlay_world::Node)) {
    edit(Arc::make_mut(world.nodes.get_mut(&Key::cluster(name)).expect("a node")));
}

/// Network blue without overlay, and nobody else.
fn blue_routed(outbound_snat: &str) -> World {
    let mut world = blue_advertised();
    world.nads.remove(&Key::new("red", "net"));
    edit_nad(&mut world, "blue", |nad| {
        let mut config: serde_json::Value = serde_json::from_str(&nad.text).expect("JSON");
        config["transport"] = "no-overlay".into();
        config["outboundSNAT"] = outbound_snat.into();
        nad.config = underlay_api::nad::NetConf::parse(&config.to_string());
    });
    world
}

/// What a network says to a learned route.
fn judge(zone: &Zone, network: &str, destination: &str, hop: &str) -> Result<usize, String> {
    let policy = zone.imports.iter().find(|policy| policy.network == network).expect("a policy");
    let hops = std::iter::once((hop.parse().expect("an address"), "br-ex"));
    let taken = policy.judge(&destination.parse().expect("a prefix"), hops);
    taken.map(|gateways| gateways.len()).map_err(|refusal| refusal.to_string())
}

fn table(zone: &Zone, network: &str) -> Option<u32> {
    zone.imports.iter().find(|policy| policy.network == network).and_then(|policy| policy.table)
}

/// Prefixes of a router's routes.
fn routes(zone: &Zone, router: &str) -> BTreeSet<String> {
    let rows = zone.northbound.iter().filter(|row| row.id.table == Table::LogicalRouterStaticRoute);
    let own = rows.filter(|row| row.id.id.starts_with(&format!("{router}/to/")));
    own.map(|row| text(row, "ip_prefix").to_owned()).collect()
}

fn flow(zone: &Zone, priority: u16, part: &str) -> Option<String> {
    let flows = zone.flows["br-ex"].keys();
    let mut found = flows.filter(|flow| flow.table == 0 && flow.priority == priority);
    found.find(|flow| flow.matches.contains(part)).map(|flow| flow.actions.clone())
}

fn nat<'a>(zone: &'a Zone, network: &str) -> &'a Row {
    row(&zone.northbound, Table::Nat, &format!("GR_{network}_one/snat/10.10.0.0/16"))
}

fn has(zone: &Zone, table: Table, id: &str) -> bool {
    zone.northbound.get(&RowId::new(table, id)).is_some()
}

#[test]
fn of_two_networks_with_the_same_addresses_only_the_one_that_was_asked_for_is_told() {
    let zone = zone(&blue_advertised(), &local_with_patches());
    assert!(zone.carried["blue_net"].advertised && !zone.carried["red_net"].advertised);
    assert!(!zone.advertised, "nor is the default network");
    assert!(text(nat(&zone, "blue_net"), "match").starts_with("ip4.dst == $a"), "pods show themselves");
    assert_eq!(text(nat(&zone, "red_net"), "match"), "");
    assert_eq!(flow(&zone, 300, &format!("nw_dst={SUBNET}")).as_deref(), Some("output:7"));
    assert_eq!(
        flow(&zone, 104, &format!("in_port=7,dl_src=02:00:00:00:00:12,ip,nw_src={SUBNET}")).as_deref(),
        Some("output:1")
    );
    assert_eq!(flow(&zone, 104, "in_port=8"), None);
}

#[test]
fn what_peers_are_told_is_of_the_network_that_was_asked_for() {
    let mut world = blue_advertised();
    let blue = world.frr_configurations[&Key::new("frr", "ovnk-generated-1")].clone();
    advertise_by(&mut world, "other", "one", "192.0.2.9/32");
    world.frr_configurations.insert(Key::new("frr", "ovnk-generated-2"), blue);
    let told = zone(&world, &local_with_patches()).originated;
    let told: Vec<(String, &str, Option<&str>, usize)> = told
        .iter()
        .map(|one| (one.prefix.to_string(), one.vrf.as_str(), one.network.as_deref(), one.by.len()))
        .collect();
    assert_eq!(
        told,
        [(SUBNET.to_owned(), "", Some("blue_net"), 1), ("192.0.2.9/32".to_owned(), "", None, 1)]
    );
}

#[test]
fn what_nobody_is_told_of_is_not_advertised() {
    let mut world = blue_advertised();
    let key = Key::new("frr", "ovnk-generated-1");
    let configuration = world.frr_configurations.get_mut(&key).expect("the configuration");
    Arc::make_mut(&mut Arc::make_mut(configuration).spec.bgp.routers[0]).neighbors.clear();
    assert!(!zone(&world, &local_with_patches()).carried["blue_net"].advertised);
}

#[test]
fn who_alone_has_a_subnet_need_not_be_named() {
    let mut world = blue_advertised();
    edit_nad(&mut world, "blue", |nad| nad.advertisers = Advertisers::default());
    let both = zone(&world, &local_with_patches());
    assert!(!both.carried["blue_net"].advertised, "it may be red that is meant");
    assert_eq!(both.originated[0].network, None);

    world.nads.remove(&Key::new("red", "net"));
    edit_node(&mut world, "one", |node| drop(node.subnets.0.remove("red_net")));
    let alone = zone(&world, &local_with_patches());
    assert!(alone.carried["blue_net"].advertised);
    assert_eq!(alone.originated[0].network.as_deref(), Some("blue_net"));
}

#[test]
fn a_network_told_in_another_vrf_is_not_reached_by_the_external_bridge() {
    let mut world = blue_advertised();
    let key = Key::new("frr", "ovnk-generated-1");
    let configuration = world.frr_configurations.get_mut(&key).expect("the configuration");
    Arc::make_mut(&mut Arc::make_mut(configuration).spec.bgp.routers[0]).vrf = "blue".to_owned();
    let zone = zone(&world, &local_with_patches());
    assert_eq!(flow(&zone, 300, SUBNET), None);
    assert_eq!(text(nat(&zone, "blue_net"), "match"), "");
}

#[test]
fn advertised_networks_are_kept_apart_where_packets_start() {
    let (world, local) = (blue_advertised(), local_with_patches());
    let strict = zone(&world, &local);
    let deny = row(&strict.northbound, Table::Acl, "AdvertisedNetwork/deny");
    assert!(text(deny, "match").starts_with("ip4.dst == $a"), "{deny:?}");
    assert_eq!(text(deny, "action"), "drop");
    for (network, own) in
        [("default", "10.244.0.0/16"), ("blue_net", "10.10.0.0/16"), ("red_net", "10.10.0.0/16")]
    {
        let pass = row(&strict.northbound, Table::Acl, &format!("AdvertisedNetwork/{network}"));
        assert!(text(pass, "match").contains(own), "{pass:?}");
    }
    let drops: Vec<&str> =
        strict.filter["advertised-networks"].rules.iter().map(|rule| rule.text.as_str()).collect();
    assert_eq!(drops, ["ct state new ip daddr 10.10.0.0/16 drop"], "nor does the node itself send there");

    let loose = zone_with(&Settings { isolation: Isolation::Loose, ..settings() }, &world, &local);
    assert!(!has(&loose, Table::Acl, "AdvertisedNetwork/deny"));
    let nobody = zone(&two_networks(), &local);
    assert!(!has(&nobody, Table::Acl, "AdvertisedNetwork/deny"));
}

#[test]
fn a_switch_lets_its_last_rule_go() {
    let mut settings = settings();
    settings.cluster_subnets.truncate(1);
    settings.service_subnets.truncate(1);
    let zone = zone_with(&settings, &world(), &local_with_patches());
    let switch = row(&zone.northbound, Table::LogicalSwitch, "one");
    assert_eq!(switch.columns["acls"], Column::Rows(BTreeSet::new()), "named, although there is none");
}

#[test]
fn a_network_hears_what_the_peers_of_its_vrf_tell() {
    let (world, mut local) = (blue_advertised(), local_with_patches());
    let without_vrf = zone(&world, &local);
    assert_eq!(table(&without_vrf, "blue_net"), Some(254));
    assert_eq!(table(&without_vrf, "red_net"), None, "red is not advertised");
    assert_eq!(judge(&without_vrf, "blue_net", "203.0.113.0/24", "172.30.0.1"), Ok(1));
    let own = judge(&without_vrf, "blue_net", "10.10.3.0/24", "172.30.0.13");
    assert_eq!(
        own,
        Err("it lies in the cluster's own range 10.10.0.0/16".to_owned()),
        "the overlay leads there"
    );
    let other = judge(&without_vrf, "default", "10.10.3.0/24", "172.30.0.13");
    assert_eq!(other, Err("it lies in the range 10.10.0.0/16 of network blue_net".to_owned()));

    local.has_vrf = true;
    assert_eq!(table(&zone(&world, &local), "blue_net"), Some(1001));
}

#[test]
fn without_overlay_there_are_no_tunnels_and_routes_between_nodes_are_learned() {
    let zone = zone(&blue_routed("disabled"), &local_with_patches());
    assert!(!has(&zone, Table::LogicalSwitch, "blue_net_transit_switch"));
    assert!(has(&zone, Table::LogicalSwitch, "transit_switch"), "the default network has tunnels");
    assert_eq!(judge(&zone, "blue_net", "10.10.3.0/24", "172.30.0.13"), Ok(1));
    for own in [SUBNET, "10.10.2.128/25"] {
        let refused = judge(&zone, "blue_net", own, "172.30.0.1");
        assert_eq!(refused, Err(format!("it lies in the cluster's own range {SUBNET}")));
    }
    let routes = routes(&zone, "GR_blue_net_one");
    assert!(routes.contains(SUBNET) && !routes.contains("10.10.0.0/16"), "{routes:?}");
}

#[test]
fn without_overlay_pods_see_each_others_addresses_whatever_the_world_sees() {
    let exempt = |zone: &Zone| match &nat(zone, "blue_net").columns["exempted_ext_ips"] {
        Column::Rows(rows) => rows.iter().next().cloned(),
        other => panic!("{other:?}"),
    };
    let local = local_with_patches();
    let hidden = zone(&blue_routed("enabled"), &local);
    assert_eq!(text(nat(&hidden, "blue_net"), "match"), "");
    let set = hidden.northbound.get(&exempt(&hidden).expect("a set")).expect("a set");
    assert_eq!(set.columns["addresses"], Column::Texts(["10.10.0.0/16".to_owned()].into()));
    assert!(flow(&hidden, 99, "in_port=7,dl_src=02:00:00:00:00:12,ip,nw_src=172.30.0.12").is_some());

    let shown = zone(&blue_routed("disabled"), &local);
    assert!(text(nat(&shown, "blue_net"), "match").starts_with("ip4.dst == $a"));
    assert_eq!(exempt(&shown), None);

    let mut nobody_told = blue_routed("disabled");
    nobody_told.frr_configurations.clear();
    assert!(exempt(&zone(&nobody_told, &local)).is_some(), "nobody knows the way back yet");
}

/// Peers may tell anything: the node's own programs find pods and services as before.
#[test]
fn the_node_speaks_with_all_pods_as_one_of_them_whatever_peers_tell() {
    let no_overlay = Some(NoOverlay { outbound_snat: true, routing: Routing::Managed });
    let routed = Settings { no_overlay, mtu: 1500, ..settings() };
    for settings in [settings(), routed] {
        let zone = zone_with(&settings, &world(), &local_with_patches());
        let own = zone.host.rules.keys().filter(|rule| rule.incoming.as_deref() == Some("lo"));
        let ranges: Vec<String> =
            own.filter(|rule| rule.table == 7).filter_map(|rule| Some(rule.to?.to_string())).collect();
        assert_eq!(ranges, ["10.96.0.0/16", "10.244.0.0/16", "fd00:10:96::/112", "fd00:10:244::/48"]);
        for (range, link) in ranges.iter().zip(["br-ex", "ovn-k8s-mp0"].into_iter().cycle()) {
            let route = zone
                .host
                .routes
                .keys()
                .find(|route| route.table == 7 && route.destination.to_string() == *range);
            assert_eq!(route.map(|route| route.link.as_str()), Some(link), "{range}");
        }
        assert_eq!(has(&zone, Table::LogicalSwitch, "transit_switch"), settings.no_overlay.is_none());
    }
}
