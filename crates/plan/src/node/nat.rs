//! Whose address the outside sees: the node's, or the pod's own where it is advertised. Without overlay the pods of a
//! network see each other's own.
//!
//! The gateway router of a user-defined network shows an address of the network's own, since the same pod addresses may
//! be in several networks; the external bridge turns that into the node's. To the node itself and to the services that
//! every network may use its pods speak under another address of the network's own.

use std::net::IpAddr;

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::hash::hashed_name;
use underlay_net::{Family, NetworkNames};

use super::network::Transport;
use super::site::{Side, Site};

/// Ports that translated connections may come from.
const PORTS: &str = "32768-60999";

/// Address translation on the routers, and the set of all nodes' addresses it refers to.
pub fn plan(site: &Site<'_>, rows: &mut Rows) {
    let gateway = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    for side in &site.families {
        if site.network.is_default() {
            node_addresses(site, side.family, rows);
        }
        let Some(external) = side.shown() else { continue };
        // Errors that the router itself reports to the outside.
        let join = side.join_gateway.addr().to_string();
        let mut sources = vec![(join, String::new())];
        let (only, exempt) = hidden(site, side, rows);
        let exempt = Vec::from_iter(exempt);
        sources.extend(site.network.nets(side.family).map(|net| (net.to_string(), only.clone())));
        for (source, matches) in sources {
            let row = translation(site, &gateway, &source, &source, external)
                .text("external_port_range", PORTS)
                .text("match", matches)
                .rows("exempted_ext_ips", exempt.clone());
            let nat = rows.add(row);
            rows.refer(&gateway, "nat", nat);
        }
    }
    if site.network.is_default() {
        from_node(site, &gateway, rows);
    }
    towards_node(site, rows);
}

/// From whom the addresses of pods are hidden: a match for those, and the set of those they are shown to nevertheless.
fn hidden(site: &Site<'_>, part: &Side, rows: &mut Rows) -> (String, Option<RowId>) {
    // An advertised pod shows its own address, except to nodes: they would answer past OVN, from another address.
    let nodes = || format!("{}.dst == ${}", part.family.ovn(), hashed_name(&node_addresses_id(part.family)));
    match site.network.transport {
        Transport::Geneve | Transport::NoOverlay { outbound_snat: false } if part.advertised => {
            (nodes(), None)
        }
        Transport::Geneve => (String::new(), None),
        // Nobody would find the way back to a pod that is not advertised yet.
        Transport::NoOverlay { .. } => (String::new(), Some(exemption(site, part, rows))),
    }
}

/// The set of those to whom pods show their own address without overlay: the network's other pods. The node itself is
/// reached past the gateway router.
fn exemption(site: &Site<'_>, part: &Side, rows: &mut Rows) -> RowId {
    let network = &site.network.name;
    let controller = format!("{network}-network-controller");
    let id = format!("{controller}:Cluster:no-overlay-snat-exemption:{}:{network}", part.family);
    let row = Row::new(Table::AddressSet, &id, &site.why)
        .text("name", hashed_name(&id))
        .texts("addresses", site.network.nets(part.family).map(|net| net.to_string()))
        .entry("external_ids", "k8s.ovn.org/id", &id)
        .entry("external_ids", "k8s.ovn.org/owner-controller", &controller)
        .entry("external_ids", "k8s.ovn.org/owner-type", "Cluster")
        .entry("external_ids", "k8s.ovn.org/name", "no-overlay-snat-exemption")
        .entry("external_ids", "ip-family", part.family.to_string());
    rows.add(site.mark(row))
}

/// What the node itself and the pods of user-defined networks send to services: it comes with addresses that only the
/// node knows, and leaves with the router's.
///
/// The router does so by itself for a connection's first packet (`lb_force_snat_ip`), where it finds the service's
/// address. The next ones have their endpoint's by then, and the router forgets them until the endpoint has answered. A
/// resolver that asks for both families at once would lose one of two questions.
fn from_node(site: &Site<'_>, gateway: &RowId, rows: &mut Rows) {
    let (to_pods, _) = NetworkNames::router_to_join(&gateway.id);
    let (to_world, _) = site.names.router_to_external(site.name());
    for side in &site.families {
        let source = site.settings.masquerade.of(side.family).to_string();
        let world = side.external.map(|net| (&to_world, net));
        for (port, shown) in std::iter::once((&to_pods, side.join_gateway)).chain(world) {
            let row = translation(site, gateway, &format!("{source}/{port}"), &source, shown.addr())
                .text("match", format!("outport == \"{port}\""));
            let nat = rows.add(row);
            rows.refer(gateway, "nat", nat);
        }
    }
}

/// Pods of a user-defined network, as their node sees them: what is sent to the node's port among them.
fn towards_node(site: &Site<'_>, rows: &mut Rows) {
    let router = RowId::new(Table::LogicalRouter, site.names.cluster_router());
    let (port, _) = site.names.router_to_switch(site.name());
    let mac = site.management_mac().unwrap_or(site.bridge.mac);
    for side in &site.families {
        let Some(stand) = side.stand else { continue };
        let subnet = side.subnet.to_string();
        let row = translation(site, &router, &subnet, &subnet, stand.management)
            .text("external_port_range", PORTS)
            .text("match", format!("eth.dst == {mac}"))
            .texts("logical_port", [port.as_str()]);
        let nat = rows.add(row);
        rows.refer(&router, "nat", nat);
    }
}

/// A translation of source addresses on a router.
pub(super) fn translation(site: &Site<'_>, router: &RowId, id: &str, source: &str, shown: IpAddr) -> Row {
    let row = Row::new(Table::Nat, format!("{}/snat/{id}", router.id), &site.why)
        .text("type", "snat")
        .text("logical_ip", source)
        .text("external_ip", shown.to_string())
        .entry("options", "stateless", "false");
    site.mark(row)
}

/// Id of the set of all nodes' addresses.
pub(super) fn node_addresses_id(family: Family) -> String {
    format!("default-network-controller:ClusterNodeIPs:node-ips:{family}")
}

/// The set of all addresses of all nodes.
fn node_addresses(site: &Site<'_>, family: Family, rows: &mut Rows) {
    let id = node_addresses_id(family);
    let of_family = |net: &&ipnet::IpNet| Family::of_net(net) == family;
    let recorded = site.world.nodes.values().flat_map(|node| &node.host_cidrs.0);
    let addresses = recorded.chain(&site.local.addresses).filter(of_family);
    rows.add(
        Row::new(Table::AddressSet, &id, &site.why)
            .text("name", hashed_name(&id))
            .texts("addresses", addresses.map(|net| net.addr().to_string()))
            .entry("external_ids", "k8s.ovn.org/id", &id)
            .entry("external_ids", "k8s.ovn.org/owner-controller", "default-network-controller")
            .entry("external_ids", "k8s.ovn.org/owner-type", "ClusterNodeIPs")
            .entry("external_ids", "k8s.ovn.org/name", "node-ips")
            .entry("external_ids", "ip-family", family.to_string()),
    );
}
