//! Attachment definitions: one for every network in every namespace that has it.
//!
//! In: networks with their numbers and namespaces, the attachments that are there, and the pods that use them. Out:
//! what is to be made, mended, let go and removed. Only what carries our mark is touched, and nothing that a pod uses
//! goes.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde_json::{Map, Value, json};
use underlay_api::NetworkAttachmentDefinition;
use underlay_api::annotations::{Annotation, NetworkId, NetworkName};
use underlay_api::nad::{NetConf, NetworkAttachmentDefinitionSpec};
use underlay_api::network::{
    API_VERSION, FINALIZER, NETWORK_LABEL, Network, OWN_ANNOTATIONS, Topology, conditions,
};
use underlay_desired::ObjectRef;
use underlay_net::Family;
use underlay_net::cidr::{next_block, overlap};
use underlay_world::{Attached, Attachment, Definition, Key, Scope, Settings, World};

use super::numbers::tunnel_keys;
use super::{Tenant, object};
use crate::cluster::fabric;

/// Pods that a message names before it only counts them.
const NAMED: usize = 10;
/// Ranges that are tried before a network without room for its routers is left to the first.
const TRIES: usize = 10;

/// Something is done to an attachment definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The definition of the network; nothing where that is gone.
    pub of: Option<ObjectRef>,
    /// What is done.
    pub step: Step,
}

/// What is done to an attachment definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Step {
    /// It is made.
    Create(Box<NetworkAttachmentDefinition>),
    /// The very one with this uid is put right, by a merge patch.
    Repair {
        /// Its identity.
        uid: String,
        /// What differs.
        patch: Value,
    },
    /// The very one with this uid, which somebody deleted, is let go, and made again where it should be.
    Release {
        /// Its identity.
        uid: String,
        /// What is made instead.
        again: Option<Box<NetworkAttachmentDefinition>>,
    },
    /// The very one with this uid is let go and deleted.
    Delete {
        /// Its identity.
        uid: String,
    },
}

/// Plans all attachments, and tells networks which of theirs are there and which cannot go. Returns what is done, and
/// whether something waits for pods to end.
pub fn plan<'a>(
    tenants: &mut [Tenant<'a>],
    world: &'a World,
    settings: &Settings,
) -> (BTreeMap<Key, Change>, bool) {
    let (mut changes, mut waits) = (BTreeMap::new(), false);
    let mut orphans: BTreeMap<(Scope, &str, &str), Vec<&'a Attachment>> = BTreeMap::new();
    for attachment in world.attachments.values() {
        if let Some((scope, name)) = attachment.made_from() {
            let namespace = if scope == Scope::Namespace { attachment.key.namespace.as_str() } else { "" };
            orphans.entry((scope, namespace, name)).or_default().push(attachment);
        }
    }
    let users = Users { world, index: OnceCell::new() };
    for tenant in tenants {
        let Key { namespace, name } = &tenant.definition.key;
        tenant.made = orphans.remove(&(tenant.definition.scope(), namespace, name)).unwrap_or_default();
        let of = Some(object(tenant.definition));
        let (steps, waiting) = of_tenant(tenant, &users, settings);
        waits |= waiting;
        changes.extend(steps.into_iter().map(|(key, step)| (key, Change { of: of.clone(), step })));
    }
    for attachment in orphans.into_values().flatten() {
        if !users.of(&attachment.key).is_empty() {
            waits = true;
        } else if let Some(step) = leave(attachment, None) {
            changes.insert(attachment.key.clone(), Change { of: None, step });
        }
    }
    (changes, waits)
}

fn of_tenant(tenant: &mut Tenant<'_>, users: &Users<'_>, settings: &Settings) -> (Vec<(Key, Step)>, bool) {
    let (mut steps, mut waits) = (Vec::new(), false);
    let mut missing = tenant.wanted.clone();
    for attachment in tenant.made.clone() {
        let namespace = attachment.key.namespace.as_str();
        let wanted = missing.remove(namespace).then(|| render(tenant, namespace, settings)).flatten();
        // What was made stays as it is while the definition, or one namespace, cannot be as written.
        let stays = !tenant.definition.ending
            && (tenant.stays().is_none() || tenant.refused.contains(namespace) || tenant.number.is_none());
        let step = match wanted {
            Some(wanted) if !attachment.ending => repair(attachment, &wanted),
            None if !attachment.ending && stays => None,
            wanted => match users.of(&attachment.key).as_slice() {
                [] => leave(attachment, wanted),
                pods => {
                    waits = true;
                    let pods: Vec<&str> = pods.iter().map(String::as_str).collect();
                    tenant.problems.push(conditions::in_use(namespace, &attachment.key.name, &pods));
                    None
                }
            },
        };
        steps.extend(step.map(|step| (attachment.key.clone(), step)));
    }
    for namespace in missing {
        let key = Key::new(namespace, &tenant.definition.key.name);
        steps.extend(render(tenant, namespace, settings).map(|made| (key, Step::Create(Box::new(made)))));
    }
    (steps, waits)
}

/// The way out of an attachment that nobody uses. One that is on its way and held by others only is waited for.
fn leave(attachment: &Attachment, wanted: Option<NetworkAttachmentDefinition>) -> Option<Step> {
    let uid = attachment.uid.clone();
    if !attachment.ending {
        return Some(Step::Delete { uid });
    }
    let held = attachment.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    held.then(|| Step::Release { uid, again: wanted.map(Box::new) })
}

/// The attachment of a network in a namespace.
fn render(tenant: &Tenant<'_>, namespace: &str, settings: &Settings) -> Option<NetworkAttachmentDefinition> {
    let (definition, network) = (tenant.definition, tenant.stays()?);
    let mut config = NetConf::new(&tenant.name, namespace, &definition.key.name, network.clone());
    complete(&mut config, settings);
    let mut labels = definition.labels.clone();
    fabric::put_mark(definition, settings, &mut labels);
    labels.insert(NETWORK_LABEL.to_owned(), String::new());
    let mut annotations = definition.annotations.clone();
    NetworkId(tenant.number?).put(&mut annotations);
    NetworkName(tenant.name.to_string()).put(&mut annotations);
    tunnel_keys(tenant).put(&mut annotations);
    Some(NetworkAttachmentDefinition {
        metadata: ObjectMeta {
            name: Some(definition.key.name.clone()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner(definition)]),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: NetworkAttachmentDefinitionSpec { config: config.render() },
    })
}

fn owner(definition: &Definition) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: definition.scope().kind().to_owned(),
        name: definition.key.name.clone(),
        uid: definition.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Adds what the cluster knows and the definition leaves open.
fn complete(config: &mut NetConf, settings: &Settings) {
    let Some(network) = &mut config.network else { return };
    match network.topology {
        // Nothing is put around packets that leave the cluster's tunnels out.
        Topology::Localnet(_) => {
            network.mtu.get_or_insert(settings.mtu.saturating_add(100));
        }
        Topology::Layer2(_) if network.is_primary() => {
            config.transit_subnets = transit(network, settings);
        }
        _ => {}
    }
}

/// Ranges between the routers of a network: the cluster's, or the next of its size that the network leaves free.
fn transit(network: &Network, settings: &Settings) -> Vec<ipnet::IpNet> {
    let subnets = network.subnets();
    let taken = |net: &ipnet::IpNet| subnets.iter().chain(&network.join_subnets).any(|own| overlap(own, net));
    let of = |family| {
        let first = settings.transit.of(family);
        let tried = std::iter::successors(Some(first), next_block).take(TRIES);
        tried.into_iter().find(|net| !taken(net)).unwrap_or(first)
    };
    Family::ALL.into_iter().filter(|family| network.has(*family)).map(of).collect()
}

/// What it takes to make an attachment what it should be; nothing if it is that. Annotations of the family that we do
/// not write stay.
fn repair(have: &Attachment, want: &NetworkAttachmentDefinition) -> Option<Step> {
    let mut metadata = Map::new();
    let none = BTreeMap::new();
    let labels = difference(&have.labels, want.metadata.labels.as_ref().unwrap_or(&none), |_| true);
    let others = |key: &str| !key.starts_with(OWN_ANNOTATIONS);
    let annotations =
        difference(&have.annotations, want.metadata.annotations.as_ref().unwrap_or(&none), others);
    for (field, changes) in [("labels", labels), ("annotations", annotations)] {
        if !changes.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(changes));
        }
    }
    let owners = want.metadata.owner_references.as_deref().unwrap_or_default();
    if have.owners != owners {
        metadata.insert("ownerReferences".to_owned(), json!(owners));
    }
    if !have.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        let all: Vec<&str> = have.finalizers.iter().map(String::as_str).chain([FINALIZER]).collect();
        metadata.insert("finalizers".to_owned(), json!(all));
    }
    let mut patch = json!({});
    if have.text != want.spec.config {
        patch["spec"] = json!({ "config": want.spec.config });
    }
    if metadata.is_empty() && patch.get("spec").is_none() {
        return None;
    }
    metadata.insert("uid".to_owned(), json!(have.uid));
    patch["metadata"] = Value::Object(metadata);
    Some(Step::Repair { uid: have.uid.clone(), patch })
}

/// The merge patch from one map to another; of keys that are not wanted, only those that may go.
pub(super) fn difference(
    have: &BTreeMap<String, String>,
    want: &BTreeMap<String, String>,
    may_go: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    let set = want.iter().filter(|(key, value)| have.get(*key) != Some(value));
    let gone = have.keys().filter(|key| !want.contains_key(*key) && may_go(key));
    let set = set.map(|(key, value)| (key.clone(), json!(value)));
    set.chain(gone.map(|key| (key.clone(), Value::Null))).collect()
}

/// Pods that use attachments. The index is made when the first asks: mostly nobody does.
struct Users<'a> {
    world: &'a World,
    index: OnceCell<BTreeMap<&'a str, Vec<&'a Key>>>,
}

impl Users<'_> {
    /// Pods that use an attachment, or may. Many are counted, not named.
    fn of(&self, attachment: &Key) -> Vec<String> {
        let index = self.index.get_or_init(|| {
            let mut index: BTreeMap<&str, Vec<&Key>> = BTreeMap::new();
            for (pod, attached) in &self.world.attached {
                for name in attached.names() {
                    index.entry(name).or_default().push(pod);
                }
                if **attached == Attached::Unreadable {
                    index.entry(&pod.namespace).or_default().push(pod);
                }
            }
            index
        });
        let named = index.get(attachment.to_string().as_str());
        let unreadable = index.get(attachment.namespace.as_str());
        let all: Vec<String> =
            named.into_iter().chain(unreadable).flatten().map(ToString::to_string).collect();
        let more = all.len().saturating_sub(NAMED);
        let mut shown: Vec<String> = all.into_iter().take(NAMED).collect();
        if more > 0 {
            shown.push(format!("and {more} more"));
        }
        shown
    }
}
