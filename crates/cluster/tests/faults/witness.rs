//! Somebody who watches all the time: nothing may be handed out twice, not even for a moment.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::oneshot;
use underlay_api::NetworkAttachmentDefinition;
use underlay_testkit::ApiServer;

use crate::state::doubles;

/// What was seen: how many states, and what was wrong in them.
#[derive(Default)]
struct Seen {
    states: usize,
    doubles: Vec<String>,
}

pub struct Witness {
    seen: Arc<Mutex<Seen>>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Witness {
    pub fn start(server: &ApiServer) -> Self {
        let (stop, stopped) = oneshot::channel();
        let seen = Arc::<Mutex<Seen>>::default();
        let (kubeconfig, told) = (server.kubeconfig(), seen.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = watch_all(kubeconfig, &told) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { seen, stop, thread }
    }

    /// Asks what it has seen.
    #[track_caller]
    pub fn ends_content(self) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.doubles, [] as [String; 0]);
        assert!(seen.states > 0, "it saw nothing");
        println!("a witness saw {} states", seen.states);
    }
}

async fn watch_all(kubeconfig: PathBuf, seen: &Mutex<Seen>) {
    let client = underlay_runtime::client::connect(Some(&kubeconfig)).await.unwrap();
    tokio::join!(watch::<Node>(&client, seen), watch::<NetworkAttachmentDefinition>(&client, seen));
}

/// Watches one kind: the API server tells of its objects in the order in which they were written.
async fn watch<K>(client: &Client, seen: &Mutex<Seen>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize + Send + 'static,
{
    let mut events =
        watcher(Api::<K>::all(client.clone()), watcher::Config::default()).default_backoff().boxed();
    let (mut objects, mut listing) = (BTreeMap::new(), BTreeMap::new());
    let key = |object: &K| (object.namespace(), object.name_any());
    let value = |object: &K| -> Value {
        let mut value = serde_json::to_value(object).unwrap();
        value["kind"] = K::kind(&()).into();
        value
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object)) => drop(objects.insert(key(&object), value(&object))),
            Ok(Event::Delete(object)) => drop(objects.remove(&key(&object))),
            Ok(Event::InitApply(object)) => drop(listing.insert(key(&object), value(&object))),
            Ok(Event::InitDone) => objects = std::mem::take(&mut listing),
            Ok(Event::Init) | Err(_) => continue,
        }
        let mut seen = seen.lock().unwrap();
        seen.states += 1;
        seen.doubles.extend(doubles(objects.values()));
    }
}
