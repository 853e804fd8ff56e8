//! What the kernel has: dumps, and the words we use for what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressProtocol};
use rtnetlink::packet_route::link::{InfoData, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::route::RouteProtocol;
use rtnetlink::packet_route::rule::{RuleAttribute, RuleMessage};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use underlay_desired::linux::{Address, Host, Neighbor, Route, Rule, TableEnd};
use underlay_desired::owner::{LINK_GROUP, PROTOCOL};
use underlay_net::{Family, Mac};

use crate::fault::Fault;
use crate::kernel::Kernel;
use crate::sysctl;

mod change;
mod followed;
mod route;
mod surroundings;

pub use change::{BgpChange, names_by_number};
pub use followed::{BgpTable, Unclear, Ways};
pub use route::{BgpRoute, END_PRIORITY, HeldRoute, Hop, NextHop, default_priority};
use route::{Kept, bgp_routes, dump_request, read_gateway, read_route};
pub use surroundings::Surroundings;

/// What the kernel has of what concerns us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// All links by name.
    pub links: BTreeMap<String, Link>,
    /// All addresses.
    pub addresses: Vec<HeldAddress>,
    /// Our routes.
    pub routes: Vec<HeldRoute>,
    /// Our ends of tables.
    pub table_ends: BTreeSet<TableEnd>,
    /// Table and destination of those of our routes that others have a route beside: to replace ours might hit theirs.
    /// Empty unless [`Kernel::contested`] was asked: others may have very many.
    pub contested: BTreeSet<(u32, IpNet)>,
    /// Our rules.
    pub rules: BTreeSet<Rule>,
    /// All neighbours with a MAC address.
    pub neighbors: Vec<HeldNeighbor>,
    /// The settings that were asked for, as far as the kernel has them.
    pub sysctls: BTreeMap<String, String>,
}

/// A link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The kernel's number for it.
    pub index: u32,
    /// Largest packet.
    pub mtu: u32,
    /// MAC address, of links that have one.
    pub mac: Option<Mac>,
    /// Whether it was set up; its other end need not be.
    pub up: bool,
    /// Number of the link that it belongs to, such as a VRF device.
    pub master: Option<u32>,
    /// The routing table of a VRF device.
    pub vrf: Option<u32>,
    /// Whether it is of our making.
    pub ours: bool,
}

/// An address that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldAddress {
    /// Which.
    pub address: Address,
    /// Whether it carries our protocol number. Kernels before 5.18 keep none: there, addresses are added but never
    /// removed.
    pub ours: bool,
}

/// A neighbour that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldNeighbor {
    /// Which.
    pub neighbor: Neighbor,
    /// Whether it carries our protocol number.
    pub ours: bool,
    /// Whether somebody set it; the others the kernel learned and may forget.
    pub permanent: bool,
}

/// Names of links by the kernel's numbers.
pub(crate) type Names = BTreeMap<u32, String>;

impl Kernel {
    /// Reads everything that concerns us. Of settings, those that `want` names.
    pub async fn observe(&self, want: &Host) -> Result<Observed, Fault> {
        let links = self.links().await?;
        let names = names(&links);
        let (routes, table_ends) = self.our_routes(&names).await?;
        let settings: Vec<String> = want.sysctls.keys().cloned().collect();
        let sysctls = self.namespace().enter(move || sysctl::read(&settings)).await;
        Ok(Observed {
            addresses: self.addresses(&names).await?,
            routes,
            table_ends,
            contested: BTreeSet::new(),
            rules: self.rules().await?,
            neighbors: self.neighbors(&names).await?,
            sysctls: sysctls.map_err(Fault::read("kernel settings"))?,
            links,
        })
    }

    /// The routes that BGP brought into any table, in order. Of routes to one place only the best counts.
    pub async fn bgp_routes(&self) -> Result<Vec<BgpRoute>, Fault> {
        Ok(bgp_routes(self.all_bgp_routes().await?))
    }

    /// The same for those who go on from there, change by change.
    pub async fn bgp_table(&self) -> Result<BgpTable, Fault> {
        Ok(BgpTable::new(self.all_bgp_routes().await?))
    }

    async fn all_bgp_routes(&self) -> Result<Vec<BgpRoute>, Fault> {
        let names = names(&self.links().await?);
        let mut found = Vec::new();
        for family in Family::ALL {
            let request = dump_request(family, Some(RouteProtocol::Bgp));
            let routes = self.dump(request, |answer| read_route(answer, &names)).await;
            found.extend(routes.map_err(Fault::read("routes"))?.into_iter().filter_map(|kept| match kept {
                Kept::Bgp(route) => Some(route),
                _ => None,
            }));
        }
        Ok(found)
    }

    /// All links by name.
    pub async fn links(&self) -> Result<BTreeMap<String, Link>, Fault> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let links = self.dump(request, read_link).await.map_err(Fault::read("links"))?;
        Ok(links.into_iter().collect())
    }

    pub(crate) async fn addresses(&self, names: &Names) -> Result<Vec<HeldAddress>, Fault> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.dump(request, |answer| read_address(&answer, names)).await.map_err(Fault::read("addresses"))
    }

    /// Destinations and gateways of the main table's routes out of these links.
    pub(crate) async fn gateways(&self, names: &Names) -> Result<BTreeSet<(IpNet, IpAddr)>, Fault> {
        let mut found = BTreeSet::new();
        for family in Family::ALL {
            let request = dump_request(family, None);
            let routes = self.dump(request, |answer| read_gateway(answer, names)).await;
            found.extend(routes.map_err(Fault::read("routes"))?);
        }
        Ok(found)
    }

    /// Our routes and ends in all routing tables.
    async fn our_routes(&self, names: &Names) -> Result<(Vec<HeldRoute>, BTreeSet<TableEnd>), Fault> {
        let (mut ours, mut table_ends) = (Vec::new(), BTreeSet::new());
        for family in Family::ALL {
            let request = dump_request(family, Some(RouteProtocol::Other(PROTOCOL)));
            let routes = self.dump(request, |answer| read_route(answer, names)).await;
            for kept in routes.map_err(Fault::read("routes"))? {
                match kept {
                    Kept::Ours(route) => ours.push(route),
                    Kept::End(end) => _ = table_ends.insert(end),
                    Kept::Theirs(_) | Kept::Bgp(_) => {}
                }
            }
        }
        Ok((ours, table_ends))
    }

    /// Table and destination of those of our routes that others have a route beside.
    pub async fn contested(&self, have: &Observed) -> Result<BTreeSet<(u32, IpNet)>, Fault> {
        let places: BTreeSet<_> = have.routes.iter().map(|route| (route.table, route.destination)).collect();
        let names = names(&have.links);
        let theirs = |answer| match read_route(answer, &names)? {
            Kept::Theirs(place) => Some(place),
            Kept::Bgp(route) => Some((route.table, route.destination)),
            Kept::Ours(_) | Kept::End(_) => None,
        };
        let mut contested = BTreeSet::new();
        for family in Family::ALL {
            let taken = |answer| theirs(answer).filter(|place| places.contains(place));
            let found = self.dump(dump_request(family, None), taken).await;
            contested.extend(found.map_err(Fault::read("routes"))?);
        }
        Ok(contested)
    }

    async fn rules(&self) -> Result<BTreeSet<Rule>, Fault> {
        let mut found = BTreeSet::new();
        for family in Family::ALL {
            let mut message = RuleMessage::default();
            message.header.family = address_family(family);
            let rules = self.dump(RouteNetlinkMessage::GetRule(message), |answer| read_rule(&answer)).await;
            found.extend(rules.map_err(Fault::read("rules"))?);
        }
        Ok(found)
    }

    async fn neighbors(&self, names: &Names) -> Result<Vec<HeldNeighbor>, Fault> {
        let request = RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default());
        self.dump(request, |answer| read_neighbor(&answer, names)).await.map_err(Fault::read("neighbours"))
    }
}

impl HeldRoute {
    /// The same in the words of a plan; none if a plan cannot say it.
    pub fn as_planned(&self) -> Option<Route> {
        let [hop] = self.hops.as_slice() else { return None };
        (self.priority == default_priority(&self.destination)).then(|| Route {
            table: self.table,
            destination: self.destination,
            link: hop.link.clone(),
            gateway: hop.gateway,
            source: self.source,
            mtu: self.mtu,
        })
    }
}

pub(crate) fn names(links: &BTreeMap<String, Link>) -> Names {
    links.iter().map(|(name, link)| (link.index, name.clone())).collect()
}

pub(crate) fn address_family(family: Family) -> AddressFamily {
    match family {
        Family::V4 => AddressFamily::Inet,
        Family::V6 => AddressFamily::Inet6,
    }
}

/// The address of a family that stands for "any".
fn any(family: AddressFamily) -> Option<IpAddr> {
    match family {
        AddressFamily::Inet => Some(Ipv4Addr::UNSPECIFIED.into()),
        AddressFamily::Inet6 => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => None,
    }
}

pub(crate) fn read_link(message: RouteNetlinkMessage) -> Option<(String, Link)> {
    let RouteNetlinkMessage::NewLink(message) = message else { return None };
    let up = message.header.flags.contains(LinkFlags::Up);
    let index = message.header.index;
    let mut link = Link { index, mtu: 0, mac: None, up, master: None, vrf: None, ours: false };
    let mut name = None;
    for attribute in message.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text),
            LinkAttribute::Mtu(mtu) => link.mtu = mtu,
            LinkAttribute::Address(bytes) => link.mac = bytes.try_into().ok().map(Mac),
            LinkAttribute::Controller(index) => link.master = Some(index),
            LinkAttribute::Group(group) => link.ours = group == LINK_GROUP,
            LinkAttribute::LinkInfo(info) => link.vrf = vrf_table(&info),
            _ => {}
        }
    }
    Some((name?, link))
}

fn vrf_table(info: &[LinkInfo]) -> Option<u32> {
    info.iter().find_map(|part| match part {
        LinkInfo::Data(InfoData::Vrf(parts)) => parts.iter().find_map(|part| match part {
            InfoVrf::TableId(table) => Some(*table),
            _ => None,
        }),
        _ => None,
    })
}

fn read_address(message: &RouteNetlinkMessage, names: &Names) -> Option<HeldAddress> {
    let RouteNetlinkMessage::NewAddress(message) = message else { return None };
    let (mut local, mut address, mut flags, mut ours) = (None, None, AddressFlags::empty(), false);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Address(ip) => address = Some(*ip),
            AddressAttribute::Flags(all) => flags = *all,
            AddressAttribute::Protocol(protocol) => ours = *protocol == AddressProtocol::Other(PROTOCOL),
            _ => {}
        }
    }
    let net = IpNet::new(local.or(address)?, message.header.prefix_len).ok()?;
    let link = names.get(&message.header.index)?.clone();
    let deprecated = matches!(net, IpNet::V6(_)) && flags.contains(AddressFlags::Deprecated);
    Some(HeldAddress { address: Address { link, net, deprecated }, ours })
}

fn read_rule(message: &RouteNetlinkMessage) -> Option<Rule> {
    let RouteNetlinkMessage::NewRule(message) = message else { return None };
    let family = match message.header.family {
        AddressFamily::Inet => Family::V4,
        AddressFamily::Inet6 => Family::V6,
        _ => return None,
    };
    let table = u32::from(message.header.table);
    let mut rule = Rule { priority: 0, family, mark: None, to: None, incoming: None, table };
    let mut ours = false;
    for attribute in &message.attributes {
        match attribute {
            RuleAttribute::Priority(priority) => rule.priority = *priority,
            RuleAttribute::FwMark(mark) => rule.mark = Some(*mark),
            RuleAttribute::Destination(ip) => rule.to = IpNet::new(*ip, message.header.dst_len).ok(),
            RuleAttribute::Iifname(name) => rule.incoming = Some(name.clone()),
            RuleAttribute::Table(table) => rule.table = *table,
            RuleAttribute::Protocol(protocol) => ours = *protocol == RouteProtocol::Other(PROTOCOL),
            _ => {}
        }
    }
    ours.then_some(rule)
}

fn read_neighbor(message: &RouteNetlinkMessage, names: &Names) -> Option<HeldNeighbor> {
    let RouteNetlinkMessage::NewNeighbour(message) = message else { return None };
    let (mut address, mut mac, mut ours) = (None, None, false);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => address = Some(IpAddr::V4(*ip)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => address = Some(IpAddr::V6(*ip)),
            NeighbourAttribute::LinkLayerAddress(bytes) => mac = bytes.as_slice().try_into().ok().map(Mac),
            NeighbourAttribute::Protocol(protocol) => ours = *protocol == RouteProtocol::Other(PROTOCOL),
            _ => {}
        }
    }
    let link = names.get(&message.header.ifindex)?.clone();
    Some(HeldNeighbor {
        neighbor: Neighbor { link, address: address?, mac: mac? },
        ours,
        permanent: message.header.state == NeighbourState::Permanent,
    })
}
