//! A definition read into one spelling.
//!
//! In: a definition as it was written, perhaps stored by an API server that did not ask our rules. Out: the network,
//! or the first field that is wrong. What takes more than the definition to see (overlaps with the cluster's own
//! ranges, names that are taken) is for those who know the rest.

mod own;
mod subnets;
#[cfg(test)]
mod tests;
mod topology;
mod transport;

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_net::Family;

use super::{
    EvpnSpec, Layer2Spec, Layer3Spec, LocalnetSpec, NoOverlaySpec, RoleName, TopologyName, TransportName,
    says,
};

pub use own::OwnAddresses;
pub use subnets::Subnet;

/// A field of a definition that does not say what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct FieldError {
    /// The field, from the top of the object: `spec.network.layer3.subnets[0].cidr`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

/// Fails with this reason unless the condition holds.
pub(super) fn ensure(holds: bool, field: &str, reason: &str) -> Result<(), FieldError> {
    if holds { Ok(()) } else { Err(FieldError::new(field, reason)) }
}

/// A network as its definition asks for it, in one spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// What it is to its pods.
    pub role: NetworkRole,
    /// How its parts on the nodes are connected, and the addresses in it.
    pub topology: Topology,
    /// How packets get to pods on other nodes.
    pub transport: Transport,
    /// The size of packets, if the user chose it.
    pub mtu: Option<u32>,
    /// Subnets for its routers, if the user chose them. Never in a secondary network.
    pub join_subnets: Vec<IpNet>,
    /// The Uplink by which its traffic leaves nodes, if not the nodes' own.
    pub uplink: Option<String>,
}

/// What a network is to its pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkRole {
    /// The one that carries their traffic.
    Primary,
    /// A further one, for pods that ask for it.
    Secondary,
}

impl NetworkRole {
    /// As attachment definitions and pod annotations spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        }
    }
}

/// How the parts of a network on the nodes are connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// Each node has a subnet of its own, with routers between them.
    Layer3(Layer3),
    /// One switch for all nodes.
    Layer2(Layer2),
    /// A network outside the cluster that nodes are connected to.
    Localnet(Localnet),
}

impl Topology {
    /// As attachment definitions spell it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Layer3(_) => "layer3",
            Self::Layer2(_) => "layer2",
            Self::Localnet(_) => "localnet",
        }
    }
}

/// A network in which each node has a subnet of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer3 {
    /// What nodes get their subnets from, in the order in which they are used up. Never empty; no two overlap, and
    /// all of one family give nodes the same length.
    pub subnets: Vec<Subnet>,
    /// Parts that pods never get addresses from.
    pub exclude_subnets: Vec<IpNet>,
}

/// A network with one switch for all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2 {
    /// At most one of each family, as written: bits behind the length may be set. Empty without addressing only.
    pub subnets: Vec<IpNet>,
    /// Who gives pods their addresses.
    pub addressing: Addressing,
    /// The pods' gateways, if the user chose them: one of each family then.
    pub gateways: Vec<IpAddr>,
    /// Parts that pods get addresses from only by asking for one.
    pub reserved_subnets: Vec<IpNet>,
    /// Parts for the network's own ports.
    pub infrastructure_subnets: Vec<IpNet>,
    /// Parts that pods never get addresses from.
    pub exclude_subnets: Vec<IpNet>,
    /// The addresses of the network's own ports: in each subnet of a primary network, in their order. A secondary one
    /// has none.
    pub own: Vec<OwnAddresses>,
}

/// A network outside the cluster that nodes are connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Localnet {
    /// What the nodes' bridge mappings call it.
    pub physical_network: String,
    /// Its VLAN, if packets are to be tagged.
    pub vlan: Option<u16>,
    /// At most one of each family, as written. Empty without addressing only.
    pub subnets: Vec<IpNet>,
    /// Who gives pods their addresses.
    pub addressing: Addressing,
    /// Parts that pods never get addresses from.
    pub exclude_subnets: Vec<IpNet>,
}

/// Who gives pods their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// The cluster, from the network's subnets.
    Allocated {
        /// Whether they can be kept in an IPAMClaim.
        persistent: bool,
    },
    /// They themselves, inside the network's subnets. The cluster knows no addresses of them.
    GuestAssigned,
    /// Nobody: the network has no subnets.
    None,
}

/// How packets get to pods on other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// In tunnels of the cluster's kind.
    Geneve,
    /// As they are, routed by the network between the nodes.
    NoOverlay(NoOverlay),
    /// In VXLAN, with BGP telling who is where.
    Evpn(Evpn),
}

/// How packets are routed without overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoOverlay {
    /// Whether packets to the world leave with the node's address.
    pub outbound_snat: bool,
    /// Who sees to it that nodes learn each other's routes. Attachment definitions do not say it: nodes need not know.
    pub routing: Option<Routing>,
}

/// Who sees to it that nodes learn each other's routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routing {
    /// The cluster.
    Managed,
    /// The user.
    Unmanaged,
}

/// The VXLAN networks that carry a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evpn {
    /// The VTEP that says which addresses the nodes' tunnels have.
    pub vtep: String,
    /// The one for frames: of a Layer2 network, always.
    pub mac_vrf: Option<Vrf>,
    /// The one for packets: of a Layer3 network, always.
    pub ip_vrf: Option<Vrf>,
}

/// A VXLAN network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vrf {
    /// Its number.
    pub vni: u32,
    /// The route target of its routes, if the user chose it.
    pub route_target: Option<String>,
}

impl Network {
    /// Whether it carries its pods' traffic.
    pub fn is_primary(&self) -> bool {
        self.role == NetworkRole::Primary
    }

    /// Its subnets, whatever its topology.
    pub fn subnets(&self) -> Vec<IpNet> {
        match &self.topology {
            Topology::Layer3(layer3) => layer3.subnets.iter().map(|subnet| subnet.cidr).collect(),
            Topology::Layer2(layer2) => layer2.subnets.clone(),
            Topology::Localnet(localnet) => localnet.subnets.clone(),
        }
    }

    /// Whether it has addresses of this family.
    pub fn has(&self, family: Family) -> bool {
        self.subnets().iter().any(|subnet| Family::of_net(subnet) == family)
    }
}

impl fmt::Display for NetworkRole {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A definition as it was written, whatever resource it is from.
pub(super) struct Written<'a> {
    /// Where its fields are.
    pub at: &'a str,
    pub topology: Option<&'a TopologyName>,
    pub layer3: Option<&'a Layer3Spec>,
    pub layer2: Option<&'a Layer2Spec>,
    pub localnet: Option<&'a LocalnetSpec>,
    pub join_subnets: &'a [String],
    pub transport: Option<&'a TransportName>,
    pub no_overlay: Option<&'a NoOverlaySpec>,
    pub no_overlay_options: Option<&'a NoOverlaySpec>,
    pub evpn: Option<&'a EvpnSpec>,
    pub uplinks: &'a [String],
}

/// Reads a definition.
pub(super) fn read(written: &Written<'_>) -> Result<Network, FieldError> {
    let at = written.at;
    let name = written.topology.ok_or_else(|| missing(at, "topology"))?;
    ensure(written.layer3.is_some() == (*name == TopologyName::Layer3), at, says::LAYER3_BLOCK)?;
    ensure(written.layer2.is_some() == (*name == TopologyName::Layer2), at, says::LAYER2_BLOCK)?;
    ensure(written.localnet.is_some() == (*name == TopologyName::Localnet), at, says::LOCALNET_BLOCK)?;
    let mut network = if let Some(layer3) = written.layer3 {
        topology::layer3(layer3, &format!("{at}.layer3"), written)
    } else if let Some(layer2) = written.layer2 {
        topology::layer2(layer2, &format!("{at}.layer2"), written)
    } else if let Some(localnet) = written.localnet {
        topology::localnet(localnet, &format!("{at}.localnet"))
    } else {
        Err(unknown(at, "topology", name.as_str()))
    }?;
    network.transport = transport::read(written, &network)?;
    network.uplink = uplink(written.uplinks, &network)?;
    Ok(network)
}

fn uplink(uplinks: &[String], network: &Network) -> Result<Option<String>, FieldError> {
    const FIELD: &str = "spec.uplinks";
    let Some(uplink) = uplinks.first() else { return Ok(None) };
    ensure(uplinks.len() == 1, FIELD, "has more than one")?;
    ensure(network.is_primary(), FIELD, says::UPLINKS_PRIMARY)?;
    ensure(!matches!(network.transport, Transport::Evpn(_)), FIELD, says::UPLINKS_EVPN)?;
    Ok(Some(uplink.clone()))
}

pub(super) fn role(role: Option<&RoleName>, at: &str) -> Result<NetworkRole, FieldError> {
    match role {
        Some(RoleName::Primary) => Ok(NetworkRole::Primary),
        Some(RoleName::Secondary) => Ok(NetworkRole::Secondary),
        Some(other) => Err(unknown(at, "role", other.as_str())),
        None => Err(missing(at, "role")),
    }
}

pub(super) fn missing(at: &str, field: &str) -> FieldError {
    FieldError::new(format!("{at}.{field}"), "is missing")
}

/// A word that a later version may know.
pub(super) fn unknown(at: &str, field: &str, word: &str) -> FieldError {
    FieldError::new(format!("{at}.{field}"), format!("{word:?} is not known to this version"))
}
