//! What FRR on a node should do: routers by VRF, their neighbours, what they tell each other, BFD.
//!
//! Everything here is checked: a value can be written into FRR's configuration as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Serialize, Serializer};
use underlay_net::Family;

use crate::why::Why;

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Config {
    /// Routers by VRF.
    pub routers: BTreeMap<Vrf, Router>,
    /// BFD profiles by name.
    pub bfd_profiles: BTreeMap<String, BfdProfile>,
    /// Texts in FRR's own words, in the order in which they are to be read.
    pub raw: Vec<RawText>,
}

/// A VRF by name; the default one has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Vrf(String);

impl Vrf {
    /// FRR's name for the default VRF.
    pub const DEFAULT: &str = "default";

    /// A VRF by name; both an empty name and FRR's own word mean the default one.
    pub fn new(name: &str) -> Self {
        Self(if name == Self::DEFAULT { String::new() } else { name.to_owned() })
    }

    /// Whether it is the default one.
    pub fn is_default(&self) -> bool {
        self.0.is_empty()
    }

    /// Its name in FRR.
    pub fn name(&self) -> &str {
        if self.0.is_empty() { Self::DEFAULT } else { &self.0 }
    }

    /// Its name, empty for the default one, as resources write it.
    pub fn short(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Vrf {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// The BGP router of a VRF.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Router {
    /// Our own autonomous system.
    pub asn: u32,
    /// Router ID; FRR takes one of the node's addresses without it.
    pub id: Option<Ipv4Addr>,
    /// Neighbours.
    pub neighbors: BTreeMap<Peer, Neighbor>,
    /// Prefixes that the router originates.
    pub prefixes: BTreeMap<IpNet, Why>,
    /// VRFs whose routes are taken over.
    pub imports: BTreeMap<Vrf, Why>,
    /// Its reason.
    pub why: Why,
}

/// How a neighbour is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Peer {
    /// By the link it is on; it tells its address itself.
    Interface(String),
    /// By address.
    Address(IpAddr),
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => formatter.write_str(name),
            Self::Address(address) => address.fmt(formatter),
        }
    }
}

/// A neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbor {
    /// How to talk with it.
    pub session: Session,
    /// Address families of the routes that are exchanged.
    pub families: BTreeSet<Family>,
    /// What it hears: these prefixes, with these tags, and nothing else.
    pub advertise: BTreeMap<IpNet, Tags>,
    /// Where it is told to send packets for them.
    pub next_hop: NextHop,
    /// What is taken from it.
    pub receive: Receive,
    /// Its reason.
    pub why: Why,
}

/// How to talk with a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Session {
    /// Its autonomous system.
    pub remote: Remote,
    /// The number that it sees in the place of our own.
    pub local_asn: Option<u32>,
    /// Our end: an address or a link.
    pub source: Option<String>,
    /// Its TCP port, where it is not the usual one.
    pub port: Option<u16>,
    /// Password of the session.
    pub password: Option<Password>,
    /// Keepalive and hold time in seconds.
    pub timers: Timers,
    /// Seconds between attempts to connect.
    pub connect: Option<u16>,
    /// Whether it may be more than one hop away.
    pub multihop: bool,
    /// BFD profile that watches over the session.
    pub bfd: Option<String>,
    /// Whether to keep forwarding while it restarts.
    pub graceful_restart: bool,
    /// Whether to wait for it to connect.
    pub passive: bool,
}

/// The autonomous system of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Remote {
    /// This one.
    Asn(u32),
    /// Our own.
    Internal,
    /// Any but our own.
    External,
}

impl fmt::Display for Remote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asn(asn) => asn.fmt(formatter),
            Self::Internal => formatter.write_str("internal"),
            Self::External => formatter.write_str("external"),
        }
    }
}

/// Signs of life, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Timers {
    /// How often we send one.
    pub keepalive: u16,
    /// How long we wait for one.
    pub hold: u16,
}

/// A password. It shows itself only to those who ask for it by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// A password.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Serialize for Password {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

/// Where a neighbour sends packets for what it hears, where that is not our end of the session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NextHop {
    /// For IPv4 prefixes.
    pub ipv4: Option<Ipv4Addr>,
    /// For IPv6 prefixes.
    pub ipv6: Option<Ipv6Addr>,
}

/// What an advertised prefix carries.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tags {
    /// Local preference.
    pub local_preference: Option<u32>,
    /// Communities.
    pub communities: BTreeSet<Community>,
    /// Their reason.
    pub why: Why,
}

/// A BGP community.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Community {
    /// Two numbers of 16 bits.
    Standard(u16, u16),
    /// Three numbers of 32 bits.
    Large(u32, u32, u32),
}

impl fmt::Display for Community {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard(high, low) => write!(formatter, "{high}:{low}"),
            Self::Large(first, second, third) => write!(formatter, "{first}:{second}:{third}"),
        }
    }
}

/// What is taken from a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Receive {
    /// Whatever it says.
    All,
    /// Prefixes in these ranges.
    Only(BTreeMap<PrefixRange, Why>),
}

/// Prefixes inside a prefix, by length; only the prefix itself without bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PrefixRange {
    /// The prefix they are in.
    pub prefix: IpNet,
    /// At least this long.
    pub at_least: Option<u8>,
    /// At most this long.
    pub at_most: Option<u8>,
}

/// How BFD watches over a session. What is not said is FRR's default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BfdProfile {
    /// Its settings.
    pub settings: BfdSettings,
    /// Its reason.
    pub why: Why,
}

/// Settings of BFD; intervals are in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BfdSettings {
    /// Shortest time between packets that we take.
    pub receive_interval: Option<u32>,
    /// Shortest time between packets that we send.
    pub transmit_interval: Option<u32>,
    /// Missing packets after which the peer counts as dead.
    pub detect_multiplier: Option<u32>,
    /// Shortest time between echo packets, both ways.
    pub echo_interval: Option<u32>,
    /// Whether echo packets are sent.
    pub echo_mode: bool,
    /// Whether we wait for the peer to begin.
    pub passive_mode: bool,
    /// Lowest TTL that is taken from peers more than one hop away.
    pub minimum_ttl: Option<u32>,
}

/// Text in FRR's own words. It may hold passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct RawText {
    /// The text.
    pub text: String,
    /// Its reason.
    pub why: Why,
}

impl fmt::Debug for RawText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RawText({} lines, {:?})", self.text.lines().count(), self.why)
    }
}

impl Serialize for RawText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.why.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_hides_itself() {
        assert_eq!(format!("{:?}", Some(Password::new("hunter2"))), "Some(***)");
    }

    #[test]
    fn raw_text_hides_itself() {
        let text = RawText { text: "neighbor 10.0.0.2 password hunter2\n".to_owned(), why: Why::default() };
        assert!(!format!("{text:?}").contains("hunter2"));
    }

    #[test]
    fn the_default_vrf_has_two_spellings() {
        assert_eq!(Vrf::new("default"), Vrf::new(""));
        assert_eq!(Vrf::new("").to_string(), "default");
    }
}
