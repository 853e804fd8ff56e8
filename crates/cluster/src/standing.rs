//! How the default network stands where it has no overlay: told as events, each time that changes.
//!
//! The events are about the default network's attachment definition, which is made if its namespace is there. Where it
//! is not, they are about the lease by which the managers agree who leads: that is there in every cluster.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use tracing::{error, info};
use underlay_api::NetworkAttachmentDefinition;
use underlay_api::nad::{NetConf, NetworkAttachmentDefinitionSpec};
use underlay_plan::cluster::transport::{self, Verdicts};
use underlay_runtime::feed::put;
use underlay_world::{AnyAttachment, Key, Kind};

use crate::leader::Leader;

impl Leader {
    /// Tells how the default network stands, if that is new. False if something has to be done again.
    pub(crate) async fn tell_of_default_network(&mut self, verdicts: &Verdicts) -> bool {
        let standing = transport::of_default_network(&self.world, &self.tools.settings, verdicts);
        let Some(standing) = standing else { return true };
        let done = self.define_default_network().await;
        if self.standing.as_ref() == Some(&standing) {
            return done;
        }
        let (reason, note) = standing.event();
        let object = self.default_network();
        if standing.is_well() {
            info!(reason, "{note}");
            self.tools.events.tell(&object, "Advertise", reason, &note).await;
        } else {
            error!(reason, "{note}");
            self.tools.events.warn(&object, "Advertise", reason, &note).await;
        }
        self.standing = Some(standing);
        done
    }

    /// Makes the definition of the default network, if it is missing and can be made.
    async fn define_default_network(&mut self) -> bool {
        let key = self.tools.default_network.clone();
        let namespace = self.world.namespaces.get(&Key::cluster(&key.namespace));
        let room = namespace.is_some_and(|namespace| !namespace.ending);
        let known = self.feeds.has_listed(<AnyAttachment as Kind>::NAME);
        if !room || !known || self.world.attachments.contains_key(&key) {
            return true;
        }
        let object = NetworkAttachmentDefinition {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: NetworkAttachmentDefinitionSpec { config: NetConf::DEFAULT_NETWORK.to_owned() },
        };
        let api = Api::namespaced(self.tools.client.clone(), &key.namespace);
        match self.tools.writer.create(&api, &object).await {
            Ok(made) => {
                info!(attachment = %key, "the default network has its definition");
                put::<AnyAttachment>(&mut self.world, key, AnyAttachment(made).read());
                true
            }
            Err(error) if error.is_conflict() => true,
            Err(error) => {
                self.complain(&error);
                false
            }
        }
    }

    /// What events about the default network are about.
    fn default_network(&self) -> ObjectReference {
        let (version, kind, key, uid) = match self.world.attachments.get(&self.tools.default_network) {
            Some(there) => {
                ("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", &there.key, Some(there.uid.clone()))
            }
            None => ("coordination.k8s.io/v1", "Lease", &self.tools.lease, None),
        };
        ObjectReference {
            api_version: Some(version.to_owned()),
            kind: Some(kind.to_owned()),
            namespace: Some(key.namespace.clone()),
            name: Some(key.name.clone()),
            uid,
            ..ObjectReference::default()
        }
    }
}
