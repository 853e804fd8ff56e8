//! Flows of the external bridge, which the node and OVN share: one MAC address, one set of IP addresses.
//!
//! What either of them sends is marked in connection tracking; what comes back goes to whoever sent. The node reaches
//! services through OVN: its packets are translated to an address OVN can answer, and back. Only pods that are
//! advertised are reached from outside, straight from the uplink and past connection tracking, since their packets may
//! come in at one node and leave from another.

use std::net::IpAddr;

use underlay_desired::flow::{Flow, Flows};
use underlay_net::{Family, Mac};

use super::site::{Side, Site, masquerade};

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
}

/// The flows, once both ports are there. Without them the bridge stays the plain switch it is.
pub fn plan(site: &Site<'_>) -> Flows {
    let (Some(uplink), Some(patch)) = (site.bridge.uplink, site.bridge.patch) else { return Flows::new() };
    let mut pipeline = Pipeline {
        site,
        uplink,
        patch,
        mac: site.bridge.mac,
        encap: site.settings.encap_port,
        flows: Flows::new(),
    };
    pipeline.neighbors();
    pipeline.tunnels();
    for side in &site.families {
        pipeline.connections(side);
        pipeline.services(side);
        if site.advertised {
            pipeline.direct(side);
        }
    }
    pipeline.rest();
    pipeline.flows
}

struct Pipeline<'a> {
    site: &'a Site<'a>,
    uplink: u32,
    patch: u32,
    mac: Mac,
    encap: u16,
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

impl Pipeline<'_> {
    fn add(&mut self, table: u8, priority: u16, matches: String, actions: String) {
        self.flows.insert(Flow { table, priority, matches, actions }, self.site.why.clone());
    }

    /// ARP and neighbour discovery: the node answers for the shared addresses, both hear answers.
    fn neighbors(&mut self) {
        let (uplink, patch, mac) = (self.uplink, self.patch, self.mac);
        for side in self.site.families.clone() {
            let Some(external) = side.external.map(|net| net.addr()) else { continue };
            let question = match external {
                IpAddr::V4(address) => format!("in_port={uplink},arp,arp_op=1,arp_tpa={address}"),
                IpAddr::V6(address) => {
                    format!("in_port={uplink},icmp6,icmp_type=135,icmp_code=0,nd_target={address}")
                }
            };
            self.add(0, 120, question, "LOCAL".to_owned());
        }
        self.add(0, 111, format!("in_port={uplink},arp"), format!("output:{patch},LOCAL"));
        for kind in [134, 136] {
            let answer = format!("in_port={uplink},icmp6,icmp_type={kind},icmp_code=0");
            self.add(0, 111, answer, format!("output:{patch},LOCAL"));
        }
        self.add(0, 110, format!("in_port={uplink},icmp6,icmp_type=135,icmp_code=0"), "LOCAL".to_owned());
        for kind in 133..=136 {
            for from in ["LOCAL".to_owned(), patch.to_string()] {
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
    fn direct(&mut self, side: &Side) {
        let (uplink, patch, mac) = (self.uplink, self.patch, self.mac);
        let Words { ip, source, destination } = words(side.family);
        let subnet = side.subnet;
        let inbound = format!("in_port={uplink},{ip},{destination}={subnet}");
        self.add(0, 300, inbound, format!("output:{patch}"));
        let outbound = format!("in_port={patch},dl_src={mac},{ip},{source}={subnet}");
        self.add(0, 104, outbound, format!("output:{uplink}"));
    }

    /// Everything else: to the node, to the uplink, or nowhere.
    fn rest(&mut self) {
        let (uplink, patch, mac) = (self.uplink, self.patch, self.mac);
        self.add(0, 10, format!("in_port={patch},dl_src={mac}"), format!("output:{uplink}"));
        self.add(0, 9, format!("in_port={patch}"), "drop".to_owned());
        self.add(0, 10, format!("in_port={uplink},dl_dst={mac}"), "LOCAL".to_owned());
        self.add(0, 10, "in_port=LOCAL".to_owned(), format!("output:{uplink}"));
        self.add(0, 5, format!("in_port={uplink}"), "LOCAL".to_owned());
        self.add(1, 10, format!("dl_dst={mac}"), "LOCAL".to_owned());
    }
}
