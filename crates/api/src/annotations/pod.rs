//! A pod's interfaces: what each of its networks has given it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use underlay_net::{Family, Mac};

use super::Annotation;
use super::text::{
    address, address_in_net, each, from_json, list_or_single, mac, quoted, single, subnet, texts, to_json,
};
use crate::Unknown;
use crate::words::words;

/// A pod's networks, by `default` or `<namespace>/<network attachment definition>`; a second attachment to the same
/// network has `/1` behind that. Written by whoever allocates the addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodNetworks(pub BTreeMap<String, PodNetwork>);

/// What one network has given a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodNetwork {
    /// Addresses, with the lengths of their subnets. None in a network without address management.
    pub addresses: Vec<IpNet>,
    /// The MAC address.
    pub mac: Mac,
    /// Gateways of the pod's default routes, at most one for each family.
    pub gateways: Vec<IpAddr>,
    /// Further routes. The default route is never among them.
    pub routes: Vec<PodRoute>,
    /// The gateway that router advertisements name, in layer-2 networks.
    pub link_local_gateway: Option<Ipv6Addr>,
    /// The key of the pod's port between nodes, in layer-2 networks.
    pub tunnel_id: Option<NonZeroU32>,
    /// What the network is to the pod.
    pub role: Option<Role>,
    /// Fields of later versions.
    pub other: Unknown,
}

/// A route in a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRoute {
    /// Where to.
    pub destination: IpNet,
    /// Through which gateway, if any.
    pub next_hop: Option<IpAddr>,
}

words! {
    /// What a network is to a pod.
    pub enum Role {
        /// The one that carries the pod's traffic.
        Primary = "primary",
        /// A further one.
        Secondary = "secondary",
        /// The default network of a pod whose primary network is another: for probes only.
        InfrastructureLocked = "infrastructure-locked",
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Texts {
    // Go writes `null` for the empty list of a network without address management.
    ip_addresses: Option<Vec<String>>,
    mac_address: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gateway_ips: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<RouteTexts>,
    #[serde(skip_serializing_if = "String::is_empty")]
    ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    gateway_ip: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    ipv6_lla_gateway_ip: String,
    #[serde(skip_serializing_if = "is_zero")]
    tunnel_id: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    role: String,
    #[serde(flatten)]
    other: Unknown,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RouteTexts {
    dest: String,
    next_hop: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Annotation for PodNetworks {
    const KEY: &'static str = "k8s.ovn.org/pod-networks";

    fn decode(text: &str) -> Result<Self, String> {
        let networks: BTreeMap<String, Texts> = from_json(text)?;
        let read = |(network, texts)| match read(texts) {
            Ok(value) => Ok((network, value)),
            Err(problem) => Err(format!("network {network}: {problem}")),
        };
        networks.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    fn render(&self) -> String {
        to_json(&self.0.iter().map(|(network, value)| (network, write(value))).collect::<BTreeMap<_, _>>())
    }

    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }
}

fn read(all: Texts) -> Result<PodNetwork, String> {
    let addresses = list_or_single(
        all.ip_addresses.unwrap_or_default(),
        &all.ip_address,
        ("ip_addresses", "ip_address"),
    )?;
    let gateways = list_or_single(all.gateway_ips, &all.gateway_ip, ("gateway_ips", "gateway_ip"))?;
    Ok(PodNetwork {
        addresses: each(&addresses, address_in_net)?,
        mac: mac(&all.mac_address)?,
        gateways: each(&gateways, address)?,
        routes: all.routes.iter().map(route).collect::<Result<_, _>>()?,
        link_local_gateway: link_local(&all.ipv6_lla_gateway_ip)?,
        tunnel_id: NonZeroU32::new(all.tunnel_id),
        role: Some(all.role.as_str()).filter(|role| !role.is_empty()).map(Role::from),
        other: all.other,
    })
}

fn route(texts: &RouteTexts) -> Result<PodRoute, String> {
    let destination = subnet(&texts.dest)?;
    if destination.addr().is_unspecified() {
        return Err(format!("route to {destination}: a default route belongs into gateway_ips"));
    }
    let next_hop = Some(texts.next_hop.as_str()).filter(|text| !text.is_empty()).map(address).transpose()?;
    if next_hop.is_some_and(|next_hop| Family::of(next_hop) != Family::of_net(&destination)) {
        return Err(format!(
            "route to {destination}: next hop {} is of the other family",
            quoted(&texts.next_hop)
        ));
    }
    Ok(PodRoute { destination, next_hop })
}

fn link_local(text: &str) -> Result<Option<Ipv6Addr>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<Ipv6Addr>() {
        Ok(gateway) if gateway.is_unicast_link_local() => Ok(Some(gateway)),
        _ => Err(format!("ipv6_lla_gateway_ip {} is not a link-local address", quoted(text))),
    }
}

fn write(network: &PodNetwork) -> Texts {
    let (addresses, gateways) = (texts(&network.addresses), texts(&network.gateways));
    let routes = network.routes.iter().map(|route| RouteTexts {
        dest: route.destination.to_string(),
        next_hop: route.next_hop.map(|next_hop| next_hop.to_string()).unwrap_or_default(),
    });
    Texts {
        ip_address: single(&addresses),
        // Only beside a single address: two families have two gateways, even where one of them is not told.
        gateway_ip: if addresses.len() == 1 { single(&gateways) } else { String::new() },
        ip_addresses: Some(addresses).filter(|addresses| !addresses.is_empty()),
        mac_address: network.mac.to_string(),
        gateway_ips: gateways,
        routes: routes.collect(),
        ipv6_lla_gateway_ip: network
            .link_local_gateway
            .map(|gateway| gateway.to_string())
            .unwrap_or_default(),
        tunnel_id: network.tunnel_id.map_or(0, NonZeroU32::get),
        role: network.role.as_ref().map(ToString::to_string).unwrap_or_default(),
        other: network.other.clone(),
    }
}
