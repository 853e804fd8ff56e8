//! The node's own part of the logical network: its switch of pods, the two routers, and the switches between them.
//!
//! ```text
//! pods, node -- <node> -- ovn_cluster_router -- join -- GR_<node> -- ext_<node> -- external bridge
//!                                 |
//!                           transit_switch -- other nodes
//! ```
//!
//! Every network has all of this for itself, under its own names; one without overlay has no transit switch.

use ipnet::IpNet;
use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::cidr::host;
use underlay_net::{Family, Mac, NetworkNames};

use super::site::{Site, masquerade};

/// Name of the physical network that Open vSwitch maps to the external bridge.
pub const PHYSICAL_NETWORK: &str = "physnet";

/// Of the rules of a node's switch: what is not carried is dropped before anything else is asked.
const MULTICAST_REPORTS: i64 = 1900;

/// Switches, routers and what joins them.
pub fn plan(site: &Site<'_>, rows: &mut Rows) {
    let cluster_router = cluster_router(site, rows);
    let gateway_router = gateway_router(site, rows);
    node_switch(site, rows, &cluster_router);
    join_switch(site, rows, &cluster_router, &gateway_router);
    external_switch(site, rows, &gateway_router);
    cluster_routes(site, rows, &cluster_router);
    node_policies(site, rows, &cluster_router);
    gateway_routes(site, rows, &gateway_router);
}

fn cluster_router(site: &Site<'_>, rows: &mut Rows) -> RowId {
    let name = site.names.cluster_router();
    let row = Row::new(Table::LogicalRouter, &name, &site.why)
        .text("name", &name)
        .entry("options", "always_learn_from_arp_request", "false")
        .entry("external_ids", "k8s-cluster-router", "yes");
    rows.add(site.mark(row))
}

fn gateway_router(site: &Site<'_>, rows: &mut Rows) -> RowId {
    let name = site.names.gateway_router(site.name());
    let addresses: Vec<String> = outside(site).map(|net| net.addr().to_string()).collect();
    let row = Row::new(Table::LogicalRouter, &name, &site.why)
        .text("name", &name)
        .entry("options", "chassis", &site.local.chassis)
        .entry("options", "always_learn_from_arp_request", "false")
        .entry("options", "dynamic_neigh_routers", "false")
        // Replies of a service's endpoint must come back through this router.
        .entry("options", "lb_force_snat_ip", "router_ip")
        .entry("options", "mac_binding_age_threshold", "300")
        .entry("external_ids", "physical_ip", addresses.first().cloned().unwrap_or_default())
        .entry("external_ids", "physical_ips", addresses.join(","));
    let row = if site.network.is_default() {
        // The node's own zone: a port that the node uses is not used for a pod.
        row.entry("options", "snat-ct-zone", "0")
    } else {
        // The default network's router tells everybody of the addresses that all share.
        row.entry("options", "disable_garp_rarp", "true")
    };
    rows.add(site.mark_with_role(row))
}

/// Addresses of the gateway router to the world: the node's, and the network's own behind them.
fn outside(site: &Site<'_>) -> impl Iterator<Item = IpNet> {
    let own = site.families.iter().filter(|side| side.external.is_some());
    let own = own.filter_map(|side| Some(host(side.stand?.gateway)));
    site.families.iter().filter_map(|side| side.external).chain(own)
}

fn node_switch(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let name = site.names.node_switch(site.name());
    // Both are said also where there are none: the last of ours could not go otherwise.
    let mut row = Row::new(Table::LogicalSwitch, &name, &site.why)
        .text("name", &name)
        .rows("acls", [])
        .rows("qos_rules", []);
    for side in &site.families {
        row = match side.subnet {
            IpNet::V4(subnet) => row.entry("other_config", "subnet", subnet.to_string()).entry(
                "other_config",
                "exclude_ips",
                side.management.to_string(),
            ),
            IpNet::V6(subnet) => row.entry("other_config", "ipv6_prefix", subnet.network().to_string()),
        };
    }
    let switch = rows.add(site.mark_with_role(row));
    keep_quiet(site, rows, &switch);
    let (router_port, switch_port) = site.names.router_to_switch(site.name());
    let networks = site.families.iter().map(|side| side.gateway_net().to_string());
    let mac = site.gateway_mac().unwrap_or(site.bridge.mac);
    let port = router_port_row(site, &router_port, mac, networks);
    let port = on_this_node(site, rows, port);
    connect(site, rows, (router, port), (&switch, &switch_port));

    let name = site.names.management_port(site.name());
    let mac = site.management_mac().unwrap_or(site.bridge.mac);
    let addresses = site.families.iter().map(|side| side.management.to_string());
    let row = Row::new(Table::LogicalSwitchPort, &name, &site.why)
        .text("name", &name)
        .texts("addresses", [joined(mac, addresses)]);
    let port = rows.add(site.mark(row));
    rows.refer(&switch, "ports", port);
}

/// A router translates addresses at a port only if that is at home on a node. User-defined networks need that: their
/// pods speak with the node under an address that no other network has.
fn on_this_node(site: &Site<'_>, rows: &mut Rows, port: Row) -> Row {
    if site.network.is_default() {
        return port;
    }
    let chassis = &site.local.chassis;
    let name = format!("{}-{chassis}", port.id.id);
    let home = rows.add(
        Row::new(Table::GatewayChassis, &name, &site.why)
            .text("name", &name)
            .text("chassis_name", chassis)
            .integer("priority", 1),
    );
    port.row("gateway_chassis", home)
}

/// Whatever starts says which multicast groups it listens to, and everybody on the switch would be told. Nobody wants to
/// know, since multicast is not carried, but with a hundred pods the switch is busy with nothing else when one starts.
fn keep_quiet(site: &Site<'_>, rows: &mut Rows, switch: &RowId) {
    if !site.families.iter().any(|side| side.subnet.addr().is_ipv6()) {
        return;
    }
    let rule = rows.add(
        Row::new(Table::Acl, format!("{}/multicast-reports", switch.id), &site.why)
            .text("direction", "from-lport")
            .integer("priority", MULTICAST_REPORTS)
            .text("match", "mldv1 || mldv2")
            .text("action", "drop"),
    );
    rows.refer(switch, "acls", rule);
}

fn join_switch(site: &Site<'_>, rows: &mut Rows, cluster: &RowId, gateway: &RowId) {
    let name = site.names.join_switch();
    let row = Row::new(Table::LogicalSwitch, &name, &site.why).text("name", &name);
    let switch = rows.add(site.mark(row));
    let ends = [
        (cluster, site.families.iter().map(|side| side.join_cluster).collect::<Vec<_>>()),
        (gateway, site.families.iter().map(|side| side.join_gateway).collect()),
    ];
    for (router, networks) in ends {
        let (router_port, switch_port) = NetworkNames::router_to_join(&router.id);
        let mac = networks.first().map_or(site.bridge.mac, |net| Mac::of(net.addr()));
        let port = router_port_row(site, &router_port, mac, networks.iter().map(ToString::to_string));
        let mut port = site.mark(port);
        if router == gateway && site.bridge.checks_size {
            port = port.entry("options", "gateway_mtu", site.network.mtu.to_string());
        }
        connect(site, rows, (router, port), (&switch, &switch_port));
    }
}

fn external_switch(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let name = site.names.external_switch(site.name());
    let row = Row::new(Table::LogicalSwitch, &name, &site.why).text("name", &name);
    let switch = rows.add(site.mark_with_role(row));
    let (router_port, switch_port) = site.names.router_to_external(site.name());
    let networks = outside(site).map(|net| net.to_string());
    let port = router_port_row(site, &router_port, site.bridge.mac, networks).entry(
        "external_ids",
        "gateway-physical-ip",
        "yes",
    );
    connect(site, rows, (router, site.mark(port)), (&switch, &switch_port));

    let name = site.names.localnet_port(&site.bridge.name, site.name());
    let row = Row::new(Table::LogicalSwitchPort, &name, &site.why)
        .text("name", &name)
        .text("type", "localnet")
        .texts("addresses", ["unknown"])
        .entry("options", "network_name", PHYSICAL_NETWORK);
    let port = rows.add(site.mark(row));
    rows.refer(&switch, "ports", port);

    for side in &site.families {
        bind(site, rows, &router_port, side.family, masquerade::NEXT_HOP);
        if side.stand.is_some() {
            bind(site, rows, &router_port, side.family, masquerade::HOST);
        }
    }
}

/// Lets a router's port know an address of the masquerade range that nobody answers for.
fn bind(site: &Site<'_>, rows: &mut Rows, port: &str, family: Family, offset: u128) {
    let Some(address) = site.masquerade(family, offset) else { return };
    rows.add(
        Row::new(Table::StaticMacBinding, format!("{port}/{address}"), &site.why)
            .text("logical_port", port)
            .text("ip", address.to_string())
            .text("mac", Mac::of(address).to_string())
            .bool("override_dynamic_mac", true),
    );
}

fn cluster_routes(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    for side in &site.families {
        let gateway = side.join_gateway.addr().to_string();
        add_route(site, rows, router, StaticRoute::to(&gateway, &gateway));
        add_route(site, rows, router, StaticRoute::from(&side.subnet.to_string(), &gateway));
    }
}

/// Pods reach their own node past the gateway router, by the node's port among them. To the router itself, under the
/// address that only the node knows it by, nobody else has to go.
fn node_policies(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let switch = site.names.node_switch(site.name());
    let (router_port, _) = site.names.router_to_switch(site.name());
    for side in &site.families {
        let family = side.family.ovn();
        let own = site.local.addresses.iter().filter(|net| Family::of_net(net) == side.family);
        for address in own.map(IpNet::addr).chain(side.stand.map(|stand| stand.gateway)) {
            let text = format!("inport == \"{router_port}\" && {family}.dst == {address} /* {switch} */");
            let id = format!("{}/node/{address}", router.id);
            let row = Row::new(Table::LogicalRouterPolicy, id, &site.why)
                .integer("priority", 1004)
                .text("match", text)
                .text("action", "reroute")
                .texts("nexthops", [side.management.to_string()]);
            let policy = rows.add(site.mark(row));
            rows.refer(router, "policies", policy);
        }
    }
}

fn gateway_routes(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let (external_port, _) = site.names.router_to_external(site.name());
    for side in &site.families {
        // Without overlay, the pods of other nodes are where BGP says, or where everything else is.
        let own = site.network.is_routed().then_some(side.subnet);
        let all = site.network.nets(side.family).filter(|_| own.is_none());
        for net in all.chain(own) {
            let via = side.join_cluster.addr().to_string();
            add_route(site, rows, router, StaticRoute::to(&net.to_string(), &via));
        }
        if let Some(next_hop) = site.masquerade(side.family, masquerade::NEXT_HOP) {
            let range = site.settings.masquerade.of(side.family).to_string();
            let route = StaticRoute::to(&range, &next_hop.to_string()).out_of(&external_port);
            add_route(site, rows, router, route.marked("k8s.ovn.org/node-masquerade-subnet"));
        }
        let everything = side.family.everything().to_string();
        for next_hop in
            site.local.next_hops.iter().filter(|hop| hop.is_ipv4() == side.subnet.addr().is_ipv4())
        {
            let route = StaticRoute::to(&everything, &next_hop.to_string()).out_of(&external_port);
            add_route(site, rows, router, route);
        }
    }
}

/// A static route of a router.
pub(super) struct StaticRoute {
    prefix: String,
    next_hop: String,
    by_source: bool,
    port: Option<String>,
    ids: Vec<(String, String)>,
}

impl StaticRoute {
    /// Where packets to this prefix go.
    pub fn to(prefix: &str, next_hop: &str) -> Self {
        let (prefix, next_hop) = (prefix.to_owned(), next_hop.to_owned());
        Self { prefix, next_hop, by_source: false, port: None, ids: Vec::new() }
    }

    /// Where packets from this prefix go, unless a route to where they go says otherwise.
    pub fn from(prefix: &str, next_hop: &str) -> Self {
        Self { by_source: true, ..Self::to(prefix, next_hop) }
    }

    /// Through this port.
    pub fn out_of(mut self, port: &str) -> Self {
        self.port = Some(port.to_owned());
        self
    }

    /// With an id that others look for.
    pub fn marked(self, key: &str) -> Self {
        self.id(key, "")
    }

    /// With an id that others look for.
    pub fn id(mut self, key: &str, value: &str) -> Self {
        self.ids.push((key.to_owned(), value.to_owned()));
        self
    }
}

/// Adds a route to a router.
pub(super) fn add_route(site: &Site<'_>, rows: &mut Rows, router: &RowId, route: StaticRoute) {
    let direction = if route.by_source { "from" } else { "to" };
    let id = format!("{}/{direction}/{}/{}", router.id, route.prefix, route.next_hop);
    let mut row = Row::new(Table::LogicalRouterStaticRoute, id, &site.why)
        .text("ip_prefix", &route.prefix)
        .text("nexthop", &route.next_hop)
        .texts("policy", [if route.by_source { "src-ip" } else { "dst-ip" }])
        .texts("output_port", route.port)
        .map("external_ids");
    row = site.mark(row);
    for (key, value) in route.ids {
        row = row.entry("external_ids", key, value);
    }
    let route = rows.add(row);
    rows.refer(router, "static_routes", route);
}

/// A router's port.
pub(super) fn router_port_row(
    site: &Site<'_>,
    name: &str,
    mac: Mac,
    networks: impl IntoIterator<Item = String>,
) -> Row {
    Row::new(Table::LogicalRouterPort, name, &site.why)
        .text("name", name)
        .text("mac", mac.to_string())
        .texts("networks", networks)
        .map("options")
}

/// Joins a router and a switch. Returns the switch's port.
pub(super) fn connect(
    site: &Site<'_>,
    rows: &mut Rows,
    (router, router_port): (&RowId, Row),
    (switch, switch_port): (&RowId, &str),
) -> RowId {
    let router_port = rows.add(router_port);
    let name = router_port.id.clone();
    rows.refer(router, "ports", router_port);
    let row = Row::new(Table::LogicalSwitchPort, switch_port, &site.why)
        .text("name", switch_port)
        .text("type", "router")
        .texts("addresses", ["router"])
        .entry("options", "router-port", name);
    let port = rows.add(site.mark(row));
    rows.refer(switch, "ports", port.clone());
    port
}

/// A MAC address and IP addresses, as ports have them.
pub(super) fn joined(mac: Mac, addresses: impl IntoIterator<Item = String>) -> String {
    std::iter::once(mac.to_string()).chain(addresses).collect::<Vec<_>>().join(" ")
}

/// A node's pods reach a single address by a host route.
pub(super) fn host_prefix(net: &IpNet) -> String {
    host(net.addr()).to_string()
}
