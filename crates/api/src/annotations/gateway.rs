//! A node's way to the world, as the node describes it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use underlay_net::Mac;

use super::text::{
    address, address_in_net, each, from_json, list_or_single, mac, number, quoted, single, texts, to_json,
};
use super::{Annotation, DEFAULT_NETWORK};

/// Highest VLAN number that OVN takes.
const VLAN_MAX: u16 = 4095;

/// The gateway of a node's default network. Written by the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum L3Gateway {
    /// The node has none.
    Disabled,
    /// This one.
    Enabled(Gateway),
}

/// A node's gateway router and the bridge it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Which way traffic to and from pods takes.
    pub mode: GatewayMode,
    /// The external bridge. Empty if it is not told.
    pub bridge: String,
    /// The port of the external switch onto the bridge. Empty if it is not told.
    pub interface: String,
    /// The MAC address of the bridge, which the router shares.
    pub mac: Mac,
    /// The addresses of the bridge, which the router shares.
    pub addresses: Vec<IpNet>,
    /// The node's own gateways.
    pub next_hops: Vec<IpAddr>,
    /// Whether node ports are served.
    pub node_ports: bool,
    /// The VLAN on the bridge. 0 is none.
    pub vlan: Option<u16>,
    /// A second bridge for traffic that leaves by another way.
    pub egress: Option<EgressGateway>,
}

/// Which way traffic between pods and the world takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayMode {
    /// Through OVN, past the node's routing tables.
    Shared,
    /// Through the node's routing tables.
    Local,
}

/// The second bridge of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressGateway {
    /// The port of the external switch onto the bridge.
    pub interface: String,
    /// The MAC address of the bridge.
    pub mac: Mac,
    /// The addresses of the bridge.
    pub addresses: Vec<IpNet>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Texts {
    mode: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    bridge_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    interface_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    mac_address: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ip_addresses: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    exgw_interface_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    exgw_mac_address: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    exgw_ip_addresses: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    exgw_ip_address: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_hops: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    next_hop: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    node_port_enable: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    vlan_id: String,
}

impl Annotation for L3Gateway {
    const KEY: &'static str = "k8s.ovn.org/l3-gateway-config";

    fn decode(text: &str) -> Result<Self, String> {
        let mut networks: BTreeMap<String, Texts> = from_json(text)?;
        let texts =
            networks.remove(DEFAULT_NETWORK).ok_or_else(|| format!("has no {DEFAULT_NETWORK:?} network"))?;
        let mode = match texts.mode.as_str() {
            "" => return Ok(Self::Disabled),
            "shared" => GatewayMode::Shared,
            "local" => GatewayMode::Local,
            other => return Err(format!("mode {} is none of shared, local and empty", quoted(other))),
        };
        read(mode, texts).map(Self::Enabled)
    }

    fn render(&self) -> String {
        let texts = match self {
            Self::Disabled => Texts::default(),
            Self::Enabled(gateway) => write(gateway),
        };
        to_json(&BTreeMap::from([(DEFAULT_NETWORK, texts)]))
    }
}

fn read(mode: GatewayMode, all: Texts) -> Result<Gateway, String> {
    let addresses = list_or_single(all.ip_addresses, &all.ip_address, ("ip-addresses", "ip-address"))?;
    if addresses.is_empty() {
        return Err("has no ip-addresses".to_owned());
    }
    let next_hops = list_or_single(all.next_hops, &all.next_hop, ("next-hops", "next-hop"))?;
    let egress = if all.exgw_interface_id.is_empty() {
        None
    } else {
        let names = ("exgw-ip-addresses", "exgw-ip-address");
        Some(EgressGateway {
            interface: all.exgw_interface_id,
            mac: mac(&all.exgw_mac_address)?,
            addresses: each(
                &list_or_single(all.exgw_ip_addresses, &all.exgw_ip_address, names)?,
                address_in_net,
            )?,
        })
    };
    let vlan = Some(all.vlan_id).filter(|text| !text.is_empty());
    Ok(Gateway {
        mode,
        bridge: all.bridge_id,
        interface: all.interface_id,
        mac: mac(&all.mac_address)?,
        addresses: each(&addresses, address_in_net)?,
        next_hops: each(&next_hops, address)?,
        node_ports: all.node_port_enable == "true",
        vlan: vlan
            .map(|text| number(&text, 0..=VLAN_MAX))
            .transpose()
            .map_err(|problem| format!("vlan-id {problem}"))?,
        egress,
    })
}

fn write(gateway: &Gateway) -> Texts {
    let (addresses, next_hops) = (texts(&gateway.addresses), texts(&gateway.next_hops));
    let mut all = Texts {
        mode: match gateway.mode {
            GatewayMode::Shared => "shared".to_owned(),
            GatewayMode::Local => "local".to_owned(),
        },
        bridge_id: gateway.bridge.clone(),
        interface_id: gateway.interface.clone(),
        mac_address: gateway.mac.to_string(),
        ip_address: single(&addresses),
        ip_addresses: addresses,
        next_hop: single(&next_hops),
        next_hops,
        node_port_enable: gateway.node_ports.to_string(),
        vlan_id: gateway.vlan.map(|vlan| vlan.to_string()).unwrap_or_default(),
        ..Texts::default()
    };
    if let Some(egress) = &gateway.egress {
        all.exgw_interface_id.clone_from(&egress.interface);
        all.exgw_mac_address = egress.mac.to_string();
        all.exgw_ip_addresses = texts(&egress.addresses);
        all.exgw_ip_address = single(&all.exgw_ip_addresses);
    }
    all
}
