//! The node's own part of the logical network: its switch of pods, the two routers, and the switches between them.
//!
//! ```text
//! pods, node -- <node> -- ovn_cluster_router -- join -- GR_<node> -- ext_<node> -- external bridge
//!                                 |
//!                           transit_switch -- other nodes
//! ```

use ipnet::IpNet;
use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::cidr::host;
use underlay_net::{Mac, NetworkNames};

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
    rows.add(
        Row::new(Table::LogicalRouter, &name, &site.why)
            .text("name", &name)
            .entry("options", "always_learn_from_arp_request", "false")
            .entry("external_ids", "k8s-cluster-router", "yes"),
    )
}

fn gateway_router(site: &Site<'_>, rows: &mut Rows) -> RowId {
    let name = site.names.gateway_router(site.name());
    let addresses: Vec<String> =
        site.families.iter().filter_map(|side| Some(side.external?.addr().to_string())).collect();
    rows.add(
        Row::new(Table::LogicalRouter, &name, &site.why)
            .text("name", &name)
            .entry("options", "chassis", &site.local.chassis)
            .entry("options", "always_learn_from_arp_request", "false")
            .entry("options", "dynamic_neigh_routers", "false")
            // Replies of a service's endpoint must come back through this router.
            .entry("options", "lb_force_snat_ip", "router_ip")
            .entry("options", "mac_binding_age_threshold", "300")
            // The node's own zone: a port that the node uses is not used for a pod.
            .entry("options", "snat-ct-zone", "0")
            .entry("external_ids", "physical_ip", addresses.first().cloned().unwrap_or_default())
            .entry("external_ids", "physical_ips", addresses.join(",")),
    )
}

fn node_switch(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let name = site.names.node_switch(site.name());
    let mut row = Row::new(Table::LogicalSwitch, &name, &site.why).text("name", &name);
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
    let switch = rows.add(row);
    keep_quiet(site, rows, &switch);
    let (router_port, switch_port) = site.names.router_to_switch(site.name());
    let networks = site.families.iter().map(|side| side.gateway_net().to_string());
    let mac = site.gateway_mac().unwrap_or(site.bridge.mac);
    let port = router_port_row(site, &router_port, mac, networks);
    connect(site, rows, (router, port), (&switch, &switch_port));

    let name = site.names.management_port(site.name());
    let mac = site.management_mac().unwrap_or(site.bridge.mac);
    let addresses = site.families.iter().map(|side| side.management.to_string());
    let port = rows.add(
        Row::new(Table::LogicalSwitchPort, &name, &site.why)
            .text("name", &name)
            .texts("addresses", [joined(mac, addresses)]),
    );
    rows.refer(&switch, "ports", port);
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
    let switch = rows.add(Row::new(Table::LogicalSwitch, &name, &site.why).text("name", &name));
    let ends = [
        (cluster, site.families.iter().map(|side| side.join_cluster).collect::<Vec<_>>()),
        (gateway, site.families.iter().map(|side| side.join_gateway).collect()),
    ];
    for (router, networks) in ends {
        let (router_port, switch_port) = NetworkNames::router_to_join(&router.id);
        let mac = networks.first().map_or(site.bridge.mac, |net| Mac::of(net.addr()));
        let mut port = router_port_row(site, &router_port, mac, networks.iter().map(ToString::to_string));
        if router == gateway && site.bridge.checks_size {
            port = port.entry("options", "gateway_mtu", site.settings.mtu.to_string());
        }
        connect(site, rows, (router, port), (&switch, &switch_port));
    }
}

fn external_switch(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let name = site.names.external_switch(site.name());
    let switch = rows.add(Row::new(Table::LogicalSwitch, &name, &site.why).text("name", &name));
    let (router_port, switch_port) = site.names.router_to_external(site.name());
    let networks = site.families.iter().filter_map(|side| Some(side.external?.to_string()));
    let port = router_port_row(site, &router_port, site.bridge.mac, networks).entry(
        "external_ids",
        "gateway-physical-ip",
        "yes",
    );
    connect(site, rows, (router, port), (&switch, &switch_port));

    let name = site.names.localnet_port(&site.bridge.name, site.name());
    let port = rows.add(
        Row::new(Table::LogicalSwitchPort, &name, &site.why)
            .text("name", &name)
            .text("type", "localnet")
            .texts("addresses", ["unknown"])
            .entry("options", "network_name", PHYSICAL_NETWORK),
    );
    rows.refer(&switch, "ports", port);

    for side in &site.families {
        let Some(next_hop) = site.masquerade(side.family, masquerade::NEXT_HOP) else { continue };
        rows.add(
            Row::new(Table::StaticMacBinding, format!("{router_port}/{next_hop}"), &site.why)
                .text("logical_port", &router_port)
                .text("ip", next_hop.to_string())
                .text("mac", Mac::of(next_hop).to_string())
                .bool("override_dynamic_mac", true),
        );
    }
}

fn cluster_routes(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    for side in &site.families {
        let gateway = side.join_gateway.addr().to_string();
        add_route(site, rows, router, StaticRoute::to(&gateway, &gateway));
        add_route(site, rows, router, StaticRoute::from(&side.subnet.to_string(), &gateway));
    }
}

/// Pods reach their own node past the gateway router, by the node's port among them.
fn node_policies(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let switch = site.names.node_switch(site.name());
    let (router_port, _) = site.names.router_to_switch(site.name());
    for side in &site.families {
        let family = side.family.ovn();
        for net in site.local.addresses.iter().filter(|net| underlay_net::Family::of_net(net) == side.family)
        {
            let address = net.addr();
            let text = format!("inport == \"{router_port}\" && {family}.dst == {address} /* {switch} */");
            let policy = rows.add(
                Row::new(Table::LogicalRouterPolicy, format!("{}/node/{address}", router.id), &site.why)
                    .integer("priority", 1004)
                    .text("match", text)
                    .text("action", "reroute")
                    .texts("nexthops", [side.management.to_string()]),
            );
            rows.refer(router, "policies", policy);
        }
    }
}

fn gateway_routes(site: &Site<'_>, rows: &mut Rows, router: &RowId) {
    let (external_port, _) = site.names.router_to_external(site.name());
    for side in &site.families {
        for net in site.settings.cluster_nets(side.family) {
            let via = side.join_cluster.addr().to_string();
            add_route(site, rows, router, StaticRoute::to(&net.to_string(), &via));
        }
        if let Some(next_hop) = site.masquerade(side.family, masquerade::NEXT_HOP) {
            let range = site.settings.masquerade.of(side.family).to_string();
            let route = StaticRoute::to(&range, &next_hop.to_string()).out_of(&external_port);
            add_route(site, rows, router, route.marked("k8s.ovn.org/node-masquerade-subnet"));
        }
        let everything = if side.subnet.addr().is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        for next_hop in
            site.local.next_hops.iter().filter(|hop| hop.is_ipv4() == side.subnet.addr().is_ipv4())
        {
            let route = StaticRoute::to(everything, &next_hop.to_string()).out_of(&external_port);
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
    let port = rows.add(
        Row::new(Table::LogicalSwitchPort, switch_port, &site.why)
            .text("name", switch_port)
            .text("type", "router")
            .texts("addresses", ["router"])
            .entry("options", "router-port", name),
    );
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
