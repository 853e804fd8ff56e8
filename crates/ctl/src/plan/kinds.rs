//! The kinds of objects that plans are made from: how each is called, what it may say, and how it enters a world.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::PartialObjectMeta;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use underlay_api::{
    ClusterUserDefinedNetwork, EgressIP, FRRConfiguration, NetworkAttachmentDefinition, RouteAdvertisements,
    UserDefinedNetwork,
};
use underlay_desired::ObjectRef;
use underlay_world::kind::key_of;
use underlay_world::{AnyAttachment, AnySlice, Definition, Key, Kind, Pod as PodRecord, World};

use super::schema::Schema;

/// Groups in which every kind is known here: another one is a slip of the pen.
const OWN_GROUPS: [&str; 2] = ["k8s.ovn.org", "frrk8s.metallb.io"];
/// Kinds of these groups that say how things are, not how they should be.
const STATES: [&str; 2] = ["FRRNodeState", "BGPSessionState"];

/// A kind of object.
#[derive(Debug)]
pub struct Known {
    /// Its name in manifests.
    pub kind: Cow<'static, str>,
    /// Its API group; empty for the core.
    pub group: Cow<'static, str>,
    /// The version that is read.
    pub version: Cow<'static, str>,
    /// Its name in addresses.
    pub plural: Cow<'static, str>,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether it is defined by us, with rules of its own.
    pub ours: bool,
    enter: fn(&mut World, Value) -> Result<(), serde_json::Error>,
    leave: fn(&mut World, &Key),
    make_schema: fn() -> Value,
    schema: OnceCell<Schema>,
}

/// All of them.
pub fn all() -> [Known; 11] {
    [
        Known { leave: leave_namespace, ..of::<Namespace>(false, core::<Namespace>) },
        of::<Node>(false, core::<Node>),
        Known { enter: enter_pod, leave: leave_pod, ..of::<Pod>(true, core::<Pod>) },
        of::<Service>(true, core::<Service>),
        Known { enter: enter_slice, leave: leave_slice, ..of::<EndpointSlice>(true, core::<EndpointSlice>) },
        Known {
            enter: enter_attachment,
            leave: leave_attachment,
            ..of::<NetworkAttachmentDefinition>(true, own::<NetworkAttachmentDefinition>)
        },
        Known {
            leave: leave_definition::<ClusterUserDefinedNetwork>,
            ours: true,
            ..of::<ClusterUserDefinedNetwork>(false, own::<ClusterUserDefinedNetwork>)
        },
        Known {
            leave: leave_definition::<UserDefinedNetwork>,
            ours: true,
            ..of::<UserDefinedNetwork>(true, own::<UserDefinedNetwork>)
        },
        Known { ours: true, ..of::<RouteAdvertisements>(false, own::<RouteAdvertisements>) },
        Known { ours: true, ..of::<EgressIP>(false, own::<EgressIP>) },
        Known { ours: true, ..of::<FRRConfiguration>(true, own::<FRRConfiguration>) },
    ]
}

/// What is to be done with an object of some kind.
#[derive(Debug)]
pub enum Found<'a> {
    /// It has a part in plans.
    Known(&'a Known),
    /// It has none, and that is fine.
    Elsewhere,
    /// It looks like one of ours and is none: why.
    Wrong(String),
}

/// Finds a kind by what a manifest says.
pub fn find<'a>(known: &'a [Known], version: &str, kind: &str) -> Found<'a> {
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let Some(found) = known.iter().find(|one| one.group == group && one.kind == kind) else {
        if !OWN_GROUPS.contains(&group) || STATES.contains(&kind) {
            return Found::Elsewhere;
        }
        let names: Vec<&str> =
            known.iter().filter(|one| one.group == group).map(|one| one.kind.as_ref()).collect();
        return Found::Wrong(format!("kind: there is no {kind} in {group}; write {}", names.join(" or ")));
    };
    if found.version != version {
        let wanted = found.api_version();
        return Found::Wrong(format!("apiVersion: {kind} is read in version {wanted}; write that"));
    }
    Found::Known(found)
}

impl Known {
    /// Group and version, as manifests have it.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone().into_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// How plans name an object.
    pub fn reference(&self, key: &Key) -> ObjectRef {
        if self.namespaced {
            ObjectRef::namespaced(&self.kind, &key.namespace, &key.name)
        } else {
            ObjectRef::cluster(&self.kind, &key.name)
        }
    }

    /// Puts an object into a world.
    pub fn enter(&self, world: &mut World, object: Value) -> Result<(), serde_json::Error> {
        (self.enter)(world, object)
    }

    /// Takes an object out of a world, as the API server does: one that is held stays until it is let go.
    pub fn leave(&self, world: &mut World, key: &Key) {
        (self.leave)(world, key);
    }

    /// What such objects may say.
    pub fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| Schema::new((self.make_schema)()))
    }
}

fn of<K>(namespaced: bool, make_schema: fn() -> Value) -> Known
where
    K: Kind + Resource<DynamicType = ()> + DeserializeOwned,
{
    Known {
        kind: K::kind(&()),
        group: K::group(&()),
        version: K::version(&()),
        plural: K::plural(&()),
        namespaced,
        ours: false,
        enter: |world, object| {
            put::<K>(world, serde_json::from_value(object)?);
            Ok(())
        },
        leave: |world, key| _ = K::store(world).remove(key),
        make_schema,
        schema: OnceCell::new(),
    }
}

/// Puts an object into a world; one that the world has no use for takes an older one of its name with it.
pub fn put<K: Kind + Resource>(world: &mut World, object: K) {
    let key = key_of(object.meta());
    let record = object.read();
    let store = K::store(world);
    match record {
        Some(record) => _ = store.insert(key, record),
        None => _ = store.remove(&key),
    }
}

/// Puts a pod into a world, for its node and for those who ask who uses a network.
pub fn put_pod(world: &mut World, pod: Pod) {
    let key = key_of(&pod.metadata);
    let metadata = pod.metadata.clone();
    let living = PodRecord::read(&pod).state == underlay_world::PodState::Living;
    put(world, pod);
    let attached = underlay_world::Attached::read(&metadata).filter(|_| living);
    match attached {
        Some(attached) => _ = world.attached.insert(key, Arc::new(attached)),
        None => _ = world.attached.remove(&key),
    }
}

/// Puts an attachment definition into a world, for those who read it and for those who write it.
pub fn put_attachment(world: &mut World, object: NetworkAttachmentDefinition) {
    put(world, AnyAttachment(object.clone()));
    put(world, object);
}

/// Puts an endpoint slice into a world, for those who read it and for those who write it.
pub fn put_slice(world: &mut World, object: EndpointSlice) {
    put(world, AnySlice(object.clone()));
    put(world, object);
}

fn enter_slice(world: &mut World, object: Value) -> Result<(), serde_json::Error> {
    put_slice(world, serde_json::from_value(object)?);
    Ok(())
}

/// Takes an endpoint slice out of a world.
pub fn leave_slice(world: &mut World, key: &Key) {
    world.any_slices.remove(key);
    world.slices.remove(key);
}

fn enter_pod(world: &mut World, mut object: Value) -> Result<(), serde_json::Error> {
    // Of what is inside a pod nothing matters here, and it may be written in more ways than one.
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|field, _| field == "nodeName" || field == "hostNetwork");
        spec.insert("containers".to_owned(), json!([]));
    }
    put_pod(world, serde_json::from_value(object)?);
    Ok(())
}

fn leave_pod(world: &mut World, key: &Key) {
    Pod::store(world).remove(key);
    PartialObjectMeta::<Pod>::store(world).remove(key);
}

fn enter_attachment(world: &mut World, object: Value) -> Result<(), serde_json::Error> {
    put_attachment(world, serde_json::from_value(object)?);
    Ok(())
}

fn leave_attachment(world: &mut World, key: &Key) {
    world.attachments.remove(key);
    world.nads.remove(key);
}

/// A definition that is held stays until nothing of it is left.
fn leave_definition<K: Kind<Record = Arc<Definition>>>(world: &mut World, key: &Key) {
    let store = K::store(world);
    match store.get_mut(key) {
        Some(definition) if definition.protected => {
            Arc::make_mut(definition).ending = true;
        }
        _ => _ = store.remove(key),
    }
}

/// With a namespace goes what is in it. Attachments of networks that reach further go with the next plan.
fn leave_namespace(world: &mut World, Key { name, .. }: &Key) {
    let stays = |key: &Key| key.namespace != *name;
    world.pods.retain(|key, _| stays(key));
    world.attached.retain(|key, _| stays(key));
    world.services.retain(|key, _| stays(key));
    world.slices.retain(|key, _| stays(key));
    world.any_slices.retain(|key, _| stays(key));
    world.frr_configurations.retain(|key, _| stays(key));
    world.attachments.retain(|key, attachment| stays(key) || attachment.made_from().is_some());
    let World { nads, attachments, .. } = world;
    nads.retain(|key, _| attachments.contains_key(key));
    let networks: Vec<Key> = world.networks.keys().filter(|key| !stays(key)).cloned().collect();
    for key in &networks {
        leave_definition::<UserDefinedNetwork>(world, key);
    }
    world.namespaces.remove(&Key::cluster(name));
}

/// The schema of one of Kubernetes' own kinds.
fn core<K: schemars::JsonSchema>() -> Value {
    schemars::SchemaGenerator::default().into_root_schema_for::<K>().to_value()
}

/// The schema of a kind that is defined in `deploy/crds`, and of the metadata that all have.
fn own<K: kube::CustomResourceExt>() -> Value {
    let name = K::crd().name_any();
    let definition = underlay_api::crds::all().into_iter().find(|one| one.name_any() == name);
    let version = definition.and_then(|definition| definition.spec.versions.into_iter().next());
    let schema = version.and_then(|version| version.schema?.open_api_v3_schema);
    let mut schema = schema.and_then(|schema| serde_json::to_value(schema).ok()).unwrap_or_else(|| json!({}));
    let mut metadata = core::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>();
    schema["$defs"] = metadata.as_object_mut().and_then(|root| root.remove("$defs")).unwrap_or_default();
    schema["properties"]["metadata"] = metadata;
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_group_version_and_name() {
        let known = all();
        let find = |version: &str, kind: &str| match find(&known, version, kind) {
            Found::Known(known) => known.plural.clone().into_owned(),
            Found::Elsewhere => "elsewhere".to_owned(),
            Found::Wrong(why) => why,
        };
        assert_eq!(find("v1", "Node"), "nodes");
        assert_eq!(find("discovery.k8s.io/v1", "EndpointSlice"), "endpointslices");
        assert_eq!(find("apps/v1", "Deployment"), "elsewhere");
        assert_eq!(find("frrk8s.metallb.io/v1beta1", "FRRNodeState"), "elsewhere");
        assert_eq!(
            find("k8s.ovn.org/v1", "ClusterUserDefinedNetworks"),
            "kind: there is no ClusterUserDefinedNetworks in k8s.ovn.org; write ClusterUserDefinedNetwork or \
             UserDefinedNetwork or RouteAdvertisements or EgressIP"
        );
        assert_eq!(
            find("k8s.ovn.org/v1beta1", "UserDefinedNetwork"),
            "apiVersion: UserDefinedNetwork is read in version k8s.ovn.org/v1; write that"
        );
    }

    #[test]
    fn every_kind_has_a_schema() {
        for known in all() {
            let schema = (known.make_schema)();
            assert!(schema["properties"]["metadata"].is_object(), "{}: {schema}", known.kind);
        }
    }
}
