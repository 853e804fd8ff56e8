//! What an API server would hold, and what becomes of it when plans are carried out.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use underlay_api::network::FINALIZER;
use underlay_api::{ClusterUserDefinedNetwork, NetworkAttachmentDefinition, UserDefinedNetwork};
use underlay_net::alloc::SubnetRange;
use underlay_world::kind::key_of;
use underlay_world::{AnyAttachment, Key, Kind, Node, Settings, World};

use super::super::{NetworksPlan, Numbers, Step, plan};
use crate::cluster::nodes;

/// The objects of a cluster, as they are stored.
#[derive(Clone)]
pub struct Server {
    pub definitions: BTreeMap<String, Value>,
    pub namespaces: BTreeMap<String, Value>,
    pub attachments: BTreeMap<String, Value>,
    pub pods: BTreeMap<String, Value>,
    pub nodes: BTreeMap<String, Value>,
    pub settings: Settings,
    /// What the leader remembers of its last plan.
    pub known: Numbers,
    serial: u32,
}

pub fn range(net: &str, length: u8) -> SubnetRange {
    SubnetRange::new(net.parse().unwrap(), length).unwrap()
}

impl Server {
    /// A cluster with these nodes.
    pub fn new(nodes: &[&str]) -> Self {
        let settings = Settings { cluster_subnets: vec![range("10.128.0.0/14", 23)], ..Settings::default() };
        let mut server = Self {
            definitions: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            attachments: BTreeMap::new(),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            settings,
            known: Numbers::default(),
            serial: 0,
        };
        for name in nodes {
            let node = server.stored(json!({ "metadata": { "name": name } }));
            server.nodes.insert((*name).to_owned(), node);
        }
        server
    }

    fn stored(&mut self, mut object: Value) -> Value {
        self.serial += 1;
        object["metadata"]["uid"] = format!("uid-{}", self.serial).into();
        object
    }

    /// A namespace whose pods wait for a primary network, with this label.
    pub fn namespace(&mut self, name: &str, team: &str) {
        let labels = json!({ "team": team, "k8s.ovn.org/primary-user-defined-network": "" });
        let old = self.namespaces.get(name).map(|old| old["metadata"]["uid"].clone());
        let mut object = self.stored(json!({ "metadata": { "name": name, "labels": labels } }));
        if let Some(uid) = old {
            object["metadata"]["uid"] = uid;
        }
        self.namespaces.insert(name.to_owned(), object);
    }

    /// A network for namespaces with this label.
    pub fn cluster_network(&mut self, name: &str, team: &str, network: Value) {
        let mut spec = json!({ "namespaceSelector": { "matchLabels": { "team": team } } });
        spec["network"] = network;
        let object = self.stored(json!({ "metadata": { "name": name }, "spec": spec }));
        self.definitions.insert(format!("ClusterUserDefinedNetwork {name}"), object);
    }

    /// A network for one namespace.
    pub fn network(&mut self, namespace: &str, name: &str, spec: Value) {
        let metadata = json!({ "name": name, "namespace": namespace });
        let mut object = self.stored(json!({ "metadata": metadata }));
        object["spec"] = spec;
        self.definitions.insert(format!("UserDefinedNetwork {namespace}/{name}"), object);
    }

    /// A pod that is attached to this.
    pub fn pod(&mut self, namespace: &str, name: &str, attachment: &str) {
        let networks =
            json!({ attachment: { "ip_addresses": ["10.0.0.9/24"], "mac_address": "0a:58:0a:00:00:09" } });
        self.pod_with(namespace, name, &networks.to_string());
    }

    pub fn pod_with(&mut self, namespace: &str, name: &str, networks: &str) {
        let annotations = json!({ "k8s.ovn.org/pod-networks": networks });
        let metadata = json!({ "name": name, "namespace": namespace, "annotations": annotations });
        self.pods.insert(format!("{namespace}/{name}"), json!({ "metadata": metadata }));
    }

    /// An attachment definition of somebody's.
    pub fn attachment(&mut self, namespace: &str, name: &str, config: &str) {
        let metadata = json!({ "name": name, "namespace": namespace });
        let object = self.stored(json!({ "metadata": metadata, "spec": { "config": config } }));
        self.attachments.insert(format!("{namespace}/{name}"), object);
    }

    pub fn edit(&mut self, attachment: &str, patch: &Value) {
        merge(self.attachments.get_mut(attachment).unwrap(), patch);
    }

    /// Somebody deletes a definition or an attachment.
    pub fn delete(&mut self, name: &str) {
        for objects in [&mut self.definitions, &mut self.attachments] {
            let Some(object) = objects.get_mut(name) else { continue };
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            if !holds(object) {
                objects.remove(name);
            }
            return;
        }
        panic!("there is no {name}");
    }

    pub fn world(&self) -> World {
        let mut world = World::default();
        for (name, object) in &self.definitions {
            if name.starts_with('C') {
                put::<ClusterUserDefinedNetwork>(&mut world, object);
            } else {
                put::<UserDefinedNetwork>(&mut world, object);
            }
        }
        self.namespaces.values().for_each(|object| put::<v1::Namespace>(&mut world, object));
        self.attachments.values().for_each(|object| put::<AnyAttachment>(&mut world, object));
        self.pods.values().for_each(|object| put::<PartialObjectMeta<v1::Pod>>(&mut world, object));
        for (name, object) in &self.nodes {
            let node = Node::read(&serde_json::from_value(object.clone()).unwrap());
            world.nodes.insert(Key::cluster(name), Arc::new(node));
        }
        world
    }

    /// Plans once and carries it out. Returns whether anything was done.
    pub fn turn(&mut self) -> bool {
        let world = self.world();
        let planned = plan(&world, &self.settings, &self.known);
        let given = nodes::plan(&world, &self.settings, Some(&planned.parts)).given;
        let mut done = !given.is_empty() || !planned.attachments.is_empty();
        for (name, given) in given {
            let patch = json!({ "metadata": { "annotations": given.annotations } });
            merge(self.nodes.get_mut(&name).unwrap(), &patch);
        }
        for (key, change) in &planned.attachments {
            self.take(&key.to_string(), &change.step);
        }
        for (object, told) in &planned.told {
            if let Some(amend) = &told.amend {
                done = true;
                let name = object.to_string();
                let definition = self.definitions.get_mut(&name).unwrap();
                assert_eq!(definition["metadata"]["uid"], amend.uid);
                let finalizers = if amend.protected { json!([FINALIZER]) } else { Value::Null };
                let metadata = json!({
                    "finalizers": finalizers, "annotations": amend.annotations, "labels": amend.labels,
                });
                merge(definition, &json!({ "metadata": metadata }));
                if definition["metadata"]["deletionTimestamp"].is_string() && !holds(definition) {
                    self.definitions.remove(&name);
                }
            }
        }
        self.known = planned.numbers;
        done
    }

    fn take(&mut self, name: &str, step: &Step) {
        let create = |server: &mut Self, object: &NetworkAttachmentDefinition| {
            let object = server.stored(serde_json::to_value(object).unwrap());
            assert!(server.attachments.insert(name.to_owned(), object).is_none(), "{name} is there");
        };
        let uid = self.attachments.get(name).map(|object| object["metadata"]["uid"].clone());
        match step {
            Step::Create(object) => create(self, object),
            Step::Repair { uid: meant, patch } => {
                assert_eq!(uid, Some(json!(meant)));
                merge(self.attachments.get_mut(name).unwrap(), patch);
            }
            Step::Release { uid: meant, again } => {
                assert_eq!(uid, Some(json!(meant)));
                self.attachments.remove(name);
                if let Some(object) = again {
                    create(self, object);
                }
            }
            Step::Delete { uid: meant } => {
                assert_eq!(uid, Some(json!(meant)));
                self.attachments.remove(name);
            }
        }
    }

    /// Plans and carries out until there is nothing left to do.
    pub fn settle(&mut self) -> NetworksPlan {
        let mut turns = 0;
        while self.turn() {
            turns += 1;
            assert!(turns < 10, "it does not come to rest");
        }
        plan(&self.world(), &self.settings, &self.known)
    }

    /// What a node has of a network, as text.
    pub fn part(&self, node: &str, network: &str) -> String {
        let world = self.world();
        let subnets = world.node(node).unwrap().subnets_in(network);
        subnets.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// An annotation of an attachment.
    pub fn annotation(&self, attachment: &str, key: &str) -> String {
        self.attachments[attachment]["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
    }
}

fn holds(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

pub fn put<K: Kind + kube::Resource + serde::de::DeserializeOwned>(world: &mut World, object: &Value) {
    let object: K = serde_json::from_value(object.clone()).unwrap();
    let key = key_of(object.meta());
    K::store(world).extend(object.read().map(|record| (key, record)));
}

/// A merge patch, as in RFC 7386.
pub fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
