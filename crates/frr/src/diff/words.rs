//! What lines are about, by their words.

use underlay_desired::owner::FRR_PREFIX;

/// What a line at the top is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A BGP router.
    Router,
    /// BFD.
    Bfd,
    /// An entry of a list that route maps look into.
    List,
    /// An entry of a route map.
    RouteMap,
    /// Anything else.
    Other,
}

impl Kind {
    pub fn of(line: &str) -> Self {
        let mut words = line.split(' ');
        match (words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
            ("router", "bgp") => Self::Router,
            ("bfd", "") => Self::Bfd,
            ("route-map", _) => Self::RouteMap,
            ("ip" | "ipv6", "prefix-list") => Self::List,
            ("bgp", word) if is_list(word) => Self::List,
            _ => Self::Other,
        }
    }
}

fn is_list(word: &str) -> bool {
    ["as-path", "community-list", "extcommunity-list", "large-community-list"].contains(&word)
}

/// The name of a list or route map.
pub(super) fn filter_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("no ").unwrap_or(line);
    let mut words = line.split(' ');
    match Kind::of(line) {
        Kind::RouteMap => words.nth(1),
        // `bgp community-list standard NAME`, `bgp as-path access-list NAME`.
        Kind::List if line.starts_with("bgp ") => words.nth(3),
        Kind::List => words.nth(2),
        _ => None,
    }
}

/// Whether a list or route map is ours by its name.
pub(super) fn is_ours(line: &str) -> bool {
    filter_name(line).is_some_and(|name| name.starts_with(FRR_PREFIX))
}

/// The line that takes a line back.
pub(super) fn negated(line: &str) -> String {
    match line.strip_prefix("no ") {
        Some(positive) => positive.to_owned(),
        None => format!("no {line}"),
    }
}

/// The neighbour that a line of a router is about.
pub(crate) fn peer(line: &str) -> Option<&str> {
    let line = line.strip_prefix("no ").unwrap_or(line);
    line.strip_prefix("neighbor ")?.split(' ').next()
}

/// The VRF of a router.
pub(crate) fn vrf(router: &str) -> Option<&str> {
    router.split_once(" vrf ").map(|(_, vrf)| vrf)
}

/// What a line sets, without the value: of two lines with one key, the later one holds.
pub(crate) fn key(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let length = match words[..] {
        ["ip" | "ipv6", "prefix-list", _, "seq", _, ..] => 5,
        ["neighbor", _, "timers", "connect", ..]
        | ["neighbor", _, "bfd", "profile", ..]
        | ["neighbor", _, "interface", "remote-as", ..]
        | ["set", "ipv6", "next-hop", "global", ..] => 4,
        [
            "neighbor",
            _,
            "timers" | "remote-as" | "local-as" | "password" | "port" | "update-source" | "ebgp-multihop",
            ..,
        ]
        | ["set", "ip", "next-hop", ..] => 3,
        ["neighbor", peer, "route-map", _, direction] => {
            return format!("neighbor {peer} route-map {direction}");
        }
        ["match", family, "address", "prefix-list", _] => {
            return format!("match {family} address prefix-list");
        }
        ["bgp", "router-id", ..]
        | ["set", "community" | "large-community" | "local-preference", ..]
        | ["echo", "transmit-interval" | "receive-interval", ..] => 2,
        ["detect-multiplier" | "transmit-interval" | "receive-interval" | "minimum-ttl", ..] => 1,
        _ => return line.to_owned(),
    };
    words[..length].join(" ")
}
