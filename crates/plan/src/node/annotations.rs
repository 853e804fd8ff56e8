//! What the node tells the others about itself.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_api::annotations::{
    Annotation, ChassisId, EncapIps, Gateway, GatewayMode, GatewayMtuSupport, HostCidrs, L3Gateway,
    MasqueradeSubnets, Pair, PrimaryAddresses,
};
use underlay_net::NetworkNames;
use underlay_world::local::Bridge;
use underlay_world::{Local, Node, Settings};

/// Annotations of the node's object that say something else than the node knows of itself: what they should say, or
/// nothing where there should be none.
pub fn plan(node: &Node, settings: &Settings, local: &Local) -> BTreeMap<String, Option<String>> {
    let mut said = say_all(&node.name, settings, local);
    said.retain(|key, value| node.annotations.get(key) != value.as_ref());
    said
}

fn say_all(node: &str, settings: &Settings, local: &Local) -> BTreeMap<String, Option<String>> {
    let mut said = BTreeMap::new();
    if !local.chassis.is_empty() {
        say(&mut said, &ChassisId(local.chassis.clone()));
    }
    if !local.encap.is_empty() {
        say(&mut said, &EncapIps(local.encap.clone()));
    }
    let Some(bridge) = &local.bridge else { return said };
    if bridge.addresses.is_empty() {
        return said;
    }
    say(&mut said, &HostCidrs(local.addresses.clone()));
    say(&mut said, &PrimaryAddresses(pair(&bridge.addresses)));
    let ranges = Pair { ipv4: Some(settings.masquerade.v4), ipv6: Some(settings.masquerade.v6) };
    say(&mut said, &MasqueradeSubnets(ranges));
    say(&mut said, &L3Gateway::Enabled(gateway(node, bridge, &local.next_hops)));
    say(&mut said, &GatewayMtuSupport(bridge.checks_size));
    said
}

fn say<T: Annotation>(said: &mut BTreeMap<String, Option<String>>, value: &T) {
    said.insert(T::KEY.to_owned(), (!value.is_silent()).then(|| value.render()));
}

fn gateway(node: &str, bridge: &Bridge, next_hops: &[IpAddr]) -> Gateway {
    Gateway {
        mode: GatewayMode::Shared,
        bridge: bridge.name.clone(),
        interface: NetworkNames::default_network().localnet_port(&bridge.name, node),
        mac: bridge.mac,
        addresses: bridge.addresses.clone(),
        next_hops: next_hops.to_vec(),
        node_ports: false,
        vlan: None,
        egress: None,
    }
}

fn pair(addresses: &[IpNet]) -> Pair {
    let mut pair = Pair::default();
    for address in addresses {
        match address {
            IpNet::V4(net) => pair.ipv4 = pair.ipv4.or(Some(*net)),
            IpNet::V6(net) => pair.ipv6 = pair.ipv6.or(Some(*net)),
        }
    }
    pair
}
