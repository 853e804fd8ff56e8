//! Networks that tenants have for themselves, from all that was found out: what is said of each, and who carries it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use kube::core::SelectorExt;
use underlay_api::conditions::get;
use underlay_api::network::Network;
use underlay_api::network::conditions::{NETWORK_ALLOCATION_SUCCEEDED, NETWORK_CREATED, TRANSPORT_ACCEPTED};
use underlay_runtime::report::NetworkReport;
use underlay_world::{Definition, Nad, Namespace, Scope};

use super::facts::Facts;
use crate::names::{count, some_of};

/// How a network is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Every node that tells carries it.
    Ready,
    /// No namespace has it.
    Unused,
    /// It is on its way out.
    Leaving,
    /// Nobody has looked at it.
    Unseen,
    /// It cannot be as written: reason and message.
    Refused(String, String),
    /// Some nodes could not be given their part: reason and message.
    Short(String, String),
    /// Nodes do not carry such networks: reason and message.
    NotCarried(String, String),
    /// Nodes that do not carry it yet, and what each waits for.
    Waiting(BTreeMap<String, String>),
}

impl State {
    /// For a column.
    pub fn short(&self) -> String {
        match self {
            Self::Ready => "Ready".to_owned(),
            Self::Unused => "no namespace has it".to_owned(),
            Self::Leaving => "Leaving".to_owned(),
            Self::Unseen => "not looked at yet".to_owned(),
            Self::Refused(reason, _) => format!("Refused: {reason}"),
            Self::Short(reason, _) => format!("Incomplete: {reason}"),
            Self::NotCarried(reason, _) => format!("Not carried: {reason}"),
            Self::Waiting(nodes) => format!("Waiting on {}", count(nodes.len(), "node")),
        }
    }

    /// Whether nothing is wrong.
    pub fn is_well(&self) -> bool {
        matches!(self, Self::Ready | Self::Unused)
    }
}

/// How people name a network: `cudn/NAME` or `udn/NAMESPACE/NAME`.
pub fn title(definition: &Definition) -> String {
    match definition.scope() {
        Scope::Cluster => format!("cudn/{}", definition.key.name),
        Scope::Namespace => format!("udn/{}", definition.key),
    }
}

impl Facts {
    /// The networks that a word can mean: a title, a name, or the name that nodes use.
    pub fn networks_called(&self, word: &str) -> Vec<&Definition> {
        let means = |one: &&Definition| {
            [title(one), one.key.name.clone(), one.key.to_string(), one.network_name()]
                .iter()
                .any(|name| name == word)
        };
        self.networks.iter().filter(means).collect()
    }

    /// The one network that a word means.
    pub fn the_network(&self, word: &str) -> Result<&Definition> {
        let found = self.networks_called(word);
        let titles = |found: &[&Definition]| some_of(&found.iter().map(|one| title(one)).collect::<Vec<_>>());
        match found.as_slice() {
            [one] => Ok(one),
            [] if self.networks.is_empty() => {
                bail!("there is no network {word}; there is none but the default one")
            }
            [] => {
                let all: Vec<&Definition> = self.networks.iter().collect();
                bail!("there is no network {word}; there are {}", titles(&all))
            }
            many => bail!("{word} can mean several networks: write one of {}", titles(many)),
        }
    }

    /// The definition of the network of an attachment definition.
    pub fn definition(&self, attachment: &Nad) -> Option<&Definition> {
        let name = network_name(attachment)?;
        self.networks.iter().find(|definition| definition.network_name() == name)
    }

    /// Attachment definitions of a network.
    pub fn attachments_of(&self, definition: &Definition) -> impl Iterator<Item = &Nad> {
        let name = definition.network_name();
        self.attachments.iter().filter(move |nad| network_name(nad) == Some(name.as_str()))
    }

    /// The attachment definition of the primary network of a namespace.
    pub fn primary(&self, namespace: &str) -> Option<&Nad> {
        self.attachments.iter().find(|nad| nad.key.namespace == namespace && is_primary(nad))
    }

    /// Whether a namespace is made for a network of its own, or has one.
    pub fn is_tenant(&self, namespace: &str) -> bool {
        let labelled = self.namespaces.get(namespace).is_some_and(Namespace::wants_primary);
        labelled || self.primary(namespace).is_some()
    }

    /// Namespaces that a network is meant for and that lack the label for that.
    pub fn unlabelled<'a>(&'a self, definition: &'a Definition) -> impl Iterator<Item = &'a str> {
        let primary = definition.network.as_ref().is_ok_and(Network::is_primary);
        self.namespaces
            .iter()
            .filter(move |(name, namespace)| {
                primary
                    && !namespace.ending
                    && !namespace.wants_primary()
                    && selects(definition, name, namespace)
            })
            .map(|(name, _)| name.as_str())
    }

    /// What agents tell of a network, by node. An agent that has no plan yet tells nothing.
    pub fn carried(&self, definition: &Definition) -> BTreeMap<&str, Option<&NetworkReport>> {
        let name = definition.network_name();
        let plans =
            self.nodes.keys().filter_map(|node| Some((node.as_str(), self.report(node)?.plan.as_ref()?)));
        plans.map(|(node, plan)| (node, plan.networks.get(&name))).collect()
    }

    /// How a network is.
    pub fn state(&self, definition: &Definition) -> State {
        let conditions = &definition.conditions;
        let failed = |type_: &str| {
            let condition = get(conditions, type_).filter(|condition| condition.status != "True")?;
            Some((condition.reason.clone(), condition.message.clone()))
        };
        if get(conditions, NETWORK_CREATED).is_none() {
            return State::Unseen;
        }
        if let Some((reason, message)) = failed(NETWORK_CREATED).filter(|_| !definition.ending) {
            return State::Refused(reason, message);
        }
        if definition.ending {
            return State::Leaving;
        }
        if let Some((reason, message)) = failed(TRANSPORT_ACCEPTED) {
            return State::NotCarried(reason, message);
        }
        if let Some((reason, message)) = failed(NETWORK_ALLOCATION_SUCCEEDED) {
            return State::Short(reason, message);
        }
        if self.attachments_of(definition).next().is_none() {
            return State::Unused;
        }
        let waiting = self.carried(definition).into_iter().filter_map(|(node, told)| {
            let what = match told {
                Some(told) => told.waiting.clone()?,
                None => "its agent to hear of it".to_owned(),
            };
            Some((node.to_owned(), what))
        });
        let waiting: BTreeMap<String, String> = waiting.collect();
        if waiting.is_empty() { State::Ready } else { State::Waiting(waiting) }
    }
}

/// The name of the network of an attachment definition, as nodes use it.
pub fn network_name(attachment: &Nad) -> Option<&str> {
    attachment.config.as_ref().ok().map(|config| config.name.as_str())
}

fn is_primary(attachment: &Nad) -> bool {
    let config = attachment.config.as_ref().ok();
    config.and_then(|config| config.network.as_ref()).is_some_and(Network::is_primary)
}

fn selects(definition: &Definition, name: &str, namespace: &Namespace) -> bool {
    match &definition.namespaces {
        Some(Ok(selector)) => selector.matches(&namespace.labels),
        Some(Err(_)) => false,
        None => definition.key.namespace == name,
    }
}
