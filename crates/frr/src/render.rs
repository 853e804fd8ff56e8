//! The configuration that should be, in FRR's words and as FRR itself prints it, so that the two compare line by line.
//!
//! Every neighbour has two route maps, one a direction, on prefix lists of its own: what is not on a list does not pass.
//! The numbers of entries come from what they say, not from their place: one more prefix is one more line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ipnet::IpNet;
use underlay_desired::frr::{
    BfdSettings, Community, Config, Neighbor, NextHop, Peer, PrefixRange, Receive, Router, Session, Vrf,
};
use underlay_desired::owner::FRR_PREFIX;
use underlay_net::Family;
use underlay_net::hash::fnv1a64;

use crate::diff::key;
use crate::tree::{Block, parse};

/// Seconds between attempts to connect, where nothing is said: FRR's profiles differ in it.
const CONNECT: u16 = 10;
/// Places of a route map's last entries: what passes, by family, and that nothing else does.
const PERMIT: [(Family, u32); 2] = [(Family::V4, 65533), (Family::V6, 65534)];
const DENY: u32 = 65535;

/// What should be, in FRR's words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// Ours.
    pub ours: Block,
    /// What users wrote themselves.
    pub raw: Block,
}

/// Renders a configuration. Where a text of a user takes back what we would say, the user is right.
pub fn render(config: &Config) -> Rendered {
    let mut raw = Block::default();
    for text in &config.raw {
        raw.unite(&parse(&text.text));
    }
    let mut ours = Block::default();
    if !config.bfd_profiles.is_empty() {
        let bfd = ours.open("bfd");
        for (name, profile) in &config.bfd_profiles {
            render_profile(bfd.open(format!("profile {name}")), &profile.settings);
        }
    }
    for (vrf, router) in &config.routers {
        for (peer, neighbor) in &router.neighbors {
            render_filters(&mut ours, vrf, peer, neighbor);
        }
    }
    for (vrf, router) in &config.routers {
        let line = if vrf.is_default() {
            format!("router bgp {}", router.asn)
        } else {
            format!("router bgp {} vrf {vrf}", router.asn)
        };
        render_router(ours.open(line), vrf, router);
    }
    take_back(&mut ours, &raw);
    Rendered { ours, raw }
}

/// Drops what a text of a user negates, with all that is more of the same, and what it says otherwise.
fn take_back(ours: &mut Block, raw: &Block) {
    let negated: Vec<&str> = raw.iter().filter_map(|entry| entry.line.strip_prefix("no ")).collect();
    let covers = |short: &str, line: &str| {
        line.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let said: BTreeSet<String> = raw.iter().map(|entry| key(&entry.line)).collect();
    ours.retain(|entry| {
        let otherwise = !raw.contains(&entry.line) && said.contains(&key(&entry.line));
        !otherwise && !negated.iter().any(|short| covers(short, &entry.line))
    });
    for entry in raw.iter().filter(|entry| ours.contains(&entry.line)).cloned().collect::<Vec<_>>() {
        take_back(ours.open(entry.line), &entry.block);
    }
}

fn render_profile(block: &mut Block, settings: &BfdSettings) {
    // FRR does not print what is as it would be anyway.
    let numbers = [
        ("detect-multiplier", settings.detect_multiplier, 3),
        ("transmit-interval", settings.transmit_interval, 300),
        ("receive-interval", settings.receive_interval, 300),
        ("echo transmit-interval", settings.echo_interval, 50),
        ("echo receive-interval", settings.echo_interval, 50),
        ("minimum-ttl", settings.minimum_ttl, 254),
    ];
    for (word, number, usual) in numbers {
        if let Some(number) = number.filter(|number| *number != usual) {
            block.line(format!("{word} {number}"));
        }
    }
    for (word, on) in [("passive-mode", settings.passive_mode), ("echo-mode", settings.echo_mode)] {
        if on {
            block.line(word);
        }
    }
}

/// The name of a neighbour's route map, and the beginning of the names of its lists.
fn filter_name(vrf: &Vrf, peer: &Peer, direction: &str) -> String {
    format!("{FRR_PREFIX}{vrf}/{peer}/{direction}")
}

fn render_filters(root: &mut Block, vrf: &Vrf, peer: &Peer, neighbor: &Neighbor) {
    render_out(root, &filter_name(vrf, peer, "out"), neighbor);
    if let Receive::Only(ranges) = &neighbor.receive {
        let name = filter_name(vrf, peer, "in");
        render_lists(root, &name, ranges.keys().copied());
        let families = families(ranges.keys().map(|range| Family::of_net(&range.prefix)));
        render_passing(root, &name, &families, NextHop::default());
    }
}

fn render_out(root: &mut Block, name: &str, neighbor: &Neighbor) {
    let mut tagged: BTreeMap<Tag, BTreeSet<IpNet>> = BTreeMap::new();
    for (prefix, tags) in &neighbor.advertise {
        let preference = tags.local_preference.map(Tag::LocalPreference);
        for tag in tags.communities.iter().copied().map(Tag::Community).chain(preference) {
            tagged.entry(tag).or_default().insert(*prefix);
        }
    }
    let exact = |prefix: &IpNet| PrefixRange { prefix: *prefix, at_least: None, at_most: None };
    let mut places = Places::new(PERMIT[0].1 / 2);
    for (tag, prefixes) in &tagged {
        let list = format!("{name}/{}", tag.short());
        render_lists(root, &list, prefixes.iter().map(exact));
        let place = places.of(&tag.short()) * 2;
        for family in families(prefixes.iter().map(Family::of_net)) {
            // Two entries, because one that names lists of both families matches neither.
            let place = if family == Family::V4 { place } else { place - 1 };
            let entry = root.open(format!("route-map {name} permit {place}"));
            entry.line(match_list(family, &list));
            entry.line("on-match next");
            entry.line(tag.to_string());
        }
    }
    render_lists(root, name, neighbor.advertise.keys().map(exact));
    let families = families(neighbor.advertise.keys().map(Family::of_net));
    render_passing(root, name, &families, neighbor.next_hop);
}

fn families(all: impl Iterator<Item = Family>) -> BTreeSet<Family> {
    all.collect()
}

/// The end of a route map: what is on the lists passes, the rest does not. Said even where there is no list, because a
/// route map that is not there lets nobody know what it means.
fn render_passing(root: &mut Block, name: &str, families: &BTreeSet<Family>, next_hop: NextHop) {
    for (family, place) in PERMIT.into_iter().filter(|(family, _)| families.contains(family)) {
        let entry = root.open(format!("route-map {name} permit {place}"));
        entry.line(match_list(family, name));
        let there = match family {
            Family::V4 => next_hop.ipv4.map(|address| format!("set ip next-hop {address}")),
            Family::V6 => next_hop.ipv6.map(|address| format!("set ipv6 next-hop global {address}")),
        };
        if let Some(line) = there {
            entry.line(line);
        }
    }
    root.line(format!("route-map {name} deny {DENY}"));
}

fn match_list(family: Family, list: &str) -> String {
    format!("match {} address prefix-list {list}", ip(family))
}

fn ip(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ipv6",
    }
}

fn render_lists(root: &mut Block, name: &str, ranges: impl Iterator<Item = PrefixRange>) {
    let mut places = Places::new(u32::MAX);
    for range in ranges {
        let bound = |word: &str, length: Option<u8>| {
            length.map(|length| format!(" {word} {length}")).unwrap_or_default()
        };
        let text = format!("{}{}{}", range.prefix, bound("ge", range.at_least), bound("le", range.at_most));
        let family = ip(Family::of_net(&range.prefix));
        root.line(format!("{family} prefix-list {name} seq {} permit {text}", places.of(&text)));
    }
}

/// Numbers for entries, from 1 up to a largest one, that do not depend on the other entries.
struct Places {
    largest: u32,
    taken: BTreeSet<u32>,
}

impl Places {
    fn new(below: u32) -> Self {
        Self { largest: below - 1, taken: BTreeSet::new() }
    }

    /// The number of an entry; its neighbour's, if two entries happen to have one.
    fn of(&mut self, text: &str) -> u32 {
        let hash = fnv1a64(text) % u64::from(self.largest);
        let mut place = u32::try_from(hash).unwrap_or_default() + 1;
        while !self.taken.insert(place) {
            place = place % self.largest + 1;
        }
        place
    }
}

/// Something that is set on a route on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tag {
    Community(Community),
    LocalPreference(u32),
}

impl Tag {
    /// As a part of the name of a list, which may have 128 letters.
    fn short(self) -> String {
        match self {
            Self::Community(community) => format!("c/{community}"),
            Self::LocalPreference(preference) => format!("p/{preference}"),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Community(community @ Community::Standard(high, low)) => {
                match WELL_KNOWN.iter().find(|(known, _)| *known == (*high, *low)) {
                    Some((_, name)) => write!(formatter, "set community {name} additive"),
                    None => write!(formatter, "set community {community} additive"),
                }
            }
            Self::Community(community) => write!(formatter, "set large-community {community} additive"),
            Self::LocalPreference(preference) => write!(formatter, "set local-preference {preference}"),
        }
    }
}

/// Communities that FRR prints by name.
const WELL_KNOWN: [((u16, u16), &str); 14] = [
    ((65535, 0), "graceful-shutdown"),
    ((65535, 1), "accept-own"),
    ((65535, 2), "route-filter-translated-v4"),
    ((65535, 3), "route-filter-v4"),
    ((65535, 4), "route-filter-translated-v6"),
    ((65535, 5), "route-filter-v6"),
    ((65535, 6), "llgr-stale"),
    ((65535, 7), "no-llgr"),
    ((65535, 8), "accept-own-nexthop"),
    ((65535, 666), "blackhole"),
    ((65535, 65281), "no-export"),
    ((65535, 65282), "no-advertise"),
    ((65535, 65283), "local-AS"),
    ((65535, 65284), "no-peer"),
];

fn render_router(block: &mut Block, vrf: &Vrf, router: &Router) {
    if let Some(id) = router.id {
        block.line(format!("bgp router-id {id}"));
    }
    // Filters are said for every neighbour, and so are families.
    block.line("no bgp ebgp-requires-policy");
    block.line("no bgp default ipv4-unicast");
    // Routes stay while bgpd restarts, whatever ended it.
    block.line("bgp graceful-restart");
    block.line("bgp graceful-restart preserve-fw-state");
    // What a new session hears first waits for others that could hear it too. Every neighbour has filters of its own, so
    // there are none, and the wait would be more than a second.
    block.line("coalesce-time 0");
    // The node's part of a network is no route of its kernel.
    block.line("no bgp network import-check");
    for (peer, neighbor) in &router.neighbors {
        render_session(block, peer, &neighbor.session);
    }
    for family in Family::ALL {
        let mut lines = Block::default();
        render_family(&mut lines, vrf, router, family);
        if !lines.is_empty() {
            block.open(format!("address-family ipv{} unicast", version(family))).unite(&lines);
        }
    }
}

fn version(family: Family) -> u8 {
    match family {
        Family::V4 => 4,
        Family::V6 => 6,
    }
}

fn render_session(block: &mut Block, peer: &Peer, session: &Session) {
    let remote = session.remote;
    block.line(match peer {
        Peer::Interface(name) => format!("neighbor {name} interface remote-as {remote}"),
        Peer::Address(address) => format!("neighbor {address} remote-as {remote}"),
    });
    let mut say = |text: String| block.line(format!("neighbor {peer} {text}"));
    if let Some(asn) = session.local_asn {
        say(format!("local-as {asn} no-prepend replace-as"));
    }
    if let Some(profile) = &session.bfd {
        say("bfd".to_owned());
        say(format!("bfd profile {profile}"));
    }
    if let Some(password) = &session.password {
        say(format!("password {}", password.reveal()));
    }
    if session.multihop {
        say("ebgp-multihop".to_owned());
    }
    if let Some(port) = session.port {
        say(format!("port {port}"));
    }
    if let Some(source) = &session.source {
        say(format!("update-source {source}"));
    }
    say(format!("timers {} {}", session.timers.keepalive, session.timers.hold));
    say(format!("timers connect {}", session.connect.unwrap_or(CONNECT)));
    if session.graceful_restart {
        say("graceful-restart".to_owned());
    }
    if session.passive {
        say("passive".to_owned());
    }
}

fn render_family(block: &mut Block, vrf: &Vrf, router: &Router, family: Family) {
    for prefix in router.prefixes.keys().filter(|prefix| Family::of_net(prefix) == family) {
        block.line(format!("network {prefix}"));
    }
    for (peer, neighbor) in router.neighbors.iter().filter(|(_, one)| one.families.contains(&family)) {
        block.line(format!("neighbor {peer} activate"));
        if neighbor.receive != Receive::All {
            block.line(format!("neighbor {peer} route-map {} in", filter_name(vrf, peer, "in")));
        }
        block.line(format!("neighbor {peer} route-map {} out", filter_name(vrf, peer, "out")));
    }
    for import in router.imports.keys() {
        block.line(format!("import vrf {import}"));
    }
}

#[cfg(test)]
pub(crate) mod tests;
