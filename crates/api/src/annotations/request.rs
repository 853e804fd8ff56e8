//! What a pod asks for: further networks, and addresses in those it has.

use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use underlay_net::Mac;

use super::text::{address, address_in_net, each, from_json, mac, name, quoted, texts, to_json};
use super::{Annotation, BadAnnotation};
use crate::Unknown;

/// One attachment to a network, and what the pod would like to have there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkRequest {
    /// The network attachment definition.
    pub name: String,
    /// The namespace of that; nothing for the pod's own.
    pub namespace: Option<String>,
    /// The name of the interface in the pod; nothing if it does not matter.
    pub interface: Option<String>,
    /// The addresses, with the lengths of their subnets.
    pub addresses: Vec<IpNet>,
    /// The MAC address.
    pub mac: Option<Mac>,
    /// Gateways of default routes through this attachment.
    pub gateways: Vec<IpAddr>,
    /// The IPAMClaim that keeps the addresses.
    pub claim: Option<String>,
    /// Fields of others.
    pub other: Unknown,
}

/// The networks that a pod asks for besides its primary one: a list of objects, or in short `net1,other/net2@eth5`.
/// Written by the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkRequests(pub Vec<NetworkRequest>);

impl Annotation for NetworkRequests {
    const KEY: &'static str = "k8s.v1.cni.cncf.io/networks";

    fn decode(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('[') { from_list(text) } else { in_short(text) }.map(Self)
    }

    fn render(&self) -> String {
        to_json(&self.0.iter().map(write).collect::<Vec<_>>())
    }

    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a pod asks for in its primary network: `[{"name":"default","namespace":"ovn-kubernetes","ips":["10.0.0.5/24"]}]`,
/// a list of one. The name is that of the default network all the same. Written by the user, or by KubeVirt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultNetworkRequest(pub NetworkRequest);

impl Annotation for DefaultNetworkRequest {
    const KEY: &'static str = "v1.multus-cni.io/default-network";

    fn decode(text: &str) -> Result<Self, String> {
        match <[NetworkRequest; 1]>::try_from(NetworkRequests::decode(text)?.0) {
            Ok([request]) => Ok(Self(request)),
            Err(requests) => Err(format!("names {} networks instead of one", requests.len())),
        }
    }

    fn render(&self) -> String {
        to_json(&[write(&self.0)])
    }
}

/// Implements an annotation that is the name of an IPAMClaim.
macro_rules! claim {
    ($name:ident, $key:literal) => {
        impl Annotation for $name {
            const KEY: &'static str = $key;

            fn decode(text: &str) -> Result<Self, String> {
                name(text).map(Self)
            }

            fn render(&self) -> String {
                self.0.clone()
            }
        }
    };
}

/// The IPAMClaim that keeps a pod's addresses in its primary network. [`DefaultNetworkRequest`] says it better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryClaim(pub String);
claim!(PrimaryClaim, "k8s.ovn.org/primary-udn-ipamclaim");

/// Another spelling of [`PrimaryClaim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdnClaimReference(pub String);
claim!(UdnClaimReference, "k8s.ovn.org/ovn-udn-ipamclaim-reference");

/// The IPAMClaim that keeps a pod's addresses in its primary network, from whichever of the three annotations says it.
/// Where several do, they must agree.
pub fn primary_claim(pod: &ObjectMeta) -> Result<Option<String>, BadAnnotation> {
    let said = [
        (DefaultNetworkRequest::KEY, DefaultNetworkRequest::of(pod)?.and_then(|request| request.0.claim)),
        (PrimaryClaim::KEY, PrimaryClaim::of(pod)?.map(|claim| claim.0)),
        (UdnClaimReference::KEY, UdnClaimReference::of(pod)?.map(|claim| claim.0)),
    ];
    let mut said = said.into_iter().filter_map(|(key, claim)| Some((key, claim?)));
    let Some((first, claim)) = said.next() else { return Ok(None) };
    match said.find(|(_, other)| *other != claim) {
        None => Ok(Some(claim)),
        Some((key, other)) => {
            let (claim, other) = (quoted(&claim), quoted(&other));
            let problem = format!("names the IPAMClaim {other}, but {first} names {claim}: use one of them");
            Err(BadAnnotation { key, problem })
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Texts {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    mac: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    interface: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    default_route: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    ipam_claim_reference: String,
    #[serde(flatten)]
    other: Unknown,
}

fn from_list(text: &str) -> Result<Vec<NetworkRequest>, String> {
    let read = |(index, texts): (usize, Texts)| {
        let called = if texts.name.is_empty() { format!("entry {index}") } else { texts.name.clone() };
        read(texts).map_err(|problem| format!("{called}: {problem}"))
    };
    from_json::<Vec<Texts>>(text)?.into_iter().enumerate().map(read).collect()
}

fn read(all: Texts) -> Result<NetworkRequest, String> {
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(NetworkRequest {
        name: given(all.name).ok_or("has no name")?,
        namespace: given(all.namespace),
        interface: given(all.interface),
        addresses: each(&all.ips, address_in_net)?,
        mac: given(all.mac).map(|text| mac(&text)).transpose()?,
        gateways: each(&all.default_route, address)?,
        claim: given(all.ipam_claim_reference),
        other: all.other,
    })
}

fn write(request: &NetworkRequest) -> Texts {
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    Texts {
        name: request.name.clone(),
        namespace: given(&request.namespace),
        ips: texts(&request.addresses),
        mac: request.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        interface: given(&request.interface),
        default_route: texts(&request.gateways),
        ipam_claim_reference: given(&request.claim),
        other: request.other.clone(),
    }
}

fn in_short(text: &str) -> Result<Vec<NetworkRequest>, String> {
    let read = |word: &str| {
        let word = word.trim();
        let (network, interface) = match word.split_once('@') {
            Some((network, interface)) => (network, Some(interface)),
            None => (word, None),
        };
        let (namespace, name) = match network.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, network),
        };
        let sound = |part: &str| !part.is_empty() && !part.contains(['/', '@']);
        if !sound(name) || !namespace.is_none_or(sound) || !interface.is_none_or(sound) {
            return Err(format!("{} is not a network: write it like other/net2@eth5", quoted(word)));
        }
        Ok(NetworkRequest {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
            interface: interface.map(str::to_owned),
            ..NetworkRequest::default()
        })
    };
    if text.is_empty() { Ok(vec![]) } else { text.split(',').map(read).collect() }
}
