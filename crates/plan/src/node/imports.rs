//! Routes that BGP brought into the kernel, for the gateway router: pods leave by the way the peers told.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::ovn::{RowId, Rows, Table};
use underlay_net::{Family, cidr};
use underlay_world::local::LearnedRoute;

use super::site::Site;
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
    /// It belongs to another network.
    #[error("it is in the kernel's table {0}, not in the main one")]
    Table(u32),
    /// No pod could use it.
    #[error("pods have no IP{0} addresses")]
    Family(Family),
    /// What lies in our own ranges is never taken from others: the overlay knows better.
    #[error("it lies in the cluster's own range {0}")]
    Own(IpNet),
    /// The node's own links are reached directly, whatever a peer says.
    #[error("it is the node's own link {0}")]
    Connected(IpNet),
    /// The gateway router has one way out.
    #[error("none of its next hops is at {0}, the only link that OVN has to the world")]
    Elsewhere(String),
}

/// Adds a static route for every next hop of every learned route. Several next hops share the load. Returns what became
/// of each route.
pub fn plan(site: &Site<'_>, rows: &mut Rows) -> Vec<Learned> {
    let router = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    let (port, _) = site.names.router_to_external(site.name());
    let mut learned = Vec::with_capacity(site.local.learned.len());
    for route in &site.local.learned {
        let refused = refusal(site, route);
        if refused.is_none() {
            for gateway in usable(site, route) {
                let route = StaticRoute::to(&route.destination.to_string(), &gateway.to_string())
                    .out_of(&port)
                    .id("k8s.ovn.org/owner-controller", "RouteImport");
                add_route(site, rows, &router, route);
            }
        }
        let (destination, next_hops) = (route.destination, route.next_hops.clone());
        learned.push(Learned { destination, next_hops, refused });
    }
    learned
}

/// Gateways of a route that the gateway router can reach.
fn usable(site: &Site<'_>, route: &LearnedRoute) -> impl Iterator<Item = IpAddr> {
    let family = Family::of_net(&route.destination);
    let reached = move |(gateway, link): &&(IpAddr, String)| {
        *link == site.bridge.name && Family::of(*gateway) == family
    };
    route.next_hops.iter().filter(reached).map(|(gateway, _)| *gateway)
}

fn refusal(site: &Site<'_>, route: &LearnedRoute) -> Option<Refusal> {
    let family = Family::of_net(&route.destination);
    if route.table != MAIN_TABLE {
        return Some(Refusal::Table(route.table));
    }
    if !site.families.iter().any(|side| side.family == family) {
        return Some(Refusal::Family(family));
    }
    if let Some(range) = own_ranges(site, family).find(|range| range.contains(&route.destination)) {
        return Some(Refusal::Own(range));
    }
    if is_connected(site, &route.destination) {
        return Some(Refusal::Connected(route.destination));
    }
    usable(site, route).next().is_none().then(|| Refusal::Elsewhere(site.bridge.name.clone()))
}

fn own_ranges(site: &Site<'_>, family: Family) -> impl Iterator<Item = IpNet> {
    let (network, settings) = (site.network, site.settings);
    let fixed = [network.join.of(family), settings.transit.of(family), settings.masquerade.of(family)];
    network.nets(family).chain(settings.service_nets(family)).chain(fixed)
}

fn is_connected(site: &Site<'_>, destination: &IpNet) -> bool {
    site.bridge
        .addresses
        .iter()
        .any(|net| net.trunc() == *destination || cidr::host(net.addr()) == *destination)
}
