//! When objects are as they should be, by the API's own watch.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt};
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::rig::PATIENCE;

/// Waits until exactly so many objects of an API are as they should be; returns when that was.
pub async fn until<K>(api: Api<K>, what: &str, good: impl Fn(&K) -> bool, want: usize) -> Result<Instant>
where
    K: Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let watch = async {
        let mut events = watcher(api, watcher::Config::default()).boxed();
        let (mut fitting, mut listed) = (BTreeSet::new(), false);
        while let Some(event) = events.try_next().await.with_context(|| format!("watching {what}"))? {
            match event {
                Event::Apply(object) | Event::InitApply(object) => {
                    let name = (object.namespace(), object.name_any());
                    if good(&object) {
                        fitting.insert(name);
                    } else {
                        fitting.remove(&name);
                    }
                }
                Event::Delete(object) => {
                    fitting.remove(&(object.namespace(), object.name_any()));
                }
                Event::Init => fitting.clear(),
                Event::InitDone => listed = true,
            }
            if listed && fitting.len() == want {
                return Ok(Instant::now());
            }
        }
        bail!("the watch of {what} ended");
    };
    tokio::time::timeout(PATIENCE, watch).await.with_context(|| format!("{what}: not in {PATIENCE:?}"))?
}
