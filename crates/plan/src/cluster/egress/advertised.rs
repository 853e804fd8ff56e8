//! The networks of the namespaces that egress IPs are for: whether nodes carry egress IPs there, and who advertises them.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::SelectorExt;
use underlay_api::RouteAdvertisements;
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_api::network::{Network, Transport};
use underlay_api::route_advertisements::{AdvertisementType, NetworkSelectionType, NetworkSelector};
use underlay_world::select::picks;
use underlay_world::{Definition, EgressIp, Node, Scope, Settings, World};

use super::NOT_SUPPORTED;
use crate::cluster::advertise::labels_of;
use crate::cluster::verdict::listed;

/// Which network each namespace has, and who advertises egress IPs.
pub struct Networks<'a> {
    /// Namespaces with a network of their own.
    own: BTreeMap<&'a str, &'a Definition>,
    advertisers: Vec<&'a RouteAdvertisements>,
    world: &'a World,
}

impl<'a> Networks<'a> {
    /// Looks at all definitions and advertisements.
    pub fn survey(world: &'a World) -> Self {
        let mut own = BTreeMap::new();
        let primary =
            |definition: &&&'a Definition| definition.network.as_ref().is_ok_and(Network::is_primary);
        let definitions: Vec<&Definition> = world.definitions().map(AsRef::as_ref).collect();
        for definition in definitions.iter().filter(primary) {
            match &definition.namespaces {
                None => _ = own.entry(definition.key.namespace.as_str()).or_insert(*definition),
                Some(Err(_)) => {}
                Some(Ok(selector)) => {
                    let all = world.namespaces.iter();
                    for (key, _) in all.filter(|(_, namespace)| selector.matches(&namespace.labels)) {
                        own.entry(key.name.as_str()).or_insert(*definition);
                    }
                }
            }
        }
        let asked =
            |object: &&RouteAdvertisements| object.spec.advertisements.contains(&AdvertisementType::EgressIp);
        let advertisers = world.advertisements.values().map(AsRef::as_ref).filter(asked).collect();
        Self { own, advertisers, world }
    }

    /// The network of each namespace that an egress IP is for; nothing is the default one.
    fn of<'b>(&'b self, source: &'b EgressIp) -> impl Iterator<Item = (&'b str, Option<&'a Definition>)> {
        source.namespaces(self.world).map(|namespace| (namespace, self.own.get(namespace).copied()))
    }

    /// The names of the networks of the namespaces that an egress IP is for.
    pub fn names(&self, source: &EgressIp) -> BTreeSet<String> {
        self.of(source).map(|(_, network)| name(network)).collect()
    }

    /// What is said of namespaces whose network has no overlay: there, nothing leads from node to node that would bring a
    /// pod's packets to the holder.
    pub fn unsupported(&self, source: &EgressIp, settings: &Settings) -> Option<(&'static str, String)> {
        let without = |network: Option<&Definition>| match network {
            None => settings.no_overlay.is_some(),
            Some(definition) => definition
                .network
                .as_ref()
                .is_ok_and(|network| matches!(network.transport, Transport::NoOverlay(_))),
        };
        let affected: BTreeSet<(String, String)> = self
            .of(source)
            .filter(|(_, network)| without(*network))
            .map(|(namespace, network)| (name(network), namespace.to_owned()))
            .collect();
        if affected.is_empty() {
            return None;
        }
        let networks: BTreeSet<&str> = affected.iter().map(|(network, _)| network.as_str()).collect();
        let networks: Vec<String> = networks.into_iter().map(str::to_owned).collect();
        let namespaces: Vec<String> = affected.iter().map(|(_, namespace)| namespace.clone()).collect();
        let message = format!(
            "egress IPs are not supported in networks without overlay ({}): pods of namespaces {} leave as they would \
             without this EgressIP",
            listed(&networks),
            listed(&namespaces)
        );
        Some((NOT_SUPPORTED, message))
    }

    /// Whether a node tells its peers of an egress IP that it holds.
    pub fn advertised(&self, source: &EgressIp, node: &Node) -> bool {
        let from_node =
            |object: &&&RouteAdvertisements| picks(&object.spec.node_selector, &node.labels).unwrap_or(false);
        let mut advertisers = self.advertisers.iter().filter(from_node);
        advertisers.any(|object| {
            let selectors = &object.spec.network_selectors;
            self.of(source).any(|(_, network)| selectors.iter().any(|selector| selects(selector, network)))
        })
    }
}

/// The name of a network; nothing is the default one.
fn name(network: Option<&Definition>) -> String {
    network.map_or_else(|| DEFAULT_NETWORK.to_owned(), Definition::network_name)
}

/// Whether a selector selects a network; nothing is the default one.
fn selects(selector: &NetworkSelector, network: Option<&Definition>) -> bool {
    match (&selector.network_selection_type, network) {
        (NetworkSelectionType::DefaultNetwork, None) => true,
        (NetworkSelectionType::ClusterUserDefinedNetworks, Some(definition)) => {
            let own = selector.cluster_user_defined_network_selector.as_ref();
            definition.scope() == Scope::Cluster
                && own
                    .is_some_and(|own| picks(&own.network_selector, &labels_of(definition)).unwrap_or(false))
        }
        _ => false,
    }
}
