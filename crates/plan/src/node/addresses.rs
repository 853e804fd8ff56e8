//! Addresses of pods: what is recorded stays, what was given stays, who has none gets one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, PodNetwork, PodRoute, Role};
use underlay_desired::{ObjectRef, Why};
use underlay_net::alloc::AddressPool;
use underlay_net::cidr::{host, with_length_of};
use underlay_net::{Family, Mac};
use underlay_world::local::Assigned;
use underlay_world::{Key, Pod};

use super::site::{Side, Site, masquerade};

/// A pod with all it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedPod {
    /// The pod's identity.
    pub uid: String,
    /// Its part of the default network.
    pub network: PodNetwork,
    /// The annotation that must be written, if it is not there yet.
    pub record: Option<String>,
    /// Its reason.
    pub why: Why,
}

/// Pods that have addresses, and why the others have none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placed {
    /// By namespace and name.
    pub pods: BTreeMap<Key, PlacedPod>,
    /// Pods that could not be given an address, and why.
    pub problems: BTreeMap<Key, String>,
}

/// Gives every pod of the node its addresses.
pub fn place(site: &Site<'_>) -> Placed {
    let mut pools: BTreeMap<Family, AddressPool> = site.families.iter().map(pool).collect();
    let mut placed = Placed::default();
    let pods = || site.world.pods.values().filter(|pod| pod.needs_port() && pod.node == site.node.name);
    let mut had: BTreeMap<&Key, Vec<IpAddr>> = BTreeMap::new();
    // Nobody may be given what another already has. What a pod was given counts before what is written: an annotation
    // that somebody edited does not change the address of a pod that runs.
    for source in [assigned, recorded] {
        for pod in pods() {
            if had.contains_key(&pod.key) {
                continue;
            }
            if let Some(addresses) = source(site, pod).filter(|addresses| take_all(&mut pools, addresses)) {
                had.insert(&pod.key, addresses);
            }
        }
    }
    for pod in pods() {
        let addresses = match had.remove(&pod.key).map_or_else(|| take_any(site, &mut pools), Ok) {
            Ok(addresses) => addresses,
            Err(problem) => {
                placed.problems.insert(pod.key.clone(), problem);
                continue;
            }
        };
        let network = network(site, &addresses);
        placed.pods.insert(
            pod.key.clone(),
            PlacedPod {
                uid: pod.uid.clone(),
                record: record(pod, &network),
                network,
                why: Why::from_object(ObjectRef::namespaced("Pod", &pod.key.namespace, &pod.key.name)),
            },
        );
    }
    placed
}

/// The annotation with the pod's part of the default network, unless it is there. Other networks' parts stay.
fn record(pod: &Pod, network: &PodNetwork) -> Option<String> {
    let mut networks = pod.networks.clone().unwrap_or_default();
    let entry = networks.0.get(DEFAULT_NETWORK);
    if entry.is_some_and(|entry| entry.addresses == network.addresses && entry.mac == network.mac) {
        return None;
    }
    networks.0.insert(DEFAULT_NETWORK.to_owned(), network.clone());
    Some(networks.render())
}

fn pool(side: &Side) -> (Family, AddressPool) {
    (side.family, AddressPool::new(side.subnet, &[side.gateway, side.management]))
}

fn recorded(_: &Site<'_>, pod: &Pod) -> Option<Vec<IpAddr>> {
    let network = pod.networks.as_ref()?.0.get(DEFAULT_NETWORK)?;
    Some(network.addresses.iter().map(IpNet::addr).collect())
}

fn assigned(site: &Site<'_>, pod: &Pod) -> Option<Vec<IpAddr>> {
    let Assigned { uid, addresses } = site.local.assigned.get(&pod.key)?;
    (*uid == pod.uid).then(|| addresses.clone())
}

/// Takes an address of every family, or none at all.
fn take_all(pools: &mut BTreeMap<Family, AddressPool>, addresses: &[IpAddr]) -> bool {
    if addresses.len() != pools.len() {
        return false;
    }
    for (count, address) in addresses.iter().enumerate() {
        let pool = pools.get_mut(&Family::of(*address));
        if !pool.is_some_and(|pool| pool.take(*address)) {
            release(pools, &addresses[..count]);
            return false;
        }
    }
    true
}

fn take_any(site: &Site<'_>, pools: &mut BTreeMap<Family, AddressPool>) -> Result<Vec<IpAddr>, String> {
    let mut addresses = Vec::new();
    for side in &site.families {
        let Some(Ok(address)) = pools.get_mut(&side.family).map(AddressPool::take_any) else {
            release(pools, &addresses);
            return Err(format!(
                "no address is left in subnet {} of node {}: delete pods there, or give nodes larger subnets",
                side.subnet,
                site.name()
            ));
        };
        addresses.push(address);
    }
    Ok(addresses)
}

fn release(pools: &mut BTreeMap<Family, AddressPool>, addresses: &[IpAddr]) {
    for address in addresses {
        if let Some(pool) = pools.get_mut(&Family::of(*address)) {
            pool.release(*address);
        }
    }
}

/// What a pod is told: its addresses, and the way to everything in the cluster.
fn network(site: &Site<'_>, addresses: &[IpAddr]) -> PodNetwork {
    let mut routes = Vec::new();
    for side in &site.families {
        let services = site.settings.service_nets(side.family);
        let hairpin = site.masquerade(side.family, masquerade::HAIRPIN).map(host);
        let join = site.settings.join.of(side.family);
        let destinations =
            site.settings.cluster_nets(side.family).chain(services).chain(hairpin).chain([join]);
        routes.extend(destinations.map(|net| PodRoute { destination: net, next_hop: Some(side.gateway) }));
    }
    PodNetwork {
        mac: addresses.first().map_or(site.bridge.mac, |address| Mac::of(*address)),
        gateways: site.families.iter().map(|side| side.gateway).collect(),
        addresses: with_lengths(site, addresses),
        routes,
        link_local_gateway: None,
        tunnel_id: None,
        role: Some(Role::Primary),
        other: underlay_api::Unknown::default(),
    }
}

/// Addresses in the order of the families, with the lengths of their subnets.
fn with_lengths(site: &Site<'_>, addresses: &[IpAddr]) -> Vec<IpNet> {
    let of_side = |side: &Side| {
        let address = addresses.iter().find(|address| Family::of(**address) == side.family)?;
        Some(with_length_of(*address, &side.subnet))
    };
    site.families.iter().filter_map(of_side).collect()
}
