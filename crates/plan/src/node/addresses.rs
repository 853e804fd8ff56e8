//! Addresses of pods: what is recorded stays, what was given stays, who has none gets one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, PodNetwork, PodRoute, Role};
use underlay_desired::{ObjectRef, Why};
use underlay_net::alloc::AddressPool;
use underlay_net::cidr::{host, with_length_of};
use underlay_net::{Family, Mac};
use underlay_world::{Key, Pod};

use super::networks::{Attachment, Others};
use super::seats::{self, Seat};
use super::site::{Side, Site, masquerade};

/// A pod with all it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedPod {
    /// The pod's identity.
    pub uid: String,
    /// Its part of the default network.
    pub network: PodNetwork,
    /// Its part of the network that carries its traffic, if that is another.
    pub primary: Option<Attached>,
    /// What it still waits for before it can start.
    pub waiting: Option<String>,
    /// The annotation that must be written, if it is not there yet.
    pub record: Option<String>,
    /// Its reason.
    pub why: Why,
}

/// A pod's part of a network besides the default one.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The attachment definition: `<namespace>/<name>`.
    pub attachment: String,
    /// The network.
    pub network: String,
    /// What it has given the pod.
    pub part: PodNetwork,
    /// Its largest packet.
    pub mtu: u32,
}

impl PlacedPod {
    /// Whether the default network is for probes only.
    pub fn locked(&self) -> bool {
        self.network.role == Some(Role::InfrastructureLocked)
    }
}

/// Pods that have addresses, and why the others have none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placed {
    /// By namespace and name.
    pub pods: BTreeMap<Key, PlacedPod>,
    /// Pods that could not be given an address, and why.
    pub problems: BTreeMap<Key, String>,
}

/// Gives every pod of the node its addresses: of the default network, and of those others that the node is in.
pub fn place(site: &Site<'_>, others: &Others<'_>) -> Placed {
    let mut placed = Placed::default();
    let seats = seats::find(site, others, &mut placed.problems);
    let mut given = allocate(site, seats.iter().map(|seat| (seat, DEFAULT_NETWORK)));
    let mut of_others: BTreeMap<&Key, Given> = BTreeMap::new();
    for (name, other) in &others.sites {
        let own = |seat: &'_ &Seat<'_>| seat.own.as_ref().is_some_and(|own| own.network == **name);
        let own = seats.iter().filter(own);
        of_others.extend(allocate(
            other,
            own.map(|seat| (seat, seat.own.as_ref().map_or("", |own| own.name.as_str()))),
        ));
    }
    for seat in &seats {
        let key = &seat.pod.key;
        match placed_pod(site, seat, given.remove(key), of_others.remove(key), others) {
            Ok(pod) => _ = placed.pods.insert(key.clone(), pod),
            Err(problem) => _ = placed.problems.insert(key.clone(), problem),
        }
    }
    placed
}

/// Addresses of a pod, or why it has none.
type Given = Result<Vec<IpAddr>, String>;

fn placed_pod(
    site: &Site<'_>,
    seat: &Seat<'_>,
    addresses: Option<Given>,
    own_addresses: Option<Given>,
    others: &Others<'_>,
) -> Result<PlacedPod, String> {
    let role = if seat.locked { Role::InfrastructureLocked } else { Role::Primary };
    let network = network(site, &addresses.transpose()?.unwrap_or_default(), role);
    let own_addresses = own_addresses.transpose()?;
    let attached = |own: &Attachment| {
        let site = others.sites.get(own.network.as_str())?;
        Some(Attached {
            attachment: own.name.clone(),
            network: own.network.clone(),
            part: self::network(site, own_addresses.as_deref()?, Role::Primary),
            mtu: site.network.mtu,
        })
    };
    let primary = seat.own.as_ref().and_then(attached);
    let key = &seat.pod.key;
    Ok(PlacedPod {
        uid: seat.pod.uid.clone(),
        record: record(seat.pod, &network, primary.as_ref()),
        network,
        primary,
        waiting: seat.waiting.clone(),
        why: Why::from_object(ObjectRef::namespaced("Pod", &key.namespace, &key.name)),
    })
}

/// Gives pods addresses of one network, each under the name by which its annotation calls that.
fn allocate<'a>(
    site: &Site<'_>,
    seats: impl Iterator<Item = (&'a Seat<'a>, &'a str)>,
) -> BTreeMap<&'a Key, Given> {
    let seats: Vec<(&Seat<'a>, &str)> = seats.collect();
    let mut pools: BTreeMap<Family, AddressPool> = site.families.iter().map(pool).collect();
    let mut given: BTreeMap<&Key, Given> = BTreeMap::new();
    // Nobody may be given what another already has. What a pod was given counts before what is written: an annotation
    // that somebody edited does not change the address of a pod that runs.
    for source in [assigned, recorded] {
        for (seat, name) in &seats {
            if given.contains_key(&seat.pod.key) {
                continue;
            }
            if let Some(addresses) = source(seat, name).filter(|addresses| take_all(&mut pools, addresses)) {
                given.insert(&seat.pod.key, Ok(addresses));
            }
        }
    }
    for (seat, _) in seats {
        given.entry(&seat.pod.key).or_insert_with(|| take_any(site, &mut pools));
    }
    given
}

/// The annotation with all parts of the pod, unless it has them. What is of other networks stays.
fn record(pod: &Pod, network: &PodNetwork, primary: Option<&Attached>) -> Option<String> {
    let mut networks = pod.networks.clone().unwrap_or_default();
    let own = primary.map(|own| (own.attachment.as_str(), &own.part));
    let mut news = false;
    for (name, part) in [(DEFAULT_NETWORK, network)].into_iter().chain(own) {
        let entry = networks.0.get(name);
        // A role that nobody wrote down is the one that every pod had then.
        let same = entry.is_some_and(|entry| {
            let role = entry.role.as_ref().unwrap_or(&Role::Primary);
            entry.addresses == part.addresses && entry.mac == part.mac && part.role.as_ref() == Some(role)
        });
        if !same {
            news = true;
            networks.0.insert(name.to_owned(), part.clone());
        }
    }
    news.then(|| networks.render())
}

fn pool(side: &Side) -> (Family, AddressPool) {
    (side.family, AddressPool::new(side.subnet, &[side.gateway, side.management]))
}

fn recorded(seat: &Seat<'_>, name: &str) -> Option<Vec<IpAddr>> {
    let network = seat.pod.networks.as_ref()?.0.get(name)?;
    Some(network.addresses.iter().map(IpNet::addr).collect())
}

fn assigned(seat: &Seat<'_>, name: &str) -> Option<Vec<IpAddr>> {
    seat.before?.networks.get(name).cloned()
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
        let pool = pools.get_mut(&side.family);
        let Some(address) = pool.and_then(|pool| take_outside(pool, &site.network.excluded)) else {
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

/// Takes any address that is in none of these.
fn take_outside(pool: &mut AddressPool, excluded: &[IpNet]) -> Option<IpAddr> {
    // Each is met twice at most: on the way to the end of the subnet, and once more from its beginning.
    for _ in 0..=2 * excluded.len() {
        let address = pool.take_any().ok()?;
        let Some(net) = excluded.iter().find(|net| net.contains(&address)) else { return Some(address) };
        // From behind it, if it does not end behind the subnet.
        pool.take(net.broadcast());
    }
    None
}

fn release(pools: &mut BTreeMap<Family, AddressPool>, addresses: &[IpAddr]) {
    for address in addresses {
        if let Some(pool) = pools.get_mut(&Family::of(*address)) {
            pool.release(*address);
        }
    }
}

/// What a pod is told: its addresses, and the way to everything in the network. Where it is for probes only that is all;
/// otherwise there are services, and everything else.
fn network(site: &Site<'_>, addresses: &[IpAddr], role: Role) -> PodNetwork {
    let carries = role == Role::Primary;
    let mut routes = Vec::new();
    for side in &site.families {
        let services = site.settings.service_nets(side.family).filter(|_| carries);
        let hairpin = site.masquerade(side.family, masquerade::HAIRPIN).map(host);
        let hairpin = hairpin.filter(|_| carries && site.network.is_default());
        let join = site.network.join.of(side.family);
        let destinations = site.network.nets(side.family).chain(services).chain(hairpin).chain([join]);
        routes.extend(destinations.map(|net| PodRoute { destination: net, next_hop: Some(side.gateway) }));
    }
    let gateways = site.families.iter().filter(|_| carries).map(|side| side.gateway);
    PodNetwork {
        mac: addresses.first().map_or(site.bridge.mac, |address| Mac::of(*address)),
        gateways: gateways.collect(),
        addresses: with_lengths(site, addresses),
        routes,
        link_local_gateway: None,
        tunnel_id: None,
        role: Some(role),
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
