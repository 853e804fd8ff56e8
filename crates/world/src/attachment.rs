//! Every attachment definition, whoever made it, for those who write them: what is somebody else's must be known to be
//! left alone, and what is ours must be known letter by letter to be put right.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use underlay_api::NetworkAttachmentDefinition;
use underlay_api::annotations::{Annotation, NetworkId, NetworkName, TunnelKeys};
use underlay_api::nad::NetConf;
use underlay_api::network::{API_VERSION, NETWORK_LABEL, Network};
use underlay_net::Family;

use crate::definition::Scope;
use crate::kind::key_of;
use crate::{Key, Nad, Version};

/// An attachment definition, watched for its own sake and not for the network in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct AnyAttachment(pub NetworkAttachmentDefinition);

/// An attachment definition as it is written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attachment {
    /// Namespace and name.
    pub key: Key,
    /// Its identity: another one of the same name has another one.
    pub uid: String,
    /// Which writing of it this is.
    pub version: Version,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    pub owners: Vec<OwnerReference>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Whether it is on its way out.
    pub ending: bool,
    /// Its configuration; empty if that is for another plugin.
    pub text: String,
    /// The name of its network, if it is one of ours.
    pub network: Option<String>,
    /// Whether it carries the traffic of its pods.
    pub primary: bool,
    /// Families of its network's addresses.
    pub families: Vec<Family>,
    /// The number of its network, once it has one.
    pub id: Option<NetworkId>,
    /// Tunnel keys of its network, once it has them.
    pub tunnel_keys: Option<TunnelKeys>,
}

impl Attachment {
    /// Reads a definition.
    pub fn read(object: NetworkAttachmentDefinition) -> Self {
        let (nad, version) = (Nad::read(&object), Version::of(&object));
        let metadata = object.metadata;
        let config: Option<&NetConf> = nad.as_ref().and_then(|nad| nad.config.as_ref().ok());
        let network = config.and_then(|config| config.network.as_ref());
        let families =
            Family::ALL.into_iter().filter(|family| network.is_some_and(|network| network.has(*family)));
        let named = NetworkName::of(&metadata).ok().flatten().map(|NetworkName(name)| name);
        Self {
            key: key_of(&metadata),
            network: config.map(|config| config.name.clone()).or(named),
            primary: network.is_some_and(Network::is_primary),
            families: families.collect(),
            id: nad.as_ref().and_then(|nad| nad.id),
            tunnel_keys: nad.as_ref().and_then(|nad| nad.tunnel_keys.clone()),
            text: if nad.is_some() { object.spec.config } else { String::new() },
            ending: metadata.deletion_timestamp.is_some(),
            uid: metadata.uid.unwrap_or_default(),
            version,
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            owners: metadata.owner_references.unwrap_or_default(),
            finalizers: metadata.finalizers.unwrap_or_default(),
        }
    }

    /// Which definition of a network it was made from, if it carries our mark: the resource and its name. One in a
    /// namespace is in that of the attachment.
    pub fn made_from(&self) -> Option<(Scope, &str)> {
        if !self.labels.contains_key(NETWORK_LABEL) {
            return None;
        }
        let mut owners = self.owners.iter();
        let owner =
            owners.find(|owner| owner.controller == Some(true) && owner.api_version == API_VERSION)?;
        let scope = Scope::ALL.into_iter().find(|scope| scope.kind() == owner.kind)?;
        Some((scope, &owner.name))
    }
}
