//! Routes as the kernel tells them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteNextHopFlags, RouteProtocol,
    RouteType, RouteVia,
};
use underlay_desired::linux::TableEnd;
use underlay_desired::owner::PROTOCOL;
use underlay_net::Family;

use super::{Names, address_family, any};

/// A route of ours that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldRoute {
    /// Routing table.
    pub table: u32,
    /// Where to.
    pub destination: IpNet,
    /// The lower, the better.
    pub priority: u32,
    /// Source address of what the node itself sends.
    pub source: Option<IpAddr>,
    /// Largest packet along this route.
    pub mtu: Option<u32>,
    /// The ways it may take. None for a route that only drops.
    pub hops: Vec<Hop>,
}

/// A way a route may take.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// Out of this link.
    pub link: String,
    /// Through whom.
    pub gateway: Option<IpAddr>,
}

/// A route that BGP brought.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BgpRoute {
    /// Routing table.
    pub table: u32,
    /// Where to.
    pub destination: IpNet,
    /// The lower, the better.
    pub priority: u32,
    /// Gateways in order. At least one.
    pub next_hops: Vec<NextHop>,
}

/// A gateway.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NextHop {
    /// Its address. An IPv4 route may have an IPv6 gateway.
    pub gateway: IpAddr,
    /// The link it is on.
    pub link: String,
}

/// The priority of the end of a table: after every other route, as long as nobody means to be later.
pub const END_PRIORITY: u32 = 4_278_198_272;

/// What is kept of a dumped route.
pub(super) enum Kept {
    Ours(HeldRoute),
    /// Our end of a table.
    End(TableEnd),
    Bgp(BgpRoute),
    /// Somebody else's, of the priority that ours have: its table and destination.
    Theirs((u32, IpNet)),
}

/// The priority that the kernel gives to routes without one.
pub fn default_priority(destination: &IpNet) -> u32 {
    match destination {
        IpNet::V4(_) => 0,
        IpNet::V6(_) => 1024,
    }
}

/// Asks for all routes of a family, or those of one protocol.
pub(super) fn dump_request(family: Family, protocol: Option<RouteProtocol>) -> RouteNetlinkMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = address_family(family);
    message.header.protocol = protocol.unwrap_or_default();
    RouteNetlinkMessage::GetRoute(message)
}

/// Puts routes in order and keeps the best to each place.
pub(super) fn bgp_routes(mut routes: Vec<BgpRoute>) -> Vec<BgpRoute> {
    routes.sort();
    routes.dedup_by(|worse, best| worse.table == best.table && worse.destination == best.destination);
    routes
}

pub(super) fn read_route(message: RouteNetlinkMessage, names: &Names) -> Option<Kept> {
    let RouteNetlinkMessage::NewRoute(message) = message else { return None };
    let (protocol, kind) = (message.header.protocol, message.header.kind);
    let mut route = read_held(message, names)?;
    match protocol {
        RouteProtocol::Other(PROTOCOL) if kind == RouteType::Unreachable && is_end(&route) => {
            Some(Kept::End(TableEnd { table: route.table, family: Family::of_net(&route.destination) }))
        }
        RouteProtocol::Other(PROTOCOL) => {
            if kind != RouteType::Unicast {
                route.hops.clear();
            }
            Some(Kept::Ours(route))
        }
        RouteProtocol::Bgp if kind == RouteType::Unicast => read_bgp(route).map(Kept::Bgp),
        _ if route.priority == default_priority(&route.destination) => {
            Some(Kept::Theirs((route.table, route.destination)))
        }
        _ => None,
    }
}

fn is_end(route: &HeldRoute) -> bool {
    route.destination.prefix_len() == 0 && route.priority == END_PRIORITY
}

/// Destination and gateway of a route of the main table.
pub(super) fn read_gateway(message: RouteNetlinkMessage, names: &Names) -> Option<(IpNet, IpAddr)> {
    let RouteNetlinkMessage::NewRoute(message) = message else { return None };
    let route = read_held(message, names)?;
    let gateway = route.hops.first()?.gateway?;
    (route.table == u32::from(RouteHeader::RT_TABLE_MAIN)).then_some((route.destination, gateway))
}

fn read_bgp(route: HeldRoute) -> Option<BgpRoute> {
    let HeldRoute { table, destination, priority, hops, .. } = route;
    let next_hops: BTreeSet<NextHop> =
        hops.into_iter().filter_map(|hop| Some(NextHop { gateway: hop.gateway?, link: hop.link })).collect();
    let next_hops: Vec<NextHop> = next_hops.into_iter().collect();
    (!next_hops.is_empty()).then_some(BgpRoute { table, destination, priority, next_hops })
}

pub(super) fn read_held(message: RouteMessage, names: &Names) -> Option<HeldRoute> {
    let read = read(message)?;
    let hop =
        |(index, gateway): (u32, Option<IpAddr>)| Some(Hop { link: names.get(&index)?.clone(), gateway });
    let hops = read.ways.into_iter().filter_map(hop).collect();
    let Read { table, destination, priority, source, mtu, .. } = read;
    Some(HeldRoute { table, destination, priority, source, mtu, hops })
}

/// A route with the numbers of its links.
pub(super) struct Read {
    pub table: u32,
    pub destination: IpNet,
    pub priority: u32,
    source: Option<IpAddr>,
    mtu: Option<u32>,
    /// Numbers of links, and gateways there.
    pub ways: Vec<(u32, Option<IpAddr>)>,
}

pub(super) fn read(message: RouteMessage) -> Option<Read> {
    let mut destination = any(message.header.address_family)?;
    let (mut table, mut priority) = (u32::from(message.header.table), 0);
    let (mut source, mut mtu, mut ways) = (None, None, Vec::new());
    let single = way(&message.attributes, None);
    for attribute in message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => destination = ip(&address)?,
            RouteAttribute::Table(number) => table = number,
            RouteAttribute::Priority(number) => priority = number,
            RouteAttribute::PrefSource(address) => source = ip(&address),
            RouteAttribute::Metrics(metrics) => mtu = metrics.iter().find_map(mtu_metric),
            RouteAttribute::MultiPath(all) => {
                let alive = all.iter().filter(|hop| !hop.flags.contains(RouteNextHopFlags::Dead));
                ways.extend(alive.filter_map(|hop| way(&hop.attributes, Some(hop.interface_index))));
            }
            _ => {}
        }
    }
    ways.extend(single);
    let destination = IpNet::new(destination, message.header.destination_prefix_length).ok()?;
    Some(Read { table, destination, priority, source, mtu, ways })
}

/// The way that attributes tell, of the route itself or of one of its next hops.
fn way(attributes: &[RouteAttribute], index: Option<u32>) -> Option<(u32, Option<IpAddr>)> {
    let (mut index, mut gateway) = (index, None);
    for attribute in attributes {
        match attribute {
            RouteAttribute::Oif(number) => index = Some(*number),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Via(RouteVia::Inet(address)) => gateway = Some(IpAddr::V4(*address)),
            RouteAttribute::Via(RouteVia::Inet6(address)) => gateway = Some(IpAddr::V6(*address)),
            _ => {}
        }
    }
    Some((index?, gateway))
}

fn mtu_metric(metric: &RouteMetric) -> Option<u32> {
    if let RouteMetric::Mtu(mtu) = metric { Some(*mtu) } else { None }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(IpAddr::V4(*v4)),
        RouteAddress::Inet6(v6) => Some(IpAddr::V6(*v6)),
        _ => None,
    }
}
