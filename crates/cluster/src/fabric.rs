//! The managed fabric: the configuration that connects all nodes, and the advertisements of the networks that ask for
//! it. They are all ours: what somebody changes is put right, and what is left over goes. All advertisements are planned
//! once they are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, ResourceExt};
use tracing::info;
use underlay_api::{ClusterUserDefinedNetwork, FRRConfiguration, RouteAdvertisements};
use underlay_plan::cluster::fabric::is_ours;
use underlay_plan::cluster::{
    Advertised, ClusterPlan, Fabric, Generated, NetworksPlan, advertise, fabric, networks,
};
use underlay_runtime::feed::put;
use underlay_runtime::objects::{Basis, WriteError, Written, diff};
use underlay_world::kind::key_of;
use underlay_world::{Key, Kind, Version};

use crate::leader::{AT_ONCE, Leader, OF_ADVERTISEMENTS, OF_NETWORKS, Tools};

/// A kind of object that the fabric is made of.
trait Part: Written + Kind<Record = Arc<Self>> {
    /// Where such an object is.
    fn api(tools: &Tools, key: &Key) -> Api<Self>;
    /// Whether two ask for the same.
    fn same(one: &Self, other: &Self) -> bool;
    /// Makes one ask for what the other does.
    fn ask(&mut self, other: &Self);
}

impl Part for FRRConfiguration {
    fn api(tools: &Tools, key: &Key) -> Api<Self> {
        Api::namespaced(tools.client.clone(), &key.namespace)
    }

    fn same(one: &Self, other: &Self) -> bool {
        one.spec == other.spec
    }

    fn ask(&mut self, other: &Self) {
        self.spec = other.spec.clone();
    }
}

impl Part for RouteAdvertisements {
    fn api(tools: &Tools, _: &Key) -> Api<Self> {
        Api::all(tools.client.clone())
    }

    fn same(one: &Self, other: &Self) -> bool {
        one.spec == other.spec
    }

    fn ask(&mut self, other: &Self) {
        self.spec = other.spec.clone();
    }
}

/// What became of an object: this, or that it is gone.
type Became<K> = Result<Option<K>, WriteError>;

impl Leader {
    /// Sees to the managed fabric. What it is made of is then planned with like users' objects.
    pub(crate) async fn connect(&mut self, plan: &mut ClusterPlan) -> bool {
        if !self.feeds.know(&OF_ADVERTISEMENTS) {
            return true;
        }
        let knows_networks = self.feeds.has_listed(ClusterUserDefinedNetwork::NAME);
        let fabric = fabric::plan(&self.world, &self.tools.settings, knows_networks);
        let done = self.write_fabric(&fabric).await;
        (plan.frr_configurations, plan.advertisements) = (fabric.configurations, fabric.advertisements);
        done
    }

    /// Nothing before all is known of networks too: one that is not known yet would be taken off the wire.
    pub(crate) fn plan_advertised(&mut self, networks: Option<&NetworksPlan>) -> Option<Advertised> {
        if !self.feeds.know(&OF_ADVERTISEMENTS) || !self.feeds.know(&OF_NETWORKS) {
            return None;
        }
        let mut known = self.known();
        if let Some(NetworksPlan { told, .. }) = networks {
            networks::record_labels(told, &mut known);
        }
        Some(advertise::plan(&known, &self.tools.settings, &self.numbers))
    }

    /// Writes what differs, and takes note of it in the world: advertisements are planned from that. False if something
    /// has to be done again.
    pub(crate) async fn write_fabric(&mut self, fabric: &Fabric) -> bool {
        let room = self.make_room(fabric).await;
        let connected = self.bring(&fabric.configurations).await;
        let advertised = self.bring(&fabric.advertisements).await;
        room && connected && advertised
    }

    /// Makes the namespace of the configuration where there is none: without frr-k8s nobody else does.
    async fn make_room(&mut self, fabric: &Fabric) -> bool {
        let Some(Key { namespace, .. }) = fabric.configurations.keys().next() else { return true };
        let key = Key::cluster(namespace);
        if !self.feeds.has_listed(<Namespace as Kind>::NAME) || self.world.namespaces.contains_key(&key) {
            return true;
        }
        let metadata = ObjectMeta { name: Some(namespace.clone()), ..ObjectMeta::default() };
        let object = Namespace { metadata, ..Namespace::default() };
        match self.tools.writer.create(&Api::all(self.tools.client.clone()), &object).await {
            Ok(made) => {
                info!(namespace, "a namespace was made for the managed fabric");
                put::<Namespace>(&mut self.world, key, made.read());
                true
            }
            Err(error) if error.is_conflict() => true,
            Err(error) => {
                self.complain(&error);
                false
            }
        }
    }

    /// Makes objects of one kind what they should be, and removes those that are left over.
    async fn bring<K: Part>(&mut self, want: &BTreeMap<Key, Generated<K>>) -> bool {
        let there = K::store(&mut self.world).iter();
        let have: BTreeMap<Key, Arc<K>> = there
            .filter(|(key, object)| want.contains_key(key) || is_ours(object.meta()))
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect();
        let changes = diff(
            want.iter().map(|(key, generated)| (key, generated.object.as_ref())),
            have.iter().map(|(key, object)| (key, object.as_ref())),
            |_, object| is_ours(object.meta()),
            K::same,
        );
        let tools = &self.tools;
        let applies = stream::iter(changes.apply).map(async |object| {
            let key = key_of(object.meta());
            let written = tools.bring_one(&key, object, have.get(&key)).await;
            (key, written)
        });
        let mut results: Vec<(Key, Became<K>)> = applies.buffer_unordered(AT_ONCE).collect().await;
        let deletes = stream::iter(changes.delete).map(async |(key, uid)| {
            let version = have.get(key).map(|object| Version::of(object.as_ref())).unwrap_or_default();
            let gone =
                tools.writer.delete(&K::api(tools, key), &key.name, Basis::exactly(uid, &version)).await;
            (key.clone(), gone.map(|_| None))
        });
        results.extend(deletes.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await);
        self.take_note_of_fabric(results)
    }

    /// Writes count in the world at once: their echo is no news then.
    fn take_note_of_fabric<K: Part>(&mut self, results: Vec<(Key, Became<K>)>) -> bool {
        let mut done = true;
        for (key, became) in results {
            match became {
                Ok(object) => {
                    let verb = if object.is_some() { "written" } else { "deleted" };
                    info!(kind = K::NAME, object = %key, verb, "a part of the managed fabric");
                    put::<K>(&mut self.world, key, object.and_then(Kind::read));
                }
                Err(error) => {
                    self.complain(&error);
                    done = false;
                }
            }
        }
        done
    }
}

impl Tools {
    /// Makes an object, or makes the one that is there ask for what it should. Labels of others stay.
    async fn bring_one<K: Part>(&self, key: &Key, want: &K, have: Option<&Arc<K>>) -> Became<K> {
        let api = K::api(self, key);
        let written = match have {
            None => self.writer.create(&api, want).await?,
            Some(have) => {
                let mut next = have.as_ref().clone();
                next.ask(want);
                next.labels_mut().extend(want.labels().clone());
                self.writer.replace(&api, &next).await?
            }
        };
        Ok(Some(written))
    }
}
