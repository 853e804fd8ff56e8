//! A network as its nodes see it: the cluster's default one, or one that users defined.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use underlay_api::annotations::{DEFAULT_NETWORK, NetworkId};
use underlay_api::network::{Layer3, Network as Definition, Transport as Asked};
use underlay_desired::ObjectRef;
use underlay_net::alloc::SubnetRange;
use underlay_net::{Family, NetworkNames};
use underlay_world::Settings;
use underlay_world::settings::Dual;

/// Addresses between the routers of a user-defined network that does not say which.
const JOIN: Dual = Dual {
    v4: Ipv4Net::new_assert(Ipv4Addr::new(100, 65, 0, 0), 16),
    v6: Ipv6Net::new_assert(Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 0), 64),
};

/// Of the masquerade range, what is before the pairs of addresses of user-defined networks.
const FIRST_PAIR: u128 = 10;

/// A network.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Its name.
    pub name: String,
    /// Names of its parts.
    pub names: NetworkNames,
    /// Its number; the default network's is 0.
    pub id: u16,
    /// All its addresses of pods.
    pub nets: Vec<IpNet>,
    /// Parts of them that no pod gets.
    pub excluded: Vec<IpNet>,
    /// Addresses between a node's two routers.
    pub join: Dual,
    /// Largest packet.
    pub mtu: u32,
    /// How its packets travel between nodes.
    pub transport: Transport,
    /// Whose pods it carries.
    pub tenants: Tenants,
    /// The advertisements that select it; nothing for the default network, which any may mean.
    pub advertisers: Option<BTreeSet<String>>,
    /// What defines it; nothing for the default network.
    pub source: Option<ObjectRef>,
}

/// How packets of a network travel between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In tunnels.
    Geneve,
    /// As they are, on routes that nodes tell each other.
    NoOverlay {
        /// Whether what leaves the cluster has the node's address.
        outbound_snat: bool,
    },
}

/// Namespaces whose traffic a network carries.
#[derive(Debug, Clone, PartialEq)]
pub enum Tenants {
    /// All but those with a network of their own.
    AllBut(BTreeSet<String>),
    /// These, each with the attachment definition that says so.
    Only(BTreeMap<String, String>),
}

/// The two addresses of the masquerade range that belong to a user-defined network, on every node the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand {
    /// The network, as the external bridge sees it.
    pub gateway: IpAddr,
    /// The network's pods, as the node sees them.
    pub management: IpAddr,
}

impl Network {
    /// The default network, without the namespaces that have another.
    pub fn default_network(settings: &Settings, elsewhere: BTreeSet<String>) -> Self {
        Self {
            name: DEFAULT_NETWORK.to_owned(),
            names: NetworkNames::default_network(),
            id: NetworkId::DEFAULT.0,
            nets: settings.cluster_subnets.iter().map(SubnetRange::net).collect(),
            excluded: Vec::new(),
            join: settings.join,
            mtu: settings.mtu,
            transport: match settings.no_overlay {
                None => Transport::Geneve,
                Some(chosen) => Transport::NoOverlay { outbound_snat: chosen.outbound_snat },
            },
            tenants: Tenants::AllBut(elsewhere),
            advertisers: None,
            source: None,
        }
    }

    /// A user-defined network.
    pub fn defined(
        name: &str,
        NetworkId(id): NetworkId,
        definition: &Definition,
        layer3: &Layer3,
        settings: &Settings,
    ) -> Self {
        let mut join = JOIN;
        for net in &definition.join_subnets {
            match net {
                IpNet::V4(net) => join.v4 = *net,
                IpNet::V6(net) => join.v6 = *net,
            }
        }
        Self {
            name: name.to_owned(),
            names: NetworkNames::of(name),
            id,
            nets: layer3.subnets.iter().map(|subnet| subnet.cidr.trunc()).collect(),
            excluded: layer3.exclude_subnets.clone(),
            join,
            mtu: definition.mtu.unwrap_or_else(|| match definition.transport {
                Asked::NoOverlay(_) => settings.mtu,
                Asked::Geneve | Asked::Evpn(_) => settings.mtu_in_tunnels(),
            }),
            transport: match &definition.transport {
                Asked::NoOverlay(chosen) => Transport::NoOverlay { outbound_snat: chosen.outbound_snat },
                Asked::Geneve | Asked::Evpn(_) => Transport::Geneve,
            },
            tenants: Tenants::Only(BTreeMap::new()),
            advertisers: Some(BTreeSet::new()),
            source: None,
        }
    }

    /// Whether it is the default one.
    pub fn is_default(&self) -> bool {
        self.id == NetworkId::DEFAULT.0
    }

    /// Whether its packets travel between nodes as they are.
    pub fn is_routed(&self) -> bool {
        self.transport != Transport::Geneve
    }

    /// Its addresses of pods, of one family.
    pub fn nets(&self, family: Family) -> impl Iterator<Item = IpNet> {
        self.nets.iter().copied().filter(move |net| Family::of_net(net) == family)
    }

    /// Families that it has, IPv4 first.
    pub fn families(&self) -> impl Iterator<Item = Family> {
        Family::ALL.into_iter().filter(|family| self.nets(*family).next().is_some())
    }

    /// Whether it carries the traffic of a namespace.
    pub fn carries(&self, namespace: &str) -> bool {
        match &self.tenants {
            Tenants::AllBut(others) => !others.contains(namespace),
            Tenants::Only(own) => own.contains_key(namespace),
        }
    }

    /// Its addresses of the masquerade range, if that has room for them; the default network has none of its own.
    pub fn stand(&self, settings: &Settings, family: Family) -> Option<Stand> {
        let last = FIRST_PAIR + 2 * u128::from(self.id);
        let place = |offset| settings.masquerade.nth(family, offset);
        if self.is_default() {
            return None;
        }
        Some(Stand { gateway: place(last - 1)?, management: place(last)? })
    }
}
