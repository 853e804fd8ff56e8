//! The lab's certificate authority: one certificate for every actor, so that each has its own RBAC identity.
//!
//! In: the topology. Out: [`Pki`], all keys and certificates as PEM text, made anew for every lab.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use crate::topology::Topology;

/// Group of the agents of all nodes.
pub const AGENTS_GROUP: &str = "underlay:agents";
/// User name of the cluster manager.
pub const CLUSTER_USER: &str = "underlay:cluster";

/// User name of a node's agent.
pub fn agent_user(node: &str) -> String {
    format!("underlay:agent:{node}")
}

/// A certificate with its private key, both PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Everything that is signed.
#[derive(Debug, Clone)]
pub struct Pki {
    /// The authority itself.
    pub authority: Identity,
    /// Signs service account tokens: private and public key.
    pub service_accounts: Identity,
    identities: BTreeMap<String, Identity>,
}

/// The keys could not be made.
#[derive(Debug, thiserror::Error)]
#[error("making the lab's certificates")]
pub struct PkiError(#[from] rcgen::Error);

/// Who an identity is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor<'a> {
    /// The person at the keyboard: `system:masters`.
    Admin,
    /// `underlay-cluster`.
    ClusterManager,
    /// `underlay-agent` of a node.
    Agent(&'a str),
    /// The kubelet of a node: client and server.
    Kubelet(&'a str),
    /// The API server's serving certificate.
    ApiServer,
    /// The API server as a client of kubelets.
    ApiServerToKubelets,
    /// The API server as a client of aggregated API servers.
    ApiServerToExtensions,
    /// The controller manager.
    ControllerManager,
    /// The scheduler.
    Scheduler,
}

impl Actor<'_> {
    /// Short name: files and `lab kubeconfig --actor` use it.
    pub fn slug(&self) -> String {
        match self {
            Self::Admin => "admin".to_owned(),
            Self::ClusterManager => "cluster".to_owned(),
            Self::Agent(node) => format!("agent-{node}"),
            Self::Kubelet(node) => format!("kubelet-{node}"),
            Self::ApiServer => "apiserver".to_owned(),
            Self::ApiServerToKubelets => "apiserver-kubelet-client".to_owned(),
            Self::ApiServerToExtensions => "front-proxy-client".to_owned(),
            Self::ControllerManager => "controller-manager".to_owned(),
            Self::Scheduler => "scheduler".to_owned(),
        }
    }

    /// User and group in the eyes of the API server.
    fn subject(&self) -> (String, Option<&'static str>) {
        match self {
            Self::Admin => ("lab-admin".to_owned(), Some("system:masters")),
            Self::ClusterManager => (CLUSTER_USER.to_owned(), None),
            Self::Agent(node) => (agent_user(node), Some(AGENTS_GROUP)),
            Self::Kubelet(node) => (format!("system:node:{node}"), Some("system:nodes")),
            Self::ApiServer => ("kube-apiserver".to_owned(), None),
            Self::ApiServerToKubelets => ("kube-apiserver-kubelet-client".to_owned(), Some("system:masters")),
            Self::ApiServerToExtensions => ("front-proxy-client".to_owned(), None),
            Self::ControllerManager => ("system:kube-controller-manager".to_owned(), None),
            Self::Scheduler => ("system:kube-scheduler".to_owned(), None),
        }
    }
}

impl Pki {
    /// Makes all keys and certificates of a lab.
    pub fn generate(topology: &Topology) -> Result<Self, PkiError> {
        let control_plane = topology.control_plane();
        let mut api_names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
        api_names.extend(
            [
                "kubernetes",
                "kubernetes.default",
                "kubernetes.default.svc",
                "kubernetes.default.svc.cluster.local",
            ]
            .map(str::to_owned),
        );
        api_names.extend(control_plane.iter().map(|node| node.name.clone()));
        api_names.extend(
            control_plane.iter().flat_map(|node| node.addresses()).map(|address| address.to_string()),
        );
        api_names.extend(topology.kubernetes.service_subnets.iter().filter_map(|net| nth_address(net, 1)));
        let mut wanted: Vec<(Actor, Vec<String>)> = vec![
            (Actor::Admin, vec![]),
            (Actor::ClusterManager, vec![]),
            (Actor::ApiServer, api_names),
            (Actor::ApiServerToKubelets, vec![]),
            (Actor::ApiServerToExtensions, vec![]),
            (Actor::ControllerManager, vec![]),
            (Actor::Scheduler, vec![]),
        ];
        for node in topology.nodes() {
            let mut names = vec![node.name.clone()];
            names.extend(node.addresses().iter().map(IpAddr::to_string));
            wanted.push((Actor::Kubelet(&node.name), names));
            wanted.push((Actor::Agent(&node.name), vec![]));
        }
        Self::issue(&wanted)
    }

    /// Makes an authority and the wanted identities, each with the names it serves under.
    pub fn issue(wanted: &[(Actor<'_>, Vec<String>)]) -> Result<Self, PkiError> {
        let authority_key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = distinguished_name("underlay-lab", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&authority_key)?;
        let authority = Identity { certificate: certificate.pem(), key: authority_key.serialize_pem() };
        let issuer = Issuer::new(params, authority_key);
        let mut identities = BTreeMap::new();
        for (actor, names) in wanted {
            identities.insert(actor.slug(), sign(*actor, names, &issuer)?);
        }
        let tokens = KeyPair::generate()?;
        let service_accounts = Identity { certificate: tokens.public_key_pem(), key: tokens.serialize_pem() };
        Ok(Self { authority, service_accounts, identities })
    }

    /// The identity of an actor of this lab.
    pub fn of(&self, actor: Actor<'_>) -> &Identity {
        // An actor outside the topology has no identity; the authority's stands in and is refused by every server.
        self.identities.get(&actor.slug()).unwrap_or(&self.authority)
    }

    /// A kubeconfig that holds all it needs, for an API server at this URL.
    pub fn kubeconfig(&self, actor: Actor<'_>, server: &str) -> String {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let identity = self.of(actor);
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: lab\n\
             clusters:\n- name: lab\n  cluster:\n    server: {server}\n    certificate-authority-data: {}\n\
             users:\n- name: {slug}\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n\
             contexts:\n- name: lab\n  context:\n    cluster: lab\n    user: {slug}\n",
            encode(&self.authority.certificate),
            encode(&identity.certificate),
            encode(&identity.key),
            slug = actor.slug(),
        )
    }
}

/// The nth address of a subnet, as text.
pub(crate) fn nth_address(subnet: &ipnet::IpNet, nth: u8) -> Option<String> {
    match subnet.network() {
        IpAddr::V4(base) => {
            u32::from(base).checked_add(nth.into()).map(|sum| std::net::Ipv4Addr::from(sum).to_string())
        }
        IpAddr::V6(base) => {
            u128::from(base).checked_add(nth.into()).map(|sum| std::net::Ipv6Addr::from(sum).to_string())
        }
    }
}

fn sign(actor: Actor<'_>, names: &[String], issuer: &Issuer<'_, KeyPair>) -> Result<Identity, PkiError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    let (user, group) = actor.subject();
    params.distinguished_name = distinguished_name(&user, group);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(&key, issuer)?;
    Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn distinguished_name(common: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}
