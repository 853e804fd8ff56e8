//! Annotations of nodes: what the cluster gives each node, and what each node says about itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use ipnet::IpNet;
use serde::Deserialize;

use super::text::{address, address_in_net, each, from_json, name, number, subnet, texts, to_json};
use super::{Annotation, NetworkId, Pair};

/// The subnets of a node, by network: `{"default":["10.244.1.0/24"]}`. Written by the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSubnets(pub BTreeMap<String, Vec<IpNet>>);

impl Annotation for NodeSubnets {
    const KEY: &'static str = "k8s.ovn.org/node-subnets";

    fn decode(text: &str) -> Result<Self, String> {
        let networks: BTreeMap<String, OneOrMany> = from_json(text)?;
        let read = |(network, subnets): (String, OneOrMany)| match each(&subnets.many(), subnet) {
            Ok(subnets) => Ok((network, subnets)),
            Err(problem) => Err(format!("network {network}: {problem}")),
        };
        networks.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    fn render(&self) -> String {
        to_json(
            &self.0.iter().map(|(network, subnets)| (network, texts(subnets))).collect::<BTreeMap<_, _>>(),
        )
    }

    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }
}

/// Networks of one family were once written without a list.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a subnet or a list of subnets")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn many(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// Numbers by network, as texts: `{"default":"0","cluster_udn_blue":"1"}`.
fn decode_numbers(text: &str, bounds: &RangeInclusive<u16>) -> Result<BTreeMap<String, u16>, String> {
    let networks: BTreeMap<String, String> = from_json(text)?;
    let read = |(network, text): (String, String)| match number(&text, bounds.clone()) {
        Ok(number) => Ok((network, number)),
        Err(problem) => Err(format!("network {network}: {problem}")),
    };
    networks.into_iter().map(read).collect()
}

fn render_numbers(numbers: &BTreeMap<String, u16>) -> String {
    to_json(
        &numbers.iter().map(|(network, number)| (network, number.to_string())).collect::<BTreeMap<_, _>>(),
    )
}

/// How many routes that peers told a node has not taken, because a network has as many as it takes, by network. Written by
/// the node; the cluster tells those who advertise the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RefusedRoutes(pub BTreeMap<String, usize>);

impl Annotation for RefusedRoutes {
    const KEY: &'static str = "underlay/refused-routes";

    fn decode(text: &str) -> Result<Self, String> {
        from_json(text).map(Self)
    }

    fn render(&self) -> String {
        to_json(&self.0)
    }

    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }
}

/// The numbers of networks, by name. Once written by the cluster; now each network's attachment definitions say it, and
/// this is read only to give a network the number that it had.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkIds(pub BTreeMap<String, u16>);

impl Annotation for NetworkIds {
    const KEY: &'static str = "k8s.ovn.org/network-ids";

    fn decode(text: &str) -> Result<Self, String> {
        decode_numbers(text, &(0..=NetworkId::LAST)).map(Self)
    }

    fn render(&self) -> String {
        render_numbers(&self.0)
    }

    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }
}

/// The keys of a node's ports in Layer2 networks, by network. Written by the cluster as long as some node knows no
/// better: see [`Layer2Topology`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer2TunnelIds(pub BTreeMap<String, u16>);

impl Layer2TunnelIds {
    /// The last key of a port.
    pub const LAST: u16 = 32767;
}

impl Annotation for Layer2TunnelIds {
    const KEY: &'static str = "k8s.ovn.org/udn-layer2-node-gateway-router-lrp-tunnel-ids";

    fn decode(text: &str) -> Result<Self, String> {
        decode_numbers(text, &(1..=Self::LAST)).map(Self)
    }

    fn render(&self) -> String {
        render_numbers(&self.0)
    }

    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }
}

/// How a node connects Layer2 networks: `2.0` is by a router that all nodes share, and what we write. Written by the
/// node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer2Topology(pub String);

impl Layer2Topology {
    /// A router that all nodes share.
    pub const TRANSIT_ROUTER: &str = "2.0";
}

impl Annotation for Layer2Topology {
    const KEY: &'static str = "k8s.ovn.org/layer2-topology-version";

    fn decode(text: &str) -> Result<Self, String> {
        name(text).map(Self)
    }

    fn render(&self) -> String {
        self.0.clone()
    }
}

/// The number of a node, `2` to `5000`: addresses of its gateway router and its ports follow from it. Written by the
/// cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The first number: 0 is the network itself, 1 its router.
    pub const FIRST: u16 = 2;
    /// The last number.
    pub const LAST: u16 = 5000;
}

impl Annotation for NodeId {
    const KEY: &'static str = "k8s.ovn.org/node-id";

    fn decode(text: &str) -> Result<Self, String> {
        number(text, Self::FIRST..=Self::LAST).map(Self)
    }

    fn render(&self) -> String {
        self.0.to_string()
    }
}

/// Implements an annotation with a value for each family.
macro_rules! pair {
    ($name:ident, $key:literal) => {
        impl Annotation for $name {
            const KEY: &'static str = $key;

            fn decode(text: &str) -> Result<Self, String> {
                Pair::decode(text).map(Self)
            }

            fn render(&self) -> String {
                self.0.render()
            }

            fn is_silent(&self) -> bool {
                self.0.is_empty()
            }
        }
    };
}

/// The addresses of a node's port on the switch between nodes. Written by the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransitAddresses(pub Pair);
pair!(TransitAddresses, "k8s.ovn.org/node-transit-switch-port-ifaddr");

/// The addresses of a node's primary interface, with the lengths of their subnets. Written by the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrimaryAddresses(pub Pair);
pair!(PrimaryAddresses, "k8s.ovn.org/node-primary-ifaddr");

/// The subnets with which a node's own traffic is masqueraded. Written by the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MasqueradeSubnets(pub Pair);
pair!(MasqueradeSubnets, "k8s.ovn.org/node-masquerade-subnet");

/// All addresses of a node, with the lengths of their subnets. Written by the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCidrs(pub BTreeSet<IpNet>);

impl Annotation for HostCidrs {
    const KEY: &'static str = "k8s.ovn.org/host-cidrs";

    fn decode(text: &str) -> Result<Self, String> {
        let cidrs: Vec<String> = from_json(text)?;
        Ok(Self(each(&cidrs, address_in_net)?.into_iter().collect()))
    }

    fn render(&self) -> String {
        // In the order of the texts: that is how others write the same set.
        to_json(&self.0.iter().map(ToString::to_string).collect::<BTreeSet<_>>())
    }
}

/// The name of a node's OVN chassis. Written by the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChassisId(pub String);

impl Annotation for ChassisId {
    const KEY: &'static str = "k8s.ovn.org/node-chassis-id";

    fn decode(text: &str) -> Result<Self, String> {
        name(text).map(Self)
    }

    fn render(&self) -> String {
        self.0.clone()
    }
}

/// The ends of a node's tunnels. Written by the node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncapIps(pub Vec<IpAddr>);

impl Annotation for EncapIps {
    const KEY: &'static str = "k8s.ovn.org/node-encap-ips";

    fn decode(text: &str) -> Result<Self, String> {
        let addresses: Vec<String> = from_json(text)?;
        each(&addresses, address).map(Self)
    }

    fn render(&self) -> String {
        to_json(&texts(&self.0))
    }
}

/// Whether the node's datapath can check packet sizes at the gateway. It is said only when it cannot. Written by the
/// node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayMtuSupport(pub bool);

impl Annotation for GatewayMtuSupport {
    const KEY: &'static str = "k8s.ovn.org/gateway-mtu-support";

    fn decode(text: &str) -> Result<Self, String> {
        Ok(Self(text != "false"))
    }

    fn render(&self) -> String {
        self.0.to_string()
    }

    fn is_silent(&self) -> bool {
        self.0
    }
}
