//! The other nodes: the switch between zones, the way to their pods, and their ends of the tunnels.

use ipnet::IpNet;
use underlay_api::annotations::TunnelKeys;
use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_desired::{ObjectRef, Why};
use underlay_net::cidr::{nth, with_length_of};
use underlay_net::{Family, Mac};
use underlay_world::Node;

use super::site::Site;
use super::topology::{StaticRoute, add_route, connect, host_prefix, joined, router_port_row};

/// Adds the transit switch with a port for every other node, if packets travel between nodes in tunnels.
pub fn plan(site: &Site<'_>, rows: &mut Rows) {
    if site.network.is_routed() {
        return;
    }
    let router = RowId::new(Table::LogicalRouter, site.names.cluster_router());
    let name = site.names.transit_switch();
    let tunnel_key = TunnelKeys::SWITCHES + u32::from(site.network.id);
    let row = Row::new(Table::LogicalSwitch, &name, &site.why)
        .text("name", &name)
        .entry("other_config", "interconn-ts", &name)
        .entry("other_config", "requested-tnl-key", tunnel_key.to_string())
        .entry("other_config", "mcast_snoop", "true")
        .entry("other_config", "mcast_querier", "false")
        .entry("other_config", "mcast_flood_unregistered", "true");
    let switch = rows.add(site.mark(row));
    let (router_port, switch_port) = site.names.router_to_transit(site.name());
    let networks: Vec<IpNet> = site.families.iter().map(|side| side.transit).collect();
    let mac = networks.first().map_or(site.bridge.mac, |net| Mac::of(net.addr()));
    let port = router_port_row(site, &router_port, mac, networks.iter().map(ToString::to_string)).entry(
        "options",
        "mcast_flood",
        "true",
    );
    let port = connect(site, rows, (&router, port), (&switch, &switch_port));
    if let Some(row) = rows.get(&port).cloned() {
        rows.add(row.entry("options", "requested-tnl-key", site.id.to_string()).entry(
            "external_ids",
            "node",
            site.name(),
        ));
    }
    for remote in site.others().filter_map(|node| Remote::find(site, node)) {
        remote.plan(site, rows, &router, &switch);
    }
}

/// Adds the southbound rows that tell where the other nodes' tunnels end.
pub fn plan_chassis(site: &Site<'_>, rows: &mut Rows) {
    for node in site.others() {
        let Some(chassis) = node.chassis.as_ref().filter(|_| !node.encap.is_empty()) else { continue };
        let why = because(site, node);
        let mut row = Row::new(Table::Chassis, chassis, &why)
            .text("name", chassis)
            .text("hostname", &node.name)
            .entry("other_config", "is-remote", "true");
        for address in &node.encap {
            let mut encap = Row::new(Table::Encap, format!("{chassis}/{address}"), &why)
                .text("type", "geneve")
                .text("ip", address.to_string())
                .text("chassis_name", chassis)
                .entry("options", "csum", "true");
            if site.settings.encap_port != 6081 {
                encap = encap.entry("options", "dst_port", site.settings.encap_port.to_string());
            }
            row = row.row("encaps", rows.add(encap));
        }
        rows.add(row);
    }
}

fn because(site: &Site<'_>, node: &Node) -> Why {
    site.why.clone().and(ObjectRef::cluster("Node", &node.name))
}

/// Another node, known well enough to be reached.
struct Remote<'a> {
    node: &'a Node,
    chassis: &'a str,
    id: u16,
    transit: Vec<IpNet>,
    why: Why,
}

impl<'a> Remote<'a> {
    fn find(site: &Site<'_>, node: &'a Node) -> Option<Self> {
        let transit: Vec<IpNet> = node.transit.0.nets().filter(|net| has(site, net)).collect();
        (!transit.is_empty()).then_some(())?;
        let (chassis, id) = (node.chassis.as_deref()?, node.id?.0);
        Some(Self { node, chassis, id, transit, why: because(site, node) })
    }

    fn plan(&self, site: &Site<'_>, rows: &mut Rows, router: &RowId, switch: &RowId) {
        let (_, name) = site.names.router_to_transit(&self.node.name);
        let mac = self.transit.first().map_or(site.bridge.mac, |net| Mac::of(net.addr()));
        let row = Row::new(Table::LogicalSwitchPort, &name, &self.why)
            .text("name", &name)
            .text("type", "remote")
            .texts("addresses", [joined(mac, self.transit.iter().map(ToString::to_string))])
            .entry("options", "requested-tnl-key", self.id.to_string())
            .entry("options", "requested-chassis", self.chassis)
            .entry("external_ids", "node", &self.node.name);
        let port = rows.add(site.mark(row));
        rows.refer(switch, "ports", port);
        for via in &self.transit {
            let family = Family::of_net(via);
            let join = site.network.join.of(family);
            let gateway = nth(&join, self.id.into()).map(|address| with_length_of(address, &join));
            let subnets = self.node.subnets_in(&site.network.name).iter();
            let subnets = subnets.filter(|net| Family::of_net(net) == family).map(ToString::to_string);
            for prefix in subnets.chain(gateway.iter().map(host_prefix)) {
                let route = StaticRoute::to(&prefix, &via.addr().to_string())
                    .id("ic-node", &self.node.name)
                    .id("k8s.ovn.org/network", &site.network.name);
                add_route(site, rows, router, route);
            }
        }
    }
}

fn has(site: &Site<'_>, net: &IpNet) -> bool {
    site.families.iter().any(|side| side.family == Family::of_net(net))
}
