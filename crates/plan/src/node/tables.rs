//! The node's part of a user-defined network: a routing table of its own, so that networks with the same addresses do
//! not meet.
//!
//! What comes out of the network looks only there, and so does what is sent to the network's pods under the address by
//! which the node knows them, or what is marked as the network's. The node's interface in the network has no address:
//! addresses are local to the whole node, whichever table a packet looks into, and two networks may have the same.
//!
//! A VRF device stands for the table where the kernel has such devices, for people and for routing daemons. Nothing
//! depends on it: not every kernel has them, and a link of the same name may be in its way.

use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::linux::{Host, Neighbor, Route, Rule, TableEnd};
use underlay_net::Mac;
use underlay_net::cidr::host;

use super::network::Stand;
use super::site::{Side, Site, masquerade};

/// Tables of networks begin here, one for each number of a network.
const FIRST_TABLE: u32 = 1000;
/// Priority of the rules that choose them.
const PRIORITY: u32 = 2000;
/// Marks of packets begin here, one for each number of a network.
const FIRST_MARK: u32 = 0x1000;

/// The routing table of a user-defined network.
pub fn table(site: &Site<'_>) -> u32 {
    FIRST_TABLE + u32::from(site.network.id)
}

/// The mark of packets that belong to a user-defined network.
pub fn mark(site: &Site<'_>) -> u32 {
    FIRST_MARK + u32::from(site.network.id)
}

/// One family of a user-defined network on the node.
pub struct Part<'a> {
    /// The node's place in the network.
    pub site: &'a Site<'a>,
    /// Its place in the family.
    pub side: &'a Side,
    /// The network's own addresses.
    pub stand: Stand,
}

impl Part<'_> {
    /// Adds it to what the node should have.
    pub fn plan(&self, host: &mut Host) {
        let why = &self.site.why;
        for route in self.towards_pods().into_iter().chain(self.towards_world()) {
            host.routes.insert(route, why.clone());
        }
        let end = TableEnd { table: table(self.site), family: self.side.family };
        host.table_ends.insert(end, why.clone());
        for rule in self.rules() {
            host.rules.insert(rule, why.clone());
        }
        for neighbor in self.neighbors() {
            host.neighbors.insert(neighbor, why.clone());
        }
    }

    /// To the network's pods: those of this node, those of others behind the gateway, and all that speak with the node.
    fn towards_pods(&self) -> Vec<Route> {
        let (network, subnet) = (self.site.network, self.side.subnet.trunc());
        let route = |destination: IpNet, gateway| Route {
            table: table(self.site),
            destination,
            link: self.site.management_interface(),
            gateway,
            source: None,
            mtu: Some(network.mtu),
        };
        let local = self.masquerade(masquerade::LOCAL_SERVICE).map(host);
        let behind = network.nets(self.side.family).filter(|net| *net != subnet).chain(local);
        let behind = behind.map(|net| route(net, Some(self.side.gateway)));
        let direct = [subnet, host(self.stand.management)].map(|net| route(net, None));
        direct.into_iter().chain(behind).collect()
    }

    /// To services of the cluster, and to the world as the node itself goes there.
    fn towards_world(&self) -> Vec<Route> {
        let Some(external) = self.side.external else { return Vec::new() };
        let route = |destination: IpNet, gateway, source| Route {
            table: table(self.site),
            destination,
            link: self.site.bridge.name.clone(),
            gateway: Some(gateway),
            source,
            mtu: Some(self.site.network.mtu),
        };
        let mut routes = Vec::new();
        let (own, next_hop) = (self.masquerade(masquerade::HOST), self.masquerade(masquerade::NEXT_HOP));
        if let (Some(own), Some(next_hop)) = (own, next_hop) {
            let services = self.site.settings.service_nets(self.side.family);
            routes.extend(services.map(|net| route(net, next_hop, Some(own))));
        }
        let everywhere = IpNet::new_assert(external.addr(), 0).trunc();
        let hops = self.site.local.next_hops.iter();
        let mut hops = hops.filter(|hop| hop.is_ipv4() == external.addr().is_ipv4());
        routes.extend(hops.next().map(|hop| route(everywhere, *hop, None)));
        routes
    }

    fn rules(&self) -> [Rule; 3] {
        let any = Rule {
            priority: PRIORITY,
            family: self.side.family,
            mark: None,
            to: None,
            incoming: None,
            table: table(self.site),
        };
        [
            Rule { mark: Some(mark(self.site)), ..any.clone() },
            Rule { to: Some(host(self.stand.management)), ..any.clone() },
            Rule { incoming: Some(self.site.management_interface()), ..any },
        ]
    }

    /// Nobody has to be asked where the network's own addresses are.
    fn neighbors(&self) -> [Neighbor; 2] {
        let Stand { gateway, management } = self.stand;
        let inside = self.site.gateway_mac().unwrap_or(self.site.bridge.mac);
        [
            Neighbor { link: self.site.management_interface(), address: management, mac: inside },
            Neighbor { link: self.site.bridge.name.clone(), address: gateway, mac: Mac::of(gateway) },
        ]
    }

    fn masquerade(&self, offset: u128) -> Option<IpAddr> {
        self.site.masquerade(self.side.family, offset)
    }
}
