//! Egress IPs on a node: where its own pods' packets go, and what it does for those that others send.
//!
//! A pod's packets for the world outside go to a node that holds an address of the pod's egress IP: through the node's own
//! gateway router if it is this one, else over the switch between nodes. There the gateway router gives them the address.
//! Packets for other pods, nodes and services go as ever. A pod that several egress IPs are for has the oldest.
//!
//! Where nodes have no overlay between them there is no such way, and no egress IP.

mod rows;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::annotations::{DEFAULT_NETWORK, Role};
use underlay_desired::flow::Announcement;
use underlay_net::Family;
use underlay_world::{EgressIp, Key, Pod, World, within};

use super::addresses::{Placed, PlacedPod};
use super::network::Tenants;
use super::site::{Side, Site};

pub use rows::plan;

/// Namespaces whose pods on other nodes a node must know: those that egress IPs are for which it holds.
pub fn namespaces(node: &str, world: &World) -> BTreeSet<String> {
    let held = world.egress_ips.values().filter(|source| source.is_held_by(node));
    held.flat_map(|source| source.namespaces(world)).map(str::to_owned).collect()
}

/// An egress IP in use, and the namespaces it is for.
#[derive(Debug)]
pub struct Selection<'a> {
    source: &'a EgressIp,
    namespaces: BTreeSet<&'a str>,
}

/// All egress IPs in use, the oldest first.
pub fn select(world: &World) -> Vec<Selection<'_>> {
    let used = world.egress_ips.values().map(AsRef::as_ref).filter(|source| !source.items.is_empty());
    let mut all: Vec<Selection<'_>> =
        used.map(|source| Selection { source, namespaces: source.namespaces(world).collect() }).collect();
    all.sort_by_key(|selection| selection.source.rank());
    all
}

/// The pods of one network and family that leave with addresses of one egress IP, as far as a node has to do with them.
#[derive(Debug)]
struct Group<'a> {
    source: &'a EgressIp,
    side: Side,
    /// Addresses of the node's own pods.
    local: BTreeSet<IpAddr>,
    /// Addresses of pods whose packets other nodes send here.
    remote: BTreeSet<IpAddr>,
    /// Where the node's own pods' packets go.
    next_hops: BTreeSet<IpAddr>,
    /// The address that the node holds.
    held: Option<IpAddr>,
}

/// Addresses that the network's gateway router shows on this node.
pub fn shown(site: &Site<'_>, placed: &Placed, selections: &[Selection<'_>]) -> BTreeSet<IpAddr> {
    groups(site, placed, selections).into_iter().filter_map(|group| group.held).collect()
}

/// IPv6 addresses that a network shows here and neighbours may have known elsewhere. OVN tells them of IPv4 addresses.
pub fn announced(site: &Site<'_>, placed: &Placed, selections: &[Selection<'_>]) -> Vec<Announcement> {
    let Some(port) = site.bridge.uplink else { return Vec::new() };
    let near = |group: Group<'_>| match (group.held?, group.side.external?) {
        (IpAddr::V6(address), IpNet::V6(net)) if net.contains(&address) => {
            Some(Announcement { bridge: site.bridge.name.clone(), port, mac: site.bridge.mac, address })
        }
        _ => None,
    };
    groups(site, placed, selections).into_iter().filter_map(near).collect()
}

fn groups<'a>(site: &Site<'a>, placed: &Placed, selections: &'a [Selection<'a>]) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    if site.network.is_routed() {
        return groups;
    }
    let mut served: BTreeSet<&Key> = BTreeSet::new();
    for Selection { source, namespaces } in selections {
        let carried = carried(site, namespaces);
        if carried.is_empty() {
            continue;
        }
        let (mut local, mut remote) = (BTreeSet::new(), BTreeSet::new());
        for namespace in &carried {
            for (key, pod) in within(&placed.pods, namespace) {
                let labels = site.world.pods.get(key).map(|pod| &pod.labels);
                if labels.is_some_and(|labels| source.selects_pod(labels)) && served.insert(key) {
                    local.extend(addresses(site, pod).iter().map(IpNet::addr));
                }
            }
            let strangers = strangers(site, namespace).filter(|_| source.is_held_by(site.name()));
            for pod in strangers.filter(|pod| source.selects_pod(&pod.labels)) {
                if served.insert(&pod.key) {
                    remote.extend(recorded(site, pod).iter().map(IpNet::addr));
                }
            }
        }
        groups.extend(site.families.iter().filter_map(|side| Group::of(site, source, side, &local, &remote)));
    }
    groups
}

/// Those of some namespaces whose traffic the network carries.
fn carried<'a>(site: &Site<'_>, namespaces: &BTreeSet<&'a str>) -> Vec<&'a str> {
    match &site.network.tenants {
        Tenants::Only(own) => own.keys().filter_map(|name| namespaces.get(name.as_str()).copied()).collect(),
        Tenants::AllBut(_) => {
            namespaces.iter().copied().filter(|namespace| site.network.carries(namespace)).collect()
        }
    }
}

/// Addresses of one of the node's pods in a network.
fn addresses<'a>(site: &Site<'_>, pod: &'a PlacedPod) -> &'a [IpNet] {
    if site.network.is_default() {
        return if pod.locked() { &[] } else { &pod.network.addresses };
    }
    let own = pod.primary.as_ref().filter(|own| own.network == site.network.name);
    own.map_or(&[], |own| &own.part.addresses)
}

/// Pods of a namespace on other nodes.
fn strangers<'a>(site: &Site<'a>, namespace: &'a str) -> impl Iterator<Item = &'a Pod> {
    let world = site.world;
    let heard = world.elsewhere.get(namespace).into_iter().flat_map(BTreeMap::values);
    let known = within(&world.pods, namespace).map(|(_, pod)| pod);
    let me = site.node.name.as_str();
    heard.chain(known).map(AsRef::as_ref).filter(move |pod: &&Pod| pod.node != me && pod.needs_port())
}

/// Addresses of another node's pod in a network, as that has recorded them.
fn recorded<'a>(site: &Site<'_>, pod: &'a Pod) -> &'a [IpNet] {
    let name = match &site.network.tenants {
        Tenants::AllBut(_) => DEFAULT_NETWORK.to_owned(),
        Tenants::Only(own) => match own.get(&pod.key.namespace) {
            Some(name) => format!("{}/{name}", pod.key.namespace),
            None => return &[],
        },
    };
    let part = pod.networks.as_ref().and_then(|networks| networks.0.get(&name));
    // A role that nobody wrote down is the one that every pod had then.
    let part = part.filter(|part| part.role.as_ref().is_none_or(|role| *role == Role::Primary));
    part.map_or(&[], |part| &part.addresses)
}

impl<'a> Group<'a> {
    /// The part of one family; nothing if the node has nothing to do with it.
    fn of(
        site: &Site<'_>,
        source: &'a EgressIp,
        part: &Side,
        local: &BTreeSet<IpAddr>,
        remote: &BTreeSet<IpAddr>,
    ) -> Option<Self> {
        let of_family = |address: &IpAddr| Family::of(*address) == part.family;
        let items = || source.items.iter().filter(|item| of_family(&item.address));
        let held = items().find(|item| item.node == site.name()).map(|item| item.address);
        let next_hop = |node: &str| {
            if node == site.name() {
                return Some(part.join_gateway.addr());
            }
            site.world.node(node)?.transit.0.nets().map(|net| net.addr()).find(of_family)
        };
        let group = Self {
            source,
            side: *part,
            local: local.iter().copied().filter(of_family).collect(),
            remote: remote.iter().copied().filter(of_family).filter(|_| held.is_some()).collect(),
            next_hops: items().filter_map(|item| next_hop(&item.node)).collect(),
            held: held.filter(|_| part.external.is_some()),
        };
        let idle = group.next_hops.is_empty() || group.local.is_empty() && group.remote.is_empty();
        (!idle).then_some(group)
    }
}
