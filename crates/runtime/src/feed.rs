//! Watches: what happens to the objects of one kind, as changes to a [`World`].
//!
//! In: the watch of one kind. Out: a stream of updates that never ends. What is not understood is told once and kept
//! out; it does not end the watch. A list takes effect as a whole, when its last page is there: what has gone while
//! nobody watched then leaves the world too.

mod secrets;

use std::collections::BTreeMap;
use std::fmt::Debug;

use futures::future::ready;
use futures::stream::{BoxStream, Stream, StreamExt};
use kube::api::Api;
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tracing::warn;
use underlay_world::kind::key_of;
use underlay_world::{Key, Kind, World};

use crate::fault::text;
pub use crate::fault::text_with_sources;
use crate::pace::Pace;
pub use secrets::secrets;

/// Objects of one page of a list: large lists must not be in memory at once.
const PAGE: u32 = 500;

/// What is done to the world. Returns whether the world is another one now.
pub type Edit = Box<dyn FnOnce(&mut World) -> bool + Send>;

/// What a watch tells.
pub enum Update {
    /// An object came, changed or went.
    Change {
        /// Its kind.
        kind: &'static str,
        /// Its namespace; empty for an object of the cluster.
        namespace: String,
        /// What that does to the world.
        edit: Edit,
    },
    /// All objects of the kind are known.
    Listed {
        /// The kind.
        kind: &'static str,
        /// Makes the world have these and no others.
        edit: Edit,
    },
    /// The watch does not work at the moment; it is tried again.
    Fault {
        /// The kind.
        kind: &'static str,
        /// Why.
        error: String,
        /// Whether the API server says that there is no such kind.
        unknown: bool,
    },
}

/// An object that can be watched.
pub trait Watched:
    Kind<Record: Send>
    + Resource<DynamicType: Default + Clone + Send + Sync>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
{
}

impl<K> Watched for K where
    K: Kind<Record: Send>
        + Resource<DynamicType: Default + Clone + Send + Sync>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
{
}

/// Watches all objects of a kind.
pub fn everything<K: Watched>(client: &Client) -> BoxStream<'static, Update> {
    watch::<K>(Api::all(client.clone()), watcher::Config::default())
}

/// Watches the objects of an API that a configuration selects. Only one watch of a kind may feed a world.
pub fn watch<K: Watched>(
    api: Api<DeserializeGuard<K>>,
    config: watcher::Config,
) -> BoxStream<'static, Update> {
    updates(watcher(api, config.page_size(PAGE)))
}

/// Watches the metadata of all objects of a kind that a field selector picks: for kinds of which there are very many.
pub fn metadata<K>(client: &Client, fields: &str) -> BoxStream<'static, Update>
where
    K: Resource + 'static,
    PartialObjectMeta<K>: Watched,
{
    let api = Api::<PartialObjectMeta<K>>::all(client.clone());
    let events = watcher(api, watcher::Config::default().fields(fields).page_size(PAGE));
    updates(events.map(|event| event.map(understood)))
}

/// Metadata is always understood.
fn understood<K>(event: Event<K>) -> Event<DeserializeGuard<K>> {
    let guard = |object| DeserializeGuard(Ok(object));
    match event {
        Event::Apply(object) => Event::Apply(guard(object)),
        Event::Delete(object) => Event::Delete(guard(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(guard(object)),
        Event::InitDone => Event::InitDone,
    }
}

fn updates<K: Watched>(
    events: impl Stream<Item = watcher::Result<Event<DeserializeGuard<K>>>> + Send + 'static,
) -> BoxStream<'static, Update> {
    events
        .backoff(Pace::far())
        .scan(BTreeMap::new(), |listing, event| ready(Some(update::<K>(listing, event))))
        .filter_map(ready)
        .boxed()
}

type Listing<K> = BTreeMap<Key, <K as Kind>::Record>;

fn update<K: Watched>(
    listing: &mut Listing<K>,
    event: watcher::Result<Event<DeserializeGuard<K>>>,
) -> Option<Update> {
    let kind = K::NAME;
    match event {
        Ok(Event::Init) => {
            listing.clear();
            None
        }
        Ok(Event::InitApply(object)) => {
            let (key, record) = record(object);
            listing.extend(record.map(|record| (key, record)));
            None
        }
        Ok(Event::InitDone) => {
            let listed = std::mem::take(listing);
            Some(Update::Listed { kind, edit: Box::new(|world| replace::<K>(world, listed)) })
        }
        Ok(Event::Apply(object)) => {
            let (key, record) = record(object);
            let namespace = key.namespace.clone();
            Some(Update::Change { kind, namespace, edit: Box::new(|world| put::<K>(world, key, record)) })
        }
        Ok(Event::Delete(object)) => {
            let key = key_of(object.meta());
            let namespace = key.namespace.clone();
            Some(Update::Change { kind, namespace, edit: Box::new(move |world| put::<K>(world, key, None)) })
        }
        Err(error) => Some(Update::Fault { kind, error: explain(&error), unknown: is_unknown(&error) }),
    }
}

fn record<K: Watched>(DeserializeGuard(object): DeserializeGuard<K>) -> (Key, Option<K::Record>) {
    match object {
        Ok(object) => (key_of(object.meta()), object.read()),
        Err(invalid) => {
            let key = key_of(&invalid.metadata);
            warn!(kind = K::NAME, object = %key, error = invalid.error, "an object is not understood and left out");
            (key, None)
        }
    }
}

fn replace<K: Watched>(world: &mut World, listed: Listing<K>) -> bool {
    let store = K::store(world);
    let changed = *store != listed;
    *store = listed;
    changed
}

/// Puts a record in its place; none takes it out. Returns whether that is news. One that means the same as before still
/// takes its place: it may be of a later version.
pub fn put<K: Kind>(world: &mut World, key: Key, record: Option<K::Record>) -> bool {
    let store = K::store(world);
    match record {
        None => store.remove(&key).is_some(),
        Some(record) => {
            let changed = store.get(&key) != Some(&record);
            store.insert(key, record);
            changed
        }
    }
}

fn is_unknown(error: &watcher::Error) -> bool {
    matches!(reason(error), Some(kube::Error::Api(status)) if status.code == 404)
}

/// What the API server or the way to it has against a watch.
fn reason(error: &watcher::Error) -> Option<&kube::Error> {
    match error {
        watcher::Error::InitialListFailed(inner)
        | watcher::Error::WatchStartFailed(inner)
        | watcher::Error::WatchFailed(inner) => Some(inner),
        _ => None,
    }
}

/// The reason at the bottom, with what to do where we know it.
pub(crate) fn explain(error: &watcher::Error) -> String {
    let Some(inner) = reason(error) else { return text_with_sources(error) };
    match inner {
        kube::Error::Api(status) if status.code == 404 => {
            "the API server does not know this kind: install its definition".to_owned()
        }
        kube::Error::Api(status) if status.code == 403 => {
            format!("{}: give this program's account the right to list and watch", status.message)
        }
        inner => text(inner),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use serde_json::json;

    use super::*;

    fn node(name: &str, label: &str) -> DeserializeGuard<Node> {
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": { "l": label } } })).unwrap()
    }

    fn odd(name: &str) -> DeserializeGuard<Node> {
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "unschedulable": "?" } }))
            .unwrap()
    }

    /// Feeds events; returns which of the updates that followed changed the world.
    fn feed(world: &mut World, events: Vec<Event<DeserializeGuard<Node>>>) -> Vec<bool> {
        let mut listing = BTreeMap::new();
        let updates = events.into_iter().filter_map(|event| update::<Node>(&mut listing, Ok(event)));
        let apply = |update| match update {
            Update::Change { edit, .. } | Update::Listed { edit, .. } => edit(world),
            Update::Fault { error, .. } => panic!("{error}"),
        };
        updates.map(apply).collect()
    }

    fn names(world: &World) -> Vec<&str> {
        world.nodes.keys().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn a_list_takes_effect_as_a_whole() {
        let mut world = World::default();
        let list = |names: &[&str]| {
            let objects = names.iter().map(|name| Event::InitApply(node(name, "")));
            [Event::Init].into_iter().chain(objects).chain([Event::InitDone]).collect::<Vec<_>>()
        };
        assert_eq!(feed(&mut world, list(&["a", "b"])), [true]);
        assert_eq!(names(&world), ["a", "b"]);
        let mut half = list(&["c"]);
        half.pop();
        assert_eq!(feed(&mut world, half), [] as [bool; 0]);
        assert_eq!(names(&world), ["a", "b"], "half a list does nothing");
        assert_eq!(feed(&mut world, list(&["b", "c"])), [true]);
        assert_eq!(names(&world), ["b", "c"], "what went while nobody watched is gone");
        assert_eq!(feed(&mut world, list(&["b", "c"])), [false], "the same again is no news");
    }

    #[test]
    fn changes_are_news_only_when_something_we_keep_differs() {
        let mut world = World::default();
        let apply = |label| Event::Apply(node("a", label));
        let events = vec![apply("1"), apply("1"), apply("2"), Event::Delete(node("a", "2"))];
        assert_eq!(feed(&mut world, events), [true, false, true, true]);
        assert_eq!(names(&world), [] as [&str; 0]);
    }

    #[test]
    fn an_object_that_is_not_understood_is_left_out() {
        let mut world = World::default();
        let events =
            vec![Event::Init, Event::InitApply(odd("x")), Event::InitApply(node("a", "")), Event::InitDone];
        assert_eq!(feed(&mut world, events), [true]);
        assert_eq!(names(&world), ["a"]);
        assert_eq!(feed(&mut world, vec![Event::Apply(odd("a"))]), [true], "it was understood before");
        assert_eq!(names(&world), [] as [&str; 0]);
    }
}
