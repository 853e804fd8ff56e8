//! Egress IPs in OVN: policies of the cluster router, translation on the gateway router, and who answers for an address.

use std::collections::BTreeSet;
use std::net::IpAddr;

use underlay_desired::ovn::{Column, Row, RowId, Rows, Table};
use underlay_desired::{ObjectRef, Why};
use underlay_net::hash::hashed_name;

use super::{Group, Selection, groups};
use crate::node::addresses::Placed;
use crate::node::nat::{node_addresses_id, translation};
use crate::node::site::{Side, Site};
use crate::node::topology::{StaticRoute, add_route, joined};

/// Of the cluster router's policies: pods with an egress IP go to who holds it.
const REROUTE: i64 = 100;
/// Of the cluster router's policies: what others send for the world outside and nobody knows here is not let out.
const UNKNOWN: i64 = 99;
/// Of the cluster router's policies: what stays inside goes as ever.
const INSIDE: i64 = 102;
/// What answers to those who came from outside are marked with.
const ANSWER: i64 = 42;
/// Of the switch's rules for pods that are reached from outside.
const REACHED: i64 = 1000;
/// Of the gateway router's translations with a condition: before all others of the same pods.
const TRANSLATE: i64 = 100;

/// Adds what egress IPs need in a network. Its routers and switches must be there.
pub fn plan(site: &Site<'_>, placed: &Placed, selections: &[Selection<'_>], rows: &mut Rows) {
    let groups = groups(site, placed, selections);
    let cluster = RowId::new(Table::LogicalRouter, site.names.cluster_router());
    let gateway = RowId::new(Table::LogicalRouter, site.names.gateway_router(site.name()));
    for side in &site.families {
        if groups.iter().any(|group| group.side.family == side.family) {
            stay_inside(site, side, &cluster, rows);
        }
        if groups.iter().any(|group| group.side.family == side.family && !group.remote.is_empty()) {
            let_through(site, side, &cluster, rows);
        }
    }
    for group in &groups {
        let sets = Sets::add(site, group, rows);
        let own = BTreeSet::from([group.side.join_gateway.addr()]);
        for (name, set, next_hops) in
            [("local", &sets.local, &group.next_hops), ("remote", &sets.remote, &own)]
        {
            if let Some(set) = set {
                reroute(site, group, (name, set), next_hops, &cluster, rows);
            }
        }
        if let (true, Some(set)) = (group.side.advertised, &sets.local) {
            answer(site, group, set, &cluster, rows);
        }
        if let Some(held) = group.held {
            translate(site, group, &sets, held, &gateway, rows);
        }
    }
    announce(site, &groups, &gateway, rows);
}

fn because(group: &Group<'_>) -> Why {
    Why::from_object(ObjectRef::cluster("EgressIP", &group.source.key.name))
}

/// The sets of a group's addresses, by the names that matches call them; none is empty.
struct Sets {
    local: Option<String>,
    remote: Option<String>,
}

impl Sets {
    fn add(site: &Site<'_>, group: &Group<'_>, rows: &mut Rows) -> Self {
        let mut add = |which: &str, addresses: &BTreeSet<IpAddr>| {
            if addresses.is_empty() {
                return None;
            }
            let (controller, name) = (controller(site), &group.source.key.name);
            let id = format!("{controller}:EgressIP:{name}-{which}:{}", group.side.family);
            let set = hashed_name(&id);
            let row = Row::new(Table::AddressSet, &id, &because(group))
                .text("name", &set)
                .texts("addresses", addresses.iter().map(ToString::to_string))
                .entry("external_ids", "k8s.ovn.org/id", &id)
                .entry("external_ids", "k8s.ovn.org/owner-controller", controller)
                .entry("external_ids", "k8s.ovn.org/owner-type", "EgressIP")
                .entry("external_ids", "k8s.ovn.org/name", format!("{name}-{which}"))
                .entry("external_ids", "ip-family", group.side.family.to_string());
            rows.add(row);
            Some(set)
        };
        Self { local: add("local", &group.local), remote: add("remote", &group.remote) }
    }

    /// A match of packets from any of them.
    fn sources(&self, family: &str) -> String {
        let texts: Vec<String> =
            self.local.iter().chain(&self.remote).map(|set| format!("{family}.src == ${set}")).collect();
        texts.join(" || ")
    }
}

fn controller(site: &Site<'_>) -> String {
    format!("{}-network-controller", site.network.name)
}

/// What pods send to each other, to nodes and to services is no egress.
fn stay_inside(site: &Site<'_>, part: &Side, router: &RowId, rows: &mut Rows) {
    let family = part.family.ovn();
    let pods: Vec<String> = site.network.nets(part.family).map(|net| net.to_string()).collect();
    let own = [site.network.join.of(part.family), site.settings.masquerade.of(part.family)];
    let inside = site.settings.service_nets(part.family).chain(own).map(|net| net.to_string());
    let inside: Vec<String> = pods.iter().cloned().chain(inside).collect();
    let nodes = hashed_name(&node_addresses_id(part.family));
    let text = format!(
        "{family}.src == {{{}}} && ({family}.dst == {{{}}} || {family}.dst == ${nodes})",
        pods.join(", "),
        inside.join(", ")
    );
    let row =
        Row::new(Table::LogicalRouterPolicy, format!("{}/inside/{}", router.id, part.family), &site.why)
            .integer("priority", INSIDE)
            .text("match", text)
            .text("action", "allow");
    let policy = rows.add(site.mark(row));
    rows.refer(router, "policies", policy);
}

/// What pods of other nodes send for the world outside has no route here, and a router asks its routes before its policies.
/// Only pods that are known go on: others would leave with the node's address. What other nodes send under their own
/// addresses, to services with endpoints here, is none of this.
fn let_through(site: &Site<'_>, part: &Side, router: &RowId, rows: &mut Rows) {
    let gateway = part.join_gateway.addr().to_string();
    for net in site.network.nets(part.family) {
        add_route(site, rows, router, StaticRoute::from(&net.to_string(), &gateway));
    }
    let (inport, _) = site.names.router_to_transit(site.name());
    let pods: Vec<String> = site.network.nets(part.family).map(|net| net.to_string()).collect();
    let from_pods = format!("{}.src == {{{}}}", part.family.ovn(), pods.join(", "));
    let id = format!("{}/unknown/{}", router.id, part.family);
    let row = Row::new(Table::LogicalRouterPolicy, id, &site.why)
        .integer("priority", UNKNOWN)
        .text("match", format!("inport == \"{inport}\" && {from_pods}"))
        .text("action", "drop");
    let policy = rows.add(site.mark(row));
    rows.refer(router, "policies", policy);
}

fn reroute(
    site: &Site<'_>,
    group: &Group<'_>,
    (name, set): (&str, &str),
    next_hops: &BTreeSet<IpAddr>,
    router: &RowId,
    rows: &mut Rows,
) {
    let (family, source) = (group.side.family, &group.source.key.name);
    let id = format!("{}/egress/{source}-{name}/{family}", router.id);
    let row = Row::new(Table::LogicalRouterPolicy, id, &because(group))
        .integer("priority", REROUTE)
        .text("match", format!("{}.src == ${set}", family.ovn()))
        .text("action", "reroute")
        .texts("nexthops", next_hops.iter().map(ToString::to_string));
    let policy = rows.add(site.mark(row).entry("external_ids", "k8s.ovn.org/name", source));
    rows.refer(router, "policies", policy);
}

/// Advertised pods are reached from outside under their own addresses, and answer with them: on the way that the question
/// came, past the holder. The switch remembers who began, and marks what answers.
fn answer(site: &Site<'_>, group: &Group<'_>, set: &str, router: &RowId, rows: &mut Rows) {
    let (family, source, why) = (group.side.family, &group.source.key.name, because(group));
    let words = family.ovn();
    let switch = RowId::new(Table::LogicalSwitch, site.names.node_switch(site.name()));
    let id = format!("{}/egress/{source}/{family}", switch.id);
    let remembered = Row::new(Table::Acl, &id, &why)
        .text("direction", "to-lport")
        .integer("priority", REACHED)
        .text("match", format!("{words}.dst == ${set}"))
        .text("action", "allow-related");
    let remembered = rows.add(remembered);
    rows.refer(&switch, "acls", remembered);
    let marked = Row::new(Table::Qos, id, &why)
        .text("direction", "from-lport")
        .integer("priority", REACHED)
        .text("match", format!("{words}.src == ${set} && ct.trk && ct.rpl"))
        .number("action", "mark", ANSWER);
    let marked = rows.add(marked);
    rows.refer(&switch, "qos_rules", marked);
    let row = Row::new(Table::LogicalRouterPolicy, format!("{}/answers", router.id), &site.why)
        .integer("priority", INSIDE)
        .text("match", format!("pkt.mark == {ANSWER}"))
        .text("action", "allow");
    let policy = rows.add(site.mark(row));
    rows.refer(router, "policies", policy);
}

/// Gives packets the address that the node holds. To nodes pods show what they always do.
fn translate(site: &Site<'_>, group: &Group<'_>, sets: &Sets, held: IpAddr, router: &RowId, rows: &mut Rows) {
    let (family, source) = (group.side.family, &group.source.key.name);
    let (words, nodes) = (family.ovn(), hashed_name(&node_addresses_id(family)));
    let text = format!("({}) && {words}.dst != ${nodes}", sets.sources(words));
    for net in site.network.nets(family) {
        let mut row = translation(site, router, &format!("{net}/egress/{source}"), &net.to_string(), held);
        row.why = because(group);
        let row = row.text("match", text.clone()).integer("priority", TRANSLATE).entry(
            "external_ids",
            "k8s.ovn.org/name",
            source,
        );
        let nat = rows.add(row);
        rows.refer(router, "nat", nat);
    }
}

/// Lets the gateway router tell its neighbours where the addresses are, which may have been elsewhere before. An address
/// that is not in the node's network has no neighbours.
fn announce(site: &Site<'_>, groups: &[Group<'_>], gateway: &RowId, rows: &mut Rows) {
    let near = |group: &Group<'_>| {
        group.held.filter(|held| group.side.external.is_some_and(|net| net.contains(held)))
    };
    let addresses: BTreeSet<IpAddr> = groups.iter().filter_map(near).filter(IpAddr::is_ipv4).collect();
    if addresses.is_empty() {
        return;
    }
    let (_, port) = site.names.router_to_external(site.name());
    let text = joined(site.bridge.mac, addresses.iter().map(ToString::to_string));
    if let Some(row) = rows.get(&RowId::new(Table::LogicalSwitchPort, port)).cloned() {
        rows.add(row.entry("options", "nat-addresses", text));
    }
    if let Some(mut row) = rows.get(gateway).cloned() {
        if let Some(Column::Map(options)) = row.columns.get_mut("options") {
            options.remove("disable_garp_rarp");
        }
        rows.add(row);
    }
}
