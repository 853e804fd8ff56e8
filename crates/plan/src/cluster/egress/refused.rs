//! Addresses that cannot be egress IPs, and selectors that select nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_net::Family;
use underlay_net::alloc::SubnetRange;
use underlay_world::{EgressIp, Settings, World};

use super::{CONFLICT, INVALID};

/// What is wrong with the selectors of an egress IP.
pub fn selectors(source: &EgressIp) -> Vec<(&'static str, String)> {
    let fields = [("namespaceSelector", &source.namespaces), ("podSelector", &source.pods)];
    let problem = |(field, selector): (&str, &Result<_, String>)| {
        let why = selector.as_ref().err()?;
        Some((INVALID, format!("spec.{field}: {why}; nobody is selected")))
    };
    fields.into_iter().filter_map(problem).collect()
}

/// What the cluster uses itself.
pub struct Taken<'a> {
    addresses: BTreeMap<IpAddr, String>,
    ranges: Vec<(&'a str, IpNet)>,
}

impl Taken<'_> {
    /// Looks at all nodes and settings.
    pub fn survey(world: &World, settings: &Settings) -> Self {
        let mut addresses = BTreeMap::new();
        for node in world.nodes.values() {
            for hop in node.gateway.iter().flat_map(|gateway| &gateway.next_hops) {
                addresses.insert(*hop, format!("the gateway of node {}", node.name));
            }
        }
        for node in world.nodes.values() {
            let hosts = node.host_cidrs.0.iter().copied().chain(node.primary.0.nets());
            for address in hosts.map(|net| net.addr()).chain(node.addresses.iter().copied()) {
                addresses.insert(address, format!("an address of node {}", node.name));
            }
        }
        let clusters =
            settings.cluster_subnets.iter().map(|range| ("the range of pods", SubnetRange::net(range)));
        let services = settings.service_subnets.iter().map(|net| ("the range of services", *net));
        let own = [("the join range", settings.join), ("the transit range", settings.transit)];
        let own = own.into_iter().chain([("the masquerade range", settings.masquerade)]);
        let own = own.flat_map(|(what, range)| Family::ALL.map(|family| (what, range.of(family))));
        Self { addresses, ranges: clusters.chain(services).chain(own).collect() }
    }

    /// Who uses an address.
    pub fn by(&self, address: IpAddr) -> Option<(&'static str, String)> {
        let node =
            self.addresses.get(&address).map(|who| format!("it is {who}; use an address that nobody has"));
        let range = || {
            let (what, net) = self.ranges.iter().find(|(_, net)| net.contains(&address))?;
            Some(format!("it is in {what} {net}; use an address outside the cluster's own ranges"))
        };
        Some((CONFLICT, node.or_else(range)?))
    }
}
