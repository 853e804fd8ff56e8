use std::collections::BTreeMap;

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use underlay_desired::linux::{Link as WantedLink, Sysctl, Vrf};
use underlay_desired::{ObjectRef, Why};
use underlay_net::Family;

use super::*;
use crate::observe::{HeldAddress, Hop, Link};

fn why() -> Why {
    Why::from_object(ObjectRef::cluster("Node", "one"))
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn link(index: u32) -> Link {
    Link {
        index,
        mtu: 1500,
        mac: Some(Mac([2, 0, 0, 0, 0, 1])),
        up: true,
        master: None,
        vrf: None,
        ours: false,
    }
}

fn route(destination: &str, link: &str, gateway: Option<&str>) -> Route {
    Route {
        table: 254,
        destination: net(destination),
        link: link.to_owned(),
        gateway: gateway.map(|text| text.parse().unwrap()),
        source: None,
        mtu: None,
    }
}

fn held(route: &Route) -> HeldRoute {
    HeldRoute {
        table: route.table,
        destination: route.destination,
        priority: default_priority(&route.destination),
        source: route.source,
        mtu: route.mtu,
        hops: vec![Hop { link: route.link.clone(), gateway: route.gateway }],
    }
}

fn have(links: &[&str]) -> Observed {
    let links = (2..).zip(links).map(|(index, name)| ((*name).to_owned(), link(index))).collect();
    Observed { links, ..Observed::default() }
}

fn want_routes(routes: &[Route]) -> Host {
    Host { routes: routes.iter().map(|route| (route.clone(), why())).collect(), ..Host::default() }
}

#[test]
fn what_is_on_a_missing_link_waits() {
    let mut want = want_routes(&[route("10.1.0.0/16", "gone", None)]);
    want.links.insert("gone".to_owned(), WantedLink { mtu: Some(1400), mac: None, vrf: None, why: why() });
    assert_eq!(diff(&want, &have(&["eth0"])), []);
    assert_eq!(missing_links(&want, &have(&["eth0"])), BTreeSet::from(["gone".to_owned()]));
}

#[test]
fn a_changed_route_is_replaced_and_not_removed() {
    let old = route("10.1.0.0/16", "a", Some("10.0.0.1"));
    let new = route("10.1.0.0/16", "b", Some("10.0.0.2"));
    let mut have = have(&["a", "b"]);
    have.routes = vec![held(&old)];
    assert_eq!(diff(&want_routes(std::slice::from_ref(&new)), &have), [Op::ReplaceRoute(new, 3)]);
}

#[test]
fn where_somebody_else_has_a_route_ours_is_removed_and_added() {
    let old = route("10.1.0.0/16", "a", Some("10.0.0.1"));
    let new = route("10.1.0.0/16", "b", None);
    let mut have = have(&["a", "b"]);
    have.routes = vec![held(&old)];
    have.contested.insert((254, old.destination));
    let ops = diff(&want_routes(std::slice::from_ref(&new)), &have);
    assert_eq!(ops, [Op::DeleteRoute(old_route(&held(&old), &have)), Op::AddRoute(new, 3)]);
}

#[test]
fn what_is_on_a_link_comes_before_what_is_behind_it() {
    let behind = route("10.1.0.0/16", "a", Some("10.1.7.1"));
    let direct = route("10.1.7.0/24", "a", None);
    let ops = diff(&want_routes(&[behind.clone(), direct.clone()]), &have(&["a"]));
    assert_eq!(ops, [Op::AddRoute(direct, 2), Op::AddRoute(behind, 2)]);
}

#[test]
fn bits_beyond_the_prefix_do_not_count() {
    let mut have = have(&["a"]);
    have.routes = vec![held(&route("10.1.0.0/16", "a", None))];
    assert_eq!(diff(&want_routes(&[route("10.1.2.3/16", "a", None)]), &have), []);
}

#[test]
fn a_setting_is_written_if_it_is_there_and_differs() {
    let mut want = Host::default();
    for (name, value) in [("same", "1"), ("other", "1"), ("missing", "1")] {
        want.sysctls.insert(name.to_owned(), Sysctl { value: value.to_owned(), why: why() });
    }
    let mut have = have(&[]);
    have.sysctls = BTreeMap::from([("same".into(), "1".into()), ("other".into(), "0".into())]);
    assert_eq!(diff(&want, &have), [Op::SetSysctl("other".into(), "1".into())]);
}

#[test]
fn what_others_set_is_left_and_what_the_kernel_learned_is_taken_over() {
    let neighbor = |mac| Neighbor {
        link: "a".to_owned(),
        address: "10.0.0.1".parse().unwrap(),
        mac: Mac([2, 0, 0, 0, 0, mac]),
    };
    let want = Host { neighbors: [(neighbor(1), why())].into(), ..Host::default() };
    let with = |mac, ours, permanent| {
        let mut have = have(&["a"]);
        have.neighbors = vec![HeldNeighbor { neighbor: neighbor(mac), ours, permanent }];
        diff(&want, &have)
    };
    assert_eq!(with(1, false, true), []);
    assert_eq!(with(2, true, true), [Op::ReplaceNeighbor(neighbor(1), 2)]);
    assert_eq!(with(1, false, false), [Op::ReplaceNeighbor(neighbor(1), 2)]);
    assert_eq!(
        with(2, false, true),
        [Op::AddNeighbor(neighbor(1), 2)],
        "the kernel refuses, and that is told"
    );
}

#[test]
fn a_vrf_is_made_before_a_link_belongs_to_it_and_nobody_elses_is_touched() {
    let wanted = WantedLink { mtu: None, mac: None, vrf: Some("red".to_owned()), why: why() };
    let vrf = |table| Vrf { table, why: why() };
    let want = Host {
        vrfs: [("red".to_owned(), vrf(1001))].into(),
        links: [("a".to_owned(), wanted)].into(),
        ..Host::default()
    };
    let join = Op::SetLink(LinkChange {
        name: "a".to_owned(),
        index: 2,
        mtu: None,
        mac: None,
        vrf: Some("red".to_owned()),
    });
    let add = Op::AddVrf("red".to_owned(), 1001);
    let mut have = have(&["a"]);
    assert_eq!(diff(&want, &have), [add.clone(), join.clone()]);

    have.links.insert("red".to_owned(), Link { vrf: Some(1001), ours: true, ..link(7) });
    assert_eq!(diff(&want, &have), [join]);
    have.links.get_mut("a").unwrap().master = Some(7);
    assert_eq!(diff(&want, &have), []);
    assert_eq!(diff(&Host::default(), &have), [Op::DeleteVrf("red".to_owned(), 7)]);

    have.links.get_mut("red").unwrap().vrf = Some(1002);
    let anew = [Op::DeleteVrf("red".to_owned(), 7), add.clone()];
    assert_eq!(diff(&want, &have), anew, "the kernel lets the link go with it; the next turn sees that");

    have.links.get_mut("red").unwrap().ours = false;
    assert_eq!(diff(&want, &have), [add], "the kernel refuses, and that is told");
    assert_eq!(diff(&Host::default(), &have), []);
}

/// What the kernel would have after these changes.
fn after(have: &Observed, ops: &[Op]) -> Observed {
    let mut have = have.clone();
    for op in ops {
        match op {
            Op::DeleteRoute(old) => {
                have.routes.retain(|held| old_route(held, &have_links(&have.links)) != *old);
            }
            Op::DeleteAddress(old, _) => have.addresses.retain(|held| held.address != *old),
            Op::AddAddress(new, _) => have.addresses.push(HeldAddress { address: new.clone(), ours: true }),
            Op::ReplaceAddress(new, _) => {
                have.addresses.retain(|held| (&held.address.link, held.address.net) != (&new.link, new.net));
                have.addresses.push(HeldAddress { address: new.clone(), ours: true });
            }
            Op::AddRoute(new, _) => have.routes.push(held(new)),
            Op::ReplaceRoute(new, _) => {
                have.routes.retain(|held| (held.table, held.destination) != (new.table, new.destination));
                have.routes.push(held(new));
            }
            Op::AddTableEnd(new) => _ = have.table_ends.insert(*new),
            Op::DeleteTableEnd(old) => _ = have.table_ends.remove(old),
            Op::AddRule(new) => _ = have.rules.insert(new.clone()),
            Op::DeleteRule(old) => _ = have.rules.remove(old),
            other => panic!("{other} is not part of this test"),
        }
    }
    have
}

fn have_links(links: &BTreeMap<String, Link>) -> Observed {
    Observed { links: links.clone(), ..Observed::default() }
}

fn any_link() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("b".to_owned())]
}

fn any_route() -> impl Strategy<Value = Route> {
    let destination = prop_oneof![Just("10.1.0.0/16"), Just("10.2.0.0/16"), Just("fd00::/64")];
    (destination, any_link(), 1..3u32, proptest::option::of(1400..1402u32))
        .prop_map(|(destination, link, table, mtu)| Route { table, mtu, ..route(destination, &link, None) })
}

fn any_address() -> impl Strategy<Value = Address> {
    let net = prop_oneof![Just("10.0.0.1/24"), Just("10.0.0.2/24"), Just("fd00::1/64")].prop_map(net);
    (any_link(), net, any::<bool>()).prop_map(|(link, net, deprecated)| Address { link, net, deprecated })
}

fn any_rule() -> impl Strategy<Value = Rule> {
    (0..3u32, proptest::option::of(1..3u32), 1..3u32).prop_map(|(priority, mark, table)| Rule {
        priority,
        family: Family::V4,
        mark,
        to: None,
        incoming: None,
        table,
    })
}

fn any_end() -> impl Strategy<Value = TableEnd> {
    (1..3u32, prop_oneof![Just(Family::V4), Just(Family::V6)])
        .prop_map(|(table, family)| TableEnd { table, family })
}

proptest! {
    #[test]
    fn one_turn_is_enough_and_others_keep_what_they_have(
        routes in btree_set(any_route(), 0..6),
        addresses in btree_set(any_address(), 0..6),
        rules in btree_set(any_rule(), 0..6),
        ends in btree_set(any_end(), 0..3),
        old_ends in btree_set(any_end(), 0..3),
        old_routes in vec(any_route(), 0..6),
        old_addresses in vec((any_address(), any::<bool>()), 0..6),
        old_rules in btree_set(any_rule(), 0..6),
    ) {
        // One route to each place, and one address in each: the kernel has no more.
        let one_each = |routes: &mut dyn Iterator<Item = Route>| -> BTreeMap<_, _> {
            routes.map(|route| ((route.table, route.destination), route)).collect()
        };
        let want = Host {
            routes: one_each(&mut routes.into_iter()).into_values().map(|route| (route, why())).collect(),
            addresses: addresses
                .into_iter()
                .map(|address| ((address.link.clone(), address.net), address))
                .collect::<BTreeMap<_, _>>()
                .into_values()
                .map(|address| (address, why()))
                .collect(),
            rules: rules.into_iter().map(|rule| (rule, why())).collect(),
            table_ends: ends.into_iter().map(|end| (end, why())).collect(),
            ..Host::default()
        };
        let mut have = have(&["a", "b"]);
        have.routes = one_each(&mut old_routes.into_iter()).values().map(held).collect();
        have.rules = old_rules;
        have.table_ends = old_ends;
        have.addresses = old_addresses
            .into_iter()
            .map(|(address, ours)| {
                let deprecated = address.deprecated && matches!(address.net, IpNet::V6(_));
                let address = Address { deprecated, ..address };
                ((address.link.clone(), address.net), HeldAddress { address, ours })
            })
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect();
        let after = after(&have, &diff(&want, &have));
        prop_assert_eq!(diff(&want, &after), []);
        for held in have.addresses.iter().filter(|held| !held.ours) {
            prop_assert!(after.addresses.contains(held), "{:?} is not ours", held);
        }
    }
}
