//! Links, addresses, routes, rules, neighbours and settings of the kernel that should be.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use underlay_net::{Family, Mac};

use crate::why::Item;

/// The kernel's state that is ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linux {
    /// Links whose settings we keep. They exist by other means (OVS, VRF devices by [`Link::vrf_table`]).
    pub links: BTreeMap<String, Item<Link>>,
    /// Addresses on links.
    pub addresses: BTreeSet<Item<Address>>,
    /// Routes, all with our protocol number.
    pub routes: BTreeSet<Item<Route>>,
    /// Policy rules, all with our protocol number.
    pub rules: BTreeSet<Item<Rule>>,
    /// Permanent neighbours.
    pub neighbours: BTreeSet<Item<Neighbour>>,
    /// Files below `/proc/sys` and what is in them.
    pub sysctls: BTreeMap<String, Item<String>>,
}

/// Settings of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Link {
    /// Its MAC address, if it matters.
    pub mac: Option<Mac>,
    /// Its MTU, if it matters.
    pub mtu: Option<u32>,
    /// The VRF it belongs to.
    pub master: Option<String>,
    /// Makes it a VRF device with this table, ours to create and remove.
    pub vrf_table: Option<u32>,
}

/// An address on a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    /// The link's name.
    pub link: String,
    /// The address with its length.
    pub address: IpNet,
    /// Usable, but not chosen as a source (IPv6 `preferred_lft 0`).
    pub deprecated: bool,
}

/// Where a route leads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Via {
    /// A neighbour on a link.
    Gateway {
        /// Its address.
        gateway: IpAddr,
        /// The link.
        link: String,
    },
    /// Everything on a link.
    Link(String),
    /// Nowhere, and the sender is told.
    Unreachable,
}

/// A kernel route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// Where to.
    pub destination: IpNet,
    /// By what way.
    pub via: Via,
    /// Table; 254 is the main one.
    pub table: u32,
    /// Preferred source.
    pub source: Option<IpAddr>,
    /// MTU of the path.
    pub mtu: Option<u32>,
    /// Lower wins.
    pub metric: Option<u32>,
}

/// A policy rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Rule {
    /// Lower is looked at first.
    pub priority: u32,
    /// Family it is for.
    pub family: Family,
    /// Packets with this mark.
    pub mark: Option<u32>,
    /// Packets that entered here; `lo` means those the node itself made.
    pub input: Option<String>,
    /// Packets to here.
    pub to: Option<IpNet>,
    /// Table to look in.
    pub table: u32,
}

/// A neighbour that needs no asking.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Neighbour {
    /// The link.
    pub link: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: Mac,
}
