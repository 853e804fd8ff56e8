//! Routes that BGP brought into the kernel, for the gateway routers: pods leave by the way the peers told.
//!
//! In: the kernel's routes of all tables. Out: static routes of each network's gateway router, and what became of every
//! learned route. A network hears what is in the table of its VRF; where the kernel has no VRF devices, one that is told
//! to the peers of the default VRF hears what those tell.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::ovn::{RowId, Rows, Table};
use underlay_net::{Family, cidr};
use underlay_world::local::LearnedRoute;

use super::network::Network;
use super::site::Site;
use super::tables;
use super::topology::{StaticRoute, add_route};

/// The kernel's main table, where the default network's routes are.
const MAIN_TABLE: u32 = 254;

/// A learned route, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// Where to.
    pub destination: IpNet,
    /// Through whom: gateway and link.
    pub next_hops: BTreeSet<(IpAddr, String)>,
    /// Why OVN does not use it; nothing if it does.
    pub refused: Option<Refusal>,
}

/// Why OVN does not use a route that BGP brought.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No pod could use it.
    #[error("pods have no IP{0} addresses")]
    Family(Family),
    /// What lies in our own ranges is never taken from others: the overlay knows better.
    #[error("it lies in the cluster's own range {0}")]
    Own(IpNet),
    /// Networks are kept apart, or meet where the network outside lets them: never in OVN.
    #[error("it lies in the range {range} of network {network}")]
    Other {
        /// The range.
        range: IpNet,
        /// The network.
        network: String,
    },
    /// The node's own links are reached directly, whatever a peer says.
    #[error("it is the node's own link {0}")]
    Connected(IpNet),
    /// The gateway router has one way out.
    #[error("none of its next hops is at {0}, the only link that OVN has to the world")]
    Elsewhere(String),
    /// More than a network takes: somebody tells the whole world.
    #[error("the network has {0} routes already, as many as it takes")]
    Flood(usize),
}

/// Ranges of the networks that the peers of the default VRF are told of. None overlaps another.
#[derive(Debug, Default)]
pub struct Ranges<'a>(BTreeMap<IpAddr, (IpNet, &'a str)>);

impl<'a> Ranges<'a> {
    /// Of these networks.
    pub fn of(networks: impl IntoIterator<Item = &'a Network>) -> Self {
        let ranges = |network: &'a Network| network.nets.iter().map(|net| (*net, network.name.as_str()));
        Self(networks.into_iter().flat_map(ranges).map(|(net, name)| (net.network(), (net, name))).collect())
    }

    /// The range that a destination lies in.
    fn around(&self, destination: &IpNet) -> Option<(IpNet, &'a str)> {
        let (_, (net, name)) = self.0.range(..=destination.network()).next_back()?;
        net.contains(destination).then_some((*net, *name))
    }
}

/// Adds a static route for every next hop of every route that a network learned. Several next hops share the load.
/// Returns what became of each route.
pub fn plan(site: &Site<'_>, ranges: &Ranges<'_>, rows: &mut Rows) -> Vec<Learned> {
    let router = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    let (port, _) = site.names.router_to_external(site.name());
    let mut learned: Vec<Learned> = heard(site).map(|route| judge(site, ranges, route)).collect();
    guard(&mut learned, site.settings.imported_routes_limit);
    for route in learned.iter().filter(|route| route.refused.is_none()) {
        for gateway in usable(site, &route.destination, &route.next_hops) {
            let route = StaticRoute::to(&route.destination.to_string(), &gateway.to_string())
                .out_of(&port)
                .id("k8s.ovn.org/owner-controller", "RouteImport");
            add_route(site, rows, &router, route);
        }
    }
    learned
}

/// The routes that a network hears of.
fn heard<'a>(site: &Site<'a>) -> impl Iterator<Item = &'a LearnedRoute> + use<'a> {
    let table = if site.network.is_default() {
        Some(MAIN_TABLE)
    } else if site.vrf().is_some() {
        Some(tables::table(site))
    } else {
        site.advertised().then_some(MAIN_TABLE)
    };
    site.local.learned.iter().filter(move |route| Some(route.table) == table)
}

fn judge(site: &Site<'_>, ranges: &Ranges<'_>, route: &LearnedRoute) -> Learned {
    let refused = refusal(site, ranges, route);
    Learned { destination: route.destination, next_hops: route.next_hops.clone(), refused }
}

/// Lets no more routes in than a network takes. The widest stay: they lead furthest.
fn guard(learned: &mut [Learned], limit: usize) {
    let mut taken: Vec<&mut Learned> = learned.iter_mut().filter(|route| route.refused.is_none()).collect();
    if taken.len() <= limit {
        return;
    }
    taken.sort_by_key(|route| (route.destination.prefix_len(), route.destination));
    for route in taken.into_iter().skip(limit) {
        route.refused = Some(Refusal::Flood(limit));
    }
}

/// Gateways of a route that the gateway router can reach.
fn usable(
    site: &Site<'_>,
    destination: &IpNet,
    next_hops: &BTreeSet<(IpAddr, String)>,
) -> impl Iterator<Item = IpAddr> {
    let family = Family::of_net(destination);
    let reached = move |(gateway, link): &&(IpAddr, String)| {
        *link == site.bridge.name && Family::of(*gateway) == family
    };
    next_hops.iter().filter(reached).map(|(gateway, _)| *gateway)
}

fn refusal(site: &Site<'_>, ranges: &Ranges<'_>, route: &LearnedRoute) -> Option<Refusal> {
    let (destination, family) = (&route.destination, Family::of_net(&route.destination));
    if !site.families.iter().any(|side| side.family == family) {
        return Some(Refusal::Family(family));
    }
    if let Some(range) = own_ranges(site, family).find(|range| range.contains(destination)) {
        return Some(Refusal::Own(range));
    }
    if let Some((range, network)) = ranges.around(destination).filter(|(_, name)| *name != site.network.name)
    {
        return Some(Refusal::Other { range, network: network.to_owned() });
    }
    if is_connected(site, destination) {
        return Some(Refusal::Connected(*destination));
    }
    let reached = usable(site, destination, &route.next_hops).next().is_some();
    (!reached).then(|| Refusal::Elsewhere(site.bridge.name.clone()))
}

/// Ranges in which nobody else tells us the way: those between our routers, services, and pods as far as the overlay
/// leads to them. Without overlay that is only as far as this node.
fn own_ranges(site: &Site<'_>, family: Family) -> impl Iterator<Item = IpNet> {
    let (network, settings) = (site.network, site.settings);
    let fixed = [network.join.of(family), settings.transit.of(family), settings.masquerade.of(family)];
    let here = site.families.iter().filter(move |side| side.family == family).map(|side| side.subnet.trunc());
    let here = here.filter(|_| network.is_routed());
    let pods = network.nets(family).filter(|_| !network.is_routed()).chain(here);
    pods.chain(settings.service_nets(family)).chain(fixed)
}

fn is_connected(site: &Site<'_>, destination: &IpNet) -> bool {
    site.bridge
        .addresses
        .iter()
        .any(|net| net.trunc() == *destination || cidr::host(net.addr()) == *destination)
}
