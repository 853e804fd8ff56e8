//! Resources as users write them, and what they come to.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::cluster::fabric;
use underlay_api::annotations::{Annotation, GeneratedFrom};
use underlay_desired::frr::{Community, Password, Peer, Receive, Remote, Vrf};

fn resource(name: &str, spec: &str) -> FRRConfiguration {
    let indented = spec.replace('\n', "\n  ");
    let text = format!("metadata:\n  namespace: frr\n  name: {name}\nspec:\n  {indented}\n");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn merged(resources: &[FRRConfiguration]) -> Merged {
    merged_on(true, resources)
}

fn merged_on(has_vrf: bool, resources: &[FRRConfiguration]) -> Merged {
    let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), "n1".to_owned())]);
    let secret = |object| Secret::read(serde_json::from_value(object).expect("a secret"));
    let tor = secret(json!({ "type": "kubernetes.io/basic-auth", "data": { "password": "aHVudGVyMg==" } }));
    let secrets = BTreeMap::from([
        (Key::new("frr", "tor"), tor),
        (Key::new("frr", "opaque"), secret(json!({ "type": "Opaque" }))),
        (Key::new("frr", "no"), Secret::missing()),
    ]);
    merge(Host { labels: &labels, addresses: &[[10, 0, 0, 7].into()], has_vrf }, resources, &secrets)
}

/// Which resources are left out, where and why.
fn objections(merged: &Merged) -> Vec<(&str, &str, &str)> {
    let conflicts = merged.conflicts.iter();
    conflicts.map(|one| (one.object.name.as_str(), one.field.as_str(), one.reason.as_str())).collect()
}

/// Only what is wrong, of one resource with one neighbour that has these fields.
fn wrong(neighbor: &str) -> String {
    let spec = format!("bgp: {{routers: [{{asn: 64512, neighbors: [{{{neighbor}}}]}}]}}");
    let merged = merged(&[resource("a", &spec)]);
    assert!(merged.config.routers.is_empty() != merged.conflicts.is_empty(), "all or nothing");
    objections(&merged).iter().flat_map(|(_, field, reason)| [*field, ": ", *reason, "\n"]).collect()
}

const BASE: &str = "
bgp:
  bfdProfiles: [{name: fast, transmitInterval: 100}]
  routers:
  - asn: 64512
    id: 10.0.0.1
    neighbors:
    - {address: 10.0.0.2, asn: 64513, port: 179, holdTime: 1m30s, bfdProfile: fast,
       passwordSecret: {name: tor}}
";

const GENERATED: &str = "
nodeSelector: {matchLabels: {kubernetes.io/hostname: n1}}
bgp:
  routers:
  - asn: 64512
    prefixes: [10.244.1.0/24, 'fd01::/64']
    imports: [{vrf: blue}]
    neighbors:
    - address: 10.0.0.2
      asn: 64513
      holdTime: 90s
      bfdProfile: fast
      passwordSecret: {name: tor, namespace: frr}
      toAdvertise:
        allowed: {prefixes: [10.244.1.0/24]}
        withCommunity: [{community: '64512:100', prefixes: [10.244.1.0/24]}]
        withLocalPref: [{localPref: 300, prefixes: [10.244.1.0/24]}]
      toReceive: {allowed: {prefixes: [{prefix: 10.244.0.0/16, ge: 24, le: 24}]}}
  - {asn: 64512, vrf: blue, imports: [{vrf: default}]}
";

#[test]
fn of_two_nodes_in_a_mesh_the_one_with_the_lower_address_waits() {
    let spec = "bgp: {routers: [{asn: 64512, neighbors: [{address: 10.0.0.6, asn: 64512},
                {address: 10.0.0.8, asn: 64512}, {address: fd00::8, asn: 64512}]}]}";
    let users = resource("ovnk-managed-users", spec);
    let mut mesh = users.clone();
    mesh.metadata.labels = Some([(fabric::LABEL.to_owned(), fabric::FABRIC.to_owned())].into());
    let waits = |resources: &[FRRConfiguration]| -> Vec<(String, bool)> {
        let merged = merged(resources);
        let neighbors = merged.config.routers.values().flat_map(|router| &router.neighbors);
        neighbors.map(|(peer, neighbor)| (peer.to_string(), neighbor.session.passive)).collect()
    };
    let waiting = |four: bool| [("10.0.0.6", false), ("10.0.0.8", four), ("fd00::8", false)];
    let waiting = |four| waiting(four).map(|(peer, waits)| (peer.to_owned(), waits));
    assert_eq!(waits(std::slice::from_ref(&users)), waiting(false), "what users write means what it says");
    assert_eq!(waits(std::slice::from_ref(&mesh)), waiting(true), "it has no address of the other family");
    let mut generated = resource("ovnk-generated-x", spec);
    assert_eq!(waits(&[generated.clone(), mesh]), waiting(true), "whoever else speaks of the same sessions");
    let from = |source| BTreeMap::from([(GeneratedFrom::KEY.to_owned(), format!("ra/{source}/n1"))]);
    generated.metadata.annotations = Some(from("ovnk-managed-2abff1484a"));
    assert_eq!(waits(std::slice::from_ref(&generated)), waiting(true), "also while the mesh is written anew");
    generated.metadata.annotations = Some(from("tor"));
    assert_eq!(waits(std::slice::from_ref(&generated)), waiting(false));
}

#[test]
fn parts_of_one_neighbour_add_up() {
    let merged = merged(&[resource("base", BASE), resource("generated", GENERATED)]);
    assert_eq!(objections(&merged), []);
    let router = &merged.config.routers[&Vrf::new("")];
    assert_eq!(router.prefixes.len(), 2);
    assert_eq!(router.imports.keys().map(Vrf::name).collect::<Vec<_>>(), ["blue"]);
    let neighbor = &router.neighbors[&Peer::Address([10, 0, 0, 2].into())];
    assert_eq!(neighbor.session.remote, Remote::Asn(64513));
    assert_eq!((neighbor.session.timers.keepalive, neighbor.session.timers.hold), (30, 90));
    assert_eq!(neighbor.session.password.as_ref().map(Password::reveal), Some("hunter2"));
    assert_eq!(neighbor.why.objects().count(), 2);
    let (_, tags) = neighbor.advertise.first_key_value().expect("one prefix");
    assert_eq!(tags.local_preference, Some(300));
    assert!(tags.communities.contains(&Community::Standard(64512, 100)));
    assert!(matches!(&neighbor.receive, Receive::Only(ranges) if ranges.len() == 1));
    assert!(merged.config.routers[&Vrf::new("blue")].imports.contains_key(&Vrf::new("default")));
}

#[test]
fn a_kernel_without_vrfs_hears_only_of_those_with_neighbours() {
    let talks = "bgp: {routers: [{asn: 64512, vrf: red, imports: [{vrf: default}, {vrf: blue}],
      neighbors: [{address: 10.9.0.2, asn: 64513}]}]}";
    let resources = [resource("a", BASE), resource("b", GENERATED), resource("c", talks)];
    for merged in [
        merged_on(false, &resources),
        merged_on(false, &resources).without(&reference(&resources[2]), "spec", "refused"),
    ] {
        let config = &merged.config;
        assert!(!config.routers.contains_key(&Vrf::new("blue")), "{config:?}");
        let default = &config.routers[&Vrf::new("")];
        assert!(default.imports.is_empty() && !default.prefixes.is_empty(), "{default:?}");
        if let Some(red) = config.routers.get(&Vrf::new("red")) {
            assert_eq!(red.imports.keys().map(Vrf::name).collect::<Vec<_>>(), ["default"]);
        }
    }
    assert!(merged_on(false, &resources).config.routers.contains_key(&Vrf::new("red")));
}

#[test]
fn a_resource_for_other_nodes_is_none_of_ours() {
    let other = resource("other", &GENERATED.replace("n1", "n2"));
    assert!(merged(&[other]).is_empty());
}

#[test]
fn the_later_of_two_that_contradict_is_left_out() {
    let other = "bgp: {routers: [{asn: 64599, vrf: red}, {asn: 64599}]}";
    let merged = merged(&[resource("base", BASE), resource("other", other)]);
    let reason = "64599 differs from 64512 of FRRConfiguration frr/base";
    assert_eq!(objections(&merged), [("other", "spec.bgp.routers[default].asn", reason)]);
    assert!(!merged.config.routers.contains_key(&Vrf::new("red")), "not even the part that fits");
}

#[test]
fn passwords_that_differ_are_not_shown() {
    let other = BASE.replace("passwordSecret: {name: tor}", "password: swordfish");
    let merged = merged(&[resource("base", BASE), resource("other", &other)]);
    let text = format!("{merged:?}");
    assert!(!text.contains("swordfish") && !text.contains("hunter2"), "{text}");
    assert_eq!(
        objections(&merged),
        [(
            "other",
            "spec.bgp.routers[default].neighbors[10.0.0.2].password",
            "differs from that of FRRConfiguration frr/base"
        )]
    );
}

#[test]
fn bfd_profiles_of_one_name_are_one_profile() {
    let other = "bgp: {bfdProfiles: [{name: fast, transmitInterval: 200}]}";
    let merged = merged(&[resource("base", BASE), resource("other", other)]);
    assert_eq!(objections(&merged)[0].1, "spec.bgp.bfdProfiles[fast]");
}

#[test]
fn a_prefix_may_come_from_another_resource_and_goes_with_it() {
    let prefixes = "bgp: {routers: [{asn: 64512, prefixes: [10.1.0.0/24]}]}";
    let neighbor = "
bgp:
  routers:
  - asn: 64512
    neighbors: [{address: 10.0.0.9, asn: 1, toAdvertise: {allowed: {prefixes: [10.1.0.0/24]}}}]";
    let together = merged(&[resource("a", prefixes), resource("b", neighbor)]);
    assert_eq!(objections(&together), []);
    let alone = merged(&[resource("b", neighbor)]);
    let field = "spec.bgp.routers[default].neighbors[10.0.0.9].toAdvertise.allowed.prefixes";
    assert_eq!(objections(&alone), [("b", field, "10.1.0.0/24 is not a prefix of the router")]);
    assert!(alone.config.routers.is_empty());
    // The one with the prefix contradicts an earlier one, and takes the one that relies on it along.
    let first = "bgp: {routers: [{asn: 64599}]}";
    let chain = merged(&[resource("0", first), resource("a", prefixes), resource("b", neighbor)]);
    assert_eq!(chain.conflicts.len(), 2, "{:?}", chain.conflicts);
}

#[test]
fn all_wins_over_filtered() {
    let spec = |name: &str, mode: &str| {
        let text = format!(
            "
bgp:
  routers:
  - asn: 64512
    prefixes: [10.1.0.0/24, 10.2.0.0/24]
    neighbors:
    - {{interface: eth0, dynamicASN: external, toAdvertise: {{allowed: {mode}}}, toReceive: {{allowed: {mode}}}}}"
        );
        resource(name, &text)
    };
    let merged = merged(&[spec("a", "{mode: all}"), spec("b", "{mode: filtered}")]);
    let neighbor = &merged.config.routers[&Vrf::new("")].neighbors[&Peer::Interface("eth0".to_owned())];
    assert_eq!(neighbor.advertise.len(), 2);
    assert_eq!(neighbor.receive, Receive::All);
    assert_eq!(neighbor.families.len(), 2);
}

#[test]
fn texts_are_ordered_by_priority_and_then_by_name() {
    let text = |name: &str, priority: i32| {
        resource(name, &format!("raw: {{priority: {priority}, rawConfig: '! {name}'}}"))
    };
    let merged = merged(&[text("a", 10), text("b", 5), text("c", 10)]);
    let texts: Vec<&str> = merged.config.raw.iter().map(|raw| raw.text.as_str()).collect();
    assert_eq!(texts, ["! b", "! a", "! c"]);
}

#[test]
fn what_is_not_carried_out_is_said() {
    for (fields, want) in [
        ("address: 10.0.0.2, asn: 1, addressFamilies: [evpn]", "addressFamilies: is not carried out yet"),
        ("address: 10.0.0.2, asn: 1, brandNew: 1", "brandNew: is not known to this version"),
    ] {
        assert!(wrong(fields).contains(want), "{fields}: {}", wrong(fields));
    }
    let evpn = "bgp: {routers: [{asn: 1, evpn: {advertiseVNIs: All}}]}";
    assert_eq!(objections(&merged(&[resource("a", evpn)]))[0].1, "spec.bgp.routers[default].evpn");
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (fields, want) in [
        ("asn: 1", "has neither address nor interface"),
        ("address: 10.0.0.2, interface: eth0, asn: 1", "has both address and interface"),
        ("address: 10.0.0.2", "asn: neither asn nor dynamicASN is given"),
        ("address: 10.0.0.2, asn: 1, dynamicASN: internal", "dynamicASN: both asn and dynamicASN are given"),
        ("address: 10.0.0.300, asn: 1", "is no IP address"),
        ("address: 10.0.0.2, asn: 1, password: 'a b'", "password: a password has 1 to 80"),
        ("address: 10.0.0.2, asn: 1, passwordSecret: {name: no}", "secret frr/no: does not exist"),
        ("address: 10.0.0.2, asn: 1, passwordSecret: {name: opaque}", "secret frr/opaque: is of type"),
        ("address: 10.0.0.2, asn: 64512, localASN: 5", "localASN: a peer of our own"),
        ("interface: eth0, dynamicASN: internal, localASN: 5", "localASN: a peer of our own"),
        ("address: 10.0.0.2, asn: 1, localASN: 64512", "localASN: is the router's own number"),
        ("address: 10.0.0.2, asn: 1, localASN: 1", "localASN: must be neither 0 nor the peer's number"),
        (
            "address: 10.0.0.2, asn: 1, toAdvertise: {nextHop: {ipv4: 'fd00::1'}}",
            "toAdvertise.nextHop.ipv4: \"fd00::1\" is no IPv4 address",
        ),
        ("address: 10.0.0.2, asn: 1, holdTime: 2s", "holdTime: must be 0 or at least 3 seconds"),
        ("address: 10.0.0.2, asn: 1, holdTime: 9s, keepaliveTime: 10s", "keepaliveTime: is more than"),
        ("address: 10.0.0.2, asn: 1, connectTime: 1ms", "connectTime: must be at least one second"),
        ("address: 10.0.0.2, asn: 1, sourceaddress: 'fd00::1'", "is not of the address family"),
        ("interface: eth0, asn: 1, sourceaddress: 10.0.0.1", "is spoken to from that interface"),
        ("interface: eth0, asn: 1, ebgpMultiHop: true", "ebgpMultiHop: a neighbour by interface"),
        ("address: 10.0.0.2, asn: 1, bfdProfile: no", "bfdProfile: there is no BFD profile no"),
        ("address: 10.0.0.2, asn: 1, toReceive: {allowed: {mode: some}}", "\"some\" is not known"),
        (
            "address: 10.0.0.2, asn: 1, toAdvertise: {withCommunity: [{community: '1:2', prefixes: [10.9.0.0/24]}]}",
            "10.9.0.0/24 is not among the prefixes that may be advertised",
        ),
    ] {
        assert!(wrong(fields).contains(want), "{fields}: {}", wrong(fields));
    }
}

#[test]
fn a_password_that_nobody_has_read_yet_is_asked_for() {
    let later = BASE.replace("name: tor", "name: later");
    let merged = merged(&[resource("base", BASE), resource("later", &later.replace("10.0.0.2", "10.0.0.3"))]);
    assert_eq!(objections(&merged), []);
    assert_eq!(merged.secrets, BTreeSet::from([Key::new("frr", "tor"), Key::new("frr", "later")]));
    assert_eq!(merged.unread, BTreeSet::from([Key::new("frr", "later")]));
}

#[test]
fn a_secret_that_is_not_there_is_still_asked_for() {
    let base = resource("base", &BASE.replace("name: tor", "name: no"));
    let merged = merged(&[base]);
    assert_eq!(merged.conflicts.len(), 1, "{:?}", merged.conflicts);
    assert_eq!(merged.secrets, BTreeSet::from([Key::new("frr", "no")]));
    assert_eq!(merged.unread, BTreeSet::new());
}

#[test]
fn next_hops_and_our_other_number_are_taken_over() {
    let spec = |next_hop: &str| {
        format!(
            "bgp: {{routers: [{{asn: 64512, neighbors: [{{address: 10.0.0.2, asn: 1, localASN: 5, \
            toAdvertise: {{nextHop: {next_hop}}}}}]}}]}}"
        )
    };
    let four = resource("a", &spec("{ipv4: 10.0.0.9}"));
    let six = resource("b", &spec("{ipv6: 'fd00::9'}"));
    let other = resource("c", &spec("{ipv4: 10.0.0.10}"));
    let merged = merged(&[four, six, other]);
    let field = "spec.bgp.routers[default].neighbors[10.0.0.2].toAdvertise.nextHop.ipv4";
    let reason = "10.0.0.10 differs from 10.0.0.9 of FRRConfiguration frr/a, FRRConfiguration frr/b";
    assert_eq!(objections(&merged), [("c", field, reason)]);
    let neighbor = &merged.config.routers[&Vrf::new("")].neighbors[&Peer::Address([10, 0, 0, 2].into())];
    assert_eq!(neighbor.session.local_asn, Some(5));
    assert_eq!(neighbor.next_hop.ipv4, Some([10, 0, 0, 9].into()));
    assert!(neighbor.next_hop.ipv6.is_some());
}

#[test]
fn without_one_resource_its_opponent_is_back() {
    let red = "{raw: {rawConfig: nonsense}, bgp: {routers: [{asn: 1, vrf: red, prefixes: [10.1.0.0/24]}]}}";
    let opponent = "bgp: {routers: [{asn: 2, vrf: red}]}";
    let first = merged(&[resource("a", red), resource("b", opponent)]);
    assert_eq!(first.config.routers[&Vrf::new("red")].asn, 1);
    let object = ObjectRef::namespaced("FRRConfiguration", "frr", "a");
    let second = first.without(&object, "spec.raw.rawConfig", "FRR refuses it");
    assert_eq!(objections(&second), [("a", "spec.raw.rawConfig", "FRR refuses it")]);
    assert_eq!(second.config.routers[&Vrf::new("red")].asn, 2);
    assert!(second.config.raw.is_empty());
}

#[test]
fn a_prefix_of_a_family_that_is_not_exchanged_is_left_aside() {
    assert_eq!(wrong("address: 10.0.0.2, asn: 1, toAdvertise: {allowed: {prefixes: ['fd01::/64']}}"), "");
}

proptest! {
    /// What others write never stops us, and who objects to nothing has all of it.
    #[test]
    fn no_word_of_a_neighbour_makes_us_panic(
        address in "[0-9a-f:./]{0,12}",
        interface in "\\PC{0,8}",
        hold in "\\PC{0,8}",
        prefix in "[0-9a-f:./]{0,12}",
        asn in 0..4_u32,
    ) {
        let neighbor = underlay_api::frr::Neighbor {
            asn,
            address,
            interface,
            hold_time: Some(hold),
            ..Default::default()
        };
        let router = underlay_api::frr::Router {
            asn: 1,
            prefixes: [prefix].into(),
            neighbors: vec![neighbor],
            ..Default::default()
        };
        let mut configuration = FRRConfiguration::default();
        configuration.spec.bgp.routers.push(router.into());
        let merged = merged(&[configuration]);
        prop_assert_eq!(merged.conflicts.is_empty(), !merged.config.routers.is_empty());
    }
}
