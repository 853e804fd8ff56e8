//! Writes the endpoint slices of networks.
//!
//! What was made or mended counts in the world at once. What goes leaves the world when the API server says that it is
//! gone: that is news of its namespace, and what should be there instead is made then.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use tracing::debug;
use underlay_plan::cluster::networks::slices::Step;
use underlay_runtime::feed::put;
use underlay_runtime::objects::{Basis, WriteError};
use underlay_world::{AnySlice, Key, Kind, Version};

use crate::leader::{AT_ONCE, Leader, Tools};

impl Leader {
    /// Makes, mends and removes slices. False if something has to be done again.
    pub(crate) async fn write_slices(&mut self, steps: &BTreeMap<Key, Step>) -> bool {
        let (tools, slices) = (&self.tools, &self.world.any_slices);
        let writes = stream::iter(steps)
            .map(async |(key, step)| {
                let version = slices.get(key).map(|slice| slice.version.clone()).unwrap_or_default();
                (key, step, tools.take_step(key, step, &version).await)
            })
            .buffer_unordered(AT_ONCE);
        let results: Vec<_> = writes.collect().await;
        let mut done = true;
        for (key, step, result) in results {
            match result {
                Ok(written) => {
                    debug!(slice = %key, verb = verb(step), "an EndpointSlice of a network");
                    if let Some(object) = written {
                        put::<AnySlice>(&mut self.world, key.clone(), AnySlice(object).read());
                    }
                }
                // It is gone, or another one by now: the watch will tell. It does not tell of one without our mark
                // that is in the way of a new one.
                Err(error)
                    if error.is_not_found() || error.is_conflict() && !matches!(step, Step::Create(_)) => {}
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
    /// Does something to this version of a slice. Returns what it is now, unless it is gone.
    async fn take_step(
        &self,
        key: &Key,
        step: &Step,
        version: &Version,
    ) -> Result<Option<EndpointSlice>, WriteError> {
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), &key.namespace);
        match step {
            Step::Create(object) => self.writer.create(&api, object).await.map(Some),
            Step::Repair { uid, patch } => {
                let basis = Basis::exactly(uid, version);
                self.writer.merge(&api, &key.name, basis, patch.clone()).await.map(Some)
            }
            Step::Delete { uid } => {
                self.writer.delete(&api, &key.name, Basis::exactly(uid, version)).await.map(|_| None)
            }
        }
    }
}

fn verb(step: &Step) -> &'static str {
    match step {
        Step::Create(_) => "made",
        Step::Repair { .. } => "put right",
        Step::Delete { .. } => "deleted",
    }
}
