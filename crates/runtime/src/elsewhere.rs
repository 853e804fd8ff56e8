//! Pods of other nodes, in namespaces that come and go: for those who have to do with some of them, where all would be
//! very many.
//!
//! In: the namespaces. Out: the same stream of updates as other watches give. There is one watch for each namespace; a
//! namespace is in the world once it has been listed, and leaves it with its watch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use futures::future::ready;
use futures::stream::{self, AbortHandle, BoxStream, SelectAll, StreamExt};
use k8s_openapi::api::core::v1;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::watch;
use underlay_world::kind::key_of;
use underlay_world::{Key, Pod, World};

use crate::feed::{Update, explain};
use crate::pace::Pace;

/// How they are called among the kinds of objects.
pub const NAME: &str = "Pod of other nodes";

type Listing = BTreeMap<Key, Arc<Pod>>;
type PodEvent = watcher::Result<Event<DeserializeGuard<v1::Pod>>>;

/// Watches the pods that a field selector picks in these namespaces, whichever they are at a time.
pub fn watch(
    client: Client,
    fields: String,
    namespaces: watch::Receiver<BTreeSet<String>>,
) -> BoxStream<'static, Update> {
    let first = Update::Listed { kind: NAME, edit: Box::new(|_| false) };
    let watches = Watches {
        client,
        fields,
        namespaces,
        ends: BTreeMap::new(),
        streams: SelectAll::new(),
        gone: VecDeque::new(),
    };
    let updates = stream::unfold(watches, async |mut watches| {
        let update = watches.next().await;
        Some((update, watches))
    });
    stream::iter([first]).chain(updates).boxed()
}

struct Watches {
    client: Client,
    fields: String,
    namespaces: watch::Receiver<BTreeSet<String>>,
    /// How to end the watch of a namespace.
    ends: BTreeMap<String, AbortHandle>,
    streams: SelectAll<BoxStream<'static, Update>>,
    /// Namespaces that have to leave the world.
    gone: VecDeque<String>,
}

impl Watches {
    async fn next(&mut self) -> Update {
        loop {
            if let Some(namespace) = self.gone.pop_front() {
                return removal(namespace);
            }
            tokio::select! {
                changed = self.namespaces.changed() => match changed {
                    Ok(()) => self.follow(),
                    Err(_) => std::future::pending().await,
                },
                Some(update) = self.streams.next(), if !self.streams.is_empty() => return update,
            }
        }
    }

    /// Begins and ends watches.
    fn follow(&mut self) {
        let wanted = self.namespaces.borrow_and_update().clone();
        for namespace in
            wanted.iter().filter(|name| !self.ends.contains_key(*name)).cloned().collect::<Vec<_>>()
        {
            let (stream, end) = stream::abortable(self.begin(&namespace));
            self.streams.push(stream.boxed());
            self.ends.insert(namespace, end);
        }
        let gone = |name: &String, end: &mut AbortHandle| {
            let gone = !wanted.contains(name);
            if gone {
                end.abort();
            }
            gone
        };
        self.gone.extend(self.ends.extract_if(.., gone).map(|(namespace, _)| namespace));
    }

    fn begin(&self, namespace: &str) -> BoxStream<'static, Update> {
        let api = Api::<DeserializeGuard<v1::Pod>>::namespaced(self.client.clone(), namespace);
        let namespace = namespace.to_owned();
        watcher(api, watcher::Config::default().fields(&self.fields))
            .backoff(Pace::far())
            .scan(Listing::new(), move |listing, event| ready(Some(update(&namespace, listing, event))))
            .filter_map(ready)
            .boxed()
    }
}

fn removal(namespace: String) -> Update {
    let edit = Box::new(move |world: &mut World| world.elsewhere.remove(&namespace).is_some());
    Update::Listed { kind: NAME, edit }
}

fn update(namespace: &str, listing: &mut Listing, event: PodEvent) -> Option<Update> {
    let namespace = namespace.to_owned();
    let change = |namespace: String, key: Key, pod: Option<Arc<Pod>>| {
        let within = namespace.clone();
        let edit =
            Box::new(move |world: &mut World| put(world.elsewhere.entry(within).or_default(), key, pod));
        Some(Update::Change { kind: NAME, namespace, edit })
    };
    match event {
        Ok(Event::Init) => {
            listing.clear();
            None
        }
        Ok(Event::InitApply(object)) => {
            let (key, pod) = read(object);
            listing.extend(pod.map(|pod| (key, pod)));
            None
        }
        Ok(Event::InitDone) => {
            let listed = std::mem::take(listing);
            let edit = Box::new(move |world: &mut World| {
                let news = world.elsewhere.get(&namespace) != Some(&listed);
                world.elsewhere.insert(namespace, listed);
                news
            });
            Some(Update::Listed { kind: NAME, edit })
        }
        Ok(Event::Apply(object)) => {
            let (key, pod) = read(object);
            change(namespace, key, pod)
        }
        Ok(Event::Delete(object)) => change(namespace, key_of(object.meta()), None),
        Err(error) => Some(Update::Fault { kind: NAME, error: explain(&error), unknown: false }),
    }
}

/// A pod; nothing of one that is not understood.
fn read(DeserializeGuard(object): DeserializeGuard<v1::Pod>) -> (Key, Option<Arc<Pod>>) {
    match object {
        Ok(pod) => (key_of(&pod.metadata), Some(Arc::new(Pod::read(&pod)))),
        Err(invalid) => (key_of(&invalid.metadata), None),
    }
}

/// Puts a pod in its place; none takes it out. Returns whether that is news.
fn put(pods: &mut Listing, key: Key, pod: Option<Arc<Pod>>) -> bool {
    match pod {
        None => pods.remove(&key).is_some(),
        Some(pod) => pods.insert(key, pod.clone()) != Some(pod),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, label: &str) -> DeserializeGuard<v1::Pod> {
        let metadata = json!({ "namespace": "shop", "name": name, "labels": { "app": label } });
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn apply(world: &mut World, update: Option<Update>) -> Option<bool> {
        match update? {
            Update::Change { edit, .. } | Update::Listed { edit, .. } => Some(edit(world)),
            Update::Fault { error, .. } => panic!("{error}"),
        }
    }

    #[test]
    fn a_namespace_is_there_once_it_was_listed_and_goes_as_a_whole() {
        let (mut world, mut listing) = (World::default(), Listing::new());
        let mut feed = |world: &mut World, event| apply(world, update("shop", &mut listing, Ok(event)));
        assert_eq!(feed(&mut world, Event::Init), None);
        assert_eq!(feed(&mut world, Event::InitApply(pod("a", "1"))), None);
        assert!(!world.elsewhere.contains_key("shop"), "half a list says nothing");
        assert_eq!(feed(&mut world, Event::InitDone), Some(true));
        assert_eq!(feed(&mut world, Event::Apply(pod("a", "1"))), Some(false), "no news");
        assert_eq!(feed(&mut world, Event::Apply(pod("a", "2"))), Some(true), "another label");
        assert_eq!(feed(&mut world, Event::Delete(pod("a", "2"))), Some(true));
        assert!(world.elsewhere["shop"].is_empty());
        assert_eq!(apply(&mut world, Some(removal("shop".to_owned()))), Some(true));
        assert!(world.elsewhere.is_empty());
    }
}
