//! The managed fabric: BGP sessions between the nodes that the cluster itself sees to, for networks without overlay.
//!
//! In: the settings, the nodes' addresses, and the networks that ask for managed routing. Out: one FRRConfiguration in
//! which every node is a neighbour, and RouteAdvertisements for each of these networks. Each has its own: what is wrong
//! with one network holds up no other. All of it is then treated like what users write, so a node is taken out of its
//! own list of neighbours where advertisements are planned.
//!
//! Names follow from the networks' names, and all objects carry a label: whoever plans again finds what was made, and
//! removes what is left over. A network is selected by a label of its own that we put on its definition.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, GeneratedFrom};
use underlay_api::frr::{
    AllowedIn, BfdProfile, Bgp, FRRConfigurationSpec, Neighbor, PrefixSelector, Receive, Router,
};
use underlay_api::network::{self, Transport};
use underlay_api::route_advertisements::{
    AdvertisementType, ClusterUserDefinedNetworkSelector, NetworkSelectionType, NetworkSelector,
    RouteAdvertisementsSpec,
};
use underlay_api::{FRRConfiguration, RouteAdvertisements};
use underlay_desired::{ObjectRef, Why};
use underlay_net::Family;
use underlay_net::alloc::SubnetRange;
use underlay_world::settings::{self, Topology};
use underlay_world::{Definition, Key, Settings, World};

use super::{Generated, digest};

/// Label of all that is made here.
pub const LABEL: &str = "k8s.ovn.org/managed-internal-fabric";
/// Its value.
pub const FABRIC: &str = "bgp";
/// Label that we put on the definition of a network that asks for managed routing; the value is the network's own.
pub const MARK: &str = "k8s.ovn.org/managed-network";
/// Beginning of the names of all that is made here.
pub const PREFIX: &str = "ovnk-managed-";

/// BFD finds a dead neighbour after three packets of 300 ms: long before BGP would, and late enough for a busy node.
const PROFILE: (&str, u32, u32) = ("ovnk-managed", 300, 3);

/// What should be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fabric {
    /// The configuration of all nodes; nothing if no network asks for it.
    pub configurations: BTreeMap<Key, Generated>,
    /// Advertisements, one for each network.
    pub advertisements: BTreeMap<Key, Generated<RouteAdvertisements>>,
}

/// Whether an object was made here, and is ours to remove.
pub fn is_ours(metadata: &ObjectMeta) -> bool {
    let named = metadata.name.as_ref().is_some_and(|name| name.starts_with(PREFIX));
    let labels = metadata.labels.as_ref();
    named && labels.and_then(|labels| labels.get(LABEL)).is_some_and(|value| value == FABRIC)
}

/// Whether an FRRConfiguration is about the sessions between the nodes: it was made here, or generated from what was.
pub fn connects(metadata: &ObjectMeta) -> bool {
    let from = GeneratedFrom::of(metadata).ok().flatten();
    is_ours(metadata) || from.is_some_and(|from| from.source == configuration_name())
}

/// The value of [`MARK`] on a definition; nothing if it is to have none.
pub fn mark(definition: &Definition, settings: &Settings) -> Option<String> {
    let managed = settings.managed.topology.is_some() && asks(definition);
    managed.then(|| digest(&[&definition.network_name()]))
}

/// Gives labels of a definition the right mark, or none.
pub fn put_mark(definition: &Definition, settings: &Settings, labels: &mut BTreeMap<String, String>) {
    match mark(definition, settings) {
        Some(value) => labels.insert(MARK.to_owned(), value),
        None => labels.remove(MARK),
    };
}

/// Whether a network asks for managed routing.
pub fn asks(definition: &Definition) -> bool {
    let transport = definition.network.as_ref().map(|network| &network.transport);
    matches!(transport, Ok(Transport::NoOverlay(options)) if options.routing == Some(network::Routing::Managed))
}

/// Plans the fabric. Where it is not known which networks are defined, what was made for them stays.
pub fn plan(world: &World, settings: &Settings, knows_networks: bool) -> Fabric {
    let mut fabric = Fabric::default();
    let Some(Topology::FullMesh) = settings.managed.topology else { return fabric };
    let default = settings.no_overlay.is_some_and(|it| it.routing == settings::Routing::Managed);
    if default {
        fabric.advertise(DEFAULT_NETWORK, default_selector(), Why::from_object(default_network()));
    }
    for definition in world.cluster_networks.values().filter(|definition| asks(definition)) {
        let why = Why::from_object(super::networks::object(definition));
        fabric.advertise(&definition.network_name(), selector(definition, settings), why);
    }
    fabric.keep(world, knows_networks);
    if !fabric.advertisements.is_empty() {
        fabric.connect(world, settings, default);
    }
    fabric
}

impl Fabric {
    /// Puts it on record in a world, as if it had been written and heard. Returns whether anything is another.
    pub fn record(&self, world: &mut World) -> bool {
        let configured =
            record(&mut world.frr_configurations, &self.configurations, |object| &mut object.spec);
        let advertised = record(&mut world.advertisements, &self.advertisements, |object| &mut object.spec);
        configured || advertised
    }

    /// Advertises a network to all nodes.
    fn advertise(&mut self, network: &str, selector: NetworkSelector, why: Why) {
        let name = name_of(network);
        let object = RouteAdvertisements {
            metadata: metadata(&name),
            spec: RouteAdvertisementsSpec {
                network_selectors: vec![selector],
                frr_configuration_selector: labelled(LABEL, FABRIC),
                advertisements: vec![AdvertisementType::PodNetwork],
                ..RouteAdvertisementsSpec::default()
            },
            status: None,
        };
        self.advertisements.insert(Key::cluster(&name), Generated { object: Arc::new(object), why });
    }

    /// Says that what was made before should stay: for networks that are not known, and for those that cannot be read
    /// any more.
    fn keep(&mut self, world: &World, knows_networks: bool) {
        let unreadable = world.cluster_networks.values().filter(|definition| definition.network.is_err());
        let kept: BTreeSet<String> =
            unreadable.map(|definition| name_of(&definition.network_name())).collect();
        let ours = world.advertisements.iter().filter(|(_, object)| is_ours(&object.metadata));
        for (key, object) in ours {
            let of_default = key.name == name_of(DEFAULT_NETWORK);
            if !of_default && (!knows_networks || kept.contains(&key.name)) {
                let why = Why::from_object(ObjectRef::cluster("RouteAdvertisements", &key.name));
                let made = Generated { object: Arc::clone(object), why };
                self.advertisements.entry(key.clone()).or_insert(made);
            }
        }
    }

    /// Makes every node a neighbour of every other.
    fn connect(&mut self, world: &World, settings: &Settings, default: bool) {
        let addresses: BTreeSet<IpAddr> =
            world.nodes.values().flat_map(|node| node.internal.iter().copied()).collect();
        let asn = settings.managed.as_number;
        let neighbor = |address: IpAddr| Neighbor {
            asn,
            address: address.to_string(),
            bfd_profile: PROFILE.0.to_owned(),
            enable_graceful_restart: true,
            // A node that joins is spoken to at once, whoever was ready first.
            connect_time: Some("1s".to_owned()),
            to_receive: if default { accepted(settings, Family::of(address)) } else { Receive::default() },
            ..Neighbor::default()
        };
        let neighbors = addresses.into_iter().map(neighbor).collect();
        let (name, interval, misses) = PROFILE;
        let profile = BfdProfile {
            name: name.to_owned(),
            receive_interval: Some(interval),
            transmit_interval: Some(interval),
            detect_multiplier: Some(misses),
            ..BfdProfile::default()
        };
        let router = Router { asn, neighbors, ..Router::default() };
        let bgp = Bgp { routers: vec![Arc::new(router)], bfd_profiles: vec![profile], ..Bgp::default() };
        let namespace = &settings.managed.frr_namespace;
        let name = configuration_name();
        let object = FRRConfiguration {
            metadata: ObjectMeta { namespace: Some(namespace.clone()), ..metadata(&name) },
            spec: FRRConfigurationSpec { bgp, ..FRRConfigurationSpec::default() },
            status: None,
        };
        let whys = self.advertisements.keys().map(|key| ObjectRef::cluster("RouteAdvertisements", &key.name));
        let why = whys.fold(Why::default(), Why::and);
        self.configurations.insert(Key::new(namespace, &name), Generated { object: Arc::new(object), why });
    }
}

/// The name of the configuration of all nodes.
fn configuration_name() -> String {
    format!("{PREFIX}{}", digest(&["fabric", FABRIC]))
}

/// The name of the advertisement of a network.
pub fn name_of(network: &str) -> String {
    format!("{PREFIX}{}", digest(&[network]))
}

/// How plans name the default network: it is defined by the settings.
fn default_network() -> ObjectRef {
    ObjectRef::cluster("Network", DEFAULT_NETWORK)
}

fn metadata(name: &str) -> ObjectMeta {
    let labels = [(LABEL.to_owned(), FABRIC.to_owned())].into();
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() }
}

fn labelled(key: &str, value: &str) -> LabelSelector {
    let labels = [(key.to_owned(), value.to_owned())].into();
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

fn default_selector() -> NetworkSelector {
    NetworkSelector {
        network_selection_type: NetworkSelectionType::DefaultNetwork,
        ..NetworkSelector::default()
    }
}

fn selector(definition: &Definition, settings: &Settings) -> NetworkSelector {
    let mark = mark(definition, settings).unwrap_or_default();
    NetworkSelector {
        network_selection_type: NetworkSelectionType::ClusterUserDefinedNetworks,
        cluster_user_defined_network_selector: Some(ClusterUserDefinedNetworkSelector {
            network_selector: labelled(MARK, &mark),
        }),
        ..NetworkSelector::default()
    }
}

/// Routes to pods of the default network on other nodes. Those of other networks are added where these are advertised.
fn accepted(settings: &Settings, family: Family) -> Receive {
    let mut ranges: Vec<&SubnetRange> = settings.cluster_subnets.iter().collect();
    ranges.retain(|range| Family::of_net(&range.net()) == family);
    let selector = |range: &SubnetRange| {
        let length = Some(u32::from(range.length()));
        PrefixSelector {
            prefix: range.net().to_string(),
            ge: length,
            le: length,
            ..PrefixSelector::default()
        }
    };
    let prefixes = ranges.into_iter().map(selector).collect();
    Receive { allowed: AllowedIn { prefixes, ..AllowedIn::default() }, ..Receive::default() }
}

/// Makes the objects of one kind what they should be, and removes what is left over.
fn record<K: kube::Resource + Clone, S: PartialEq>(
    have: &mut BTreeMap<Key, Arc<K>>,
    want: &BTreeMap<Key, Generated<K>>,
    spec: impl Fn(&mut K) -> &mut S,
) -> bool {
    let count = have.len();
    have.retain(|key, object| want.contains_key(key) || !is_ours(object.meta()));
    let mut changed = have.len() != count;
    for (key, Generated { object, .. }) in want {
        let mut next = have.get(key).unwrap_or(object).as_ref().clone();
        let mut wanted = object.as_ref().clone();
        let same = have.contains_key(key) && is_ours(next.meta()) && spec(&mut next) == spec(&mut wanted);
        if !same {
            let labels = next.meta_mut().labels.get_or_insert_default();
            labels.insert(LABEL.to_owned(), FABRIC.to_owned());
            std::mem::swap(spec(&mut next), spec(&mut wanted));
            have.insert(key.clone(), Arc::new(next));
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests;
