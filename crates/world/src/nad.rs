//! An attachment definition as we see it: a network of ours, open to the pods of one namespace.

use underlay_api::NetworkAttachmentDefinition;
use underlay_api::annotations::{Advertisers, Annotation, NetworkId, TunnelKeys};
use underlay_api::nad::{BadNetConf, NetConf};

use crate::Key;
use crate::kind::key_of;

/// An attachment definition of ours. Those of other plugins are not in the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nad {
    /// Namespace and name.
    pub key: Key,
    /// Its identity: another definition of the same name has another one.
    pub uid: String,
    /// What it says, or why that cannot be understood.
    pub config: Result<NetConf, BadNetConf>,
    /// What it says, as it is written.
    pub text: String,
    /// The number of its network, once it has one.
    pub id: Option<NetworkId>,
    /// Tunnel keys of its network, once it has them.
    pub tunnel_keys: Option<TunnelKeys>,
    /// The route advertisements that select its network.
    pub advertisers: Advertisers,
    /// Owner references that name a controller: kind and name of the definition it is made from.
    pub made_from: Option<(String, String)>,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Whether it is on its way out.
    pub ending: bool,
    /// Annotations that say nothing we understand; what they should say counts as missing.
    pub problems: Vec<String>,
}

impl Nad {
    /// Reads a definition; nothing if it is for another plugin.
    pub fn read(object: &NetworkAttachmentDefinition) -> Option<Self> {
        let config = NetConf::parse(&object.spec.config);
        if matches!(config, Err(BadNetConf::Foreign)) {
            return None;
        }
        let metadata = &object.metadata;
        let mut problems = Vec::new();
        let id = NetworkId::of(metadata).unwrap_or_else(|problem| {
            problems.push(problem.to_string());
            None
        });
        let tunnel_keys = TunnelKeys::of(metadata).unwrap_or_else(|problem| {
            problems.push(problem.to_string());
            None
        });
        let advertisers = Advertisers::of(metadata).unwrap_or_else(|problem| {
            problems.push(problem.to_string());
            None
        });
        let owner = metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
        Some(Self {
            key: key_of(metadata),
            uid: metadata.uid.clone().unwrap_or_default(),
            config,
            text: object.spec.config.clone(),
            id,
            tunnel_keys,
            advertisers: advertisers.unwrap_or_default(),
            made_from: owner.map(|owner| (owner.kind.clone(), owner.name.clone())),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            ending: metadata.deletion_timestamp.is_some(),
            problems,
        })
    }
}
