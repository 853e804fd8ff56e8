//! Which networks there are, and which of them carries the traffic of a namespace.
//!
//! In: the attachment definitions of all namespaces. Out: the networks that a node can carry, what the others wait for,
//! and for every namespace that has another primary network than the default one, which. A namespace for which that
//! cannot be said has a problem, and its pods wait: they are never put on another network than was asked for. So do those
//! of a namespace that was made for a network which is not there yet.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde_json::Value;
use underlay_api::annotations::NetworkId;
use underlay_api::network::{Layer3, Network as Definition, Topology, Transport};
use underlay_desired::ObjectRef;
use underlay_world::{Key, Nad, Settings, World};

use super::network::{Network, Tenants};
use super::site::{Site, Waiting};

/// All networks besides the default one.
#[derive(Debug, Clone, Default)]
pub struct Networks {
    /// Those that can be carried, by name.
    pub ready: BTreeMap<String, Network>,
    /// What the others wait for, by name.
    pub waiting: BTreeMap<String, String>,
    /// The primary network of each namespace that has one of its own, or why it cannot be told.
    pub namespaces: BTreeMap<String, Result<Attachment, String>>,
    /// The networks of all attachment definitions that make one primary.
    pub attachments: BTreeMap<String, String>,
    /// Namespaces that were made for a primary network of their own, whether it is there or not.
    pub reserved: BTreeSet<String>,
}

impl Networks {
    /// Namespaces whose traffic the default network does not carry.
    pub fn elsewhere(&self) -> BTreeSet<String> {
        self.namespaces.keys().chain(&self.reserved).cloned().collect()
    }

    /// Whether the default network does not carry the traffic of a namespace.
    pub fn takes(&self, namespace: &str) -> bool {
        self.namespaces.contains_key(namespace) || self.reserved.contains(namespace)
    }
}

/// How a namespace is attached to its primary network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The attachment definition: `<namespace>/<name>`.
    pub name: String,
    /// The network.
    pub network: String,
}

/// The networks besides the default one, as one node sees them.
#[derive(Debug)]
pub struct Others<'a> {
    /// All of them.
    pub networks: &'a Networks,
    /// The node's place in those that it has one in, by name.
    pub sites: BTreeMap<&'a str, Site<'a>>,
    /// What the others wait for, by name.
    pub waiting: BTreeMap<String, String>,
}

impl<'a> Others<'a> {
    /// Looks for the node's place in each.
    pub fn find(networks: &'a Networks, find: impl Fn(&'a Network) -> Result<Site<'a>, Waiting>) -> Self {
        let (mut sites, mut waiting) = (BTreeMap::new(), networks.waiting.clone());
        for (name, network) in &networks.ready {
            match find(network) {
                Ok(site) => _ = sites.insert(name.as_str(), site),
                Err(what) => _ = waiting.insert(name.clone(), what.to_string()),
            }
        }
        Self { networks, sites, waiting }
    }

    /// The node's part of those that it has a place in, by name.
    pub fn carried(&self) -> BTreeMap<String, Carried> {
        let carried = |site: &Site<'_>| Carried {
            subnets: site.families.iter().map(|side| side.subnet).collect(),
            advertised: site.advertised(),
        };
        self.sites.iter().map(|(name, site)| ((*name).to_owned(), carried(site))).collect()
    }
}

/// A node's part of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// Its subnets.
    pub subnets: Vec<IpNet>,
    /// Whether they are told to BGP peers.
    pub advertised: bool,
}

/// A network as its attachment definitions tell of it.
struct Draft<'a> {
    definition: &'a Definition,
    id: Option<NetworkId>,
    /// The first that told.
    first: &'a Nad,
    tenants: BTreeMap<String, String>,
    advertisers: BTreeSet<String>,
}

/// Finds all networks.
pub fn find(world: &World, settings: &Settings) -> Networks {
    let labelled = world.namespaces.iter().filter(|(_, namespace)| namespace.wants_primary());
    let reserved = labelled.map(|(key, _)| key.name.clone()).collect();
    let mut networks = Networks { reserved, ..Networks::default() };
    let mut drafts: BTreeMap<&str, Draft<'_>> = BTreeMap::new();
    for nad in world.nads.values() {
        match primary(nad) {
            None => {}
            Some(Err(problem)) => networks.refuse(&nad.key.namespace, problem),
            Some(Ok((name, definition))) => networks.draft(&mut drafts, nad, name, definition),
        }
    }
    for (name, draft) in &drafts {
        match networks.finish(name, draft, settings) {
            Ok(Some(network)) => _ = networks.ready.insert((*name).to_owned(), network),
            Ok(None) => {
                let waiting = format!("a number for network {name}: underlay-cluster gives it");
                networks.waiting.insert((*name).to_owned(), waiting);
            }
            Err(problem) => {
                for namespace in draft.tenants.keys() {
                    networks.refuse(namespace, format!("network {name} {problem}"));
                }
            }
        }
    }
    networks
}

/// The name and definition of a primary network, if this is one.
fn primary(nad: &Nad) -> Option<Result<(&str, &Definition), String>> {
    match &nad.config {
        Ok(config) => {
            let definition = config.network.as_ref().filter(|network| network.is_primary())?;
            Some(Ok((&config.name, definition)))
        }
        // What cannot be understood may still say that it is no other network's business.
        Err(problem) => {
            let text: Value = serde_json::from_str(&nad.text).unwrap_or_default();
            let claims = text.get("role").and_then(Value::as_str) == Some("primary");
            claims.then(|| Err(format!("NetworkAttachmentDefinition {}: {problem}", nad.key)))
        }
    }
}

impl Networks {
    /// Says why pods of a namespace have no network. The first reason stays.
    fn refuse(&mut self, namespace: &str, problem: String) {
        match self.namespaces.get(namespace) {
            Some(Err(_)) => {}
            _ => _ = self.namespaces.insert(namespace.to_owned(), Err(problem)),
        }
    }

    fn draft<'a>(
        &mut self,
        drafts: &mut BTreeMap<&'a str, Draft<'a>>,
        nad: &'a Nad,
        name: &'a str,
        definition: &'a Definition,
    ) {
        let Key { namespace, name: own } = &nad.key;
        let draft = drafts.entry(name).or_insert_with(|| Draft {
            definition,
            id: nad.id,
            first: nad,
            tenants: BTreeMap::new(),
            advertisers: BTreeSet::new(),
        });
        draft.id = draft.id.or(nad.id);
        if draft.definition != definition || nad.id.is_some_and(|id| draft.id != Some(id)) {
            let first = &draft.first.key;
            let problem = format!(
                "NetworkAttachmentDefinitions {first} and {} say different things of network {name}",
                nad.key
            );
            return self.refuse(namespace, problem);
        }
        draft.tenants.insert(namespace.clone(), own.clone());
        draft.advertisers.extend(nad.advertisers.0.iter().cloned());
        self.attachments.insert(nad.key.to_string(), name.to_owned());
        let attachment = Attachment { name: nad.key.to_string(), network: name.to_owned() };
        match self.namespaces.get(namespace) {
            None => _ = self.namespaces.insert(namespace.clone(), Ok(attachment)),
            Some(Ok(other)) => {
                let problem = format!(
                    "namespace {namespace} has two primary networks, {} and {}: a pod can have one",
                    other.name, attachment.name
                );
                self.refuse(namespace, problem);
            }
            Some(Err(_)) => {}
        }
    }

    /// The network of a draft; nothing while it has no number.
    fn finish(&self, name: &str, draft: &Draft<'_>, settings: &Settings) -> Result<Option<Network>, String> {
        let layer3 = carried(draft.definition)?;
        let Some(id) = draft.id else { return Ok(None) };
        if id == NetworkId::DEFAULT {
            return Err("has the number of the default network".to_owned());
        }
        let mut network = Network::defined(name, id, draft.definition, layer3, settings);
        if let Some(other) = self.ready.values().find(|other| other.id == network.id) {
            return Err(format!("has the number {} of network {}", network.id, other.name));
        }
        if let Some(other) = self.ready.values().find(|other| other.names == network.names) {
            return Err(format!("cannot be told from network {} in OVN", other.name));
        }
        network.tenants = Tenants::Only(draft.tenants.clone());
        network.advertisers = Some(draft.advertisers.clone());
        network.source = Some(source(draft.first));
        Ok(Some(network))
    }
}

/// What nodes carry so far.
fn carried(definition: &Definition) -> Result<&Layer3, String> {
    let Topology::Layer3(layer3) = &definition.topology else {
        return Err(format!("has topology {}, which nodes do not carry", definition.topology.as_str()));
    };
    if matches!(definition.transport, Transport::Evpn(_)) {
        return Err("has transport EVPN, which nodes do not carry".to_owned());
    }
    if definition.uplink.is_some() {
        return Err("has an uplink of its own, which nodes do not carry".to_owned());
    }
    Ok(layer3)
}

/// What the user wrote: the definition that an attachment definition was made from, or that itself.
fn source(nad: &Nad) -> ObjectRef {
    let Key { namespace, name } = &nad.key;
    match &nad.made_from {
        Some((kind, name)) if kind == "ClusterUserDefinedNetwork" => ObjectRef::cluster(kind, name),
        Some((kind, name)) => ObjectRef::namespaced(kind, namespace, name),
        None => ObjectRef::namespaced("NetworkAttachmentDefinition", namespace, name),
    }
}
