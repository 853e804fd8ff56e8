//! The node's own network stack: its port among its pods, and its way to services through OVN.

use underlay_desired::linux::{Address, Host, Link, Neighbor, Route, Sysctl};
use underlay_desired::nft::{Chain, Hook, Rule, Ruleset};
use underlay_desired::switch::{Port, Switch};
use underlay_net::cidr::{host, with_length_of};
use underlay_net::names::management_interface;
use underlay_net::{Family, Mac};

use super::site::{Side, Site, masquerade};

/// The kernel's main table.
const MAIN_TABLE: u32 = 254;
/// Bridge of OVN's own ports.
const INTEGRATION_BRIDGE: &str = "br-int";

/// The switch port by which the node is among its pods.
pub fn plan_switch(site: &Site<'_>) -> Switch {
    let mut switch = Switch::default();
    let port = Port {
        bridge: INTEGRATION_BRIDGE.to_owned(),
        mac: site.management_mac().unwrap_or(site.bridge.mac),
        mtu: site.settings.mtu,
        external_ids: [("iface-id".to_owned(), site.names.management_port(site.name()))].into(),
        why: site.why.clone(),
    };
    switch.ports.insert(management_interface(0), port);
    switch
}

/// Addresses, routes, neighbours and settings.
pub fn plan(site: &Site<'_>) -> Host {
    let mut plan = Planner { site, host: Host::default() };
    let management = management_interface(0);
    plan.host.links.insert(
        management.clone(),
        Link { mtu: Some(site.settings.mtu), mac: site.management_mac(), why: site.why.clone() },
    );
    for side in &site.families {
        plan.among_pods(side, &management);
        plan.towards_services(side);
    }
    plan.host
}

struct Planner<'a> {
    site: &'a Site<'a>,
    host: Host,
}

impl Planner<'_> {
    /// The node reaches all pods of the cluster through its own port among them.
    fn among_pods(&mut self, side: &Side, link: &str) {
        let why = self.site.why.clone();
        let address = Address { link: link.to_owned(), net: side.management_net(), deprecated: false };
        self.host.addresses.insert(address, why.clone());
        for net in self.site.settings.cluster_nets(side.family) {
            let route = Route {
                table: MAIN_TABLE,
                destination: net,
                link: link.to_owned(),
                gateway: Some(side.gateway),
                source: None,
                mtu: Some(self.site.settings.mtu),
            };
            self.host.routes.insert(route, why.clone());
        }
        let mac = self.site.gateway_mac().unwrap_or(self.site.bridge.mac);
        let neighbor = Neighbor { link: link.to_owned(), address: side.gateway, mac };
        self.host.neighbors.insert(neighbor, why);
        self.forwarding(side.family, link);
        if side.family == Family::V4 {
            self.sysctl(format!("net.ipv4.conf.{link}.rp_filter"), "2");
        }
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
                mtu: Some(self.site.settings.mtu),
                ..route.clone()
            };
            self.host.routes.insert(route, why.clone());
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

/// The packet filter.
pub fn plan_filter(site: &Site<'_>) -> Ruleset {
    let management = management_interface(0);
    let rule = |text: String| Rule { text, why: site.why.clone() };
    // What the node sends to pods from another of its addresses must come back to it, not by way of the gateway router.
    let mut to_pods = vec![rule(format!("oifname != \"{management}\" return"))];
    // Pods are reached from outside through OVN and when they are advertised, never through the node's own routing.
    let forwarded = format!("iifname \"{}\" oifname \"{management}\" ct state new drop", site.bridge.name);
    for side in &site.families {
        let (own, family) = (side.management, if side.family == Family::V4 { "ip" } else { "ip6" });
        to_pods.push(rule(format!("{family} saddr {own} return")));
        to_pods.push(rule(format!("meta nfproto {} snat {family} to {own}", nfproto(side.family))));
    }
    Ruleset::from([
        ("management-snat".to_owned(), base_chain("nat", "postrouting", 100, to_pods)),
        ("forwarded".to_owned(), base_chain("filter", "forward", 0, vec![rule(forwarded)])),
    ])
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
