//! Whose address the outside sees: the node's, or the pod's own where it is advertised.

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::hash::hashed_name;
use underlay_net::{Family, cidr};

use super::site::Site;

/// Ports that translated connections may come from.
const PORTS: &str = "32768-60999";

/// Address translation on the gateway router, and the set of all nodes' addresses it refers to.
pub fn plan(site: &Site<'_>, rows: &mut Rows) {
    let router = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    for side in &site.families {
        let nodes = node_addresses(site, side.family, rows);
        let Some(external) = side.external else { continue };
        // Errors that the router itself reports to the outside.
        let join = cidr::host(side.join_gateway.addr()).addr().to_string();
        let mut sources = vec![(join, String::new())];
        // An advertised pod shows its own address, except to nodes: they would answer past OVN, from another address.
        let family = side.family.ovn();
        let only = if site.advertised { format!("{family}.dst == ${nodes}") } else { String::new() };
        sources.extend(site.settings.cluster_nets(side.family).map(|net| (net.to_string(), only.clone())));
        for (source, matches) in sources {
            let row = Row::new(Table::Nat, format!("{}/snat/{source}", router.id), &site.why)
                .text("type", "snat")
                .text("logical_ip", source)
                .text("external_ip", external.addr().to_string())
                .text("external_port_range", PORTS)
                .text("match", matches)
                .entry("options", "stateless", "false");
            let nat = rows.add(row);
            rows.refer(&router, "nat", nat);
        }
    }
}

/// The set of all addresses of all nodes; returns its name.
fn node_addresses(site: &Site<'_>, family: Family, rows: &mut Rows) -> String {
    let id = format!("default-network-controller:ClusterNodeIPs:node-ips:{family}");
    let name = hashed_name(&id);
    let of_family = |net: &&ipnet::IpNet| Family::of_net(net) == family;
    let recorded = site.world.nodes.values().flat_map(|node| &node.host_cidrs.0);
    let addresses = recorded.chain(&site.local.addresses).filter(of_family);
    rows.add(
        Row::new(Table::AddressSet, &id, &site.why)
            .text("name", &name)
            .texts("addresses", addresses.map(|net| net.addr().to_string()))
            .entry("external_ids", "k8s.ovn.org/id", &id)
            .entry("external_ids", "k8s.ovn.org/owner-controller", "default-network-controller")
            .entry("external_ids", "k8s.ovn.org/owner-type", "ClusterNodeIPs")
            .entry("external_ids", "k8s.ovn.org/name", "node-ips")
            .entry("external_ids", "ip-family", family.to_string()),
    );
    name
}
