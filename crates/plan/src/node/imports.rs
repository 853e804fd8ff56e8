//! Routes that BGP brought into the kernel, for the gateway routers: pods leave by the way the peers told.
//!
//! In: a node's place in a network. Out: a [`Policy`], which says of every learned route whether the network's gateway
//! router takes it, and through whom. There may be very many routes, and one of them comes or goes: so a policy judges
//! one at a time, and nothing else has to be planned again.
//!
//! A network hears what is in the table of its VRF; where the kernel has no VRF devices, one that is told to the peers of
//! the default VRF hears what those tell.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use underlay_net::{Family, cidr};

use super::network::Network;
use super::site::Site;
use super::tables;

/// The kernel's main table, where the default network's routes are.
const MAIN_TABLE: u32 = 254;

/// Why OVN does not use a route that BGP brought.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No pod could use it.
    #[error("pods have no IP{0} addresses")]
    Family(Family),
    /// What lies in our own ranges is never taken from others: the overlay knows better.
    #[error("it lies in the cluster's own range {0}")]
    Own(IpNet),
    /// Networks are kept apart, or meet where the network outside lets them: never in OVN.
    #[error("it lies in the range {range} of network {network}")]
    Other {
        /// The range.
        range: IpNet,
        /// The network.
        network: String,
    },
    /// The node's own links are reached directly, whatever a peer says.
    #[error("it is the node's own link {0}")]
    Connected(IpNet),
    /// The gateway router has one way out.
    #[error("none of its next hops is at {0}, the only link that OVN has to the world")]
    Elsewhere(String),
    /// More than a network takes: somebody tells the whole world.
    #[error("the network has {0} routes already, as many as it takes")]
    Flood(usize),
}

/// Ranges of the networks that the peers of the default VRF are told of, by their first address. None overlaps another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ranges(BTreeMap<IpAddr, (IpNet, String)>);

impl Ranges {
    /// Of these networks.
    pub fn of<'a>(networks: impl IntoIterator<Item = &'a Network>) -> Self {
        let ranges = |network: &'a Network| network.nets.iter().map(|net| (*net, network.name.clone()));
        Self(networks.into_iter().flat_map(ranges).map(|(net, name)| (net.network(), (net, name))).collect())
    }

    /// The range that a destination lies in.
    fn around(&self, destination: &IpNet) -> Option<&(IpNet, String)> {
        let (_, range) = self.0.range(..=destination.network()).next_back()?;
        range.0.contains(destination).then_some(range)
    }
}

/// Which learned routes a network's gateway router takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The network's name.
    pub network: String,
    /// The gateway router.
    pub router: String,
    /// Its port to the world.
    pub port: String,
    /// The kernel's table that the network hears; nothing if nobody tells it anything.
    pub table: Option<u32>,
    /// How many it takes.
    pub limit: usize,
    /// Families that its pods have.
    pub families: Vec<Family>,
    /// The link that OVN has to the world.
    pub link: String,
    /// Ranges in which nobody else tells us the way.
    pub own: Vec<IpNet>,
    /// The node's own links.
    pub connected: BTreeSet<IpNet>,
    /// Ways that the router has anyway.
    pub known: BTreeSet<(IpNet, IpAddr)>,
    /// Ranges of networks that are advertised.
    pub others: Arc<Ranges>,
}

impl Policy {
    /// Of a node's place in a network, beside networks with these ranges.
    pub fn of(site: &Site<'_>, others: &Arc<Ranges>) -> Self {
        let (port, _) = site.names.router_to_external(site.name());
        let addresses = &site.bridge.addresses;
        Self {
            network: site.network.name.clone(),
            router: site.names.gateway_router(site.name()),
            port,
            table: table(site),
            limit: site.settings.imported_routes_limit,
            families: site.families.iter().map(|side| side.family).collect(),
            link: site.bridge.name.clone(),
            own: own_ranges(site),
            connected: addresses.iter().flat_map(|net| [net.trunc(), cidr::host(net.addr())]).collect(),
            known: site.local.next_hops.iter().map(|hop| (Family::of(*hop).everything(), *hop)).collect(),
            others: Arc::clone(others),
        }
    }

    /// The gateways through which the router takes a route, or why it does not. Several share the load.
    pub fn judge<'a>(
        &self,
        destination: &IpNet,
        next_hops: impl Iterator<Item = (IpAddr, &'a str)>,
    ) -> Result<Vec<IpAddr>, Refusal> {
        let family = Family::of_net(destination);
        if !self.families.contains(&family) {
            return Err(Refusal::Family(family));
        }
        if let Some(range) = self.own.iter().find(|range| range.contains(destination)) {
            return Err(Refusal::Own(*range));
        }
        let other = self.others.around(destination).filter(|(_, network)| *network != self.network);
        if let Some((range, network)) = other.cloned() {
            return Err(Refusal::Other { range, network });
        }
        if self.connected.contains(destination) {
            return Err(Refusal::Connected(*destination));
        }
        let reached = |(gateway, link): &(IpAddr, &str)| *link == self.link && Family::of(*gateway) == family;
        let mut gateways: Vec<IpAddr> = next_hops.filter(reached).map(|(gateway, _)| gateway).collect();
        if gateways.is_empty() {
            return Err(Refusal::Elsewhere(self.link.clone()));
        }
        gateways.sort_unstable();
        gateways.dedup();
        Ok(gateways)
    }

    /// Whether what both take is written down in the same way, however different what they take.
    pub fn leads_like(&self, other: &Self) -> bool {
        let here = (&self.router, &self.port, self.table, self.limit, &self.known);
        here == (&other.router, &other.port, other.table, other.limit, &other.known)
    }

    /// Whether the router has a way anyway, so that it must not get it twice.
    pub fn has(&self, destination: IpNet, gateway: IpAddr) -> bool {
        self.known.contains(&(destination, gateway))
    }
}

fn table(site: &Site<'_>) -> Option<u32> {
    if site.network.is_default() {
        Some(MAIN_TABLE)
    } else if site.vrf().is_some() {
        Some(tables::table(site))
    } else {
        site.advertised().then_some(MAIN_TABLE)
    }
}

/// Ranges in which nobody else tells us the way: those between our routers, services, and pods as far as the overlay
/// leads to them. Without overlay that is only as far as this node.
fn own_ranges(site: &Site<'_>) -> Vec<IpNet> {
    let (network, settings) = (site.network, site.settings);
    let of_family = |family: Family| {
        let fixed = [network.join.of(family), settings.transit.of(family), settings.masquerade.of(family)];
        let here = site.families.iter().filter(move |side| side.family == family);
        let here = here.map(|side| side.subnet.trunc()).filter(|_| network.is_routed());
        let pods = network.nets(family).filter(|_| !network.is_routed()).chain(here);
        pods.chain(settings.service_nets(family)).chain(fixed)
    };
    Family::ALL.into_iter().flat_map(of_family).collect()
}
