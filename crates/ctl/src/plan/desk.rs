//! What a node sees of itself, as far as that can be known from the admin's desk.
//!
//! In: the node's object, its pods, and what its agent told if it was asked. Out: a [`Local`]. What the agent did not
//! tell is taken from the annotations by which it tells the other nodes, and the rest is assumed: links that are large
//! enough, port numbers, and a kernel with VRF devices. Routes that BGP brought are left out: they change by themselves.

use std::collections::BTreeMap;

use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, GatewayMtuSupport, Role};
use underlay_net::NetworkNames;
use underlay_plan::node::networks::Networks;
use underlay_world::local::{Assigned, Bridge};
use underlay_world::{Key, Local, Node, Pod, World};

/// Number of the uplink's port, where only the agent knows it.
const UPLINK: u32 = 1;
/// Ports of networks that are not there yet are numbered from here, by the numbers of their networks.
const FIRST_PATCH: u32 = 10_000;

/// What a node sees of itself. `told` is what its agent said.
pub fn local(node: &Node, world: &World, networks: &Networks, told: Option<&Local>) -> Local {
    let mut local = told.cloned().unwrap_or_else(|| from_annotations(node));
    local.assigned = assigned(node, world);
    if let Some(bridge) = &mut local.bridge {
        bridge.uplink = bridge.uplink.or(Some(UPLINK));
        let default = (NetworkNames::default_network(), 0);
        let others = networks.ready.values().map(|network| (network.names.clone(), network.id));
        for (names, id) in std::iter::once(default).chain(others) {
            let patch = names.patch_port(&bridge.name, &node.name);
            bridge.patches.entry(patch).or_insert(FIRST_PATCH + u32::from(id));
        }
    }
    local
}

fn from_annotations(node: &Node) -> Local {
    let gateway = node.gateway.as_ref();
    // An annotation that is not there says yes.
    let checks_size = node.annotations.get(GatewayMtuSupport::KEY);
    let checks_size =
        checks_size.and_then(|text| GatewayMtuSupport::parse(text).ok()).is_none_or(|said| said.0);
    Local {
        chassis: node.chassis.clone().unwrap_or_default(),
        encap: node.encap.clone(),
        bridge: gateway.map(|gateway| Bridge {
            name: gateway.bridge.clone(),
            mac: gateway.mac,
            addresses: gateway.addresses.clone(),
            mtu: u32::MAX,
            uplink: None,
            patches: BTreeMap::new(),
            checks_size,
        }),
        addresses: node.host_cidrs.0.iter().copied().collect(),
        has_vrf: true,
        next_hops: gateway.map(|gateway| gateway.next_hops.clone()).unwrap_or_default(),
        ..Local::default()
    }
}

/// What pods of a node were given, as their objects tell.
fn assigned(node: &Node, world: &World) -> BTreeMap<Key, Assigned> {
    let own = world.pods.values().filter(|pod| pod.node == node.name && pod.needs_port());
    own.filter_map(|pod| Some((pod.key.clone(), given(pod)?))).collect()
}

fn given(pod: &Pod) -> Option<Assigned> {
    let networks = &pod.networks.as_ref()?.0;
    let locked = networks.get(DEFAULT_NETWORK)?.role == Some(Role::InfrastructureLocked);
    let addresses = networks
        .iter()
        .map(|(name, network)| (name.clone(), network.addresses.iter().map(ipnet::IpNet::addr).collect()));
    Some(Assigned { uid: pod.uid.clone(), networks: addresses.collect(), locked })
}
