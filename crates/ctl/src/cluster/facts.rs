//! What was found out, without a judgement.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::ResourceExt;
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, GeneratedFrom, PodNetwork, Role};
use underlay_api::frr::{BGPSessionStateStatus, FRRNodeStateStatus};
use underlay_api::route_advertisements::NetworkSelectionType;
use underlay_api::{FRRConfiguration, RouteAdvertisements};
use underlay_runtime::report::{AgentReport, SessionReport};
use underlay_world::select::picks;
use underlay_world::{Definition, Nad, Namespace, Node, Pod};

/// The state of a session over which routes are exchanged.
pub const ESTABLISHED: &str = "Established";

/// All that was found out.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Nodes, by name.
    pub nodes: BTreeMap<String, NodeFacts>,
    /// What the agents of nodes said; those that were not asked are not there.
    pub agents: BTreeMap<String, Agent>,
    /// Advertisements.
    pub advertisements: Vec<RouteAdvertisements>,
    /// Parts of the nodes' FRR configuration, written and generated.
    pub configurations: Vec<FRRConfiguration>,
    /// How FRR fares, by node.
    pub speakers: BTreeMap<String, FRRNodeStateStatus>,
    /// How BGP sessions fare.
    pub sessions: Vec<BGPSessionStateStatus>,
    /// Networks that tenants have for themselves.
    pub networks: Vec<Definition>,
    /// Attachment definitions of networks.
    pub attachments: Vec<Nad>,
    /// Namespaces, by name.
    pub namespaces: BTreeMap<String, Namespace>,
    /// Resources that the API server does not know.
    pub missing: Vec<String>,
}

/// A node.
#[derive(Debug, Clone, Default)]
pub struct NodeFacts {
    /// As we see it.
    pub node: Node,
    /// Whether Kubernetes counts on it.
    pub readiness: Readiness,
}

/// Whether Kubernetes counts on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    #[default]
    Ready,
    /// It does not, and why.
    NotReady(String),
}

/// What became of asking an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// It told.
    Told(Box<AgentReport>),
    /// It did not answer, and why.
    Silent(String),
    /// We may not ask.
    Forbidden,
}

/// A pod.
#[derive(Debug, Clone)]
pub struct PodFacts {
    /// As we see it.
    pub pod: Pod,
    /// `Pending`, `Running` and so on.
    pub phase: String,
    /// Why it is on no node, in the scheduler's words.
    pub unscheduled: Option<String>,
    /// Addresses that the container runtime told.
    pub addresses: Vec<IpAddr>,
}

impl Facts {
    /// What an agent told.
    pub fn report(&self, node: &str) -> Option<&AgentReport> {
        match self.agents.get(node) {
            Some(Agent::Told(report)) => Some(report),
            _ => None,
        }
    }

    /// Adds learned routes that an agent told when it was asked once more.
    pub fn add_learned(&mut self, node: &str, agent: Agent) {
        if let (Some(Agent::Told(known)), Agent::Told(news)) = (self.agents.get_mut(node), agent) {
            for (network, page) in news.learned {
                known.learned.entry(network).or_default().routes.extend(page.routes);
            }
        }
    }

    /// Subnets of a node in the default network.
    pub fn subnets(&self, node: &str) -> &[IpNet] {
        self.nodes.get(node).map_or(&[], |facts| facts.node.subnets_in(DEFAULT_NETWORK))
    }

    /// Advertisements that ask for the pods of the default network.
    pub fn of_default_network(&self) -> impl Iterator<Item = &RouteAdvertisements> {
        self.of_pods().filter(|object| {
            let mut selectors = object.spec.network_selectors.iter();
            selectors.any(|one| one.network_selection_type == NetworkSelectionType::DefaultNetwork)
        })
    }

    /// Configurations that were generated for a node.
    pub fn generated<'a>(
        &'a self,
        node: &'a str,
    ) -> impl Iterator<Item = (&'a FRRConfiguration, GeneratedFrom)> {
        self.configurations.iter().filter_map(move |object| {
            let origin = GeneratedFrom::of(&object.metadata).ok()??;
            (origin.node == node).then_some((object, origin))
        })
    }

    /// Configurations of users that an advertisement selects and that are for a node: what is generated starts from
    /// them.
    pub fn sources<'a>(
        &'a self,
        advertisements: &'a RouteAdvertisements,
        node: &'a Node,
    ) -> impl Iterator<Item = &'a FRRConfiguration> {
        let fits = |selector: &LabelSelector, labels| picks(selector, labels).unwrap_or(false);
        self.configurations.iter().filter(move |object| {
            !object.labels().contains_key(GeneratedFrom::KEY)
                && fits(&advertisements.spec.frr_configuration_selector, object.labels())
                && fits(&object.spec.node_selector, &node.labels)
        })
    }

    /// The state of a session: as FRR says now, else as it was published.
    pub fn session(&self, node: &str, vrf: &str, peer: &str) -> Option<&str> {
        let told = self.told_sessions(node).iter();
        let mut told = told.filter(|one| same_vrf(&one.vrf, vrf) && same_peer(&one.peer, peer));
        told.next().map(|one| one.state.as_str()).or_else(|| self.published(node, vrf, peer))
    }

    /// All sessions of a node: peer and state.
    pub fn sessions(&self, node: &str) -> Vec<(&str, &str)> {
        let told = self.told_sessions(node);
        if told.is_empty() {
            let published = self.sessions.iter().filter(|session| session.node == node);
            return published.map(|session| (session.peer.as_str(), session.bgp_status.as_str())).collect();
        }
        told.iter().map(|session| (session.peer.as_str(), session.state.as_str())).collect()
    }

    /// Sessions whose published state is not what FRR says now: peer, published and real state.
    pub fn outdated_sessions(&self, node: &str) -> Vec<(&str, &str, &str)> {
        let outdated = |session: &'_ SessionReport| {
            let published = self.published(node, &session.vrf, &session.peer)?;
            (published != session.state).then_some(published)
        };
        let told = self.told_sessions(node).iter();
        told.filter_map(|one| Some((one.peer.as_str(), outdated(one)?, one.state.as_str()))).collect()
    }

    fn published(&self, node: &str, vrf: &str, peer: &str) -> Option<&str> {
        let mut sessions = self.sessions.iter();
        let session = sessions.find(|session| {
            session.node == node && same_vrf(&session.vrf, vrf) && same_peer(&session.peer, peer)
        })?;
        Some(session.bgp_status.as_str())
    }

    fn told_sessions(&self, node: &str) -> &[SessionReport] {
        self.report(node).map(|report| report.speaker.sessions.as_slice()).unwrap_or_default()
    }
}

impl PodFacts {
    /// Reads a pod.
    pub fn read(object: &v1::Pod) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let scheduled = status.conditions.iter().flatten().find(|one| one.type_ == "PodScheduled");
        Self {
            pod: Pod::read(object),
            phase: status.phase.unwrap_or_else(|| "Pending".to_owned()),
            unscheduled: scheduled
                .filter(|one| one.status != "True")
                .and_then(|one| one.message.clone().or_else(|| one.reason.clone())),
            addresses: status.pod_ips.iter().flatten().filter_map(|one| one.ip.parse().ok()).collect(),
        }
    }

    /// Addresses that are recorded for it in the default network.
    pub fn recorded(&self) -> Vec<IpAddr> {
        let network = self.default_network();
        network.map(|network| network.addresses.iter().map(IpNet::addr).collect()).unwrap_or_default()
    }

    /// Whether the default network is recorded to be for probes only.
    pub fn locked(&self) -> bool {
        self.default_network().is_some_and(|network| network.role == Some(Role::InfrastructureLocked))
    }

    /// What is recorded of the other network that carries its traffic, by the attachment: `<namespace>/<name>`.
    pub fn own(&self) -> Option<(&str, &PodNetwork)> {
        let networks = self.pod.networks.iter().flat_map(|networks| &networks.0);
        let mut others = networks.filter(|(name, _)| *name != DEFAULT_NETWORK);
        let found = others.find(|(_, network)| network.role == Some(Role::Primary));
        found.map(|(name, network)| (name.as_str(), network))
    }

    fn default_network(&self) -> Option<&PodNetwork> {
        self.pod.networks.as_ref()?.0.get(DEFAULT_NETWORK)
    }
}

/// Whether two names mean one peer: an address can be written in several ways.
pub fn same_peer(one: &str, other: &str) -> bool {
    match (one.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Whether two names mean one VRF: the default one may have none.
pub fn same_vrf(one: &str, other: &str) -> bool {
    let short = |name: &str| if name == "default" { String::new() } else { name.to_owned() };
    short(one) == short(other)
}
