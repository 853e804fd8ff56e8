//! Configurations to test with.

use std::collections::{BTreeMap, BTreeSet};

use underlay_desired::frr::{
    BfdProfile, BfdSettings, Community, Config, Neighbor, NextHop, Password, Peer, PrefixRange, RawText,
    Receive, Remote, Router, Session, Tags, Timers, Vrf,
};
use underlay_desired::{ObjectRef, Why};
use underlay_net::Family;

pub fn why() -> Why {
    why_of("test")
}

pub fn why_of(name: &str) -> Why {
    Why::from_object(ObjectRef::namespaced("FRRConfiguration", "frr", name))
}

pub fn session(asn: u32) -> Session {
    Session {
        remote: Remote::Asn(asn),
        local_asn: None,
        source: None,
        port: None,
        password: None,
        timers: Timers { keepalive: 3, hold: 9 },
        connect: Some(1),
        multihop: false,
        bfd: None,
        graceful_restart: false,
        passive: false,
    }
}

/// A neighbour that hears these prefixes and whose word is taken for all in 10.99.0.0/16.
pub fn neighbor(address: &str, session: Session, prefixes: &[&str]) -> (Peer, Neighbor) {
    let address = address.parse().expect("an address");
    let family = Family::of(address);
    let prefixes = prefixes.iter().map(|prefix| (prefix.parse().expect("a prefix"), Tags::default()));
    let range = PrefixRange {
        prefix: "10.99.0.0/16".parse().expect("a prefix"),
        at_least: Some(24),
        at_most: Some(24),
    };
    let neighbor = Neighbor {
        session,
        families: BTreeSet::from([family]),
        advertise: prefixes.filter(|(prefix, _)| Family::of_net(prefix) == family).collect(),
        next_hop: NextHop::default(),
        receive: if family == Family::V4 {
            Receive::Only(BTreeMap::from([(range, why())]))
        } else {
            Receive::All
        },
        why: why(),
    };
    (Peer::Address(address), neighbor)
}

/// A router of the default VRF.
pub fn config(asn: u32, prefixes: &[&str], neighbors: Vec<(Peer, Neighbor)>) -> Config {
    let router = Router {
        asn,
        id: Some([10, 0, 0, 1].into()),
        neighbors: neighbors.into_iter().collect(),
        prefixes: prefixes.iter().map(|prefix| (prefix.parse().expect("a prefix"), why())).collect(),
        imports: BTreeMap::new(),
        why: why(),
    };
    Config { routers: BTreeMap::from([(Vrf::new(""), router)]), ..Config::default() }
}

pub fn with_text(mut config: Config, text: &str) -> Config {
    config.raw.push(RawText { text: text.to_owned(), why: why() });
    config
}

/// One of everything.
pub fn everything() -> Config {
    let prefixes = ["10.244.1.0/24", "10.244.9.0/24", "fd01::/64"];
    let all = Session {
        local_asn: Some(64700),
        source: Some("10.0.0.1".to_owned()),
        port: Some(1179),
        password: Some(Password::new("a|b?c\"d'e!#\\f")),
        multihop: true,
        bfd: Some("fast".to_owned()),
        graceful_restart: true,
        passive: true,
        ..session(64599)
    };
    let (peer, mut tagged) = neighbor("10.0.1.9", all, &prefixes);
    for (number, tags) in (0..).zip(tagged.advertise.values_mut()) {
        tags.local_preference = Some(300 + number);
        tags.communities = BTreeSet::from([
            Community::Standard(64512, 100),
            Community::Standard(65535, 65281),
            Community::Large(64512, 1, u32::MAX),
        ]);
    }
    let link = Session { remote: Remote::External, bfd: Some("echo".to_owned()), ..session(0) };
    let (_, mut on_link) = neighbor("10.0.0.3", link, &prefixes);
    on_link.families = Family::ALL.into();
    on_link.next_hop = NextHop { ipv4: Some([10, 0, 0, 77].into()), ipv6: "fd00::77".parse().ok() };
    let silent = neighbor("10.0.0.4", Session { remote: Remote::Internal, connect: None, ..session(0) }, &[]);
    let six = neighbor("fd00::9", Session { source: Some("eth0".to_owned()), ..session(64999) }, &prefixes);
    let mut config = config(
        64512,
        &prefixes,
        vec![(peer, tagged), (Peer::Interface("eth0".to_owned()), on_link), silent, six],
    );
    for (vrf, import) in [("", "red"), ("red", "default"), ("blue", "red"), ("blue", "default")] {
        let router = Router {
            asn: 64512,
            id: None,
            neighbors: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            imports: BTreeMap::new(),
            why: why(),
        };
        let router = config.routers.entry(Vrf::new(vrf)).or_insert(router);
        router.imports.insert(Vrf::new(import), why());
    }
    let profile = |settings| BfdProfile { settings, why: why() };
    let fast = BfdSettings {
        transmit_interval: Some(100),
        receive_interval: Some(300),
        detect_multiplier: Some(5),
        minimum_ttl: Some(10),
        passive_mode: true,
        ..BfdSettings::default()
    };
    let echo = BfdSettings { echo_interval: Some(60), echo_mode: true, ..BfdSettings::default() };
    config.bfd_profiles.insert("fast".to_owned(), profile(fast));
    config.bfd_profiles.insert("echo".to_owned(), profile(echo));
    config.bfd_profiles.insert("plain".to_owned(), profile(BfdSettings::default()));
    config
}
