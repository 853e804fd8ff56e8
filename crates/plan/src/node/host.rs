//! The node's own network stack: its ports among its pods, and its way to services through OVN.

use std::collections::BTreeMap;

use underlay_desired::linux::{self, Address, Host, Link, Neighbor, Route, Sysctl, Vrf};
use underlay_desired::nft::{Chain, Hook, Rule, Ruleset};
use underlay_desired::switch::{Port, Switch};
use underlay_net::cidr::{host, with_length_of};
use underlay_net::{Family, Mac};

use super::networks::Others;
use super::site::{Side, Site, masquerade};
use super::tables::{Part, table};

/// The kernel's main table.
const MAIN_TABLE: u32 = 254;
/// The table by which the node itself reaches pods where the main table knows other ways, and the priority of the rule
/// that says so: after those of user-defined networks, which say more.
const OWN_TABLE: u32 = 7;
const OWN_PRIORITY: u32 = 2500;
/// Bridge of OVN's own ports.
const INTEGRATION_BRIDGE: &str = "br-int";

/// The switch port by which the node is among the pods of a network.
pub fn plan_switch(site: &Site<'_>, switch: &mut Switch) {
    let mut ids = BTreeMap::from([("iface-id".to_owned(), site.names.management_port(site.name()))]);
    if !site.network.is_default() {
        ids.insert("k8s.ovn.org/network".to_owned(), site.network.name.clone());
    }
    let port = Port {
        bridge: INTEGRATION_BRIDGE.to_owned(),
        mac: site.management_mac().unwrap_or(site.bridge.mac),
        mtu: site.network.mtu,
        external_ids: ids,
        why: site.why.clone(),
    };
    switch.ports.insert(site.management_interface(), port);
}

/// Addresses, routes, neighbours and settings for a network.
pub fn plan(site: &Site<'_>, host: &mut Host) {
    let mut plan = Planner { site, host };
    let management = site.management_interface();
    plan.host.links.insert(
        management.clone(),
        Link {
            mtu: Some(site.network.mtu),
            mac: site.management_mac(),
            vrf: site.vrf(),
            why: site.why.clone(),
        },
    );
    if let Some(vrf) = site.vrf() {
        let link = Link { mtu: None, mac: None, vrf: None, why: site.why.clone() };
        plan.host.links.insert(vrf.clone(), link);
        plan.host.vrfs.insert(vrf, Vrf { table: table(site), why: site.why.clone() });
    }
    for side in &site.families {
        plan.on_link(side, &management);
        match side.stand {
            None => {
                plan.among_pods(side, &management);
                plan.towards_services(side);
            }
            Some(stand) => Part { site, side, stand }.plan(plan.host),
        }
    }
}

struct Planner<'a> {
    site: &'a Site<'a>,
    host: &'a mut Host,
}

impl Planner<'_> {
    /// The node's interface in a network: it knows the pods' gateway and hands on what pods send.
    fn on_link(&mut self, side: &Side, link: &str) {
        let mac = self.site.gateway_mac().unwrap_or(self.site.bridge.mac);
        let neighbor = Neighbor { link: link.to_owned(), address: side.gateway, mac };
        self.host.neighbors.insert(neighbor, self.site.why.clone());
        // What comes in by a link of a VRF device has come in by that device, too.
        for link in std::iter::once(link.to_owned()).chain(self.site.vrf()) {
            self.forwarding(side.family, &link);
            if side.family == Family::V4 {
                self.sysctl(format!("net.ipv4.conf.{link}.rp_filter"), "2");
            }
        }
    }

    /// The node reaches all pods of the cluster through its own port among them.
    fn among_pods(&mut self, side: &Side, link: &str) {
        let why = self.site.why.clone();
        let address = Address { link: link.to_owned(), net: side.management_net(), deprecated: false };
        self.host.addresses.insert(address, why.clone());
        for net in self.site.network.nets(side.family) {
            let route = Route {
                table: MAIN_TABLE,
                destination: net,
                link: link.to_owned(),
                gateway: Some(side.gateway),
                source: None,
                mtu: Some(self.site.network.mtu),
            };
            self.host.routes.insert(route.clone(), why.clone());
            self.past_learned_routes(side.family, route);
        }
    }

    /// The main table may know other ways to pods and services: to other nodes' pods without overlay, and whatever else
    /// peers tell. The node itself does not take them: it is among its pods and speaks with all of them as one of them,
    /// under the same address.
    fn past_learned_routes(&mut self, family: Family, route: Route) {
        let rule = linux::Rule {
            priority: OWN_PRIORITY,
            family,
            mark: None,
            to: Some(route.destination),
            incoming: Some("lo".to_owned()),
            table: OWN_TABLE,
        };
        self.host.rules.insert(rule, self.site.why.clone());
        self.host.routes.insert(Route { table: OWN_TABLE, ..route }, self.site.why.clone());
    }

    /// Services are behind a next hop that nobody has: the bridge catches what is sent to it.
    fn towards_services(&mut self, side: &Side) {
        let Some(external) = side.external else { return };
        let (bridge, why) = (self.site.bridge.name.clone(), self.site.why.clone());
        let place = |offset| self.site.masquerade(side.family, offset);
        let (Some(ovn), Some(own), Some(next_hop)) =
            (place(masquerade::OVN), place(masquerade::HOST), place(masquerade::NEXT_HOP))
        else {
            return;
        };
        let range = self.site.settings.masquerade.of(side.family);
        let address = Address {
            link: bridge.clone(),
            net: with_length_of(own, &range),
            deprecated: side.family == Family::V6,
        };
        self.host.addresses.insert(address, why.clone());
        for address in [ovn, next_hop] {
            let neighbor = Neighbor { link: bridge.clone(), address, mac: Mac::of(address) };
            self.host.neighbors.insert(neighbor, why.clone());
        }
        let route = Route {
            table: MAIN_TABLE,
            destination: host(ovn),
            link: bridge.clone(),
            gateway: None,
            source: Some(external.addr()),
            mtu: None,
        };
        self.host.routes.insert(route.clone(), why.clone());
        for services in self.site.settings.service_nets(side.family) {
            let route = Route {
                destination: services,
                gateway: Some(next_hop),
                source: Some(own),
                mtu: Some(self.site.network.mtu),
                ..route.clone()
            };
            self.host.routes.insert(route.clone(), why.clone());
            self.past_learned_routes(side.family, route);
        }
        self.forwarding(side.family, &bridge);
    }

    fn forwarding(&mut self, family: Family, link: &str) {
        match family {
            Family::V4 => self.sysctl(format!("net.ipv4.conf.{link}.forwarding"), "1"),
            Family::V6 => self.sysctl(format!("net.ipv6.conf.{link}.forwarding"), "1"),
        }
    }

    fn sysctl(&mut self, name: String, value: &str) {
        self.host.sysctls.insert(name, Sysctl { value: value.to_owned(), why: self.site.why.clone() });
    }
}

/// The packet filter, given the default network and the others.
pub fn plan_filter(site: &Site<'_>, others: &Others<'_>) -> Ruleset {
    let management = site.management_interface();
    let rule = |text: String| Rule { text, why: site.why.clone() };
    // What the node sends to pods from another of its addresses must come back to it, not by way of the gateway router.
    let mut to_pods = vec![rule(format!("oifname != \"{management}\" return"))];
    // Pods are reached from outside through OVN and when they are advertised, never through the node's own routing.
    let from_outside =
        |link: &str| format!("iifname \"{}\" oifname \"{link}\" ct state new drop", site.bridge.name);
    let mut forwarded = vec![rule(from_outside(&management))];
    for other in others.sites.values() {
        let link = other.management_interface();
        let rule = |text| Rule { text, why: other.why.clone() };
        forwarded.push(rule(from_outside(&link)));
        // What came out of a network for nobody on this node must not go round in circles.
        for from in std::iter::once(link.clone()).chain(other.vrf()) {
            forwarded.push(rule(format!("iifname \"{from}\" oifname \"{link}\" drop")));
        }
    }
    for side in &site.families {
        let (own, family) = (side.management, if side.family == Family::V4 { "ip" } else { "ip6" });
        to_pods.push(rule(format!("{family} saddr {own} return")));
        to_pods.push(rule(format!("meta nfproto {} snat {family} to {own}", nfproto(side.family))));
    }
    Ruleset::from([
        ("management-snat".to_owned(), base_chain("nat", "postrouting", 100, to_pods)),
        ("forwarded".to_owned(), base_chain("filter", "forward", 0, forwarded)),
        ("advertised-networks".to_owned(), base_chain("filter", "output", 0, to_tenants(others))),
    ])
}

/// The node's own programs have no business in user-defined networks, although the peers tell the way to those that are
/// advertised.
fn to_tenants(others: &Others<'_>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for other in others.sites.values().filter(|other| other.advertised()) {
        for net in &other.network.nets {
            let family = if net.addr().is_ipv4() { "ip" } else { "ip6" };
            let text = format!("ct state new {family} daddr {net} drop");
            rules.push(Rule { text, why: other.why.clone() });
        }
    }
    rules
}

fn base_chain(kind: &str, point: &str, priority: i32, rules: Vec<Rule>) -> Chain {
    Chain { hook: Some(Hook { kind: kind.to_owned(), point: point.to_owned(), priority }), rules }
}

fn nfproto(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    }
}
