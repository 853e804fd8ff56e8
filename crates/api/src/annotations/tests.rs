//! The texts of the ecosystem, and properties that hold for every value and every text.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use underlay_net::Mac;

use super::*;
use crate::Unknown;

mod networks;

/// The text says this value, and the value is written as this text.
#[track_caller]
fn says<A: Annotation + PartialEq + Debug>(text: &str, value: &A) {
    assert_eq!(A::parse(text).as_ref(), Ok(value));
    assert_eq!(value.render(), text);
}

/// The text is refused, and the error names the annotation and the problem.
#[track_caller]
fn refuses<A: Annotation + Debug>(text: &str, problem: &str) {
    let error = A::parse(text).expect_err("it should be refused").to_string();
    assert!(error.starts_with(&format!("annotation {}: ", A::KEY)), "{error}");
    assert!(error.contains(problem), "{error}");
}

fn parsed<T: std::str::FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| parsed(text)).collect()
}

#[test]
fn refused_routes() {
    let refused = RefusedRoutes(BTreeMap::from([("blue".to_owned(), 3), ("default".to_owned(), 123)]));
    says(r#"{"blue":3,"default":123}"#, &refused);
    refuses::<RefusedRoutes>(r#"{"default":"many"}"#, "invalid type");
    refuses::<RefusedRoutes>(r#"{"default":-1}"#, "invalid value");
    assert!(RefusedRoutes::default().is_silent() && !refused.is_silent());
}

#[test]
fn node_subnets() {
    let subnets = NodeSubnets(BTreeMap::from([
        ("cluster_udn_blue".to_owned(), nets(&["10.10.1.0/24"])),
        ("default".to_owned(), nets(&["10.244.0.0/24", "fd00:10:244:1::/64"])),
    ]));
    says(
        r#"{"cluster_udn_blue":["10.10.1.0/24"],"default":["10.244.0.0/24","fd00:10:244:1::/64"]}"#,
        &subnets,
    );
    let single = NodeSubnets::parse(r#"{"default":"10.244.0.0/24"}"#).unwrap();
    assert_eq!(single.0["default"], nets(&["10.244.0.0/24"]), "a single text is a list of one");
    assert_eq!(single.render(), r#"{"default":["10.244.0.0/24"]}"#, "and becomes one");
    refuses::<NodeSubnets>(
        r#"{"default":["10.244.0.0"]}"#,
        r#"network default: "10.244.0.0" is not a subnet"#,
    );
    refuses::<NodeSubnets>(r#"{"default":5}"#, "a subnet or a list of subnets");
    refuses::<NodeSubnets>("", "EOF");
}

#[test]
fn the_last_network_takes_the_annotation_with_it() {
    let mut annotations = BTreeMap::from([(NodeSubnets::KEY.to_owned(), "{}".to_owned())]);
    NodeSubnets::default().put(&mut annotations);
    assert!(annotations.is_empty());
    Advertisers::default().put(&mut annotations);
    assert_eq!(annotations[Advertisers::KEY], "[]", "this one stays, with an empty list");
}

#[test]
fn node_numbers() {
    says("2", &NodeId(2));
    says("5000", &NodeId(5000));
    for text in ["0", "1", "5001", "-1", "two", ""] {
        refuses::<NodeId>(text, "is not a number from 2 to 5000");
    }
}

#[test]
fn addresses_of_both_families() {
    let transit =
        TransitAddresses(Pair { ipv4: Some(parsed("100.88.0.2/16")), ipv6: Some(parsed("fd97::2/64")) });
    says(r#"{"ipv4":"100.88.0.2/16","ipv6":"fd97::2/64"}"#, &transit);
    says(
        r#"{"ipv4":"172.18.0.2/16"}"#,
        &PrimaryAddresses(Pair { ipv4: Some(parsed("172.18.0.2/16")), ipv6: None }),
    );
    let masquerade = Pair { ipv4: Some(parsed("169.254.0.0/17")), ipv6: Some(parsed("fd69::/112")) };
    says(r#"{"ipv4":"169.254.0.0/17","ipv6":"fd69::/112"}"#, &MasqueradeSubnets(masquerade));
    assert_eq!(masquerade.nets().collect::<Vec<_>>(), nets(&["169.254.0.0/17", "fd69::/112"]));
    refuses::<PrimaryAddresses>("{}", "has neither ipv4 nor ipv6");
    refuses::<PrimaryAddresses>(r#"{"ipv4":"fd97::2/64"}"#, r#""fd97::2/64" is not ipv4"#);
    refuses::<TransitAddresses>(r#"{"ipv6":"fd97::2"}"#, "is not an address with a prefix length");
}

#[test]
fn what_a_node_says_about_itself() {
    let cidrs = HostCidrs(nets(&["9.0.0.1/8", "172.18.0.2/16"]).into_iter().collect());
    says(r#"["172.18.0.2/16","9.0.0.1/8"]"#, &cidrs);
    says(r#"["172.18.0.2"]"#, &EncapIps(vec![parsed("172.18.0.2")]));
    let id = "b1f96182-2bdd-42b6-88f9-9a1fc1c85ece";
    says(id, &ChassisId(id.to_owned()));
    refuses::<ChassisId>("", "is empty");
    refuses::<EncapIps>(r#"["172.18.0.2/16"]"#, r#""172.18.0.2/16" is not an IP address"#);
}

#[test]
fn packet_sizes_are_checked_unless_said_otherwise() {
    let mut annotations = BTreeMap::new();
    GatewayMtuSupport(false).put(&mut annotations);
    assert_eq!(annotations[GatewayMtuSupport::KEY], "false");
    GatewayMtuSupport(true).put(&mut annotations);
    assert!(annotations.is_empty());
    assert_eq!(GatewayMtuSupport::parse("perhaps"), Ok(GatewayMtuSupport(true)));
}

#[test]
fn gateways() {
    let gateway = Gateway {
        mode: GatewayMode::Shared,
        bridge: "br-ex".to_owned(),
        interface: "br-ex_n1".to_owned(),
        mac: parsed("02:42:ac:12:00:02"),
        addresses: nets(&["172.18.0.2/16"]),
        next_hops: vec![parsed("172.18.0.1")],
        node_ports: true,
        vlan: Some(0),
        egress: None,
    };
    let text = concat!(
        r#"{"default":{"mode":"shared","bridge-id":"br-ex","interface-id":"br-ex_n1","#,
        r#""mac-address":"02:42:ac:12:00:02","ip-addresses":["172.18.0.2/16"],"ip-address":"172.18.0.2/16","#,
        r#""next-hops":["172.18.0.1"],"next-hop":"172.18.0.1","node-port-enable":"true","vlan-id":"0"}}"#
    );
    says(text, &L3Gateway::Enabled(gateway));
    says(r#"{"default":{"mode":""}}"#, &L3Gateway::Disabled);
    refuses::<L3Gateway>("{}", r#"has no "default" network"#);
    refuses::<L3Gateway>(
        r#"{"default":{"mode":"both"}}"#,
        r#"mode "both" is none of shared, local and empty"#,
    );
    refuses::<L3Gateway>(r#"{"default":{"mode":"local"}}"#, "has no ip-addresses");
    refuses::<L3Gateway>(
        &text.replace(r#""vlan-id":"0""#, r#""vlan-id":"4096""#),
        "vlan-id \"4096\" is not a number",
    );
    refuses::<L3Gateway>(&text.replace("02:42", "02-42"), "is not a MAC address");
    refuses::<L3Gateway>(
        &text.replace(r#":"172.18.0.2/16""#, r#":"172.18.0.3/16""#),
        "is not the first of ip-addresses",
    );
}

#[test]
fn pod_networks() {
    let locked = PodNetwork {
        addresses: nets(&["10.244.1.5/24"]),
        mac: parsed("0a:58:0a:f4:01:05"),
        gateways: vec![],
        routes: vec![PodRoute { destination: parsed("10.244.0.0/16"), next_hop: Some(parsed("10.244.1.1")) }],
        link_local_gateway: None,
        tunnel_id: None,
        role: Some(Role::InfrastructureLocked),
        other: Unknown::new(),
    };
    let primary = PodNetwork {
        addresses: nets(&["10.100.0.5/16", "fd10::5/64"]),
        mac: parsed("0a:58:0a:64:00:05"),
        gateways: vec![parsed("10.100.0.1"), parsed("fd10::1")],
        routes: vec![],
        link_local_gateway: Some(parsed("fe80::858:aff:fe64:1")),
        tunnel_id: std::num::NonZeroU32::new(12),
        role: Some(Role::Primary),
        other: Unknown::new(),
    };
    let text = concat!(
        r#"{"default":{"ip_addresses":["10.244.1.5/24"],"mac_address":"0a:58:0a:f4:01:05","#,
        r#""routes":[{"dest":"10.244.0.0/16","nextHop":"10.244.1.1"}],"ip_address":"10.244.1.5/24","#,
        r#""role":"infrastructure-locked"},"#,
        r#""ns1/blue":{"ip_addresses":["10.100.0.5/16","fd10::5/64"],"mac_address":"0a:58:0a:64:00:05","#,
        r#""gateway_ips":["10.100.0.1","fd10::1"],"ipv6_lla_gateway_ip":"fe80::858:aff:fe64:1","#,
        r#""tunnel_id":12,"role":"primary"}}"#
    );
    let networks = [("default".to_owned(), locked), ("ns1/blue".to_owned(), primary)];
    says(text, &PodNetworks(BTreeMap::from(networks)));
}

#[test]
fn pods_single_copies_and_oddities() {
    let entry = |fields: &str| format!(r#"{{"default":{{"mac_address":"0a:58:0a:f4:01:05"{fields}}}}}"#);
    let read = |fields: &str| PodNetworks::parse(&entry(fields)).unwrap().0.remove("default").unwrap();
    let only_copies = read(r#","ip_address":"10.244.1.5/24","gateway_ip":"10.244.1.1""#);
    assert_eq!(only_copies.addresses, nets(&["10.244.1.5/24"]));
    assert_eq!(only_copies.gateways, [parsed::<IpAddr>("10.244.1.1")]);
    // A network without address management, as others write it.
    let bare = r#"{"default":{"ip_addresses":null,"mac_address":"0a:58:0a:f4:01:05"}}"#;
    assert_eq!(PodNetworks::parse(bare).unwrap().render(), bare);
    let later = read(r#","ipam_mode":"dhcp","role":"later""#);
    assert_eq!(later.other["ipam_mode"], "dhcp");
    assert_eq!(later.role, Some(Role::Other("later".to_owned())));
    for (fields, problem) in [
        (
            r#","ip_addresses":["10.0.0.1/8"],"ip_address":"10.0.0.2/8""#,
            "ip_address \"10.0.0.2/8\" is not the first",
        ),
        (
            r#","routes":[{"dest":"0.0.0.0/0","nextHop":"10.0.0.1"}]"#,
            "a default route belongs into gateway_ips",
        ),
        (r#","routes":[{"dest":"10.0.0.0/8","nextHop":"fd10::1"}]"#, "is of the other family"),
        (r#","ipv6_lla_gateway_ip":"fd10::1""#, "is not a link-local address"),
        (r#","tunnel_id":-1"#, "invalid value: integer `-1`"),
    ] {
        refuses::<PodNetworks>(&entry(fields), problem);
    }
    refuses::<PodNetworks>(r#"{"default":{}}"#, "network default: \"\" is not a MAC address");
}

#[test]
fn networks_and_what_is_generated_for_them() {
    says("0", &NetworkId::DEFAULT);
    says("4095", &NetworkId(4095));
    refuses::<NetworkId>("4096", "is not a number from 0 to 4095");
    says("cluster_udn_blue", &NetworkName("cluster_udn_blue".to_owned()));
    refuses::<NetworkName>("", "is empty");
    says(r#"["blue","red"]"#, &Advertisers(["red", "blue"].map(str::to_owned).into()));
    refuses::<Advertisers>(r#"{"blue":true}"#, "expected a sequence");
    let from = GeneratedFrom { advertisements: "ra".into(), source: "peers".into(), node: "n1".into() };
    says("ra/peers/n1", &from);
    for text in ["", "ra/peers", "ra//n1", "a/b/c/d"] {
        refuses::<GeneratedFrom>(text, "three names");
    }
}

#[test]
fn an_objects_annotation_is_read_if_it_is_there() {
    let mut object = ObjectMeta::default();
    assert_eq!(NodeId::of(&object), Ok(None));
    object.annotations.get_or_insert_default().insert(NodeId::KEY.to_owned(), "7".to_owned());
    assert_eq!(NodeId::of(&object), Ok(Some(NodeId(7))));
    object.annotations.get_or_insert_default().insert(NodeId::KEY.to_owned(), "x".repeat(1000));
    let error = NodeId::of(&object).unwrap_err().to_string();
    assert!(error.len() < 200, "the text is repeated only as far as it helps: {error}");
}

prop_compose! {
    fn net_of(v4: bool)(address: u128, length in 0..=if v4 { 32_u8 } else { 128 }) -> IpNet {
        if v4 {
            let low = u32::try_from(address & u128::from(u32::MAX)).unwrap();
            ipnet::Ipv4Net::new(low.into(), length).unwrap().into()
        } else {
            ipnet::Ipv6Net::new(address.into(), length).unwrap().into()
        }
    }
}

fn net() -> impl Strategy<Value = IpNet> {
    any::<bool>().prop_flat_map(net_of)
}

fn mac() -> impl Strategy<Value = Mac> {
    any::<[u8; 6]>().prop_map(Mac)
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9.-]{0,8}"
}

fn pair() -> impl Strategy<Value = Pair> {
    let pick = |(v4, v6): (Option<IpNet>, Option<IpNet>)| {
        let mut pair = Pair::default();
        for net in v4.into_iter().chain(v6) {
            match net {
                IpNet::V4(net) => pair.ipv4 = Some(net),
                IpNet::V6(net) => pair.ipv6 = Some(net),
            }
        }
        pair
    };
    let pairs = (option::of(net_of(true)), option::of(net_of(false))).prop_map(pick);
    pairs.prop_filter("one family at least", |pair| !pair.is_empty())
}

fn route() -> impl Strategy<Value = PodRoute> {
    let both = any::<bool>().prop_flat_map(|v4| (net_of(v4), option::of(net_of(v4))));
    let routes = both.prop_map(|(destination, next_hop)| PodRoute {
        destination: destination.trunc(),
        next_hop: next_hop.map(|net| net.addr()),
    });
    routes.prop_filter("not a default route", |route| !route.destination.addr().is_unspecified())
}

prop_compose! {
    fn pod_network()(
        addresses in vec(net(), 0..3),
        mac in mac(),
        gateways in vec(any::<IpAddr>(), 0..3),
        routes in vec(route(), 0..3),
        link_local in option::of(any::<u64>()),
        tunnel_id: u32,
        role in option::of(name()),
        later in btree_map("later_[a-z]", name(), 0..2),
    ) -> PodNetwork {
        PodNetwork {
            addresses,
            mac,
            gateways,
            routes,
            link_local_gateway: link_local.map(|low| Ipv6Addr::from((0xfe80 << 112) | u128::from(low))),
            tunnel_id: std::num::NonZeroU32::new(tunnel_id),
            role: role.as_deref().map(Role::from),
            other: later.into_iter().map(|(key, value)| (key, value.into())).collect(),
        }
    }
}

prop_compose! {
    fn gateway()(
        shared: bool,
        names in (name(), name()),
        mac in mac(),
        addresses in vec(net(), 1..3),
        next_hops in vec(any::<IpAddr>(), 0..3),
        node_ports: bool,
        vlan in option::of(0..=4095_u16),
        egress in option::of((name(), any::<[u8; 6]>(), vec(net(), 0..3))),
    ) -> Gateway {
        let mode = if shared { GatewayMode::Shared } else { GatewayMode::Local };
        let egress = egress.map(|(interface, mac, addresses)| EgressGateway { interface, mac: Mac(mac), addresses });
        Gateway { mode, bridge: names.0, interface: names.1, mac, addresses, next_hops, node_ports, vlan, egress }
    }
}

fn comes_back<A: Annotation + PartialEq + Debug>(value: &A) -> Result<(), TestCaseError> {
    let again = A::parse(&value.render());
    prop_assert_eq!(again.as_ref(), Ok(value));
    Ok(())
}

/// Reads a text as every annotation there is. What comes of it does not matter.
fn read_as_all(text: &str) {
    let _ = (
        NodeSubnets::parse(text),
        NodeId::parse(text),
        TransitAddresses::parse(text),
        HostCidrs::parse(text),
    );
    let _ = (PrimaryAddresses::parse(text), MasqueradeSubnets::parse(text), ChassisId::parse(text));
    let _ = (
        EncapIps::parse(text),
        GatewayMtuSupport::parse(text),
        L3Gateway::parse(text),
        PodNetworks::parse(text),
    );
    let _ = (
        NetworkId::parse(text),
        NetworkName::parse(text),
        Advertisers::parse(text),
        GeneratedFrom::parse(text),
    );
    let _ = (TunnelKeys::parse(text), NetworkIds::parse(text), Layer2TunnelIds::parse(text));
    let _ = (NetworkRequests::parse(text), DefaultNetworkRequest::parse(text), PrimaryClaim::parse(text));
}

proptest! {
    #[test]
    fn values_of_nodes_come_back(
        subnets in btree_map(name(), vec(net().prop_map(|net| net.trunc()), 0..3), 0..3),
        id in NodeId::FIRST..=NodeId::LAST,
        pair in pair(),
        cidrs in btree_set(net(), 0..4),
        addresses in vec(any::<IpAddr>(), 0..3),
        word in name(),
        support: bool,
        gateway in gateway(),
    ) {
        comes_back(&NodeSubnets(subnets))?;
        comes_back(&NodeId(id))?;
        comes_back(&TransitAddresses(pair))?;
        comes_back(&PrimaryAddresses(pair))?;
        comes_back(&MasqueradeSubnets(pair))?;
        comes_back(&HostCidrs(cidrs))?;
        comes_back(&EncapIps(addresses))?;
        comes_back(&ChassisId(word))?;
        comes_back(&GatewayMtuSupport(support))?;
        comes_back(&L3Gateway::Enabled(gateway))?;
    }

    #[test]
    fn values_of_pods_and_networks_come_back(
        networks in btree_map(name(), pod_network(), 0..3),
        id in 0..=NetworkId::LAST,
        names in btree_set(name(), 0..3),
        word in name(),
    ) {
        comes_back(&PodNetworks(networks))?;
        comes_back(&NetworkId(id))?;
        comes_back(&Advertisers(names))?;
        comes_back(&NetworkName(word.clone()))?;
        comes_back(&GeneratedFrom { advertisements: word.clone(), source: word.clone(), node: word })?;
    }

    #[test]
    fn no_text_panics(text in ".*") {
        read_as_all(&text);
    }

    #[test]
    fn no_broken_text_panics(
        network in pod_network(),
        gateway in gateway(),
        place: prop::sample::Index,
        length: prop::sample::Index,
        patch in "[\\[\\]{}\",:/.0-9a-z-]{0,3}",
    ) {
        let networks = PodNetworks(BTreeMap::from([("default".to_owned(), network)])).render();
        for text in [networks, L3Gateway::Enabled(gateway).render()] {
            let start = place.index(text.len());
            let end = start + length.index(text.len() - start + 1);
            // The texts are ASCII: every place is between two characters.
            read_as_all(&format!("{}{patch}{}", &text[..start], &text[end..]));
        }
    }
}
