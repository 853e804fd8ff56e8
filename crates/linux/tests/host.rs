//! The kernel edge against a real kernel, in a namespace, with `ip` as the witness.

// Helpers of tests may unwrap as tests may.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use underlay_desired::linux::{Address, Host, Link, Neighbor, Route, Rule, Sysctl, TableEnd};
use underlay_desired::{ObjectRef, Why};
use underlay_linux::{Event, Fault, Kernel, NextHop, Report};
use underlay_net::Family;
use underlay_testkit::{Netns, OutputExt};

fn why() -> Why {
    Why::from_object(ObjectRef::cluster("Node", "one"))
}

/// A namespace with two links that are up and reach each other: `left` and `ri.ght`.
fn namespace() -> Netns {
    let netns = Netns::new();
    netns.ip(&["link", "add", "left", "type", "veth", "peer", "name", "ri.ght"]);
    for link in ["left", "ri.ght"] {
        // Link-local addresses would come and change at their own pace.
        netns.ip(&["link", "set", link, "addrgenmode", "none", "up"]);
    }
    netns.ip(&["address", "add", "192.0.2.1/24", "dev", "left"]);
    netns.ip(&["address", "add", "2001:db8::1/64", "dev", "left", "nodad"]);
    netns
}

fn address(link: &str, net: &str, deprecated: bool) -> (Address, Why) {
    (Address { link: link.to_owned(), net: net.parse().unwrap(), deprecated }, why())
}

fn route(table: u32, destination: &str, link: &str, gateway: Option<&str>) -> Route {
    let gateway = gateway.map(|text| text.parse().unwrap());
    let (destination, link) = (destination.parse().unwrap(), link.to_owned());
    Route { table, destination, link, gateway, source: None, mtu: None }
}

fn plan() -> Host {
    let detailed = Route {
        source: Some("10.1.0.1".parse().unwrap()),
        mtu: Some(1380),
        ..route(254, "10.96.0.0/16", "left", Some("192.0.2.9"))
    };
    let rule = |family, mark, to: Option<&str>, incoming: Option<&str>| Rule {
        priority: 6000,
        family,
        mark,
        to: to.map(|net| net.parse().unwrap()),
        incoming: incoming.map(str::to_owned),
        table: 1007,
    };
    let neighbor = |address: &str| Neighbor {
        link: "ri.ght".to_owned(),
        address: address.parse().unwrap(),
        mac: "0a:58:0a:01:00:02".parse().unwrap(),
    };
    let setting = |name: &str, value: &str| (name.to_owned(), Sysctl { value: value.to_owned(), why: why() });
    let link =
        Link { mtu: Some(1400), mac: Some("0a:58:0a:01:00:01".parse().unwrap()), vrf: None, why: why() };
    Host {
        vrfs: BTreeMap::new(),
        links: [("ri.ght".to_owned(), link)].into(),
        addresses: [
            address("ri.ght", "10.1.0.1/24", false),
            address("ri.ght", "fd01::1/64", true),
            address("missing", "10.2.0.1/24", false),
        ]
        .into(),
        routes: [
            detailed,
            route(1007, "0.0.0.0/0", "left", Some("192.0.2.9")),
            route(1007, "::/0", "left", Some("2001:db8::9")),
            route(1007, "fd02::/64", "ri.ght", None),
            route(254, "10.3.0.0/16", "missing", None),
        ]
        .map(|route| (route, why()))
        .into(),
        table_ends: Family::ALL.map(|family| (TableEnd { table: 1007, family }, why())).into(),
        rules: [
            rule(Family::V4, Some(0x1007), None, None),
            rule(Family::V4, None, Some("10.7.0.0/16"), Some("lo")),
            rule(Family::V6, None, Some("fd07::/64"), None),
        ]
        .map(|rule| (rule, why()))
        .into(),
        neighbors: [neighbor("10.1.0.2"), neighbor("fd01::2")].map(|neighbor| (neighbor, why())).into(),
        sysctls: [
            setting("net.ipv4.conf.ri.ght.rp_filter", "2"),
            setting("net.ipv4.conf.missing.rp_filter", "2"),
            setting("net.ipv4.there_is_no_such_thing", "2"),
        ]
        .into(),
    }
}

/// What the kernel has, all of it, in `ip`'s words.
fn all(netns: &Netns) -> String {
    let mut text = String::new();
    for command in [
        &["-details", "link"][..],
        &["address"],
        &["route", "show", "table", "all"],
        &["-6", "route", "show", "table", "all"],
        &["rule"],
        &["-6", "rule"],
        &["neighbour", "show", "nud", "permanent"],
    ] {
        text += &netns.ip(command);
    }
    text
}

fn json(netns: &Netns, arguments: &[&str]) -> Vec<Value> {
    serde_json::from_str(&netns.ip(&[&["-json"], arguments].concat())).unwrap()
}

/// The lines that `ip` prints of things with our protocol number.
fn ours(netns: &Netns) -> String {
    let mut text = String::new();
    for family in ["-4", "-6"] {
        text += &netns.ip(&[family, "route", "show", "table", "all", "proto", "85"]);
        let rules = netns.ip(&[family, "-details", "rule", "show"]);
        text.extend(rules.split_inclusive('\n').filter(|line| line.contains("proto 85")));
        text += &netns.ip(&[family, "neighbour", "show", "nud", "permanent"]);
    }
    text
}

#[tokio::test]
async fn the_plan_is_made_kept_and_taken_back() {
    let netns = namespace();
    let before = netns.ip(&["-oneline", "address", "show", "scope", "global"]);
    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let report = kernel.sync(&plan()).await.unwrap();
    assert_eq!(report.changes.len(), 1 + 1 + 2 + 2 + 4 + 2 + 3, "{report:?}");
    assert_eq!(report.missing_links, ["missing".to_owned()].into());

    let text = ours(&netns);
    for line in [
        "10.96.0.0/16 via 192.0.2.9 dev left src 10.1.0.1 mtu 1380",
        "default via 192.0.2.9 dev left table 1007",
        "default via 2001:db8::9 dev left table 1007",
        "fd02::/64 dev ri.ght table 1007",
        "unreachable default table 1007 metric 4278198272",
        "unreachable default dev lo table 1007 metric 4278198272",
        "from all fwmark 0x1007 lookup 1007",
        "from all to 10.7.0.0/16 iif lo lookup 1007",
        "from all to fd07::/64 lookup 1007",
        "10.1.0.2 dev ri.ght lladdr 0a:58:0a:01:00:02",
        "fd01::2 dev ri.ght lladdr 0a:58:0a:01:00:02",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    let link = &json(&netns, &["address", "show", "ri.ght"])[0];
    assert_eq!((&link["mtu"], &link["address"]), (&1400.into(), &"0a:58:0a:01:00:01".into()));
    let addresses = link["addr_info"].as_array().unwrap();
    let find = |local: &str| addresses.iter().find(|address| address["local"] == local).unwrap();
    assert_eq!(find("10.1.0.1")["prefixlen"], 24);
    assert_eq!(find("fd01::1")["deprecated"], true);
    let setting = netns.run(Command::new("cat").arg("/proc/sys/net/ipv4/conf/ri.ght/rp_filter")).ok();
    assert_eq!(setting, "2\n");

    let waiting = Report { changes: vec![], missing_links: report.missing_links };
    assert_eq!(kernel.sync(&plan()).await.unwrap(), waiting, "a second time there is nothing to do");
    let restarted = Kernel::open_in(&netns.path()).await.unwrap();
    assert_eq!(restarted.sync(&plan()).await.unwrap(), waiting, "nor after a restart");

    let nothing = Host::default();
    assert_eq!(restarted.sync(&nothing).await.unwrap().changes.len(), 2 + 2 + 4 + 2 + 3);
    assert_eq!(netns.ip(&["-oneline", "address", "show", "scope", "global"]), before);
    assert_eq!(ours(&netns), "");
}

#[tokio::test]
async fn what_others_have_stays_byte_for_byte() {
    let netns = namespace();
    for command in [
        "route add 10.96.0.0/16 via 192.0.2.7 metric 50",
        "route add default via 192.0.2.7 table 1007 metric 9 proto bgp",
        "rule add fwmark 0x1007 lookup 1007 priority 6001",
        "rule add fwmark 0x1007 lookup 1008 priority 6000 protocol 42",
        // With a link's last IPv4 address the kernel itself drops the link's neighbours.
        "address add 10.8.0.9/24 dev ri.ght",
        "neighbour add 10.1.0.3 lladdr 0a:58:0a:01:00:03 dev ri.ght nud permanent",
    ] {
        netns.ip(&command.split(' ').collect::<Vec<_>>());
    }
    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let mut plan = plan();
    plan.links.clear();
    plan.sysctls.clear();
    let before = all(&netns);
    assert!(!kernel.sync(&plan).await.unwrap().changes.is_empty());
    assert!(!kernel.sync(&Host::default()).await.unwrap().changes.is_empty());
    assert_eq!(all(&netns), before);
}

#[tokio::test]
async fn a_route_moves_without_a_gap_and_a_refusal_does_not_stop_the_rest() {
    let netns = namespace();
    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let want = |routes: &[Route]| Host {
        routes: routes.iter().map(|route| (route.clone(), why())).collect(),
        ..Host::default()
    };
    for (net, first, second) in
        [("10.5.0.0/16", "192.0.2.8", "192.0.2.9"), ("fd05::/64", "2001:db8::8", "2001:db8::9")]
    {
        kernel.sync(&want(&[route(254, net, "left", Some(first))])).await.unwrap();
        let report = kernel.sync(&want(&[route(254, net, "left", Some(second))])).await.unwrap();
        assert_eq!(report.changes, [format!("replace route {net} via {second} dev left table 254")]);
        let family = if net.contains(':') { "-6" } else { "-4" };
        let routes = json(&netns, &[family, "route", "show", net]);
        assert_eq!(routes.len(), 1);
        assert_eq!(routes[0]["gateway"], second);
        kernel.sync(&Host::default()).await.unwrap();
    }
    netns.ip(&["route", "add", "10.6.0.0/16", "via", "192.0.2.7"]);
    let both = [
        route(254, "10.6.0.0/16", "left", Some("192.0.2.9")),
        route(254, "10.7.0.0/16", "left", Some("192.0.2.9")),
    ];
    match kernel.sync(&want(&both)).await {
        Err(Fault::Changes(failures)) => {
            assert_eq!(failures.len(), 1);
            assert_eq!(failures[0].what, "add route 10.6.0.0/16 via 192.0.2.9 dev left table 254");
        }
        other => panic!("somebody else's route is in the way, yet {other:?}"),
    }
    assert_eq!(json(&netns, &["route", "show", "10.7.0.0/16"]).len(), 1);
    assert_eq!(json(&netns, &["route", "show", "10.6.0.0/16"])[0]["gateway"], "192.0.2.7");
}

#[tokio::test]
async fn routes_of_bgp_are_read_with_all_their_next_hops() {
    let netns = namespace();
    let mut batch = String::new();
    for number in 0..1000 {
        let net = format!("10.{}.{}.0/24", 100 + number / 250, number % 250);
        batch.extend(["route add ", &net, " proto bgp metric 20"]);
        batch += match number % 3 {
            0 => " via 192.0.2.7 dev left\n",
            1 => " nexthop via 192.0.2.7 dev left nexthop via 192.0.2.8 dev left\n",
            _ => " via inet6 2001:db8::7 dev left\n",
        };
    }
    batch += "nexthop add id 7 via 192.0.2.6 dev left\nroute add 10.99.0.0/24 nhid 7 proto bgp table 9\n";
    batch += "route add fd99::/64 proto bgp metric 20 via 2001:db8::7 dev left\n";
    batch += "route append fd99::/64 proto bgp metric 20 via 2001:db8::8 dev left\n";
    batch += "route add 10.98.0.0/24 via 192.0.2.6\nroute add blackhole 10.97.0.0/24 proto bgp\n";
    let file = tempfile(&batch);
    netns.ip(&["-batch", file.path().to_str().unwrap()]);

    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let routes = kernel.bgp_routes().await.unwrap();
    assert_eq!(routes.len(), 1002);
    let hops: BTreeMap<_, _> =
        routes.iter().map(|route| ((route.table, route.destination.to_string()), &route.next_hops)).collect();
    let hop = |ip: &str| NextHop { gateway: ip.parse().unwrap(), link: "left".to_owned() };
    let of = |table, net: &str| hops[&(table, net.to_owned())].clone();
    assert_eq!(of(254, "10.100.0.0/24"), [hop("192.0.2.7")]);
    assert_eq!(of(254, "10.100.1.0/24"), [hop("192.0.2.7"), hop("192.0.2.8")]);
    assert_eq!(of(254, "10.100.2.0/24"), [hop("2001:db8::7")]);
    assert_eq!(of(9, "10.99.0.0/24"), [hop("192.0.2.6")]);
    assert_eq!(of(254, "fd99::/64"), [hop("2001:db8::7"), hop("2001:db8::8")]);
}

fn tempfile(text: &str) -> Batch {
    let scratch = underlay_testkit::Scratch::new("batch");
    std::fs::write(scratch.join("commands"), text).unwrap();
    Batch(scratch)
}

struct Batch(underlay_testkit::Scratch);

impl Batch {
    fn path(&self) -> std::path::PathBuf {
        self.0.join("commands")
    }
}

#[tokio::test]
async fn a_watcher_hears_what_kind_of_thing_changed() {
    let netns = namespace();
    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let mut events = kernel.watch().await.unwrap();
    for (command, expected) in [
        ("rule add fwmark 3 lookup 3", Event::Rules),
        ("route add 10.9.0.0/16 via 192.0.2.7", Event::Routes),
        ("link set left mtu 1400", Event::Links),
        ("address add 192.0.2.77/24 dev left", Event::Addresses),
    ] {
        netns.ip(&command.split(' ').collect::<Vec<_>>());
        let heard = async { while events.next().await.expect("the stream does not end") != expected {} };
        tokio::time::timeout(Duration::from_secs(10), heard).await.unwrap_or_else(|_| panic!("{command}"));
    }
}

/// Whoever follows the changes of BGP's routes knows what another look would show.
#[tokio::test]
async fn changes_of_bgp_routes_add_up_to_what_is_there() {
    let netns = namespace();
    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let mut events = kernel.watch().await.unwrap();
    let mut followed = kernel.bgp_table().await.unwrap();
    for command in [
        "route add 10.9.0.0/16 via 192.0.2.7 proto bgp",
        "route add 10.8.0.0/16 proto bgp nexthop via 192.0.2.7 nexthop via 192.0.2.8",
        "route replace 10.9.0.0/16 via 192.0.2.8 proto bgp",
        "route add 10.9.0.0/16 via 192.0.2.9 proto bgp metric 50",
        "-6 route add 2001:db8:9::/48 via fe80::7 dev left proto bgp",
        "-6 route replace 2001:db8:9::/48 via fe80::8 dev left proto bgp",
        "-6 route append 2001:db8:9::/48 via fe80::9 dev left proto bgp",
        "-6 route del 2001:db8:9::/48 via fe80::8 dev left proto bgp",
        "route del 10.9.0.0/16 via 192.0.2.8 proto bgp",
        "route del 10.8.0.0/16 proto bgp",
        "route add 10.7.0.0/16 via 192.0.2.7 proto bgp table 1001",
        "-6 route del 2001:db8:9::/48 proto bgp",
    ] {
        netns.ip(&command.split(' ').collect::<Vec<_>>());
        let changes = async {
            loop {
                if let Event::Bgp(changes) = events.next().await.expect("the stream does not end") {
                    return changes;
                }
            }
        };
        let changes = tokio::time::timeout(Duration::from_secs(10), changes).await;
        let links = kernel.links().await.unwrap();
        let names = underlay_linux::observe::names_by_number(&links);
        for change in changes.unwrap_or_else(|_| panic!("{command}")) {
            if followed.apply(&change, &names).is_err() {
                followed = kernel.bgp_table().await.unwrap();
            }
        }
        let look = kernel.bgp_table().await.unwrap();
        assert_eq!(followed.differences(&look), [], "{command}: {followed:?}, {look:?}");
    }
    assert_eq!(followed.len(), 2, "{followed:?}");
}

#[tokio::test]
async fn whether_there_are_vrf_devices_is_found_out_without_a_trace() {
    let netns = namespace();
    let before = all(&netns);
    let kernel = Kernel::open_in(&netns.path()).await.unwrap();
    let found = kernel.has_vrf().await.unwrap();
    assert_eq!(all(&netns), before);
    let ip = netns.run(Command::new("ip").args(["link", "add", "red", "type", "vrf", "table", "7"]));
    assert_eq!(found, ip.status.success(), "{ip:?}");
}
