//! What the node's own network stack should have: settings, addresses, routes, rules and neighbours.
//!
//! Links are not made here (Open vSwitch makes them), VRF devices aside; what is said of a link holds whenever it is
//! there, and what hangs on a link that is missing waits for it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Serialize;
use underlay_net::{Family, Mac};

use crate::why::Why;

/// All that should be, each item with its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    /// Devices that keep routing tables apart, by name.
    pub vrfs: BTreeMap<String, Vrf>,
    /// State of links that somebody else makes.
    pub links: BTreeMap<String, Link>,
    /// Addresses on them.
    pub addresses: BTreeMap<Address, Why>,
    /// Routes.
    pub routes: BTreeMap<Route, Why>,
    /// Tables that end: what finds no route in them finds none in any other.
    pub table_ends: BTreeMap<TableEnd, Why>,
    /// Rules that choose a table.
    pub rules: BTreeMap<Rule, Why>,
    /// Permanent neighbours.
    pub neighbors: BTreeMap<Neighbor, Why>,
    /// Kernel settings by name, like `net.ipv4.conf.br-ex.forwarding`. They are set, never set back.
    pub sysctls: BTreeMap<String, Sysctl>,
}

/// How a link should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Largest packet, where it is ours to say.
    pub mtu: Option<u32>,
    /// MAC address, where it is ours to say.
    pub mac: Option<Mac>,
    /// The VRF device it belongs to.
    pub vrf: Option<String>,
    /// Its reason.
    pub why: Why,
}

/// A VRF device: what comes in by the links that belong to it looks into its table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vrf {
    /// Routing table.
    pub table: u32,
    /// Its reason.
    pub why: Why,
}

/// An address on a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Address {
    /// The link.
    pub link: String,
    /// The address with the length of its subnet.
    pub net: IpNet,
    /// Never picked as the source of new connections. Only IPv6 knows this.
    pub deprecated: bool,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Route {
    /// Routing table; 254 is the main one.
    pub table: u32,
    /// Where to.
    pub destination: IpNet,
    /// Out of which link.
    pub link: String,
    /// Through whom; nobody for what is on the link itself.
    pub gateway: Option<IpAddr>,
    /// Source address of what the node itself sends.
    pub source: Option<IpAddr>,
    /// Largest packet along this route.
    pub mtu: Option<u32>,
}

/// The end of a routing table, in one family: a route to everywhere, after all others, that leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct TableEnd {
    /// Routing table.
    pub table: u32,
    /// The family.
    pub family: Family,
}

/// A rule that chooses a routing table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rule {
    /// The lower, the sooner.
    pub priority: u32,
    /// Rules are of one family each.
    pub family: Family,
    /// Packets with this mark.
    pub mark: Option<u32>,
    /// Packets to here.
    pub to: Option<IpNet>,
    /// Packets that came in here; `lo` is what the node itself sends.
    pub incoming: Option<String>,
    /// The table they look into.
    pub table: u32,
}

/// A neighbour that never has to be asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Neighbor {
    /// The link it is on.
    pub link: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: Mac,
}

/// A kernel setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sysctl {
    /// Its value.
    pub value: String,
    /// Its reason.
    pub why: Why,
}
