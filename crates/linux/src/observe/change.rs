//! Changes of the routes that BGP brought, as the kernel tells them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use rtnetlink::packet_route::route::{RouteMessage, RouteType};

use super::Link;
use super::route::{BgpRoute, NextHop, Read, read};

/// A route of BGP's came, changed or went. Links are told by number, and it may not be known yet which they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BgpChange {
    /// Routing table.
    pub table: u32,
    /// Where to.
    pub destination: IpNet,
    /// The lower, the better.
    pub priority: u32,
    /// Gateways, and the numbers of the links that they are on.
    pub ways: Vec<(IpAddr, u32)>,
    /// Whether it went.
    pub gone: bool,
    /// Whether it took the place of what was there.
    pub replaces: bool,
}

impl BgpChange {
    /// Reads what the kernel tells; nothing for what is not a way to anywhere.
    pub(crate) fn read(message: RouteMessage, gone: bool, replaces: bool) -> Option<Self> {
        if message.header.kind != RouteType::Unicast {
            return None;
        }
        let Read { table, destination, priority, ways, .. } = read(message)?;
        let ways = ways.into_iter().filter_map(|(index, gateway)| Some((gateway?, index))).collect();
        Some(Self { table, destination, priority, ways, gone, replaces })
    }

    /// The route in the words of a dump; nothing if one of its links is not known.
    pub fn route(&self, links: &BTreeMap<u32, &str>) -> Option<BgpRoute> {
        let next_hop = |(gateway, index): &(IpAddr, u32)| {
            Some(NextHop { gateway: *gateway, link: (*links.get(index)?).to_owned() })
        };
        let mut next_hops: Vec<NextHop> = self.ways.iter().map(next_hop).collect::<Option<_>>()?;
        next_hops.sort();
        next_hops.dedup();
        let (table, destination, priority) = (self.table, self.destination, self.priority);
        Some(BgpRoute { table, destination, priority, next_hops })
    }
}

/// Names of links by their numbers.
pub fn names_by_number(links: &BTreeMap<String, Link>) -> BTreeMap<u32, &str> {
    links.iter().map(|(name, link)| (link.index, name.as_str())).collect()
}
