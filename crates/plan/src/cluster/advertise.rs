//! RouteAdvertisements: for every selected node and every FRRConfiguration that is for it, a generated FRRConfiguration
//! that tells the node's peers about its pods.
//!
//! In: the world, and the numbers of networks. Out: the generated configurations, a verdict on every
//! RouteAdvertisements, and which of them advertise each network. The first reason not to accept one is the one that is
//! told. A mistake leaves what was generated before as it is; a node that lacks something holds up nobody else.

mod claims;
mod egress;
mod existing;
pub(super) mod networks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::core::SelectorExt;
use underlay_api::annotations::{Annotation, GeneratedFrom, NodeSubnets};
use underlay_api::route_advertisements::{AdvertisementType, RouteAdvertisementsSpec, TargetVrf};
use underlay_api::{FRRConfiguration, RouteAdvertisements};
use underlay_desired::{ObjectRef, Why};
use underlay_world::select::parse;
use underlay_world::{Key, Node, Settings, World};

use super::speaker::{Leaks, Request, Source, Sources, Speech, Spoken};
use super::verdict::{Verdict, nodes as named};
use super::{Generated, Numbers, digest};
use claims::Claims;
use egress::egress_prefixes;
use existing::Existing;
use networks::Networks;
pub use networks::labels_of;

/// Label of generated configurations; the value is the name of the RouteAdvertisements.
pub const LABEL: &str = GeneratedFrom::KEY;
/// Beginning of their names. Such objects are never a source.
pub const PREFIX: &str = "ovnk-generated-";
/// Longest value of a label.
const LABEL_MAX: usize = 63;
/// Networks that a message names before it only counts them.
const NAMED: usize = 5;
/// Networks that are told as reasons of one configuration: nobody reads more, and there may be thousands of both.
const REASONS: usize = 100;

/// What comes of all advertisements.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Advertised {
    /// Generated configurations.
    pub configurations: BTreeMap<Key, Generated>,
    /// What is said of each RouteAdvertisements, by name.
    pub verdicts: BTreeMap<String, Verdict>,
    /// Names of the RouteAdvertisements that advertise the pods of each network, by its name. Those that cannot be as
    /// written are among them while what they once advertised still is.
    pub advertisers: BTreeMap<Arc<str>, BTreeSet<String>>,
}

/// Whether a configuration was generated, by us or whoever had our place before, and is ours to remove.
pub fn is_generated(key: &Key, object: &FRRConfiguration) -> bool {
    let labels = object.metadata.labels.as_ref();
    key.name.starts_with(PREFIX) && labels.is_some_and(|labels| labels.contains_key(LABEL))
}

/// Plans all advertisements. `numbers` are those of networks in the plan of today; where they are not planned, what is
/// recorded counts.
pub fn plan(world: &World, settings: &Settings, numbers: &Numbers) -> Advertised {
    let (networks, existing) = (Networks::of(world, settings, numbers), Existing::of(world));
    let (mut plan, mut claims) = (Advertised::default(), Claims::default());
    for (name, advertisements) in by_age(world) {
        let mut attempt = Attempt {
            world,
            networks: &networks,
            existing: &existing,
            name,
            spec: &advertisements.spec,
            configurations: BTreeMap::new(),
            advertised: Vec::new(),
        };
        let verdict = attempt.judge(&mut claims).unwrap_or_else(|verdict| verdict);
        if matches!(verdict, Verdict::Error(_)) {
            attempt.keep_all();
        }
        for network in attempt.advertised {
            plan.advertisers.entry(network).or_default().insert(name.to_owned());
        }
        plan.configurations.append(&mut attempt.configurations);
        plan.verdicts.insert(name.to_owned(), verdict);
    }
    plan
}

/// All advertisements, the oldest first: of two that are in each other's way, the newer one yields.
fn by_age(world: &World) -> Vec<(&str, &RouteAdvertisements)> {
    let all = world.advertisements.iter();
    let mut all: Vec<(&str, &RouteAdvertisements)> =
        all.map(|(key, object)| (key.name.as_str(), object.as_ref())).collect();
    all.sort_by_key(|(_, object)| {
        let created = object.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created.is_none(), created)
    });
    all
}

/// One RouteAdvertisements on its way to a verdict.
struct Attempt<'a> {
    world: &'a World,
    networks: &'a Networks,
    existing: &'a Existing<'a>,
    name: &'a str,
    spec: &'a RouteAdvertisementsSpec,
    configurations: BTreeMap<Key, Generated>,
    /// Networks whose pods it advertises.
    advertised: Vec<Arc<str>>,
}

/// What nodes wait for: the reason in full, and the nodes, by network; an address is no network.
type Waiting = BTreeMap<Option<Arc<str>>, (String, Vec<String>)>;

impl<'a> Attempt<'a> {
    fn judge(&mut self, claims: &mut Claims<'a>) -> Result<Verdict, Verdict> {
        self.check_request()?;
        let networks = self.networks.select(self.spec)?;
        let pods = self.spec.advertises(&AdvertisementType::PodNetwork);
        if pods {
            claims.take(self.name, self.spec.target(), &networks).map_err(Verdict::Error)?;
            if !is_empty(&self.spec.node_selector) {
                return error("node selector has to select all nodes if pod network is advertised");
            }
        }
        let nodes = self.nodes()?;
        let sources = self.sources()?;
        if pods {
            self.advertised = networks.iter().map(|known| Arc::clone(&known.name)).collect();
        }
        let request = Request::new(self.spec.target(), pods, networks);
        self.generate_all(&request, &nodes, &sources)
    }

    /// What can be told without looking at anything else.
    fn check_request(&self) -> Result<(), Verdict> {
        if self.name.len() > LABEL_MAX {
            return error(format!(
                "the name has {} characters and labels hold {LABEL_MAX}: use a shorter one",
                self.name.len()
            ));
        }
        for what in &self.spec.advertisements {
            match what {
                AdvertisementType::EgressIp if self.spec.target() == TargetVrf::Auto => {
                    return error("advertising EgressIP not supported with TargetVRF set to 'auto'");
                }
                AdvertisementType::PodNetwork | AdvertisementType::EgressIp => {}
                AdvertisementType::Other(word) => return error(format!("unsupported advertisement {word}")),
            }
        }
        if self.spec.advertisements.is_empty() { error("no advertisements") } else { Ok(()) }
    }

    fn nodes(&self) -> Result<Vec<&'a Node>, Verdict> {
        let selector =
            parse(&self.spec.node_selector).map_err(|error| bad_selector("nodeSelector", &error))?;
        let all = self.world.nodes.values().map(AsRef::as_ref);
        let nodes: Vec<&Node> = all.filter(|node| selector.matches(&node.labels)).collect();
        if nodes.is_empty() { pending("no nodes selected") } else { Ok(nodes) }
    }

    /// Configurations of users that are selected. Generated ones may match too; they count, but are no source.
    fn sources(&self) -> Result<Sources<'a>, Verdict> {
        let bad = |error: String| bad_selector("frrConfigurationSelector", &error);
        let selector = parse(&self.spec.frr_configuration_selector).map_err(bad)?;
        let none = BTreeMap::new();
        let (mut any, mut sources) = (false, Vec::new());
        for (key, configuration) in &self.world.frr_configurations {
            if !selector.matches(configuration.metadata.labels.as_ref().unwrap_or(&none)) {
                continue;
            }
            any = true;
            if !key.name.starts_with(PREFIX) {
                let bad =
                    |error: String| bad_selector(&format!("FRRConfiguration {key} nodeSelector"), &error);
                sources.push(Source::read(key, configuration).map_err(bad)?);
            }
        }
        if any { Ok(Sources::new(sources)) } else { pending("no FRRConfigurations selected") }
    }

    /// Generates what every node says. A node of which too little is known keeps what it has.
    fn generate_all(
        &mut self,
        request: &Request<'_>,
        nodes: &[&Node],
        sources: &Sources<'_>,
    ) -> Result<Verdict, Verdict> {
        let egress = self.spec.advertises(&AdvertisementType::EgressIp);
        let held = if egress { egress_prefixes(self.world, request.networks()) } else { BTreeMap::new() };
        let why = self.why(request);
        let (mut uncovered, mut waiting, mut leaks) = (Vec::new(), Waiting::new(), request.leaks());
        for node in nodes {
            let held = held.get(&node.name).map_or(&[][..], Vec::as_slice);
            let speech = Speech::new(request, node, held, self.existing.prefixes(self.name, &node.name));
            let (lacks, covering) = (waits(&speech, node), sources.covering(node));
            if speech.is_empty() && lacks.is_empty() {
                continue;
            }
            if covering.is_empty() {
                uncovered.push(node.name.clone());
                continue;
            }
            if speech.is_empty() || !speech.is_known() {
                self.keep(&node.name);
            } else {
                self.generate(&speech, node, &covering, &why, &mut leaks)?;
            }
            for (network, reason) in lacks {
                let (_, nodes) = waiting.entry(network).or_insert_with(|| (reason, Vec::new()));
                nodes.push(node.name.clone());
            }
        }
        if let (TargetVrf::Auto, Some(node)) = (self.spec.target(), uncovered.first()) {
            return Err(unmatched(node));
        }
        if waiting.is_empty() { Ok(Verdict::Accepted { uncovered }) } else { Err(waits_for(waiting)) }
    }

    fn generate(
        &mut self,
        speech: &Speech<'_>,
        node: &Node,
        covering: &[&Source<'_>],
        why: &Why,
        leaks: &mut Leaks<'_>,
    ) -> Result<(), Verdict> {
        let mut met = BTreeSet::new();
        for source in covering {
            match speech.through(source, &mut met, leaks).map_err(Verdict::Error)? {
                Spoken::Said(specs) => {
                    let why = because_of(why, source.key, node);
                    for (place, spec) in specs.into_iter().enumerate() {
                        let (key, metadata) = self.identity(source.key, node, place);
                        let object = FRRConfiguration { metadata, spec, status: None };
                        let there =
                            self.world.frr_configurations.get(&key).filter(|there| is(there, &object));
                        let object = there.cloned().unwrap_or_else(|| Arc::new(object));
                        self.configurations.insert(key, Generated { object, why: why.clone() });
                    }
                }
                Spoken::Silent => {}
                Spoken::NoRouter => {
                    return error(format!(
                        "FRRConfiguration {:?} selected for node {:?} has no VRF matching the RouteAdvertisements \
                         target VRF or any selected network",
                        source.key.name, node.name
                    ));
                }
            }
        }
        if speech.said_all(&met) { Ok(()) } else { Err(unmatched(&node.name)) }
    }

    /// Name, label and annotation follow from what the object is generated from: whoever generates it again finds it.
    /// Where one object is too small for all, the others have their place in the name.
    fn identity(&self, source: &Key, node: &Node, place: usize) -> (Key, ObjectMeta) {
        let place = place.to_string();
        let names = [self.name, &source.namespace, &source.name, &node.name, &place];
        let name = format!("{PREFIX}{}", digest(if place == "0" { &names[..4] } else { &names }));
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

    /// The advertisement, and the networks.
    fn why(&self, request: &Request<'_>) -> Why {
        let own = Why::from_object(self.object());
        let networks = request.networks().iter().filter_map(|known| known.object.clone());
        networks.take(REASONS).fold(own, Why::and)
    }

    fn object(&self) -> ObjectRef {
        ObjectRef::cluster("RouteAdvertisements", self.name)
    }

    /// Says that what was generated for a node before should stay.
    fn keep(&mut self, node: &str) {
        for (key, object) in self.existing.on(self.name, node) {
            self.stay(node, key, object);
        }
    }

    /// Says that all that was generated before should stay, and what is said of networks too.
    fn keep_all(&mut self) {
        self.configurations.clear();
        for (node, key, object) in self.existing.all(self.name) {
            self.stay(node, key, object);
        }
        self.advertised = self.existing.networks(self.name).map(Arc::from).collect();
    }

    fn stay(&mut self, node: &str, key: &Key, object: &Arc<FRRConfiguration>) {
        let why = Why::from_object(self.object()).and(ObjectRef::cluster("Node", node));
        self.configurations.insert(key.clone(), Generated { object: Arc::clone(object), why });
    }
}

/// Whether an object is what another one should be, with its marks.
fn is(there: &FRRConfiguration, wanted: &FRRConfiguration) -> bool {
    marks(there) == marks(wanted) && there.spec == wanted.spec
}

/// The label and the annotation that say what an object was generated from.
fn marks(of: &FRRConfiguration) -> (Option<&String>, Option<&String>) {
    let ObjectMeta { labels, annotations, .. } = &of.metadata;
    let label = labels.as_ref().and_then(|labels| labels.get(LABEL));
    (label, annotations.as_ref().and_then(|annotations| annotations.get(GeneratedFrom::KEY)))
}

fn because_of(why: &Why, source: &Key, node: &Node) -> Why {
    why.clone()
        .and(ObjectRef::namespaced("FRRConfiguration", &source.namespace, &source.name))
        .and(ObjectRef::cluster("Node", &node.name))
}

fn error<T>(text: impl Into<String>) -> Result<T, Verdict> {
    Err(Verdict::Error(text.into()))
}

fn pending<T>(text: &str) -> Result<T, Verdict> {
    Err(Verdict::Pending(text.to_owned()))
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

/// What a node lacks to advertise: a part of a network, or an address of its own.
fn waits(speech: &Speech<'_>, node: &Node) -> Vec<(Option<Arc<str>>, String)> {
    let problem = || {
        let problem = node.problems.iter().find(|problem| problem.contains(NodeSubnets::KEY));
        problem.map(|problem| format!(": {problem}")).unwrap_or_default()
    };
    let lacks = speech.lacks().map(|known| {
        let (name, node) = (&known.name, &node.name);
        let reason = format!(
            "will wait for subnet annotation to be set for node {node:?} and network {name:?}{}",
            problem()
        );
        (Some(Arc::clone(name)), reason)
    });
    let mut lacks: Vec<_> = lacks.collect();
    if lacks.is_empty() && !speech.is_known() {
        lacks.push((None, format!("will wait for an address of node {:?} to be known", node.name)));
    }
    lacks
}

fn waits_for(waiting: Waiting) -> Verdict {
    let more = waiting.len().saturating_sub(NAMED);
    let reasons = waiting.into_values().take(NAMED).map(|(reason, nodes)| match &nodes[1..] {
        [] => reason,
        others => format!("{reason}; the same for {}", named(others)),
    });
    let more = (more > 0).then(|| format!("and for {more} more networks"));
    Verdict::Pending(reasons.chain(more).collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests;
