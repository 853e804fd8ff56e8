//! Endpoints of services in networks of tenants.
//!
//! In: the endpoint slices that the cluster's controllers write, which have the pods' addresses in the default network;
//! the attachment definitions of namespaces; and the pods' addresses in their own network. Out: for every such slice of
//! a namespace with a primary network, one with the same endpoints at their addresses in that network, to be made,
//! mended and removed. Only slices that carry our mark are touched.
//!
//! A namespace is planned from what is in it and from nothing else, so whoever hears of a change plans that namespace.
//!
//! An endpoint that is a pod without an address in the network is left out until it has one: it has not started yet, or
//! lives in its node's network, where the tenant's pods do not reach it. An endpoint that is no pod stays as it is
//! written. Headless services have slices like all others. Slices that people write themselves are left to them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde_json::{Map, Value, json};
use underlay_net::Family;
use underlay_world::service::{NETWORK_NAME, NETWORK_SERVICE_NAME};
use underlay_world::slice::{MANAGED_BY, OURS, Origin, pod_of};
use underlay_world::{Key, Slice, World, within};

use super::attachments::difference;
use crate::cluster::digest;

/// Annotation with the name of the slice that another was made from. Too long for a label at times.
pub const SOURCE: &str = "k8s.ovn.org/source-endpointslice";
/// Label with the version of the slice that another was made from.
pub const SOURCE_VERSION: &str = "k8s.ovn.org/source-endpointslice-version";
/// Longest value of a label.
const LABEL_LENGTH: usize = 63;
/// Longest name of an object.
const NAME_LENGTH: usize = 253;

/// What is done to an endpoint slice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Step {
    /// It is made.
    Create(Box<EndpointSlice>),
    /// The very one with this uid is put right, by a merge patch.
    Repair {
        /// Its identity.
        uid: String,
        /// What differs.
        patch: Value,
    },
    /// The very one with this uid is deleted.
    Delete {
        /// Its identity.
        uid: String,
    },
}

/// A primary network of a namespace.
#[derive(Default)]
struct Primary {
    /// The attachment definitions that say so, as `<namespace>/<name>`. Mostly one.
    attachments: Vec<String>,
    families: BTreeSet<Family>,
}

/// Plans all namespaces.
pub fn plan(world: &World) -> BTreeMap<Key, Step> {
    let primary = world.attachments.values().filter(|attachment| attachment.primary);
    let ours = world.any_slices.values().filter(|slice| slice.is_ours());
    let namespaces: BTreeSet<&str> = primary
        .map(|attachment| attachment.key.namespace.as_str())
        .chain(ours.map(|slice| slice.key.namespace.as_str()))
        .collect();
    plan_within(world, namespaces)
}

/// Plans these namespaces.
pub fn plan_within<'a>(world: &World, namespaces: impl IntoIterator<Item = &'a str>) -> BTreeMap<Key, Step> {
    let mut steps = BTreeMap::new();
    for namespace in namespaces {
        of_namespace(world, namespace, &mut steps);
    }
    steps
}

fn of_namespace(world: &World, namespace: &str, steps: &mut BTreeMap<Key, Step>) {
    let mut wanted = wanted(world, namespace);
    for (key, slice) in within(&world.any_slices, namespace).filter(|(_, slice)| slice.is_ours()) {
        let step = compare(slice, wanted.remove(key));
        steps.extend(step.map(|step| (key.clone(), step)));
    }
    let ending = world.namespaces.get(&Key::cluster(namespace)).is_some_and(|namespace| namespace.ending);
    if !ending {
        steps.extend(wanted.into_iter().map(|(key, slice)| (key, Step::Create(Box::new(slice)))));
    }
}

/// The slices that a namespace should have for its primary network.
fn wanted(world: &World, namespace: &str) -> BTreeMap<Key, EndpointSlice> {
    let mut networks: BTreeMap<&str, Primary> = BTreeMap::new();
    for (key, attachment) in within(&world.attachments, namespace) {
        if let Some(network) = attachment.network.as_deref().filter(|_| attachment.primary) {
            let primary = networks.entry(network).or_default();
            primary.attachments.push(key.to_string());
            primary.families.extend(&attachment.families);
        }
    }
    let mut wanted = BTreeMap::new();
    if networks.is_empty() {
        return wanted;
    }
    for (_, source) in within(&world.any_slices, namespace) {
        for (network, primary) in &networks {
            let made = mirror(world, source, network, primary);
            // A name that somebody else's slice has is not free.
            let free = |(key, _): &(Key, _)| world.any_slices.get(key).is_none_or(|slice| slice.is_ours());
            if let Some((key, made)) = made.filter(free) {
                wanted.entry(key).or_insert(made);
            }
        }
    }
    wanted
}

/// What a network has for a slice of the cluster's; nothing if it lacks the family.
fn mirror(world: &World, source: &Slice, network: &str, primary: &Primary) -> Option<(Key, EndpointSlice)> {
    let Origin::Cluster { service, version } = &source.origin else { return None };
    let family = source.family.filter(|family| primary.families.contains(family))?;
    let name = name(&source.key.name, network);
    let mut labels = BTreeMap::from([
        (MANAGED_BY.to_owned(), OURS.to_owned()),
        (NETWORK_SERVICE_NAME.to_owned(), service.clone()),
    ]);
    let mut annotations = BTreeMap::from([
        (NETWORK_NAME.to_owned(), network.to_owned()),
        (SOURCE.to_owned(), source.key.name.clone()),
    ]);
    let short = version.len() <= LABEL_LENGTH && version.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let place = if short { &mut labels } else { &mut annotations };
    place.insert(SOURCE_VERSION.to_owned(), version.clone());
    let endpoints = source.endpoints.iter().filter_map(|endpoint| {
        let address = pod_of(endpoint).map(|pod| address(world, source, pod, endpoint, primary, family));
        match address {
            None => Some(endpoint.clone()),
            Some(address) => Some(Endpoint { addresses: vec![address?], ..endpoint.clone() }),
        }
    });
    let made = EndpointSlice {
        address_type: address_type(family).to_owned(),
        endpoints: endpoints.collect(),
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(source.key.namespace.clone()),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner(source)]),
            ..ObjectMeta::default()
        },
        ports: source.ports.clone(),
    };
    Some((Key { namespace: source.key.namespace.clone(), name }, made))
}

/// Where a pod is in the network, if it is there, and is still the one that was meant.
fn address(
    world: &World,
    source: &Slice,
    (pod, uid): (&str, Option<&str>),
    endpoint: &Endpoint,
    primary: &Primary,
    family: Family,
) -> Option<String> {
    let namespace = source.key.namespace.as_str();
    let elsewhere =
        endpoint.target_ref.as_ref()?.namespace.as_deref().is_some_and(|other| other != namespace);
    let attached = world.attached.get(&Key::new(namespace, pod)).filter(|_| !elsewhere)?;
    let attached = attached.is(uid).then_some(attached)?;
    primary.attachments.iter().find_map(|name| attached.address(name, family)).map(|found| found.to_string())
}

/// A name that follows from the source and the network, so that no slice is ever made twice.
fn name(source: &str, network: &str) -> String {
    let digits = digest(&[network, source]);
    let room = NAME_LENGTH - digits.len() - 1;
    // Names of objects have nothing but ASCII.
    let start =
        source.get(..room).unwrap_or(source).trim_end_matches(|last: char| !last.is_ascii_alphanumeric());
    format!("{start}-{digits}")
}

/// It goes with its source, whether we are there or not. Nothing waits for it: that takes no further rights.
fn owner(source: &Slice) -> OwnerReference {
    OwnerReference {
        api_version: "discovery.k8s.io/v1".to_owned(),
        kind: "EndpointSlice".to_owned(),
        name: source.key.name.clone(),
        uid: source.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

/// What it takes to make a slice of ours what it should be.
fn compare(have: &Slice, want: Option<EndpointSlice>) -> Option<Step> {
    let Origin::Ours { labels, annotations, owners, ending } = &have.origin else { return None };
    let uid = have.uid.clone();
    if *ending {
        return None;
    }
    // The kind of address is for life.
    let type_ = have.family.map(address_type);
    let Some(want) = want.filter(|want| type_ == Some(want.address_type.as_str())) else {
        return Some(Step::Delete { uid });
    };
    let mut metadata = Map::new();
    let none = BTreeMap::new();
    let labels = difference(labels, want.metadata.labels.as_ref().unwrap_or(&none), |_| true);
    let annotations = difference(annotations, want.metadata.annotations.as_ref().unwrap_or(&none), |key| {
        key == SOURCE_VERSION
    });
    for (field, changes) in [("labels", labels), ("annotations", annotations)] {
        if !changes.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(changes));
        }
    }
    if want.metadata.owner_references.as_ref() != Some(owners) {
        metadata.insert("ownerReferences".to_owned(), json!(want.metadata.owner_references));
    }
    let mut patch = Map::new();
    if have.endpoints != want.endpoints {
        patch.insert("endpoints".to_owned(), json!(want.endpoints));
    }
    if have.ports != want.ports {
        patch.insert("ports".to_owned(), json!(want.ports));
    }
    if metadata.is_empty() && patch.is_empty() {
        return None;
    }
    metadata.insert("uid".to_owned(), json!(uid));
    patch.insert("metadata".to_owned(), Value::Object(metadata));
    Some(Step::Repair { uid, patch: Value::Object(patch) })
}

/// How slices name a family.
fn address_type(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

#[cfg(test)]
mod tests;
