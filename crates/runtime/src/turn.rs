//! Turns: everything that has happened until now enters the world at once, then it is time to plan.
//!
//! In: the updates of several watches. Out: a world that is worth a new plan. What comes alone is served at once, and
//! what is all there when we look is served together. Who has much to do for some kinds can ask for a lull: then a crowd
//! of them that comes one by one is waited for too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::FutureExt;
use futures::stream::{BoxStream, SelectAll, StreamExt};
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};
use underlay_world::World;

use crate::feed::Update;

/// A crowd without a lull is served after this many times as long.
const CROWD: u32 = 5;
/// How many times as long as a turn took a crowd gathers before the next.
const REST: u32 = 3;

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
    /// How long nothing new must come after some kinds before a turn.
    lulls: BTreeMap<&'static str, Duration>,
    /// What came and was not served yet.
    turn: Turn,
    /// Nothing while that is not worth a turn.
    news: Option<News>,
    /// When kinds that wait for a lull are served again; nothing if now.
    rested: Option<Instant>,
}

/// What is waited for before a turn.
#[derive(Debug, Clone, Copy)]
struct News {
    /// When the first came.
    first: Instant,
    /// When the last came.
    last: Instant,
    /// How long none must have come: as long as the least patient kind allows.
    lull: Duration,
}

impl News {
    fn due(&self, rested: Option<Instant>) -> Instant {
        (self.last + self.lull).min(self.first + self.lull * CROWD).max(rested.unwrap_or(self.first))
    }
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

    /// From here on, what comes of these kinds is served once nothing new came for this long, or when the crowd does not
    /// end.
    pub fn wait_for_lull(&mut self, kinds: &[&'static str], lull: Duration) {
        self.lulls.extend(kinds.iter().map(|kind| (*kind, lull)));
    }

    /// Tells how long a turn took. What comes in a crowd is then left to gather for [`REST`] times as long: a crowd that
    /// comes slower than a lull would otherwise be served one by one, with all the work that every turn brings others.
    pub fn rest_after(&mut self, turn: Duration) {
        self.rested = Some(Instant::now() + turn * REST);
    }

    /// Asks for a turn as if something of this kind had come: there may be more to do. What comes meanwhile is served
    /// with it.
    pub fn ask_again(&mut self, kind: &str) {
        self.note(kind);
    }

    fn note(&mut self, kind: &str) {
        let (now, lull) = (Instant::now(), self.lulls.get(kind).copied().unwrap_or_default());
        let first = News { first: now, last: now, lull };
        let news = self.news.get_or_insert(first);
        *news = News { last: now, lull: lull.min(news.lull), ..*news };
    }

    /// Waits until the world has changed or a kind has been listed for the first time. Nothing is lost if this is
    /// given up while it waits.
    pub async fn next(&mut self, world: &mut World) -> Turn {
        while let Some(update) = self.update().await {
            self.take(update, world);
            while let Some(Some(update)) = self.streams.next().now_or_never() {
                self.take(update, world);
            }
        }
        self.news = None;
        Turn { ready: self.is_ready(), ..std::mem::take(&mut self.turn) }
    }

    /// The next update; nothing when it is time to serve what came.
    async fn update(&mut self) -> Option<Update> {
        let next = async {
            match self.streams.next().await {
                Some(update) => update,
                // Watches do not end; without any there is nothing to wait for.
                None => std::future::pending().await,
            }
        };
        match self.news {
            None => Some(next.await),
            Some(news) if news.lull.is_zero() => next.now_or_never(),
            Some(news) => timeout_at(news.due(self.rested), next).await.ok(),
        }
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

    /// Takes an update in, and remembers whether it is worth a turn.
    fn take(&mut self, update: Update, world: &mut World) {
        let (kind, news) = match update {
            Update::Change { kind, namespace, edit } => {
                self.works(kind);
                let changed = edit(world);
                if changed {
                    self.turn.changed.insert(kind);
                    self.turn.namespaces.insert(namespace);
                }
                (kind, changed)
            }
            Update::Listed { kind, edit } => {
                self.works(kind);
                let changed = edit(world);
                if changed {
                    self.turn.changed.insert(kind);
                    self.turn.anywhere = true;
                }
                (kind, self.listed.insert(kind) || changed)
            }
            Update::Fault { kind, error, unknown } => {
                if self.faults.get(kind) != Some(&error) {
                    warn!(kind, error, "watching does not work; trying again");
                }
                self.faults.insert(kind, error);
                (kind, unknown && self.optional.contains(kind) && self.absent.insert(kind))
            }
        };
        if news {
            self.note(kind);
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

    #[tokio::test(start_paused = true)]
    async fn a_crowd_that_comes_one_by_one_is_one_turn_for_who_waits_for_a_lull() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let one_by_one = stream::iter(names).then(async |name| {
            tokio::time::sleep(Duration::from_millis(8)).await;
            node(name)
        });
        let mut feeds = Feeds::new().with("Node", one_by_one.chain(stream::pending()).boxed());
        feeds.wait_for_lull(&["Node"], Duration::from_millis(10));
        let mut world = World::default();
        feeds.next(&mut world).await;
        assert_eq!(world.nodes.len(), 7, "nobody waits for ever");
        assert!(feeds.next(&mut world).now_or_never().is_none());
        assert_eq!(feeds.next(&mut world).await.changed, BTreeSet::from(["Node"]));
        assert_eq!(world.nodes.len(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_long_turn_a_slow_crowd_gathers() {
        let seconds = |names: [&'static str; 3]| {
            stream::iter(names).then(async |name| {
                tokio::time::sleep(Duration::from_secs(1)).await;
                node(name)
            })
        };
        let mut feeds = Feeds::new().with("Node", seconds(["a", "b", "c"]).chain(stream::pending()).boxed());
        feeds.wait_for_lull(&["Node"], Duration::from_millis(10));
        let mut world = World::default();
        feeds.next(&mut world).await;
        assert_eq!(world.nodes.len(), 1, "who was not busy serves at once");
        feeds.rest_after(Duration::from_millis(1500));
        feeds.next(&mut world).await;
        assert_eq!(world.nodes.len(), 3);
    }

    #[tokio::test]
    async fn the_least_patient_kind_takes_the_others_along() {
        let mut feeds = Feeds::new()
            .with("Node", feed(vec![node("a")]))
            .with("FRRConfiguration", feed(vec![listed("FRRConfiguration")]));
        feeds.wait_for_lull(&["Node"], Duration::from_hours(1));
        let mut world = World::default();
        assert_eq!(feeds.next(&mut world).await.changed, BTreeSet::from(["Node"]));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_lost_when_a_wait_is_given_up() {
        let mut feeds = Feeds::new().with("Node", feed(vec![node("a")]));
        feeds.wait_for_lull(&["Node"], Duration::from_millis(10));
        let mut world = World::default();
        assert!(feeds.next(&mut world).now_or_never().is_none(), "more may come");
        assert_eq!(world.nodes.len(), 1);
        assert_eq!(feeds.next(&mut world).await.changed, BTreeSet::from(["Node"]));
    }

    #[tokio::test]
    async fn a_turn_can_be_asked_for() {
        let mut feeds = Feeds::new().with("Node", feed(vec![]));
        let mut world = World::default();
        assert!(feeds.next(&mut world).now_or_never().is_none());
        feeds.ask_again("Node");
        assert_eq!(feeds.next(&mut world).await, Turn::default());
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
