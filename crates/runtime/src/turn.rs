//! Turns: everything that has happened until now enters the world at once, then it is time to plan.
//!
//! In: the updates of several watches. Out: a world that is worth a new plan. There is no timer: what comes alone is
//! served at once, and what comes in a crowd is served together because it is all there when we look.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use tracing::{info, warn};
use underlay_world::World;

use crate::feed::Update;

/// The watches of a daemon.
#[derive(Default)]
pub struct Feeds {
    streams: SelectAll<BoxStream<'static, Update>>,
    kinds: BTreeSet<&'static str>,
    listed: BTreeSet<&'static str>,
    /// Kinds that a cluster may do without.
    optional: BTreeSet<&'static str>,
    /// Those of them that this cluster does without.
    absent: BTreeSet<&'static str>,
    /// What is wrong with the watch of a kind, as it was last told.
    faults: BTreeMap<&'static str, String>,
}

/// What is new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Kinds of which something changed.
    pub changed: BTreeSet<&'static str>,
    /// Namespaces of what changed one by one; objects of the cluster are in the empty one.
    pub namespaces: BTreeSet<String>,
    /// Whether a whole list changed something: that may be anywhere.
    pub anywhere: bool,
    /// Whether every kind has been listed, so that what is missing in the world is missing.
    pub ready: bool,
}

impl Feeds {
    /// No watches yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more watch, of a kind that none of the others has.
    #[must_use]
    pub fn with(mut self, kind: &'static str, stream: BoxStream<'static, Update>) -> Self {
        self.kinds.insert(kind);
        self.streams.push(stream);
        self
    }

    /// With the watch of a kind that a cluster may do without: where the API server does not know it, there are none.
    #[must_use]
    pub fn with_optional(mut self, kind: &'static str, stream: BoxStream<'static, Update>) -> Self {
        self.optional.insert(kind);
        self.with(kind, stream)
    }

    /// Waits until the world has changed or a kind has been listed for the first time. Nothing is lost if this is
    /// given up while it waits.
    pub async fn next(&mut self, world: &mut World) -> Turn {
        let mut turn = Turn::default();
        let mut news = false;
        while !news {
            let Some(update) = self.streams.next().await else {
                // Watches do not end; without any there is nothing to wait for.
                std::future::pending::<()>().await;
                continue;
            };
            news |= self.take(update, world, &mut turn);
            while let Some(Some(update)) = self.streams.next().now_or_never() {
                news |= self.take(update, world, &mut turn);
            }
        }
        turn.ready = self.is_ready();
        turn
    }

    /// Whether this kind has been listed.
    pub fn has_listed(&self, kind: &str) -> bool {
        self.listed.contains(kind)
    }

    /// Whether all is known of these kinds: each has been listed, or this cluster does without it.
    pub fn know(&self, kinds: &[&str]) -> bool {
        kinds.iter().all(|kind| self.listed.contains(kind) || self.absent.contains(kind))
    }

    /// Whether every kind has been listed.
    pub fn is_ready(&self) -> bool {
        self.missing().next().is_none()
    }

    fn missing(&self) -> impl Iterator<Item = &&'static str> {
        self.kinds.difference(&self.listed).filter(|kind| !self.absent.contains(*kind))
    }

    /// What is waited for, for people; nothing when all is well.
    pub fn waiting(&self) -> Option<String> {
        let line = |kind: &&'static str| match self.faults.get(kind) {
            Some(fault) => format!("{kind} ({fault})"),
            None => (*kind).to_owned(),
        };
        let lines: Vec<String> = self.missing().map(line).collect();
        (!lines.is_empty()).then(|| format!("waiting for {}", lines.join(", ")))
    }

    /// Takes an update in. Returns whether it is worth a turn.
    fn take(&mut self, update: Update, world: &mut World, turn: &mut Turn) -> bool {
        match update {
            Update::Change { kind, namespace, edit } => {
                self.works(kind);
                let changed = edit(world);
                if changed {
                    turn.changed.insert(kind);
                    turn.namespaces.insert(namespace);
                }
                changed
            }
            Update::Listed { kind, edit } => {
                self.works(kind);
                let changed = edit(world);
                if changed {
                    turn.changed.insert(kind);
                    turn.anywhere = true;
                }
                self.listed.insert(kind) || changed
            }
            Update::Fault { kind, error, unknown } => {
                if self.faults.get(kind) != Some(&error) {
                    warn!(kind, error, "watching does not work; trying again");
                }
                self.faults.insert(kind, error);
                unknown && self.optional.contains(kind) && self.absent.insert(kind)
            }
        }
    }

    fn works(&mut self, kind: &'static str) {
        if self.faults.remove(kind).is_some() {
            info!(kind, "watching works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::stream;
    use underlay_world::{Key, Node};

    use super::*;

    fn listed(kind: &'static str) -> Update {
        Update::Listed { kind, edit: Box::new(|_| false) }
    }

    fn node(name: &'static str) -> Update {
        let edit = move |world: &mut World| {
            let node = Node { name: name.to_owned(), ..Node::default() };
            world.nodes.insert(Key::cluster(name), Arc::new(node)).is_none()
        };
        Update::Change { kind: "Node", namespace: String::new(), edit: Box::new(edit) }
    }

    fn missing(kind: &'static str) -> Update {
        Update::Fault { kind, error: "no such kind".to_owned(), unknown: true }
    }

    #[tokio::test]
    async fn a_kind_that_a_cluster_does_without_is_not_waited_for() {
        let mut feeds = Feeds::new()
            .with("Node", feed(vec![listed("Node")]))
            .with_optional("FRRConfiguration", feed(vec![missing("FRRConfiguration")]));
        let mut world = World::default();
        while !feeds.next(&mut world).await.ready {}
        assert_eq!(feeds.waiting(), None);
    }

    fn feed(updates: Vec<Update>) -> BoxStream<'static, Update> {
        stream::iter(updates).chain(stream::pending()).boxed()
    }

    #[tokio::test]
    async fn what_is_there_at_once_is_one_turn() {
        let mut feeds = Feeds::new().with("Node", feed(vec![listed("Node"), node("a"), node("b")]));
        let mut world = World::default();
        let turn = feeds.next(&mut world).await;
        let namespaces = BTreeSet::from([String::new()]);
        let changed = BTreeSet::from(["Node"]);
        assert_eq!(turn, Turn { changed, namespaces, anywhere: false, ready: true });
        assert_eq!(world.nodes.len(), 2);
        assert!(feeds.next(&mut world).now_or_never().is_none(), "nothing more is new");
    }

    #[tokio::test]
    async fn not_ready_before_every_kind_has_listed() {
        let missing = missing("FRRConfiguration");
        let (sender, later) = futures::channel::mpsc::unbounded();
        let mut feeds = Feeds::new()
            .with("Node", feed(vec![listed("Node"), node("a")]))
            .with("FRRConfiguration", stream::iter([missing]).chain(later).boxed());
        let mut world = World::default();
        assert!(!feeds.next(&mut world).await.ready);
        assert!(feeds.has_listed("Node"));
        assert!(feeds.know(&["Node"]) && !feeds.know(&["Node", "FRRConfiguration"]));
        assert!(feeds.next(&mut world).now_or_never().is_none());
        assert_eq!(feeds.waiting().as_deref(), Some("waiting for FRRConfiguration (no such kind)"));
        sender.unbounded_send(listed("FRRConfiguration")).unwrap();
        assert!(feeds.next(&mut world).await.ready);
        assert_eq!(feeds.waiting(), None);
    }
}
