//! Services and where they lead.

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::core::v1;
use k8s_openapi::api::discovery;

use crate::Key;
use crate::kind::key_of;

/// Label by which a slice names its service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Label by which a slice with the addresses of a user-defined network names its service: nobody else takes it for one
/// of the service's own.
pub const NETWORK_SERVICE_NAME: &str = "k8s.ovn.org/service-name";
/// Label or annotation by which such a slice names the network.
pub const NETWORK_NAME: &str = "k8s.ovn.org/endpointslice-network";

/// A transport protocol that services have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "their names say it")]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    fn read(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some("SCTP") => Some(Self::Sctp),
            Some(_) => None,
        }
    }

    /// As OVN spells it.
    pub fn ovn(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// A service with addresses inside the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Namespace and name.
    pub key: Key,
    /// Its addresses, one for each family at most.
    pub addresses: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// For how many seconds a client stays with its endpoint, if it does.
    pub affinity: Option<u32>,
    /// Only endpoints on the client's own node serve it.
    pub node_local: bool,
}

/// A port of a service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServicePort {
    /// Its name, by which slices refer to it; empty if the service has only one.
    pub name: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The number clients use.
    pub port: u16,
}

impl Service {
    /// Reads a service; nothing for one without an address of its own, like headless ones.
    pub fn read(object: &v1::Service) -> Option<Self> {
        let spec = object.spec.as_ref()?;
        let texts = spec.cluster_ips.clone().or_else(|| spec.cluster_ip.clone().map(|ip| vec![ip]))?;
        let addresses: Vec<IpAddr> = texts.iter().filter_map(|text| text.parse().ok()).collect();
        if addresses.is_empty() || spec.type_.as_deref() == Some("ExternalName") {
            return None;
        }
        let port = |port: &v1::ServicePort| {
            Some(ServicePort {
                name: port.name.clone().unwrap_or_default(),
                protocol: Protocol::read(port.protocol.as_deref())?,
                port: u16::try_from(port.port).ok()?,
            })
        };
        let timeout = spec.session_affinity_config.as_ref();
        let timeout = timeout.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
        Some(Self {
            key: key_of(&object.metadata),
            addresses,
            ports: spec.ports.iter().flatten().filter_map(port).collect(),
            affinity: (spec.session_affinity.as_deref() == Some("ClientIP"))
                .then(|| timeout.and_then(|seconds| u32::try_from(seconds).ok()).unwrap_or(10_800)),
            node_local: spec.internal_traffic_policy.as_deref() == Some("Local"),
        })
    }
}

/// A part of the endpoints of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSlice {
    /// Its service.
    pub service: Key,
    /// The user-defined network that its addresses are of; nothing for the default network.
    pub network: Option<String>,
    /// Ports that every endpoint of the slice has.
    pub ports: Vec<ServicePort>,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
}

/// An address behind a service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// Where.
    pub address: IpAddr,
    /// On which node, if it is told.
    pub node: Option<String>,
    /// Whether it takes new connections.
    pub ready: bool,
    /// Whether it still answers although it is about to end.
    pub serving: bool,
}

impl EndpointSlice {
    /// Reads a slice; nothing for one without a service or of names.
    pub fn read(object: &discovery::v1::EndpointSlice) -> Option<Self> {
        let labels = object.metadata.labels.as_ref()?;
        let (name, network) = match labels.get(SERVICE_NAME) {
            Some(name) => (name, None),
            None => (labels.get(NETWORK_SERVICE_NAME)?, Some(network_of(object)?)),
        };
        let port = |port: &discovery::v1::EndpointPort| {
            Some(ServicePort {
                name: port.name.clone().unwrap_or_default(),
                protocol: Protocol::read(port.protocol.as_deref())?,
                port: u16::try_from(port.port?).ok()?,
            })
        };
        let mut endpoints = BTreeSet::new();
        for endpoint in &object.endpoints {
            let conditions = endpoint.conditions.as_ref();
            let ready = conditions.and_then(|conditions| conditions.ready).unwrap_or(true);
            let serving = conditions.and_then(|conditions| conditions.serving).unwrap_or(ready);
            // Only the first address of an endpoint counts, the API says.
            let address = endpoint.addresses.first().and_then(|text| text.parse().ok());
            endpoints.extend(address.map(|address| Endpoint {
                address,
                node: endpoint.node_name.clone(),
                ready,
                serving,
            }));
        }
        Some(Self {
            service: Key {
                namespace: object.metadata.namespace.clone().unwrap_or_default(),
                name: name.clone(),
            },
            network,
            ports: object.ports.iter().flatten().filter_map(port).collect(),
            endpoints: endpoints.into_iter().collect(),
        })
    }
}

/// The network that a slice names.
fn network_of(object: &discovery::v1::EndpointSlice) -> Option<String> {
    let labels = object.metadata.labels.iter().flatten();
    let mut all = labels.chain(object.metadata.annotations.iter().flatten());
    all.find(|(key, _)| *key == NETWORK_NAME).map(|(_, name)| name.clone())
}
