//! What becomes of a world when the cluster manager is let work: plan after plan is carried out, until one asks for
//! nothing more.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use underlay_api::annotations::{Annotation, NetworkId};
use underlay_api::nad::NetworkAttachmentDefinitionSpec;
use underlay_api::{FRRConfiguration, NetworkAttachmentDefinition, RouteAdvertisements};
use underlay_desired::ObjectRef;
use underlay_net::Family;
use underlay_plan::cluster::advertise::{self, Advertised, is_generated};
use underlay_plan::cluster::networks::{self, Amend, Step, Told, slices};
use underlay_plan::cluster::{Generated, Numbers, Problem, Verdict, egress, fabric, nodes, transport};
use underlay_world::slice::Origin;
use underlay_world::{Attachment, Key, Kind, Settings, Slice, World};

use super::kinds::{leave_slice, put_attachment, put_slice};

/// Plans after which a world that does not come to rest is shown as it is. Removing a network takes four.
const PLANS: usize = 12;

/// A world at rest.
#[derive(Debug, Clone, Default)]
pub struct Settled {
    /// All that is there.
    pub world: World,
    /// What is said of each network.
    pub networks: BTreeMap<ObjectRef, Told>,
    /// Generated configurations, with their reasons.
    pub configurations: BTreeMap<Key, Generated>,
    /// Generated advertisements, with their reasons.
    pub advertisements: BTreeMap<Key, Generated<RouteAdvertisements>>,
    /// What is said of each RouteAdvertisements.
    pub verdicts: BTreeMap<String, Verdict>,
    /// Who holds egress IPs, and what cannot be.
    pub egress_ips: BTreeMap<Key, egress::Told>,
    /// What nodes cannot have.
    pub problems: Vec<Problem>,
}

/// Lets a world come to rest.
pub fn settle(mut world: World, settings: &Settings) -> Settled {
    let mut numbers = Numbers::default();
    let mut settled = Settled::default();
    for _ in 0..PLANS {
        let mut networks = networks::plan(&world, settings, &numbers);
        let given = nodes::plan(&world, settings, Some(&networks.parts));
        for (node, given) in &given.given {
            given.record(node, &mut world);
        }
        networks::record_labels(&networks.told, &mut world);
        let fabric = fabric::plan(&world, settings, true);
        let connected = fabric.record(&mut world);
        let egress_ips = egress::plan(&world, settings);
        egress::record(&egress_ips, &mut world);
        let mut advertised = advertise::plan(&world, settings, &networks.numbers);
        networks::announce(&mut networks.attachments, &world, &advertised.advertisers);
        let mut busy = connected || !given.given.is_empty() || !networks.attachments.is_empty();
        busy |= write_configurations(&mut world, &advertised);
        busy |= egress_ips.values().any(|told| told.news);
        for (object, amend) in
            networks.told.iter().filter_map(|(object, told)| Some((object, told.amend.as_ref()?)))
        {
            carry_out(&mut world, object, amend);
            busy = true;
        }
        for (key, change) in &networks.attachments {
            take_step(&mut world, key, &change.step);
        }
        let of_slices = slices::plan(&world);
        busy |= !of_slices.is_empty();
        for (key, step) in &of_slices {
            mend_slice(&mut world, key, step);
        }
        numbers = networks.numbers;
        let mut told = networks.told;
        transport::judge(&mut told, &world, settings, Some(&advertised.verdicts));
        advertised.configurations.extend(fabric.configurations);
        settled = Settled {
            world: World::default(),
            networks: told,
            configurations: advertised.configurations,
            advertisements: fabric.advertisements,
            verdicts: advertised.verdicts,
            egress_ips,
            problems: given.problems,
        };
        if !busy {
            break;
        }
    }
    // Of a definition that went in the last plan nothing is said any more.
    settled.networks.retain(|object, _| definition(&mut world, object).is_some());
    Settled { world, ..settled }
}

/// Holds a definition, or lets it go.
fn carry_out(world: &mut World, object: &ObjectRef, amend: &Amend) {
    if let (true, Some(definition)) = (amend.protected, definition(world, object)) {
        definition.protected = true;
        amend.relabel(definition);
        let number = amend.annotations.get(NetworkId::KEY).and_then(Option::as_ref);
        definition.id = number.and_then(|text| NetworkId::parse(text).ok()).or(definition.id);
        return;
    }
    let key = Key::new(object.namespace.as_deref().unwrap_or_default(), &object.name);
    match object.namespace {
        None => _ = world.cluster_networks.remove(&key),
        Some(_) => _ = world.networks.remove(&key),
    }
}

fn definition<'a>(world: &'a mut World, object: &ObjectRef) -> Option<&'a mut underlay_world::Definition> {
    let key = Key::new(object.namespace.as_deref().unwrap_or_default(), &object.name);
    let store = if object.namespace.is_some() { &mut world.networks } else { &mut world.cluster_networks };
    store.get_mut(&key).map(Arc::make_mut)
}

/// Makes, mends or removes an attachment definition.
fn take_step(world: &mut World, key: &Key, step: &Step) {
    let (made, gone) = match step {
        Step::Create(object) => (Some(object.as_ref().clone()), false),
        Step::Repair { patch, .. } => {
            (world.attachments.get(key).and_then(|have| mended(have, patch)), false)
        }
        Step::Release { again, .. } => (again.as_deref().cloned(), true),
        Step::Delete { .. } => (None, true),
    };
    if gone {
        world.attachments.remove(key);
        world.nads.remove(key);
    }
    if let Some(object) = made {
        put_attachment(world, object);
    }
}

fn mended(have: &Attachment, patch: &Value) -> Option<NetworkAttachmentDefinition> {
    let object = NetworkAttachmentDefinition {
        metadata: ObjectMeta {
            name: Some(have.key.name.clone()),
            namespace: Some(have.key.namespace.clone()),
            uid: Some(have.uid.clone()),
            labels: Some(have.labels.clone()),
            annotations: Some(have.annotations.clone()),
            owner_references: Some(have.owners.clone()),
            finalizers: Some(have.finalizers.clone()),
            ..ObjectMeta::default()
        },
        spec: NetworkAttachmentDefinitionSpec { config: have.text.clone() },
    };
    let mut object = serde_json::to_value(object).ok()?;
    merge(&mut object, patch);
    serde_json::from_value(object).ok()
}

/// Makes, mends or removes an endpoint slice.
fn mend_slice(world: &mut World, key: &Key, step: &slices::Step) {
    let made = match step {
        slices::Step::Create(object) => Some(object.as_ref().clone()),
        slices::Step::Repair { patch, .. } => {
            world.any_slices.get(key).and_then(|have| mended_slice(have, patch))
        }
        slices::Step::Delete { .. } => None,
    };
    match made {
        Some(object) => put_slice(world, object),
        None => leave_slice(world, key),
    }
}

fn mended_slice(have: &Slice, patch: &Value) -> Option<EndpointSlice> {
    let Origin::Ours { labels, annotations, owners, .. } = &have.origin else { return None };
    let object = EndpointSlice {
        address_type: match have.family? {
            Family::V4 => "IPv4".to_owned(),
            Family::V6 => "IPv6".to_owned(),
        },
        endpoints: have.endpoints.clone(),
        ports: have.ports.clone(),
        metadata: ObjectMeta {
            name: Some(have.key.name.clone()),
            namespace: Some(have.key.namespace.clone()),
            uid: Some(have.uid.clone()),
            labels: Some(labels.clone()),
            annotations: Some(annotations.clone()),
            owner_references: Some(owners.clone()),
            ..ObjectMeta::default()
        },
    };
    let mut object = serde_json::to_value(object).ok()?;
    merge(&mut object, patch);
    serde_json::from_value(object).ok()
}

/// A merge patch, as the API server understands it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return *target = patch.clone() };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            if let Some(target) = target.as_object_mut() {
                target.remove(name);
            }
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// Writes generated configurations and removes those that are no longer wanted. Returns whether anything changed.
fn write_configurations(world: &mut World, advertised: &Advertised) -> bool {
    let wanted = &advertised.configurations;
    let unwanted: Vec<Key> = world
        .frr_configurations
        .iter()
        .filter(|(key, object)| is_generated(key, object) && !wanted.contains_key(*key))
        .map(|(key, _)| key.clone())
        .collect();
    let mut changed = !unwanted.is_empty();
    for key in &unwanted {
        world.frr_configurations.remove(key);
    }
    for (key, Generated { object, .. }) in wanted {
        let there = world.frr_configurations.get(key).is_some_and(|there| there.spec == object.spec);
        if !there {
            changed = true;
            if let Some(record) = FRRConfiguration::read(object.as_ref().clone()) {
                world.frr_configurations.insert(key.clone(), record);
            }
        }
    }
    changed
}
