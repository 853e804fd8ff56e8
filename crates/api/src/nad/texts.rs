//! A CNI configuration as it is written, and as a definition of a network: one set of checks serves both.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::network::{
    AccessVlan, Addressing, EvpnSpec, FieldError, IpamLifecycle, IpamMode, IpamSpec, Layer2Spec, Layer3Spec,
    LocalnetSpec, NetworkSpec, NoOverlaySpec, OutboundSnat, RoleName, RoutingName, Subnet, SubnetSpec,
    TopologyName, TransportName, VlanMode, VlanSpec,
};
use crate::{Unknown, is_default};

/// What only a network has in which guests choose their addresses. Nobody else writes it.
const GUEST_ASSIGNED: &str = "guest-assigned";

/// The keys of a configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Texts {
    pub cni_version: String,
    pub name: String,
    #[serde(rename = "type")]
    pub plugin: String,
    #[serde(skip_serializing_if = "is_default")]
    pub net_attach_def_name: String,
    #[serde(skip_serializing_if = "is_default")]
    pub topology: String,
    #[serde(skip_serializing_if = "is_default")]
    pub role: String,
    #[serde(skip_serializing_if = "is_default")]
    pub mtu: u32,
    #[serde(skip_serializing_if = "is_default")]
    pub subnets: String,
    #[serde(skip_serializing_if = "is_default")]
    pub exclude_subnets: String,
    #[serde(skip_serializing_if = "is_default")]
    pub reserved_subnets: String,
    #[serde(skip_serializing_if = "is_default")]
    pub infrastructure_subnets: String,
    #[serde(rename = "defaultGatewayIPs", skip_serializing_if = "is_default")]
    pub default_gateway_ips: String,
    #[serde(skip_serializing_if = "is_default")]
    pub join_subnet: String,
    #[serde(skip_serializing_if = "is_default")]
    pub transit_subnet: String,
    #[serde(rename = "allowPersistentIPs", skip_serializing_if = "is_default")]
    pub allow_persistent_ips: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub ipam_mode: String,
    #[serde(skip_serializing_if = "is_default")]
    pub physical_network_name: String,
    #[serde(rename = "vlanID", skip_serializing_if = "is_default")]
    pub vlan_id: u16,
    #[serde(skip_serializing_if = "is_default")]
    pub transport: String,
    #[serde(rename = "outboundSNAT", skip_serializing_if = "is_default")]
    pub outbound_snat: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evpn: Option<EvpnSpec>,
    #[serde(skip_serializing_if = "is_default")]
    pub uplink: String,
    #[serde(flatten)]
    pub other: Unknown,
}

impl Texts {
    /// The definition that says the same.
    pub fn definition(&self) -> Result<NetworkSpec, FieldError> {
        let mut network = NetworkSpec::default();
        match self.topology.as_str() {
            "layer3" => {
                network.topology = Some(TopologyName::Layer3);
                network.layer3 = Some(self.layer3()?);
            }
            "layer2" => {
                network.topology = Some(TopologyName::Layer2);
                network.layer2 = Some(self.layer2()?);
            }
            "localnet" => {
                network.topology = Some(TopologyName::Localnet);
                network.localnet = Some(self.localnet()?);
            }
            other => return Err(unknown("topology", other, "layer3, layer2 and localnet")),
        }
        match self.transport.as_str() {
            "" | "geneve" => {}
            "no-overlay" | "noOverlay" | "nooverlay" => {
                network.transport = Some(TransportName::NoOverlay);
                network.no_overlay = Some(self.no_overlay()?);
            }
            "evpn" => {
                network.transport = Some(TransportName::Evpn);
                network.evpn.clone_from(&self.evpn);
            }
            other => return Err(unknown("transport", other, "geneve, no-overlay and evpn")),
        }
        Ok(network)
    }

    fn layer3(&self) -> Result<Layer3Spec, FieldError> {
        let subnet = |text: String| {
            let subnet: Subnet =
                text.parse().map_err(|problem: String| FieldError::new("subnets", problem))?;
            Ok(SubnetSpec { cidr: subnet.cidr.to_string(), host_subnet: subnet.host_subnet })
        };
        Ok(Layer3Spec {
            role: Some(self.role()?),
            subnets: list(&self.subnets).into_iter().map(subnet).collect::<Result<_, _>>()?,
            exclude_subnets: list(&self.exclude_subnets),
            mtu: self.mtu(),
            join_subnets: list(&self.join_subnet),
        })
    }

    fn layer2(&self) -> Result<Layer2Spec, FieldError> {
        Ok(Layer2Spec {
            role: Some(self.role()?),
            subnets: list(&self.subnets),
            ipam: Some(self.ipam()?),
            default_gateway_ips: list(&self.default_gateway_ips),
            reserved_subnets: list(&self.reserved_subnets),
            infrastructure_subnets: list(&self.infrastructure_subnets),
            exclude_subnets: list(&self.exclude_subnets),
            mtu: self.mtu(),
            join_subnets: list(&self.join_subnet),
        })
    }

    fn localnet(&self) -> Result<LocalnetSpec, FieldError> {
        let access = Some(self.vlan_id).filter(|id| *id != 0).map(|id| AccessVlan { id });
        // Without a name of its own, the network outside has that of this one.
        let name = Some(&self.physical_network_name).filter(|name| !name.is_empty()).unwrap_or(&self.name);
        Ok(LocalnetSpec {
            role: Some(self.role()?),
            physical_network_name: name.clone(),
            subnets: list(&self.subnets),
            exclude_subnets: list(&self.exclude_subnets),
            ipam: Some(self.ipam()?),
            mtu: self.mtu(),
            vlan: access.map(|access| VlanSpec { mode: Some(VlanMode::Access), access: Some(access) }),
        })
    }

    fn no_overlay(&self) -> Result<NoOverlaySpec, FieldError> {
        let outbound_snat = match self.outbound_snat.as_str() {
            "enabled" | "enable" => OutboundSnat::Enabled,
            "" | "disabled" | "disable" => OutboundSnat::Disabled,
            other => return Err(unknown("outboundSNAT", other, "enabled and disabled")),
        };
        // It is not said here; whoever reads it leaves it out again.
        Ok(NoOverlaySpec { outbound_snat: Some(outbound_snat), routing: Some(RoutingName::Unmanaged) })
    }

    fn role(&self) -> Result<RoleName, FieldError> {
        match self.role.as_str() {
            "primary" => Ok(RoleName::Primary),
            "" | "secondary" => Ok(RoleName::Secondary),
            other => Err(unknown("role", other, "primary and secondary")),
        }
    }

    fn ipam(&self) -> Result<IpamSpec, FieldError> {
        let mode = match self.ipam_mode.as_str() {
            GUEST_ASSIGNED => IpamMode::GuestAssigned,
            "" if self.subnets.is_empty() => IpamMode::Disabled,
            "" => IpamMode::Enabled,
            other => return Err(unknown("ipamMode", other, GUEST_ASSIGNED)),
        };
        // Others say it of networks without addresses too, where it means nothing.
        let persistent = self.allow_persistent_ips && mode == IpamMode::Enabled;
        let persistent = persistent.then_some(IpamLifecycle::Persistent);
        Ok(IpamSpec { mode: Some(mode), lifecycle: persistent })
    }

    fn mtu(&self) -> Option<u32> {
        Some(self.mtu).filter(|mtu| *mtu != 0)
    }

    /// Says who gives pods their addresses.
    pub fn set_addressing(&mut self, addressing: Addressing) {
        match addressing {
            Addressing::Allocated { persistent } => self.allow_persistent_ips = persistent,
            Addressing::GuestAssigned => GUEST_ASSIGNED.clone_into(&mut self.ipam_mode),
            Addressing::None => {}
        }
    }

    /// Compact, with its keys in order: that is how others write it.
    pub fn render(&self) -> String {
        let keys: std::collections::BTreeMap<String, Value> = serde_json::to_value(self)
            .and_then(serde_json::from_value)
            .expect("texts, numbers and maps with text keys are always JSON");
        serde_json::to_string(&keys).expect("what came from JSON is JSON")
    }
}

/// The elements of a text with commas between them.
pub fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|element| !element.is_empty()).map(str::to_owned).collect()
}

/// The text with commas between the elements.
pub fn commas<T: Display>(elements: impl IntoIterator<Item = T>) -> String {
    elements.into_iter().map(|element| element.to_string()).collect::<Vec<_>>().join(",")
}

fn unknown(field: &str, word: &str, known: &str) -> FieldError {
    FieldError::new(field, format!("{word:?} is none of {known}"))
}
