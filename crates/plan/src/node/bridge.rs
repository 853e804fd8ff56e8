//! Flows of the external bridge, which the node and OVN share: one MAC address, one set of IP addresses.
//!
//! What either of them sends is marked in connection tracking; what comes back goes to whoever sent. The node reaches
//! services through OVN: its packets are translated to an address OVN can answer, and back. Only pods that are
//! advertised are reached from outside, straight from the uplink and past connection tracking, since their packets may
//! come in at one node and leave from another.
//!
//! Each user-defined network has a way in of its own. What it sends carries an address that only it has; here that
//! becomes the node's, in the same connection tracking as everything else of the node, so that no two connections look
//! alike outside. Nothing else leaves such a network, and of the services only those for all are reached from it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::flow::{Flow, Flows};
use underlay_net::{Family, Mac};

use super::network::Stand;
use super::networks::Others;
use super::site::{Side, Site, masquerade};
use super::{services, tables};

/// Connection tracking zones of the bridge.
mod zone {
    /// Who sent it.
    pub const MAIN: u16 = 64000;
    /// The node's own requests to services.
    pub const HOST: u16 = 64001;
    /// Services that lead back to the node.
    pub const OVN: u16 = 64002;
}

/// Marks of connections.
mod mark {
    /// OVN's.
    pub const OVN: &str = "0x1";
    /// The node's.
    pub const HOST: &str = "0x2";
    /// Those of user-defined networks begin here, one for each number of a network.
    pub const FIRST: u32 = 3;
}

/// The flows, once both ports are there. Without them the bridge stays the plain switch it is. This tells which egress IPs
/// a network shows here.
pub fn plan(site: &Site<'_>, others: &Others<'_>, egress: impl Fn(&Site<'_>) -> BTreeSet<IpAddr>) -> Flows {
    let (Some(uplink), Some(patch)) = (site.bridge.uplink, site.patch()) else { return Flows::new() };
    let others: Vec<(u32, &Site<'_>)> =
        others.sites.values().filter_map(|other| Some((other.patch()?, other))).collect();
    let mut pipeline = Pipeline {
        site,
        uplink,
        patch,
        patches: std::iter::once(patch).chain(others.iter().map(|(patch, _)| *patch)).collect(),
        mac: site.bridge.mac,
        encap: site.settings.encap_port,
        asked: BTreeSet::new(),
        flows: Flows::new(),
    };
    pipeline.neighbors();
    pipeline.tunnels();
    for side in &site.families {
        pipeline.connections(side);
        pipeline.services(side);
        if side.advertised {
            pipeline.direct(patch, side);
        }
    }
    pipeline.rest();
    pipeline.egress(patch, mark::OVN, egress(site));
    for (own, other) in others {
        pipeline.site = other;
        pipeline.egress(own, &own_mark(other), egress(other));
        for side in &other.families {
            pipeline.own_network(own, side);
        }
        pipeline.rest_of(own);
    }
    pipeline.flows
}

struct Pipeline<'a> {
    site: &'a Site<'a>,
    uplink: u32,
    /// The default network's way in.
    patch: u32,
    /// All networks' ways in.
    patches: Vec<u32>,
    mac: Mac,
    encap: u16,
    /// Egress IPs whose way in is known.
    asked: BTreeSet<IpAddr>,
    flows: Flows,
}

/// Words of a match for one family.
struct Words {
    ip: &'static str,
    source: &'static str,
    destination: &'static str,
}

fn words(family: Family) -> Words {
    match family {
        Family::V4 => Words { ip: "ip", source: "nw_src", destination: "nw_dst" },
        Family::V6 => Words { ip: "ipv6", source: "ipv6_src", destination: "ipv6_dst" },
    }
}

/// The mark of a user-defined network's connections.
fn own_mark(site: &Site<'_>) -> String {
    format!("{:#x}", mark::FIRST + u32::from(site.network.id))
}

/// A match of those who ask from outside where an address is.
fn question(uplink: u32, address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("in_port={uplink},arp,arp_op=1,arp_tpa={address}"),
        IpAddr::V6(address) => {
            format!("in_port={uplink},icmp6,icmp_type=135,icmp_code=0,nd_target={address}")
        }
    }
}

impl Pipeline<'_> {
    fn add(&mut self, table: u8, priority: u16, matches: String, actions: String) {
        self.flows.insert(Flow { table, priority, matches, actions }, self.site.why.clone());
    }

    /// ARP and neighbour discovery: the node answers for the shared addresses, both hear answers.
    fn neighbors(&mut self) {
        let (uplink, mac) = (self.uplink, self.mac);
        let all: Vec<String> = self.patches.iter().map(|patch| format!("output:{patch}")).collect();
        let all = all.join(",");
        for side in self.site.families.clone() {
            let Some(external) = side.external.map(|net| net.addr()) else { continue };
            self.add(0, 120, question(uplink, external), "LOCAL".to_owned());
        }
        self.add(0, 111, format!("in_port={uplink},arp"), format!("{all},LOCAL"));
        for kind in [134, 136] {
            let answer = format!("in_port={uplink},icmp6,icmp_type={kind},icmp_code=0");
            self.add(0, 111, answer, format!("{all},LOCAL"));
        }
        self.add(0, 110, format!("in_port={uplink},icmp6,icmp_type=135,icmp_code=0"), "LOCAL".to_owned());
        for kind in 133..=136 {
            let patches = self.patches.iter().map(ToString::to_string);
            for from in std::iter::once("LOCAL".to_owned()).chain(patches).collect::<Vec<_>>() {
                let said = format!("in_port={from},dl_src={mac},icmp6,icmp_type={kind},icmp_code=0");
                self.add(0, 110, said, format!("output:{uplink}"));
            }
        }
    }

    /// Tunnels between nodes pass by.
    fn tunnels(&mut self) {
        let (uplink, encap) = (self.uplink, self.encap);
        for udp in ["udp", "udp6"] {
            self.add(0, 200, format!("in_port=LOCAL,{udp},tp_dst={encap}"), format!("output:{uplink}"));
            let inbound = format!("in_port={uplink},dl_dst={},{udp},tp_dst={encap}", self.mac);
            self.add(0, 200, inbound, "LOCAL".to_owned());
        }
    }

    /// Who sent a packet gets the answer.
    fn connections(&mut self, side: &Side) {
        let (uplink, patch, mac) = (self.uplink, self.patch, self.mac);
        let Words { ip, .. } = words(side.family);
        let commit = |mark: &str| {
            format!("ct(commit,zone={},exec(set_field:{mark}->ct_mark)),output:{uplink}", zone::MAIN)
        };
        self.add(0, 100, format!("in_port={patch},dl_src={mac},{ip}"), commit(mark::OVN));
        self.add(0, 100, format!("in_port=LOCAL,{ip}"), commit(mark::HOST));
        self.add(
            0,
            50,
            format!("in_port={uplink},dl_dst={mac},{ip}"),
            format!("ct(zone={},nat,table=1)", zone::MAIN),
        );
        for (mark, to) in [(mark::OVN, format!("output:{patch}")), (mark::HOST, "LOCAL".to_owned())] {
            for state in ["+trk+est", "+trk+rel"] {
                self.add(1, 100, format!("{ip},ct_state={state},ct_mark={mark}"), to.clone());
            }
        }
    }

    /// The node reaches services through OVN, and OVN the node where it is behind a service itself.
    fn services(&mut self, side: &Side) {
        let (patch, mac, family) = (self.patch, self.mac, side.family);
        let Words { ip, source, destination } = words(family);
        let place = |offset| self.site.masquerade(family, offset);
        let (Some(ovn), Some(host)) = (place(masquerade::OVN), place(masquerade::HOST)) else { return };
        for services in self.site.settings.service_nets(family) {
            let out = format!("in_port=LOCAL,{ip},{destination}={services}");
            self.add(0, 500, out, format!("ct(commit,zone={},nat(src={host}),table=2)", zone::HOST));
            let back = format!("in_port={patch},{ip},{source}={services},{destination}={host}");
            self.add(0, 500, back, format!("ct(zone={},nat,table=3)", zone::HOST));
            self.add(0, 115, format!("in_port={patch},{ip},{destination}={services}"), "drop".to_owned());
        }
        if let Some(external) = side.external.map(|net| net.addr()) {
            let out = format!("in_port={patch},{ip},{source}={external},{destination}={host}");
            let nat = format!("ct(commit,zone={},nat(dst={external}),table=4)", zone::HOST);
            self.add(0, 500, out, nat);
            let back = format!("in_port=LOCAL,{ip},{destination}={ovn}");
            self.add(0, 500, back, format!("ct(zone={},nat,table=5)", zone::OVN));
            self.add(4, 10, ip.to_owned(), format!("ct(commit,zone={},nat(src={ovn}),table=3)", zone::OVN));
            self.add(5, 10, ip.to_owned(), format!("ct(commit,zone={},nat,table=2)", zone::HOST));
        }
        self.add(2, 100, ip.to_owned(), format!("set_field:{mac}->eth_dst,output:{patch}"));
        let swap = "move:NXM_OF_ETH_DST[]->NXM_OF_ETH_SRC[]";
        self.add(3, 100, ip.to_owned(), format!("{swap},set_field:{mac}->eth_dst,LOCAL"));
    }

    /// Advertised pods: straight in, straight out.
    fn direct(&mut self, patch: u32, side: &Side) {
        let (uplink, mac) = (self.uplink, self.mac);
        let Words { ip, source, destination } = words(side.family);
        let subnet = side.subnet;
        let inbound = format!("in_port={uplink},{ip},{destination}={subnet}");
        self.add(0, 300, inbound, format!("output:{patch}"));
        let outbound = format!("in_port={patch},dl_src={mac},{ip},{source}={subnet}");
        self.add(0, 104, outbound, format!("output:{uplink}"));
    }

    /// Egress IPs of a network: they leave as they are, answers find back, and whoever asks for them is told by the
    /// network's router. Nobody else is reached under them. Two networks may show the same address, so connections are
    /// kept apart here; one of them answers for both.
    fn egress(&mut self, port: u32, mark: &str, addresses: BTreeSet<IpAddr>) {
        let (uplink, mac, zone) = (self.uplink, self.mac, zone::MAIN);
        if !self.site.network.is_default() {
            // The router announces all addresses it has.
            let range = self.site.settings.masquerade.v4;
            self.add(0, 11, format!("in_port={port},arp,arp_spa={range}"), "drop".to_owned());
        }
        for address in addresses {
            let Words { ip, source, destination } = words(Family::of(address));
            let out = format!("in_port={port},dl_src={mac},{ip},{source}={address}");
            let commit = format!("ct(commit,zone={zone},nat(src={address}),exec(set_field:{mark}->ct_mark))");
            self.add(0, 105, out, format!("{commit},output:{uplink}"));
            if self.asked.insert(address) {
                self.add(0, 120, question(uplink, address), format!("output:{port}"));
                self.add(1, 20, format!("{ip},{destination}={address}"), "drop".to_owned());
            }
        }
    }

    /// One family of a user-defined network.
    fn own_network(&mut self, own: u32, side: &Side) {
        // Whatever else it sends: other networks may have the same addresses.
        self.add(0, 90, format!("in_port={own},{}", words(side.family).ip), "drop".to_owned());
        if side.advertised {
            self.direct(own, side);
        }
        let (Some(stand), Some(external)) = (side.stand, side.external) else { return };
        self.own_connections(own, side.family, stand, external.addr());
        for net in self.site.settings.service_nets(side.family) {
            self.own_services(own, side.family, stand, net);
        }
        let (mac, patch) = (self.mac, self.patch);
        let Words { ip, source, destination } = words(side.family);
        let to = |port: u32| format!("set_field:{mac}->eth_dst,output:{port}");
        for (_, service) in services::for_all(self.site.world, side.family) {
            self.add(2, 300, format!("{ip},{destination}={service}"), to(patch));
        }
        let mark = tables::mark(self.site);
        self.add(2, 250, format!("{ip},pkt_mark={mark:#x}"), to(own));
        self.add(2, 200, format!("{ip},{source}={}", stand.management), "drop".to_owned());
    }

    /// What a user-defined network sends to the world leaves with the node's address, and answers find back.
    fn own_connections(&mut self, own: u32, family: Family, stand: Stand, external: IpAddr) {
        let (uplink, mac, zone) = (self.uplink, self.mac, zone::MAIN);
        let Words { ip, source, .. } = words(family);
        let mark = own_mark(self.site);
        let out = format!("in_port={own},dl_src={mac},{ip},{source}={}", stand.gateway);
        let commit = format!("ct(commit,zone={zone},nat(src={external}),exec(set_field:{mark}->ct_mark))");
        self.add(0, 100, out, format!("{commit},output:{uplink}"));
        if self.site.network.is_routed() {
            // To an endpoint of a service on another node, the router itself has chosen the node's address.
            let out = format!("in_port={own},dl_src={mac},{ip},{source}={external}");
            self.add(0, 99, out, format!("{commit},output:{uplink}"));
        }
        // Only services are reached under this address; outside it means nothing.
        let node = format!("in_port=LOCAL,{ip},{source}={}", stand.management);
        self.add(0, 105, node, "drop".to_owned());
        for state in ["+trk+est", "+trk+rel"] {
            let answer = format!("{ip},ct_state={state},ct_mark={mark}");
            self.add(1, 100, answer, format!("output:{own}"));
        }
    }

    /// Services that a user-defined network's pods reach through the node, and those of the network that the node
    /// reaches.
    fn own_services(&mut self, own: u32, family: Family, stand: Stand, net: IpNet) {
        let (patch, zone) = (self.patch, zone::HOST);
        let Words { ip, source, destination } = words(family);
        let pods = stand.management;
        let out = format!("in_port=LOCAL,{ip},{source}={pods},{destination}={net}");
        self.add(0, 550, out, format!("ct(commit,zone={zone},table=2)"));
        let back = format!("in_port={patch},{ip},{source}={net},{destination}={pods}");
        self.add(0, 500, back, format!("ct(zone={zone},nat,table=3)"));
        if let Some(host) = self.site.masquerade(family, masquerade::HOST) {
            let back = format!("in_port={own},{ip},{source}={net},{destination}={host}");
            self.add(0, 500, back, format!("ct(zone={zone},nat,table=3)"));
        }
        self.add(0, 115, format!("in_port={own},{ip},{destination}={net}"), "drop".to_owned());
    }

    /// What else comes out of a network: questions for neighbours go to the uplink, anything strange nowhere.
    fn rest_of(&mut self, patch: u32) {
        let (uplink, mac) = (self.uplink, self.mac);
        self.add(0, 10, format!("in_port={patch},dl_src={mac}"), format!("output:{uplink}"));
        self.add(0, 9, format!("in_port={patch}"), "drop".to_owned());
    }

    /// Everything else: to the node, to the uplink, or nowhere.
    fn rest(&mut self) {
        let (uplink, mac) = (self.uplink, self.mac);
        self.rest_of(self.patch);
        self.add(0, 10, format!("in_port={uplink},dl_dst={mac}"), "LOCAL".to_owned());
        self.add(0, 10, "in_port=LOCAL".to_owned(), format!("output:{uplink}"));
        self.add(0, 5, format!("in_port={uplink}"), "LOCAL".to_owned());
        self.add(1, 10, format!("dl_dst={mac}"), "LOCAL".to_owned());
        // From a port that is not known yet, such as a new network's: what only this node understands stays here.
        for side in self.site.families.clone() {
            let Words { ip, source, .. } = words(side.family);
            let range = self.site.settings.masquerade.of(side.family);
            self.add(0, 1, format!("{ip},{source}={range}"), "drop".to_owned());
        }
    }
}
