//! A lab file that passed its checks: every name resolved, every machine with its attachments.
//!
//! Plain data, in the order of the file, so that the same file always makes the same lab.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Everything a lab is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// What runs on the nodes beside OVN and FRR.
    pub kubernetes: Kubernetes,
    /// What the cluster manager and the agents are told.
    #[serde(default)]
    pub settings: Settings,
    /// Whether a daemon that dies is started again.
    pub restart: bool,
    /// Nodes first, then routers, then hosts.
    pub machines: Vec<Machine>,
    /// Segments first, then links.
    pub wires: Vec<Wire>,
}

/// Settings of the cluster as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubernetes {
    /// Whether nodes run kubelet and containerd.
    pub kubelets: bool,
    /// Who gives pods their network.
    pub cni: Cni,
    /// One per family; every node gets its part.
    pub pod_subnets: Vec<IpNet>,
    /// One per family.
    pub service_subnets: Vec<IpNet>,
}

/// What the cluster manager and the agents are told besides the ranges of addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether packets of the default network travel in tunnels.
    pub overlay: bool,
    /// Keys of their configuration file.
    pub given: Vec<Setting>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { overlay: true, given: Vec::new() }
    }
}

/// A key of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its section.
    pub section: String,
    /// Its name.
    pub key: String,
    /// What it says.
    pub value: String,
}

/// Who gives pods their network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cni {
    /// Underlay: its agents, its cluster manager and its resources are there.
    Underlay,
    /// Nobody, until somebody installs a plugin. Nodes are not ready before.
    None,
}

/// A network and mount namespace that behaves like a computer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name, and the name in every verb.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// In the order of the wires; the first is the uplink.
    pub attachments: Vec<Attachment>,
    /// Default gateways, at most one per family.
    pub gateways: Vec<IpAddr>,
}

/// What a machine is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Runs OVN, OVS, FRR and Kubernetes' node parts.
    Node {
        /// Also runs etcd, the API server, the controller manager and the scheduler.
        control_plane: bool,
        /// Place among the nodes, from 0; picks the node's pod subnet.
        index: usize,
        /// What FRR starts with.
        bgp: Option<Bgp>,
    },
    /// Runs FRR and forwards.
    Router(RouterConfig),
    /// A plain client.
    Host,
}

/// How a router is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RouterConfig {
    /// The user's own `frr.conf`.
    Whole(String),
    /// A few declarative lines.
    Bgp(Bgp),
    /// Forwards, speaks no protocol.
    Plain,
}

/// A BGP speaker in a few lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bgp {
    /// Own autonomous system.
    pub asn: u32,
    /// Whom it speaks to.
    pub neighbors: Vec<Neighbor>,
    /// What it announces.
    pub networks: Vec<IpNet>,
}

/// One BGP neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbor {
    /// Its address.
    pub address: IpAddr,
    /// Its autonomous system.
    pub asn: u32,
    /// Whether we reflect routes to it.
    pub reflector_client: bool,
    /// Whether it is told to send everything to us.
    pub next_hop_self: bool,
    /// Whether BFD watches the session.
    pub bfd: bool,
    /// TCP MD5 password.
    pub password: Option<String>,
}

/// A machine's end of a wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Name of the wire.
    pub wire: String,
    /// Interface in the machine: `eth0`, `eth1`, …
    pub interface: String,
    /// Name of the other end, on the wire's bridge.
    pub port: String,
    /// Addresses of the machine there.
    pub addresses: Vec<IpNet>,
    /// Largest packet.
    pub mtu: u32,
}

/// A segment or a link: a bridge that joins the ports of machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wire {
    /// Name in `cut` and `heal`, and of the bridge.
    pub name: String,
    /// Largest packet.
    pub mtu: u32,
    /// Machine and port of each end.
    pub ports: Vec<(String, String)>,
}

impl Topology {
    /// The machine of that name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.name == name)
    }

    /// The nodes, in order.
    pub fn nodes(&self) -> impl Iterator<Item = &Machine> {
        self.machines.iter().filter(|machine| matches!(machine.role, Role::Node { .. }))
    }

    /// The addresses by which the cluster knows a node: those of the families that services have, in their order.
    pub fn cluster_addresses(&self, machine: &Machine) -> Vec<IpAddr> {
        let addresses = machine.addresses();
        let of_family = |services: &IpNet| {
            let same = |address: &&IpAddr| address.is_ipv4() == services.addr().is_ipv4();
            addresses.iter().find(same).copied()
        };
        self.kubernetes.service_subnets.iter().filter_map(of_family).collect()
    }

    /// The node that hosts the control plane, if the lab has one.
    pub fn control_plane(&self) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.is_control_plane())
    }
}

impl Machine {
    /// Whether it runs the API server.
    pub fn is_control_plane(&self) -> bool {
        matches!(self.role, Role::Node { control_plane: true, .. })
    }

    /// The uplink, by which others know it.
    pub fn uplink(&self) -> Option<&Attachment> {
        self.attachments.first()
    }

    /// Addresses on the uplink, without prefix length.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.uplink().map(|uplink| uplink.addresses.iter().map(IpNet::addr).collect()).unwrap_or_default()
    }
}

impl Kubernetes {
    /// Whether Underlay runs: without kubelets there are no pods for it to serve.
    pub fn runs_underlay(&self) -> bool {
        self.kubelets && self.cni == Cni::Underlay
    }

    /// The part of the pod subnets that the node with this index gets: a /24 and a /64.
    pub fn pod_subnets_of(&self, index: usize) -> Vec<IpNet> {
        self.pod_subnets
            .iter()
            .filter_map(|subnet| match subnet {
                IpNet::V4(net) => net.subnets(24.max(net.prefix_len())).ok()?.nth(index).map(IpNet::V4),
                IpNet::V6(net) => net.subnets(64.max(net.prefix_len())).ok()?.nth(index).map(IpNet::V6),
            })
            .collect()
    }
}
