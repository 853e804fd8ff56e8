//! The CNI configuration of a network of ours.

use ipnet::IpNet;

use super::texts::{Texts, commas, list};
use super::{DEFAULT_JOIN_SUBNETS, PLUGIN};
use crate::Unknown;
use crate::network::{
    ClusterUserDefinedNetworkSpec, Evpn, EvpnSpec, FieldError, Network, Topology, Transport, Vrf, VrfSpec,
};

/// The CNI configuration of a network of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetConf {
    /// Version of the CNI specification.
    pub cni_version: String,
    /// Name of the network.
    pub name: String,
    /// The attachment definition that it is in: `<namespace>/<name>`. Empty for the default network.
    pub attachment: String,
    /// The network itself; nothing for the default network, which is configured elsewhere.
    pub network: Option<Network>,
    /// Subnets between the routers of a primary Layer2 network.
    pub transit_subnets: Vec<IpNet>,
    /// Keys that this version does not know.
    pub other: Unknown,
}

/// The text is not a CNI configuration, or not one that we understand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadNetConf {
    /// It is not JSON, or a key has a value of the wrong kind.
    #[error("not a CNI configuration: {0}")]
    Text(String),
    /// It is for another plugin.
    #[error("not a CNI configuration of {PLUGIN}")]
    Foreign,
    /// A key does not say what it should.
    #[error("CNI configuration: {0}")]
    Key(#[from] FieldError),
}

impl NetConf {
    /// The version of the CNI specification that we write.
    pub const CNI_VERSION: &str = "1.1.0";
    /// What the default network is called here.
    pub const DEFAULT_NAME: &str = "ovn-kubernetes";
    /// The default network as others write it, letter for letter: who compares texts finds no difference.
    pub const DEFAULT_NETWORK: &str =
        r#"{"cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "ovn-k8s-cni-overlay"}"#;

    /// The configuration of the default network.
    pub fn default_network() -> Self {
        Self {
            cni_version: Self::CNI_VERSION.to_owned(),
            name: Self::DEFAULT_NAME.to_owned(),
            attachment: String::new(),
            network: None,
            transit_subnets: vec![],
            other: Unknown::new(),
        }
    }

    /// The configuration of a network in one namespace. Its transit subnets, and a size of packets that the user left
    /// to us, are for the caller to add: they depend on the cluster.
    pub fn new(name: &str, namespace: &str, attachment: &str, network: Network) -> Self {
        Self {
            name: name.to_owned(),
            attachment: format!("{namespace}/{attachment}"),
            network: Some(network),
            ..Self::default_network()
        }
    }

    /// Reads a configuration of ours.
    pub fn parse(text: &str) -> Result<Self, BadNetConf> {
        #[derive(serde::Deserialize)]
        struct Kind {
            #[serde(default, rename = "type")]
            plugin: Option<String>,
        }
        let wrong = |error: serde_json::Error| BadNetConf::Text(error.to_string());
        // First this: the keys of other plugins may have the same names and other kinds of values.
        let kind: Kind = serde_json::from_str(text).map_err(wrong)?;
        if kind.plugin.as_deref() != Some(PLUGIN) {
            return Err(BadNetConf::Foreign);
        }
        let texts: Texts = serde_json::from_str(text).map_err(wrong)?;
        if texts.name.is_empty() {
            return Err(FieldError::new("name", "is missing").into());
        }
        let network = match texts.topology.as_str() {
            "" if [Self::DEFAULT_NAME, crate::annotations::DEFAULT_NETWORK]
                .contains(&texts.name.as_str()) =>
            {
                None
            }
            _ => Some(read(&texts)?),
        };
        let transit = |text: String| {
            text.parse().map_err(|_| FieldError::new("transitSubnet", format!("{text:?} is not a subnet")))
        };
        Ok(Self {
            cni_version: texts.cni_version,
            name: texts.name,
            attachment: texts.net_attach_def_name,
            network,
            transit_subnets: list(&texts.transit_subnet)
                .into_iter()
                .map(transit)
                .collect::<Result<_, _>>()?,
            other: texts.other,
        })
    }

    /// Writes the configuration.
    pub fn render(&self) -> String {
        if *self == Self::default_network() {
            return Self::DEFAULT_NETWORK.to_owned();
        }
        let mut texts = Texts {
            cni_version: self.cni_version.clone(),
            name: self.name.clone(),
            plugin: PLUGIN.to_owned(),
            net_attach_def_name: self.attachment.clone(),
            transit_subnet: commas(&self.transit_subnets),
            other: self.other.clone(),
            ..Texts::default()
        };
        if let Some(network) = &self.network {
            write(network, &mut texts);
        }
        texts.render()
    }
}

fn read(texts: &Texts) -> Result<Network, FieldError> {
    let uplinks = Some(texts.uplink.clone()).filter(|uplink| !uplink.is_empty()).into_iter().collect();
    let spec = ClusterUserDefinedNetworkSpec { network: texts.definition()?, uplinks, ..Default::default() };
    let mut network = spec.network().map_err(|error| named_as_key(error, &texts.topology))?;
    if let Transport::NoOverlay(no_overlay) = &mut network.transport {
        no_overlay.routing = None;
    }
    Ok(network)
}

/// The error with the field's name as it is here: there is no block around the keys of a topology.
fn named_as_key(error: FieldError, topology: &str) -> FieldError {
    let field = ["spec.network.", "spec."].iter().find_map(|block| error.field.strip_prefix(block));
    let field = field.unwrap_or(&error.field);
    let field = field.strip_prefix(&format!("{topology}.")).unwrap_or(field);
    FieldError { field: field.to_owned(), ..error }
}

fn write(network: &Network, texts: &mut Texts) {
    network.topology.as_str().clone_into(&mut texts.topology);
    network.role.as_str().clone_into(&mut texts.role);
    texts.mtu = network.mtu.unwrap_or_default();
    if network.is_primary() {
        texts.join_subnet = match network.join_subnets.as_slice() {
            [] => commas(DEFAULT_JOIN_SUBNETS),
            chosen => commas(chosen),
        };
    }
    texts.uplink = network.uplink.clone().unwrap_or_default();
    write_topology(&network.topology, texts);
    match &network.transport {
        Transport::Geneve => {}
        Transport::NoOverlay(no_overlay) => {
            "no-overlay".clone_into(&mut texts.transport);
            let snat = if no_overlay.outbound_snat { "enabled" } else { "disabled" };
            snat.clone_into(&mut texts.outbound_snat);
        }
        Transport::Evpn(evpn) => {
            "evpn".clone_into(&mut texts.transport);
            texts.evpn = Some(write_evpn(evpn));
        }
    }
}

fn write_topology(topology: &Topology, texts: &mut Texts) {
    match topology {
        Topology::Layer3(layer3) => {
            texts.subnets = commas(&layer3.subnets);
            texts.exclude_subnets = commas(&layer3.exclude_subnets);
        }
        Topology::Layer2(layer2) => {
            texts.subnets = commas(&layer2.subnets);
            texts.exclude_subnets = commas(&layer2.exclude_subnets);
            texts.reserved_subnets = commas(&layer2.reserved_subnets);
            texts.infrastructure_subnets = commas(&layer2.infrastructure_subnets);
            texts.default_gateway_ips = commas(&layer2.gateways);
            texts.set_addressing(layer2.addressing);
        }
        Topology::Localnet(localnet) => {
            texts.subnets = commas(&localnet.subnets);
            texts.exclude_subnets = commas(&localnet.exclude_subnets);
            texts.physical_network_name.clone_from(&localnet.physical_network);
            texts.vlan_id = localnet.vlan.unwrap_or_default();
            texts.set_addressing(localnet.addressing);
        }
    }
}

fn write_evpn(evpn: &Evpn) -> EvpnSpec {
    let vrf =
        |vrf: &Vrf| VrfSpec { vni: vrf.vni, route_target: vrf.route_target.clone().unwrap_or_default() };
    EvpnSpec {
        vtep: evpn.vtep.clone(),
        mac_vrf: evpn.mac_vrf.as_ref().map(vrf),
        ip_vrf: evpn.ip_vrf.as_ref().map(vrf),
    }
}

#[cfg(test)]
mod tests;
