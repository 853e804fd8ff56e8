//! Which of the node's subnets are told to BGP peers: by whom they were asked to, and in which VRF.
//!
//! The truth is what the speaker is told: a generated FRRConfiguration for this node that originates the node's subnet
//! and lets a neighbour hear of it. So addresses are never un-NATed before somebody is told the way back, and a mistake
//! in an advertisement that leaves the generated configurations in place leaves this in place too.
//!
//! A subnet is told, not a network. Where several networks have the same subnet, the one is meant whose attachment
//! definitions name the advertisement.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use underlay_api::FRRConfiguration;
use underlay_api::frr::{AllowMode, Neighbor, Router};
use underlay_world::select::picks;
use underlay_world::{Node, World};

use super::network::Network;
use super::site::Site;

/// Label of generated configurations; the value is the advertisement's name.
pub const GENERATED_LABEL: &str = "k8s.ovn.org/route-advertisements";

/// What all generated configurations for a node tell its peers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// By the advertisement that they are generated from: prefixes, each with a VRF it is told in. The default one has no
    /// name.
    by: BTreeMap<String, BTreeSet<(IpNet, String)>>,
    /// The node's subnets that several networks have.
    shared: BTreeSet<IpNet>,
}

impl Told {
    /// Of this node.
    pub fn by(node: &Node, world: &World) -> Self {
        let mut told = Self { shared: shared(node), ..Self::default() };
        for configuration in world.frr_configurations.values() {
            let labels = configuration.metadata.labels.as_ref();
            let Some(advertisement) = labels.and_then(|labels| labels.get(GENERATED_LABEL)) else { continue };
            if picks(&configuration.spec.node_selector, &node.labels).unwrap_or(false) {
                told.by.entry(advertisement.clone()).or_default().extend(originated(configuration));
            }
        }
        told
    }

    /// VRFs in which a subnet of a network is told.
    pub fn vrfs(&self, subnet: IpNet, network: &Network) -> BTreeSet<String> {
        let meant = self.by.iter().filter(|(advertisement, _)| self.means(advertisement, subnet, network));
        let of_subnet = meant.flat_map(|(_, told)| {
            let from = told.range((subnet, String::new())..);
            from.take_while(|(prefix, _)| *prefix == subnet)
        });
        of_subnet.map(|(_, vrf)| vrf.clone()).collect()
    }

    /// Whether an advertisement that tells of a subnet of a network means that network.
    fn means(&self, advertisement: &str, subnet: IpNet, network: &Network) -> bool {
        let named = network.advertisers.as_ref().is_none_or(|all| all.contains(advertisement));
        named || !self.shared.contains(&subnet)
    }

    /// Everything that is told, each with the network that it is of.
    pub fn parts(&self, sites: &[&Site<'_>]) -> Vec<Originated> {
        let mut all: BTreeMap<(IpNet, String, Option<String>), BTreeSet<String>> = BTreeMap::new();
        let subnets =
            sites.iter().flat_map(|site| site.families.iter().map(|side| (side.subnet, site.network)));
        let mut networks: BTreeMap<IpNet, Vec<&Network>> = BTreeMap::new();
        for (subnet, network) in subnets {
            networks.entry(subnet.trunc()).or_default().push(network);
        }
        for (advertisement, told) in &self.by {
            for (prefix, vrf) in told {
                let mut networks = networks.get(prefix).into_iter().flatten();
                let network = networks.find(|network| self.means(advertisement, *prefix, network));
                let key = (*prefix, vrf.clone(), network.map(|network| network.name.clone()));
                all.entry(key).or_default().insert(advertisement.clone());
            }
        }
        let part = |((prefix, vrf, network), by)| Originated { prefix, vrf, network, by };
        all.into_iter().map(part).collect()
    }
}

/// A prefix that the node tells its BGP peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Originated {
    /// What it tells.
    pub prefix: IpNet,
    /// In which VRF. The default one has no name.
    pub vrf: String,
    /// The network whose part on this node it is; nothing for what is no network's part, like an egress IP.
    pub network: Option<String>,
    /// The advertisements that ask for it.
    pub by: BTreeSet<String>,
}

/// Subnets that a node has in several networks.
fn shared(node: &Node) -> BTreeSet<IpNet> {
    let mut seen = BTreeSet::new();
    let all =
        node.subnets.0.values().flat_map(|subnets| subnets.iter().map(IpNet::trunc).collect::<BTreeSet<_>>());
    all.filter(|subnet| !seen.insert(*subnet)).collect()
}

fn originated(configuration: &FRRConfiguration) -> impl Iterator<Item = (IpNet, String)> {
    configuration.spec.bgp.routers.iter().flat_map(|router| {
        let vrf = if router.vrf == "default" { "" } else { router.vrf.as_str() };
        let heard = router.prefixes.iter().filter(|prefix| is_heard(router, prefix));
        heard.filter_map(|prefix| prefix.parse().ok()).map(|net: IpNet| (net.trunc(), vrf.to_owned()))
    })
}

/// Whether any neighbour of a router hears of a prefix.
fn is_heard(router: &Router, prefix: &String) -> bool {
    let hears = |neighbor: &Neighbor| {
        let allowed = &neighbor.to_advertise.allowed;
        allowed.mode == AllowMode::All || allowed.prefixes.contains(prefix)
    };
    router.neighbors.iter().any(hears)
}
