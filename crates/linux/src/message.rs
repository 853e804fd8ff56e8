//! Changes in the kernel's words. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressProtocol, CacheInfo,
};
use rtnetlink::packet_route::link::{
    InfoData, InfoKind, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use underlay_desired::linux::{Address, Neighbor, Route, Rule, TableEnd};
use underlay_desired::owner::{LINK_GROUP, PROTOCOL};
use underlay_net::Family;

use crate::diff::{LinkChange, OldRoute};
use crate::observe::{END_PRIORITY, address_family};

/// A lifetime without end.
const FOREVER: u32 = u32::MAX;

/// An address with our mark.
pub(crate) fn own_address(address: &Address, index: u32) -> AddressMessage {
    let mut message = self::address(&address.net, index, address.deprecated);
    message.attributes.push(AddressAttribute::Protocol(AddressProtocol::Other(PROTOCOL)));
    message
}

/// An address. Of IPv6 ones nobody is asked whether they are taken: whoever plans them knows.
pub(crate) fn address(net: &IpNet, index: u32, deprecated: bool) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = address_family(Family::of_net(net));
    message.header.prefix_len = net.prefix_len();
    message.header.index = index;
    message.attributes = vec![AddressAttribute::Local(net.addr()), AddressAttribute::Address(net.addr())];
    if matches!(net, IpNet::V6(_)) {
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        let mut lifetime = CacheInfo::default();
        lifetime.ifa_valid = FOREVER;
        lifetime.ifa_preferred = if deprecated { 0 } else { FOREVER };
        message.attributes.push(AddressAttribute::CacheInfo(lifetime));
    }
    message
}

/// A route with our mark.
pub(crate) fn own_route(route: &Route, index: u32) -> RouteMessage {
    let mut message = self::route(&route.destination, route.gateway, index);
    message.header.protocol = RouteProtocol::Other(PROTOCOL);
    set_table(&mut message, route.table);
    message.attributes.extend(route.source.map(|address| RouteAttribute::PrefSource(address.into())));
    message.attributes.extend(route.mtu.map(|mtu| RouteAttribute::Metrics(vec![RouteMetric::Mtu(mtu)])));
    message
}

/// A route of the main table.
pub(crate) fn route(destination: &IpNet, gateway: Option<IpAddr>, index: u32) -> RouteMessage {
    let mut message = route_to(destination);
    message.header.protocol = RouteProtocol::Static;
    message.header.kind = RouteType::Unicast;
    let on_link = gateway.is_none() && matches!(destination, IpNet::V4(_));
    message.header.scope = if on_link { RouteScope::Link } else { RouteScope::Universe };
    set_table(&mut message, u32::from(RouteHeader::RT_TABLE_MAIN));
    message.attributes.push(RouteAttribute::Oif(index));
    message.attributes.extend(gateway.map(|address| RouteAttribute::Gateway(address.into())));
    message
}

/// The end of a table, with our mark.
pub(crate) fn table_end(end: TableEnd) -> RouteMessage {
    let mut message = route_to(&everywhere(end.family));
    message.header.protocol = RouteProtocol::Other(PROTOCOL);
    message.header.kind = RouteType::Unreachable;
    set_table(&mut message, end.table);
    message.attributes.push(RouteAttribute::Priority(END_PRIORITY));
    message
}

/// What finds an old route of ours, and no other.
pub(crate) fn old_route(old: &OldRoute) -> RouteMessage {
    let mut message = route_to(&old.destination);
    message.header.protocol = RouteProtocol::Other(PROTOCOL);
    message.header.scope = RouteScope::NoWhere;
    set_table(&mut message, old.table);
    message.attributes.push(RouteAttribute::Priority(old.priority));
    if let Some((index, gateway)) = old.hop {
        message.attributes.push(RouteAttribute::Oif(index));
        message.attributes.extend(gateway.map(|address| RouteAttribute::Gateway(address.into())));
    }
    message
}

fn route_to(destination: &IpNet) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = address_family(Family::of_net(destination));
    message.header.destination_prefix_length = destination.prefix_len();
    message.attributes.push(RouteAttribute::Destination(destination.network().into()));
    message
}

fn set_table(message: &mut RouteMessage, table: u32) {
    message.attributes.retain(|attribute| !matches!(attribute, RouteAttribute::Table(_)));
    message.attributes.push(RouteAttribute::Table(table));
}

/// A rule with our mark.
pub(crate) fn rule(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header.family = address_family(rule.family);
    message.header.action = RuleAction::ToTable;
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::Table(rule.table),
        RuleAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
    ];
    message.attributes.extend(rule.mark.map(RuleAttribute::FwMark));
    message.attributes.extend(rule.incoming.clone().map(RuleAttribute::Iifname));
    if let Some(net) = rule.to {
        message.header.dst_len = net.prefix_len();
        message.attributes.push(RuleAttribute::Destination(net.network()));
    }
    message
}

/// A neighbour with our mark.
pub(crate) fn neighbor(neighbor: &Neighbor, index: u32) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = address_family(Family::of(neighbor.address));
    message.header.ifindex = index;
    message.header.state = NeighbourState::Permanent;
    message.header.kind = RouteType::Unicast;
    let address = match neighbor.address {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    };
    message.attributes = vec![
        NeighbourAttribute::Destination(address),
        NeighbourAttribute::LinkLayerAddress(neighbor.mac.0.to_vec()),
        NeighbourAttribute::Protocol(RouteProtocol::Other(PROTOCOL)),
    ];
    message
}

/// A change of a link, which is set up too.
pub(crate) fn link(change: &LinkChange) -> LinkMessage {
    let mut message = link_up(change.index);
    message.attributes.extend(change.mtu.map(LinkAttribute::Mtu));
    message.attributes.extend(change.mac.map(|mac| LinkAttribute::Address(mac.0.to_vec())));
    message
}

/// Sets a link up.
pub(crate) fn link_up(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message
}

/// A VRF device with our mark, set up.
pub(crate) fn vrf(name: &str, table: u32) -> LinkMessage {
    let mut message = link_up(0);
    message.attributes = vec![
        LinkAttribute::IfName(name.to_owned()),
        LinkAttribute::Group(LINK_GROUP),
        LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Vrf),
            LinkInfo::Data(InfoData::Vrf(vec![InfoVrf::TableId(table)])),
        ]),
    ];
    message
}

/// A link by its number.
pub(crate) fn link_numbered(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

/// A link by its name.
pub(crate) fn link_named(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message
}

/// The whole address space of a family: where default routes lead.
pub(crate) fn everywhere(family: Family) -> IpNet {
    match family {
        Family::V4 => IpNet::new_assert(Ipv4Addr::UNSPECIFIED.into(), 0),
        Family::V6 => IpNet::new_assert(Ipv6Addr::UNSPECIFIED.into(), 0),
    }
}
