//! Which of the node's subnets are told to BGP peers: by whom they were asked to, and in which VRF.
//!
//! The truth is what the speaker is told: a generated FRRConfiguration for this node that originates the node's subnet
//! and lets a neighbour hear of it. So addresses are never un-NATed before somebody is told the way back, and a mistake
//! in an advertisement that leaves the generated configurations in place leaves this in place too.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use underlay_api::FRRConfiguration;
use underlay_api::frr::{AllowMode, Neighbor, Router};
use underlay_world::select::picks;
use underlay_world::{Node, World};

use super::site::{DEFAULT_VRF, Site};

/// Label of generated configurations; the value is the advertisement's name.
pub const GENERATED_LABEL: &str = "k8s.ovn.org/route-advertisements";

/// What all generated configurations for a node tell its peers, by the advertisement that they are generated from:
/// prefixes, each with a VRF it is told in. The default one has no name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told(BTreeMap<String, BTreeSet<(IpNet, String)>>);

impl Told {
    /// Of this node.
    pub fn by(node: &Node, world: &World) -> Self {
        let mut told = Self::default();
        for configuration in world.frr_configurations.values() {
            let labels = configuration.metadata.labels.as_ref();
            let Some(advertisement) = labels.and_then(|labels| labels.get(GENERATED_LABEL)) else { continue };
            if picks(&configuration.spec.node_selector, &node.labels).unwrap_or(false) {
                told.0.entry(advertisement.clone()).or_default().extend(originated(configuration));
            }
        }
        told
    }

    /// VRFs in which a subnet is told, for one of these advertisements; nothing means for any.
    pub fn vrfs(&self, subnet: IpNet, by: Option<&BTreeSet<String>>) -> BTreeSet<String> {
        let asked = self.0.iter().filter(|(name, _)| by.is_none_or(|by| by.contains(*name)));
        let of_subnet = |told: &BTreeSet<(IpNet, String)>| {
            let from = told.range((subnet, String::new())..);
            from.take_while(|(prefix, _)| *prefix == subnet).map(|(_, vrf)| vrf.clone()).collect::<Vec<_>>()
        };
        asked.flat_map(|(_, told)| of_subnet(told)).collect()
    }

    /// Whether the node's part of a network is told in the default VRF, for whichever advertisement: for one that the
    /// network is not known to have yet, or for a network with the same addresses.
    pub fn anybody(&self, site: &Site<'_>) -> bool {
        site.families.iter().any(|side| self.vrfs(side.subnet, None).contains(DEFAULT_VRF))
    }

    /// Everything that is told, each with the network that it is of.
    pub fn parts(&self, sites: &[&Site<'_>]) -> Vec<Originated> {
        let mut all: BTreeMap<(IpNet, String, Option<String>), BTreeSet<String>> = BTreeMap::new();
        for (advertisement, told) in &self.0 {
            for (prefix, vrf) in told {
                let network = sites.iter().find(|site| is_of(site, *prefix, advertisement));
                let key = (*prefix, vrf.clone(), network.map(|site| site.network.name.clone()));
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

/// Whether a prefix is a part of the network that an advertisement can have asked for.
fn is_of(site: &Site<'_>, prefix: IpNet, advertisement: &str) -> bool {
    let asked = site.network.advertisers.as_ref().is_none_or(|all| all.contains(advertisement));
    asked && site.families.iter().any(|side| side.subnet.trunc() == prefix)
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
