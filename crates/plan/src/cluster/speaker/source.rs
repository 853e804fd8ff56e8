//! Configurations of users, from which those for nodes are made: read once, and found for a node without asking each.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use kube::core::{Selector, SelectorExt};
use underlay_api::FRRConfiguration;
use underlay_api::frr::Router;
use underlay_world::select::parse;
use underlay_world::{Key, Node};

/// Label by which a configuration selects one node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// A configuration of a user's.
pub struct Source<'a> {
    /// Its name.
    pub key: &'a Key,
    /// What it says.
    pub configuration: &'a FRRConfiguration,
    nodes: Selector,
    /// Addresses of the neighbors of each router; none where it is no address.
    addresses: Vec<Vec<Option<IpAddr>>>,
}

impl<'a> Source<'a> {
    /// Reads a configuration. The error is about the selector of nodes.
    pub fn read(key: &'a Key, configuration: &'a FRRConfiguration) -> Result<Self, String> {
        let nodes = parse(&configuration.spec.node_selector)?;
        let of = |router: &Arc<Router>| {
            let neighbors = router.neighbors.iter();
            neighbors.map(|neighbor| neighbor.address.parse().ok()).collect()
        };
        let addresses = configuration.spec.bgp.routers.iter().map(of).collect();
        Ok(Self { key, configuration, nodes, addresses })
    }

    /// Its routers, each with the addresses of its neighbors.
    pub fn routers(&self) -> impl Iterator<Item = (&'a Router, &[Option<IpAddr>])> {
        let routers = self.configuration.spec.bgp.routers.iter().map(AsRef::as_ref);
        routers.zip(self.addresses.iter().map(Vec::as_slice))
    }

    /// The one node it is for, if it names one.
    fn host(&self) -> Option<&'a str> {
        let labels = self.configuration.spec.node_selector.match_labels.as_ref()?;
        labels.get(HOSTNAME).map(String::as_str)
    }
}

/// All that an advertisement selects, in order.
pub struct Sources<'a> {
    all: Vec<Source<'a>>,
    /// Those that name a node, by that name.
    by_host: BTreeMap<&'a str, Vec<usize>>,
    /// Those that do not.
    others: Vec<usize>,
}

impl<'a> Sources<'a> {
    /// These.
    pub fn new(all: Vec<Source<'a>>) -> Self {
        let (mut by_host, mut others) = (BTreeMap::<&str, Vec<usize>>::new(), Vec::new());
        for (place, source) in all.iter().enumerate() {
            match source.host() {
                Some(host) => by_host.entry(host).or_default().push(place),
                None => others.push(place),
            }
        }
        Self { all, by_host, others }
    }

    /// Those for a node, in order.
    pub fn covering(&self, node: &Node) -> Vec<&Source<'a>> {
        let host = node.labels.get(HOSTNAME).and_then(|host| self.by_host.get(host.as_str()));
        let mut places: Vec<usize> = host.into_iter().flatten().chain(&self.others).copied().collect();
        places.sort_unstable();
        let sources = places.into_iter().map(|place| &self.all[place]);
        sources.filter(|source| source.nodes.matches(&node.labels)).collect()
    }
}
