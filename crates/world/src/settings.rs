//! What holds for the whole cluster, as flags and the configuration file say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use underlay_net::Family;
use underlay_net::alloc::SubnetRange;
use underlay_net::cidr::nth;

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// Ranges of pod addresses, and the length of a node's part of each.
    pub cluster_subnets: Vec<SubnetRange>,
    /// Ranges of service addresses.
    pub service_subnets: Vec<IpNet>,
    /// Addresses between a node's two routers.
    pub join: Dual,
    /// Addresses between the nodes' routers.
    pub transit: Dual,
    /// Addresses by which a node speaks with its own gateway router.
    pub masquerade: Dual,
    /// Largest packet of a pod.
    pub mtu: u32,
    /// Port of the tunnels between nodes.
    pub encap_port: u16,
    /// How packets of the default network travel between nodes where there is no overlay; nothing means Geneve.
    pub no_overlay: Option<NoOverlay>,
    /// The BGP sessions between nodes that the cluster itself sees to.
    pub managed: ManagedBgp,
    /// What keeps advertised networks apart.
    pub isolation: Isolation,
    /// How many learned routes a network takes: somebody may tell the whole world.
    pub imported_routes_limit: usize,
}

/// The default network without overlay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoOverlay {
    /// Whether packets to the world outside leave with the node's address.
    pub outbound_snat: bool,
    /// Who sees to it that nodes learn each other's routes.
    pub routing: Routing,
}

/// Who sees to it that nodes learn each other's routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Routing {
    /// The cluster.
    Managed,
    /// The user.
    Unmanaged,
}

/// The BGP sessions between nodes that the cluster itself sees to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ManagedBgp {
    /// The nodes' AS number.
    pub as_number: u32,
    /// Who has sessions with whom; nothing if that was not said, and then there are none.
    pub topology: Option<Topology>,
    /// Namespace of the configurations.
    pub frr_namespace: String,
}

impl Default for ManagedBgp {
    fn default() -> Self {
        Self { as_number: 64512, topology: None, frr_namespace: "frr-k8s-system".to_owned() }
    }
}

/// Who has sessions with whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Every node with every other.
    FullMesh,
}

/// What keeps advertised networks apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// We do: nothing passes from one to another.
    #[default]
    Strict,
    /// The network outside, which may let them speak with each other.
    Loose,
}

/// A range for each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dual {
    /// IPv4.
    pub v4: Ipv4Net,
    /// IPv6.
    pub v6: Ipv6Net,
}

impl Dual {
    const fn new(v4: [u8; 4], length4: u8, v6: [u16; 2], length6: u8) -> Self {
        let [a, b, c, d] = v4;
        Self {
            v4: Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length4),
            v6: Ipv6Net::new_assert(Ipv6Addr::new(v6[0], v6[1], 0, 0, 0, 0, 0, 0), length6),
        }
    }

    /// The range of a family.
    pub fn of(&self, family: Family) -> IpNet {
        match family {
            Family::V4 => self.v4.into(),
            Family::V6 => self.v6.into(),
        }
    }

    /// The address this far into the range of a family.
    pub fn nth(&self, family: Family, offset: u128) -> Option<IpAddr> {
        nth(&self.of(family), offset)
    }
}

/// Length of a node's IPv4 subnet, where it is not said.
pub const HOST_LENGTH_V4: u8 = 24;
/// Length of every node's IPv6 subnet.
pub const HOST_LENGTH_V6: u8 = 64;

impl Default for Settings {
    fn default() -> Self {
        let range = SubnetRange::new(Ipv4Net::new_assert(Ipv4Addr::new(10, 128, 0, 0), 14).into(), 23);
        Self {
            cluster_subnets: range.into_iter().collect(),
            service_subnets: vec![Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 1, 0), 24).into()],
            join: Dual::new([100, 64, 0, 0], 16, [0xfd98, 0], 64),
            transit: Dual::new([100, 88, 0, 0], 16, [0xfd97, 0], 64),
            masquerade: Dual::new([169, 254, 0, 0], 17, [0xfd69, 0], 112),
            mtu: 1400,
            encap_port: 6081,
            no_overlay: None,
            managed: ManagedBgp::default(),
            isolation: Isolation::default(),
            imported_routes_limit: 120_000,
        }
    }
}

/// What a tunnel takes of every packet at most, rounded up.
const TUNNEL: u32 = 100;

impl Settings {
    /// Largest packet of a pod in a network with tunnels that does not say which. Where the default network has none,
    /// its own packets are as large as the links between nodes carry, and those of others must be smaller.
    pub fn mtu_in_tunnels(&self) -> u32 {
        if self.no_overlay.is_some() { self.mtu.saturating_sub(TUNNEL) } else { self.mtu }
    }

    /// Families that pods have, IPv4 first.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(|family| self.cluster_nets(*family).next().is_some())
    }

    /// Ranges of pod addresses of a family.
    pub fn cluster_nets(&self, family: Family) -> impl Iterator<Item = IpNet> {
        self.cluster_subnets.iter().map(SubnetRange::net).filter(move |net| Family::of_net(net) == family)
    }

    /// Ranges of service addresses of a family.
    pub fn service_nets(&self, family: Family) -> impl Iterator<Item = IpNet> {
        self.service_subnets.iter().copied().filter(move |net| Family::of_net(net) == family)
    }
}
