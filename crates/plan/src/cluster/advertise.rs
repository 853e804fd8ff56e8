//! RouteAdvertisements: for every selected node and every FRRConfiguration that is for it, a generated FRRConfiguration
//! that tells the node's peers about its pods.
//!
//! In: the world. Out: the generated configurations and a verdict on every RouteAdvertisements. The first reason not to
//! accept one is the one that is told. A mistake leaves what was generated before as it is; a node that lacks something
//! keeps its own part and holds up nobody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use underlay_api::annotations::{Annotation, DEFAULT_NETWORK, GeneratedFrom, NodeSubnets};
use underlay_api::route_advertisements::{AdvertisementType, NetworkSelectionType, TargetVrf};
use underlay_api::{FRRConfiguration, RouteAdvertisements};
use underlay_desired::{ObjectRef, Why};
use underlay_world::select::picks;
use underlay_world::{Key, Node, World};

use super::speaker::{Speech, Spoken, own_addresses};
use super::verdict::{Verdict, nodes as named};
use super::{Generated, digest};

/// Label of generated configurations; the value is the name of the RouteAdvertisements.
pub const LABEL: &str = GeneratedFrom::KEY;
/// Beginning of their names. Such objects are never a source.
pub const PREFIX: &str = "ovnk-generated-";
/// Longest value of a label.
const LABEL_MAX: usize = 63;

/// What comes of all advertisements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Advertised {
    /// Generated configurations.
    pub configurations: BTreeMap<Key, Generated>,
    /// What is said of each RouteAdvertisements, by name.
    pub verdicts: BTreeMap<String, Verdict>,
}

/// Whether a configuration was generated, by us or whoever had our place before, and is ours to remove.
pub fn is_generated(key: &Key, object: &FRRConfiguration) -> bool {
    let labels = object.metadata.labels.as_ref();
    key.name.starts_with(PREFIX) && labels.is_some_and(|labels| labels.contains_key(LABEL))
}

/// Plans all advertisements.
pub fn plan(world: &World) -> Advertised {
    let mut plan = Advertised::default();
    for (key, advertisements) in &world.advertisements {
        let mut attempt = Attempt { world, name: &key.name, advertisements, configurations: BTreeMap::new() };
        let verdict = attempt.judge().unwrap_or_else(|verdict| verdict);
        if matches!(verdict, Verdict::Error(_)) {
            attempt.configurations.clear();
            attempt.keep(|_| true);
        }
        plan.configurations.append(&mut attempt.configurations);
        plan.verdicts.insert(key.name.clone(), verdict);
    }
    plan
}

/// One RouteAdvertisements on its way to a verdict.
struct Attempt<'a> {
    world: &'a World,
    name: &'a str,
    advertisements: &'a RouteAdvertisements,
    configurations: BTreeMap<Key, Generated>,
}

type Sources<'a> = Vec<(&'a Key, &'a Arc<FRRConfiguration>)>;

impl<'a> Attempt<'a> {
    fn judge(&mut self) -> Result<Verdict, Verdict> {
        self.check_request()?;
        let nodes = self.nodes()?;
        let sources = self.sources()?;
        let (mut uncovered, mut waiting) = (Vec::new(), Vec::new());
        for node in nodes {
            let covering = covering(&sources, node)?;
            if covering.is_empty() {
                uncovered.push(node.name.clone());
            } else if let Some(reason) = waits(node) {
                waiting.push((node.name.clone(), reason));
                self.keep(|generated| generated.node == node.name);
            } else {
                self.generate(node, &covering)?;
            }
        }
        self.conclude(uncovered, &waiting)
    }

    fn conclude(&self, uncovered: Vec<String>, waiting: &[(String, String)]) -> Result<Verdict, Verdict> {
        if let (TargetVrf::Auto, Some(node)) = (self.advertisements.spec.target(), uncovered.first()) {
            return Err(unmatched(node));
        }
        let Some((_, reason)) = waiting.first() else { return Ok(Verdict::Accepted { uncovered }) };
        let others: Vec<String> = waiting[1..].iter().map(|(node, _)| node.clone()).collect();
        let others =
            if others.is_empty() { String::new() } else { format!("; the same for {}", named(&others)) };
        Err(Verdict::Pending(format!("{reason}{others}")))
    }

    /// What can be told without looking at nodes.
    fn check_request(&self) -> Result<(), Verdict> {
        let spec = &self.advertisements.spec;
        if self.name.len() > LABEL_MAX {
            return error(format!(
                "the name has {} characters and labels hold {LABEL_MAX}: use a shorter one",
                self.name.len()
            ));
        }
        for what in &spec.advertisements {
            match what {
                AdvertisementType::PodNetwork => {}
                AdvertisementType::EgressIp => {
                    return error("advertising EgressIP requires EgressIP feature to be enabled");
                }
                AdvertisementType::Other(word) => return error(format!("unsupported advertisement {word}")),
            }
        }
        let mut networks = BTreeSet::new();
        for selector in &spec.network_selectors {
            match &selector.network_selection_type {
                NetworkSelectionType::DefaultNetwork => {
                    networks.insert(DEFAULT_NETWORK);
                }
                // There are no such networks yet, so none is selected.
                NetworkSelectionType::ClusterUserDefinedNetworks => {}
                other => return error(format!("unsupported network selection type {other}")),
            }
        }
        if networks.is_empty() {
            return Err(Verdict::Pending("no networks selected".to_owned()));
        }
        if spec.advertisements.is_empty() {
            return error("no advertisements");
        }
        if !is_empty(&spec.node_selector) {
            return error("node selector has to select all nodes if pod network is advertised");
        }
        Ok(())
    }

    fn nodes(&self) -> Result<Vec<&'a Node>, Verdict> {
        let selector = &self.advertisements.spec.node_selector;
        let mut nodes = Vec::new();
        for node in self.world.nodes.values() {
            if picks(selector, &node.labels).map_err(|error| bad_selector("nodeSelector", &error))? {
                nodes.push(node.as_ref());
            }
        }
        if nodes.is_empty() {
            return Err(Verdict::Pending("no nodes selected".to_owned()));
        }
        Ok(nodes)
    }

    /// Configurations of users that are selected. Generated ones may match too; they count, but are no source.
    fn sources(&self) -> Result<Sources<'a>, Verdict> {
        let selector = &self.advertisements.spec.frr_configuration_selector;
        let none = BTreeMap::new();
        let mut selected = Vec::new();
        for (key, configuration) in &self.world.frr_configurations {
            let labels = configuration.metadata.labels.as_ref().unwrap_or(&none);
            if picks(selector, labels).map_err(|error| bad_selector("frrConfigurationSelector", &error))? {
                selected.push((key, configuration));
            }
        }
        if selected.is_empty() {
            return Err(Verdict::Pending("no FRRConfigurations selected".to_owned()));
        }
        selected.retain(|(key, _)| !key.name.starts_with(PREFIX));
        Ok(selected)
    }

    fn generate(&mut self, node: &Node, covering: &Sources<'_>) -> Result<(), Verdict> {
        let target = self.advertisements.spec.target();
        let speech = Speech { node, prefixes: node.subnets_in(DEFAULT_NETWORK), target };
        for (source, configuration) in covering {
            match speech.through(configuration).map_err(Verdict::Error)? {
                Spoken::Said(spec) => {
                    let (key, metadata) = self.identity(source, node);
                    let object = FRRConfiguration { metadata, spec: *spec, status: None };
                    self.configurations.insert(key, Generated { object, why: self.why(source, node) });
                }
                Spoken::NobodyElse => {}
                Spoken::NoRouter => {
                    return error(format!(
                        "FRRConfiguration {:?} selected for node {:?} has no VRF matching the RouteAdvertisements \
                         target VRF or any selected network",
                        source.name, node.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Name, label and annotation follow from what the object is generated from: whoever generates it again finds it.
    fn identity(&self, source: &Key, node: &Node) -> (Key, ObjectMeta) {
        let name = format!("{PREFIX}{}", digest(&[self.name, &source.namespace, &source.name, &node.name]));
        let origin = GeneratedFrom {
            advertisements: self.name.to_owned(),
            source: source.name.clone(),
            node: node.name.clone(),
        };
        let metadata = ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(source.namespace.clone()),
            labels: Some([(LABEL.to_owned(), self.name.to_owned())].into()),
            annotations: Some([(GeneratedFrom::KEY.to_owned(), origin.render())].into()),
            ..ObjectMeta::default()
        };
        (Key::new(&source.namespace, &name), metadata)
    }

    fn why(&self, source: &Key, node: &Node) -> Why {
        Why::from_object(ObjectRef::cluster("RouteAdvertisements", self.name))
            .and(ObjectRef::namespaced("FRRConfiguration", &source.namespace, &source.name))
            .and(ObjectRef::cluster("Node", &node.name))
    }

    /// Says that what was generated before should stay, where the origin fits.
    fn keep(&mut self, fits: impl Fn(&GeneratedFrom) -> bool) {
        for (key, object) in &self.world.frr_configurations {
            let Ok(Some(origin)) = GeneratedFrom::of(&object.metadata) else { continue };
            if is_generated(key, object) && origin.advertisements == self.name && fits(&origin) {
                let why = Why::from_object(ObjectRef::cluster("RouteAdvertisements", self.name))
                    .and(ObjectRef::cluster("Node", &origin.node));
                self.configurations.insert(key.clone(), Generated { object: object.as_ref().clone(), why });
            }
        }
    }
}

fn error<T>(text: impl Into<String>) -> Result<T, Verdict> {
    Err(Verdict::Error(text.into()))
}

fn bad_selector(field: &str, problem: &str) -> Verdict {
    Verdict::Error(format!("{field}: {problem}"))
}

fn unmatched(node: &str) -> Verdict {
    Verdict::Error(format!(
        "selected FRRConfigurations for node {node:?} don't match all selected networks with target VRF 'auto'"
    ))
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.as_ref().is_none_or(BTreeMap::is_empty)
        && selector.match_expressions.as_ref().is_none_or(Vec::is_empty)
}

fn covering<'a>(sources: &Sources<'a>, node: &Node) -> Result<Sources<'a>, Verdict> {
    let mut covering = Vec::new();
    for (key, configuration) in sources {
        let selector = &configuration.spec.node_selector;
        let bad = |problem: String| bad_selector(&format!("FRRConfiguration {key} nodeSelector"), &problem);
        if picks(selector, &node.labels).map_err(bad)? {
            covering.push((*key, *configuration));
        }
    }
    Ok(covering)
}

/// What a node lacks to advertise.
fn waits(node: &Node) -> Option<String> {
    if node.subnets_in(DEFAULT_NETWORK).is_empty() {
        let problem = node.problems.iter().find(|problem| problem.contains(NodeSubnets::KEY));
        let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        return Some(format!(
            "will wait for subnet annotation to be set for node {:?} and network {DEFAULT_NETWORK:?}{problem}",
            node.name
        ));
    }
    // Without its addresses the node cannot be told from its peers.
    own_addresses(node)
        .is_empty()
        .then(|| format!("will wait for an address of node {:?} to be known", node.name))
}

#[cfg(test)]
mod tests;
