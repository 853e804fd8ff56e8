//! Where a node stands in a network: its addresses in every range, worked out once for all that follows.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::ovn::Row;
use underlay_desired::{ObjectRef, Why};
use underlay_net::cidr::{nth, with_length_of};
use underlay_net::names::{self, management_interface};
use underlay_net::{Family, Mac, NetworkNames};
use underlay_world::local::Bridge;
use underlay_world::{Local, Node, Settings, World};

use super::advertised::Told;
use super::network::{Network, Stand, Transport};

/// Bytes that a tunnel adds to a packet: outer Ethernet and IP headers, UDP, Geneve and OVN's option.
const GENEVE_V4: u32 = 58;
const GENEVE_V6: u32 = 78;

/// The default VRF has no name.
const DEFAULT_VRF: &str = "";

/// Offsets in the masquerade range.
pub mod masquerade {
    /// OVN, as the node sees it.
    pub const OVN: u128 = 1;
    /// The node, as OVN sees it.
    pub const HOST: u128 = 2;
    /// Services whose endpoints are on the node that the packet came to.
    pub const LOCAL_SERVICE: u128 = 3;
    /// A next hop that nobody has: what is sent to it is caught on the bridge.
    pub const NEXT_HOP: u128 = 4;
    /// A pod that reaches itself through a service.
    pub const HAIRPIN: u128 = 5;
}

/// A node's place in a network.
#[derive(Debug, Clone)]
pub struct Site<'a> {
    /// The network.
    pub network: &'a Network,
    /// Names of everything in it.
    pub names: &'a NetworkNames,
    /// The node.
    pub node: &'a Node,
    /// What it sees of itself.
    pub local: &'a Local,
    /// The external bridge.
    pub bridge: &'a Bridge,
    /// The cluster's settings.
    pub settings: &'a Settings,
    /// Everything else.
    pub world: &'a World,
    /// Its parts, one for each family of pods.
    pub families: Vec<Side>,
    /// The number of the node.
    pub id: u16,
    /// VRFs in which the node's part of the network is told to BGP peers. The default one has no name.
    pub vrfs: BTreeSet<String>,
    /// The reason of what is there because the node is.
    pub why: Why,
}

/// A node's place in one family.
#[derive(Debug, Clone, Copy)]
pub struct Side {
    /// Which.
    pub family: Family,
    /// The node's subnet of pods.
    pub subnet: IpNet,
    /// The pods' gateway: the subnet's first address.
    pub gateway: IpAddr,
    /// The node itself among its pods: the second address.
    pub management: IpAddr,
    /// The cluster router between the routers.
    pub join_cluster: IpNet,
    /// The node's gateway router there.
    pub join_gateway: IpNet,
    /// The node's cluster router on the switch between nodes.
    pub transit: IpNet,
    /// The node's address to the world, if it has one of this family.
    pub external: Option<IpNet>,
    /// The network's own addresses on the node; the default network has none.
    pub stand: Option<Stand>,
    /// Whether the node's subnet is told to BGP peers in the default VRF, where the external bridge leads.
    pub advertised: bool,
}

impl Side {
    /// The gateway with the subnet's length.
    pub fn gateway_net(&self) -> IpNet {
        with_length_of(self.gateway, &self.subnet)
    }

    /// The node itself among its pods, with the subnet's length.
    pub fn management_net(&self) -> IpNet {
        with_length_of(self.management, &self.subnet)
    }

    /// The address by which the gateway router speaks with the world. That of a user-defined network becomes the node's
    /// on the external bridge, where the networks' connections meet.
    pub fn shown(&self) -> Option<IpAddr> {
        let external = self.external?.addr();
        Some(self.stand.map_or(external, |stand| stand.gateway))
    }
}

/// What a node still waits for before it can carry pods.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Waiting {
    /// Its object.
    #[error("Node {0} to be registered: its kubelet does that")]
    Node(String),
    /// Its number.
    #[error("a number for node {0}: underlay-cluster gives it")]
    Id(String),
    /// Its subnets.
    #[error("a subnet of network {network} for node {node}: underlay-cluster gives it")]
    Subnets {
        /// The node.
        node: String,
        /// The network.
        network: String,
    },
    /// The bridge.
    #[error("the external bridge with the node's address on it")]
    Bridge,
    /// A link that carries what pods send.
    #[error(
        "{bridge} to carry packets of {need} bytes: it carries {has}, which pods' packets{tunnels} do not fit in; \
         set mtu {fitting} for pods, or raise that of the link",
        tunnels = if .has == .fitting { "" } else { " in their tunnels" }
    )]
    Mtu {
        /// The external bridge.
        bridge: String,
        /// What it carries.
        has: u32,
        /// What it should.
        need: u32,
        /// What pods could have.
        fitting: u32,
    },
    /// Room for the network's own addresses.
    #[error("a larger masquerade range: {range} has no addresses for network {network}, the {id}.")]
    Masquerade {
        /// The range.
        range: IpNet,
        /// The network.
        network: String,
        /// Its number.
        id: u16,
    },
    /// The chassis.
    #[error("the name of the node's chassis: external_ids:system-id of Open vSwitch")]
    Chassis,
}

impl<'a> Site<'a> {
    /// Finds a node's place in a network, or what it waits for.
    pub fn find(
        name: &str,
        network: &'a Network,
        world: &'a World,
        settings: &'a Settings,
        local: &'a Local,
        told: &Told,
    ) -> Result<Self, Waiting> {
        let node = world.node(name).ok_or_else(|| Waiting::Node(name.to_owned()))?;
        let id = node.id.ok_or_else(|| Waiting::Id(name.to_owned()))?.0;
        if local.chassis.is_empty() {
            return Err(Waiting::Chassis);
        }
        let bridge = local.bridge.as_ref().ok_or(Waiting::Bridge)?;
        check_size(bridge, network, local)?;
        check_range(network, settings)?;
        let subnets = node.subnets_in(&network.name);
        let vrfs = |subnet: IpNet| told.vrfs(subnet, network);
        let side = |family| {
            let mut side = Side::find(family, subnets, id, network, settings, bridge)?;
            side.advertised = vrfs(side.subnet).contains(DEFAULT_VRF);
            Some(side)
        };
        let families: Vec<Side> = network.families().filter_map(side).collect();
        if families.is_empty() || families.len() < network.families().count() {
            return Err(Waiting::Subnets { node: name.to_owned(), network: network.name.clone() });
        }
        if families.iter().all(|side| side.external.is_none()) {
            return Err(Waiting::Bridge);
        }
        let why = Why::from_object(ObjectRef::cluster("Node", name));
        let why = network.source.iter().cloned().fold(why, Why::and);
        let vrfs = families.iter().flat_map(|side| vrfs(side.subnet)).collect();
        let names = &network.names;
        Ok(Self { network, names, node, local, bridge, settings, world, families, id, vrfs, why })
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// Whether anything of the node's part is told to BGP peers in the default VRF.
    pub fn advertised(&self) -> bool {
        self.families.iter().any(|side| side.advertised)
    }

    /// The node's own interface in the network.
    pub fn management_interface(&self) -> String {
        management_interface(self.network.id)
    }

    /// The VRF device of the network, if it is a user-defined one and the kernel has such devices.
    pub fn vrf(&self) -> Option<String> {
        let has = self.local.has_vrf && !self.network.is_default();
        has.then(|| names::vrf(&self.network.name, self.network.id))
    }

    /// Number of the patch port between the external bridge and the network, once it is there.
    pub fn patch(&self) -> Option<u32> {
        let name = self.names.patch_port(&self.bridge.name, self.name());
        self.bridge.patches.get(&name).copied()
    }

    /// Says in a row which network it belongs to. Rows of the default network say nothing.
    pub fn mark(&self, row: Row) -> Row {
        if self.network.is_default() {
            return row;
        }
        row.entry("external_ids", "k8s.ovn.org/network", &self.network.name).entry(
            "external_ids",
            "k8s.ovn.org/topology",
            "layer3",
        )
    }

    /// Like [`Self::mark`], for the rows that also say what the network is to its pods.
    pub fn mark_with_role(&self, row: Row) -> Row {
        if self.network.is_default() {
            return row;
        }
        self.mark(row).entry("external_ids", "k8s.ovn.org/role", "primary")
    }

    /// An address of the masquerade range.
    pub fn masquerade(&self, family: Family, offset: u128) -> Option<IpAddr> {
        self.settings.masquerade.nth(family, offset)
    }

    /// MAC address of the pods' gateway.
    pub fn gateway_mac(&self) -> Option<Mac> {
        self.families.first().map(|side| Mac::of(side.gateway))
    }

    /// MAC address of the node among its pods.
    pub fn management_mac(&self) -> Option<Mac> {
        self.families.first().map(|side| Mac::of(side.management))
    }

    /// The other nodes that are known well enough to be reached.
    pub fn others(&self) -> impl Iterator<Item = &'a Node> {
        let me = self.node.name.clone();
        self.world.nodes.values().map(AsRef::as_ref).filter(move |node| node.name != me)
    }
}

/// Packets that are too large for the way would vanish without a word: better to say so before any is sent.
fn check_size(bridge: &Bridge, network: &Network, local: &Local) -> Result<(), Waiting> {
    let header = match network.transport {
        Transport::NoOverlay { .. } => 0,
        Transport::Geneve if local.encap.iter().any(IpAddr::is_ipv6) => GENEVE_V6,
        Transport::Geneve => GENEVE_V4,
    };
    let (has, need) = (bridge.mtu, network.mtu + header);
    if has >= need {
        return Ok(());
    }
    Err(Waiting::Mtu { bridge: bridge.name.clone(), has, need, fitting: has.saturating_sub(header) })
}

/// Without addresses of its own a network's connections could not be told from another's.
fn check_range(network: &Network, settings: &Settings) -> Result<(), Waiting> {
    let lacking = |family: &Family| network.stand(settings, *family).is_none();
    match network.families().find(lacking).filter(|_| !network.is_default()) {
        None => Ok(()),
        Some(family) => Err(Waiting::Masquerade {
            range: settings.masquerade.of(family),
            network: network.name.clone(),
            id: network.id,
        }),
    }
}

impl Side {
    fn find(
        family: Family,
        subnets: &[IpNet],
        id: u16,
        network: &Network,
        settings: &Settings,
        bridge: &Bridge,
    ) -> Option<Self> {
        let of_family = |net: &&IpNet| Family::of_net(net) == family;
        let subnet = *subnets.iter().find(of_family)?;
        let (join, transit) = (network.join.of(family), settings.transit.of(family));
        let place = |range: &IpNet, offset: u128| Some(with_length_of(nth(range, offset)?, range));
        Some(Self {
            family,
            subnet,
            gateway: nth(&subnet, 1)?,
            management: nth(&subnet, 2)?,
            join_cluster: place(&join, 1)?,
            join_gateway: place(&join, id.into())?,
            transit: place(&transit, id.into())?,
            external: bridge.addresses.iter().find(of_family).copied(),
            stand: network.stand(settings, family),
            advertised: false,
        })
    }
}
