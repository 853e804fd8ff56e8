//! Routes that BGP brought into the kernel, for the gateway router: pods leave by the way the peers told.

use ipnet::IpNet;
use underlay_desired::ovn::{RowId, Rows, Table};
use underlay_net::{Family, cidr};
use underlay_world::local::LearnedRoute;

use super::site::Site;
use super::topology::{StaticRoute, add_route};

/// The kernel's main table, where the default network's routes are.
const MAIN_TABLE: u32 = 254;

/// Adds a static route for every next hop of every learned route. Several next hops share the load.
pub fn plan(site: &Site<'_>, rows: &mut Rows) {
    let router = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    let (port, _) = site.names.router_to_external(site.name());
    for route in site.local.learned.iter().filter(|route| is_wanted(site, route)) {
        for (gateway, link) in &route.next_hops {
            if *link != site.bridge.name || Family::of(*gateway) != Family::of_net(&route.destination) {
                continue;
            }
            let route = StaticRoute::to(&route.destination.to_string(), &gateway.to_string())
                .out_of(&port)
                .id("k8s.ovn.org/owner-controller", "RouteImport");
            add_route(site, rows, &router, route);
        }
    }
}

/// What lies in our own ranges is never taken from others: the overlay knows better.
fn is_wanted(site: &Site<'_>, route: &LearnedRoute) -> bool {
    let family = Family::of_net(&route.destination);
    let settings = site.settings;
    let fixed = [settings.join.of(family), settings.transit.of(family), settings.masquerade.of(family)];
    let own = settings.cluster_nets(family).chain(settings.service_nets(family)).chain(fixed);
    let inside = |net: IpNet| net.contains(&route.destination);
    route.table == MAIN_TABLE
        && site.families.iter().any(|side| side.family == family)
        && !own.into_iter().any(inside)
        && !is_connected(site, &route.destination)
}

/// The node's own links are reached directly, whatever a peer says.
fn is_connected(site: &Site<'_>, destination: &IpNet) -> bool {
    site.bridge
        .addresses
        .iter()
        .any(|net| net.trunc() == *destination || cidr::host(net.addr()) == *destination)
}
