//! The leader at work: it follows the world, plans, and writes what differs.
//!
//! Nodes come first and alone need no definitions of other kinds: a cluster whose networks or advertisements cannot be
//! watched yet still gives its nodes their place. Networks are planned once all is known of them: what is missing then
//! is missing. What was written to a node counts from then on, even before its echo is heard:
//! otherwise two plans in a row could give one subnet to two nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node, ObjectReference, Pod};
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};
use underlay_api::{
    BGPSessionState, ClusterUserDefinedNetwork, FRRConfiguration, FRRNodeState, RouteAdvertisements,
    UserDefinedNetwork,
};
use underlay_plan::cluster::networks::Parts;
use underlay_plan::cluster::{
    ClusterPlan, Given, NetworksPlan, NodesPlan, Numbers, Problem, advertise, networks, nodes,
};
use underlay_runtime::events::Events;
use underlay_runtime::feed;
use underlay_runtime::objects::{WriteError, Writer};
use underlay_runtime::pace::Pace;
use underlay_runtime::turn::{Feeds, Turn};
use underlay_world::{AnyAttachment, Key, Kind, Settings, World};

use crate::metrics::Metrics;
use crate::view::View;

/// Writes that are under way at once.
pub const AT_ONCE: usize = 16;
/// How long a write to a node counts without an echo. Watches are slower than this only when they are broken, and then
/// begin anew with a list.
const ECHO: Duration = Duration::from_secs(10);

/// A turn may write to every node: the more there are, the longer a crowd of news is waited for. A quarter of the time
/// that the writes take.
const LULL_PER_NODE: Duration = Duration::from_micros(250);
/// Nobody waits longer than this for the next.
const LONGEST_LULL: Duration = Duration::from_millis(50);
/// Networks come with their namespaces, and often several at once; every agent has work with each turn that changes one.
const SHORTEST_LULL_OF_NETWORKS: Duration = Duration::from_millis(20);

/// Pods that have not ended: only those use networks.
const LIVING: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// What has to be known to advertise.
const OF_ADVERTISEMENTS: [&str; 5] = [
    Node::NAME,
    RouteAdvertisements::NAME,
    FRRConfiguration::NAME,
    FRRNodeState::NAME,
    BGPSessionState::NAME,
];
/// What has to be listed to plan networks. Where a definition of these kinds is missing there are none; and where one
/// goes missing for a while, nothing is concluded from that.
const OF_NETWORKS: [&str; 5] = [
    ClusterUserDefinedNetwork::NAME,
    UserDefinedNetwork::NAME,
    AnyAttachment::NAME,
    Namespace::NAME,
    Pod::NAME,
];

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// There is nothing more to do.
    Settled,
    /// What was written may make more to do, and its echo is no news.
    Moved,
    /// Something has to be done again.
    Failed,
}

/// What a leader works with.
#[derive(Clone)]
pub struct Tools {
    /// The API server.
    pub client: Client,
    /// Settings of the cluster.
    pub settings: Settings,
    /// Writes objects.
    pub writer: Writer,
    /// Writes events.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Shows.
    pub view: View,
}

/// The leader.
pub struct Leader {
    pub(crate) tools: Tools,
    feeds: Feeds,
    pub(crate) world: World,
    /// Written to nodes and not heard of yet, with the time of writing.
    unheard: BTreeMap<String, (Given, Instant)>,
    /// The nodes that the last plan was made from.
    planned: BTreeMap<Key, Arc<underlay_world::Node>>,
    /// Whether this turn has written what the next one builds on.
    pub(crate) moved: bool,
    /// Problems that were told.
    told: Vec<Problem>,
    /// Failures that were told and still last.
    complaints: BTreeSet<String>,
    /// Advertisements that have series in the metrics.
    pub(crate) measured: BTreeSet<String>,
    /// The numbers of networks in the last plan: they count before their echo is heard.
    numbers: Numbers,
    /// Whether some network waits for pods to end; before the first plan, that may be.
    waits_for_pods: bool,
}

impl Leader {
    /// A leader that knows nothing yet.
    pub fn new(tools: Tools) -> Self {
        let client = &tools.client;
        let feeds = Feeds::new()
            .with(Node::NAME, feed::everything::<Node>(client))
            .with(RouteAdvertisements::NAME, feed::everything::<RouteAdvertisements>(client))
            .with(FRRConfiguration::NAME, feed::everything::<FRRConfiguration>(client))
            .with_optional(FRRNodeState::NAME, feed::everything::<FRRNodeState>(client))
            .with_optional(BGPSessionState::NAME, feed::everything::<BGPSessionState>(client))
            .with_optional(
                ClusterUserDefinedNetwork::NAME,
                feed::everything::<ClusterUserDefinedNetwork>(client),
            )
            .with_optional(UserDefinedNetwork::NAME, feed::everything::<UserDefinedNetwork>(client))
            .with_optional(AnyAttachment::NAME, feed::everything::<AnyAttachment>(client))
            .with(Namespace::NAME, feed::everything::<Namespace>(client))
            .with(Pod::NAME, feed::metadata::<Pod>(client, LIVING));
        Self {
            tools,
            feeds,
            world: World::default(),
            unheard: BTreeMap::new(),
            planned: BTreeMap::new(),
            moved: false,
            told: Vec::new(),
            complaints: BTreeSet::new(),
            measured: BTreeSet::new(),
            numbers: Numbers::default(),
            waits_for_pods: true,
        }
    }

    /// Leads for as long as it is polled.
    pub async fn run(mut self) {
        let mut pace = Pace::far();
        let mut again: Option<Instant> = None;
        loop {
            self.tools.view.lead(self.feeds.waiting());
            let news = self.wait(again).await;
            self.tools.view.lead(self.feeds.waiting());
            if !news || !self.feeds.has_listed(Node::NAME) {
                continue;
            }
            let began = Instant::now();
            let outcome = self.turn().await;
            debug!(?outcome, took = ?began.elapsed(), "a turn");
            self.tools.metrics.turn(began.elapsed(), outcome == Outcome::Failed);
            if outcome != Outcome::Failed {
                pace.rest();
                self.complaints.clear();
            }
            again = (outcome == Outcome::Failed).then(|| Instant::now() + pace.wait());
            if outcome == Outcome::Moved {
                self.feeds.ask_again(Node::NAME);
            }
        }
    }

    /// Waits for something new, for the time to try again, or for an echo to be overdue. False if it was nothing that
    /// a plan depends on.
    async fn wait(&mut self, again: Option<Instant>) -> bool {
        let nodes = u32::try_from(self.world.nodes.len()).unwrap_or(u32::MAX);
        let lull = LULL_PER_NODE.saturating_mul(nodes).min(LONGEST_LULL);
        self.feeds.wait_for_lull(&OF_ADVERTISEMENTS, lull);
        self.feeds.wait_for_lull(&OF_NETWORKS, lull.max(SHORTEST_LULL_OF_NETWORKS));
        let overdue = self.unheard.values().map(|(_, written)| *written + ECHO).min();
        let time = async {
            match again.into_iter().chain(overdue).min() {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            turn = self.feeds.next(&mut self.world) => self.matters(&turn),
            () = time => true,
        }
    }

    /// What we wrote to nodes ourselves is no news, but what the next step builds on. Pods come and go all the time;
    /// that matters only where a network waits for it.
    fn matters(&mut self, turn: &Turn) -> bool {
        debug!(changed = ?turn.changed, "news");
        let (node, pod) = (turn.changed.contains(Node::NAME), turn.changed.contains(Pod::NAME));
        let others = turn.changed.iter().any(|kind| ![Node::NAME, Pod::NAME].contains(kind));
        let unchanged = turn.changed.is_empty();
        self.moved || unchanged || others || (pod && self.waits_for_pods) || (node && self.nodes_differ())
    }

    /// Whether nodes are others than those planned with, but for what we wrote to them.
    fn nodes_differ(&mut self) -> bool {
        let (planned, nodes) = (&self.planned, &self.world.nodes);
        let made =
            |name: &str, old, new| self.unheard.get(name).is_some_and(|(given, _)| given.made(old, new));
        let pairs = || planned.iter().zip(nodes);
        let same = planned.len() == nodes.len()
            && pairs().all(|((key, old), (other, new))| {
                key == other && (Arc::ptr_eq(old, new) || made(&key.name, old, new))
            });
        if same {
            self.planned = self.world.nodes.clone();
            self.forget_heard();
        }
        !same
    }

    /// One turn.
    async fn turn(&mut self) -> Outcome {
        self.planned = self.world.nodes.clone();
        self.moved = false;
        let known = self.known();
        let networks = self.plan_networks(&known);
        let parts = networks.as_ref().map(|networks| &networks.parts);
        let (given, mut done) = self.give_to_nodes(&known, parts).await;
        let mut plan = ClusterPlan { nodes: given, problems: self.told.clone(), ..ClusterPlan::default() };
        if let Some(networks) = networks {
            done &= self.write_networks(&networks).await;
            plan.networks = networks.told;
            plan.attachments = networks.attachments;
        }
        if self.feeds.know(&OF_ADVERTISEMENTS) {
            let advertised = advertise::plan(&self.known());
            done &= self.write_advertised(&advertised).await;
            plan.frr_configurations = advertised.configurations;
            plan.verdicts = advertised.verdicts;
        }
        self.tools.view.plan(plan);
        match (done, self.moved) {
            (false, _) => Outcome::Failed,
            (true, true) => Outcome::Moved,
            (true, false) => Outcome::Settled,
        }
    }

    fn plan_networks(&mut self, known: &World) -> Option<NetworksPlan> {
        if !OF_NETWORKS.iter().all(|kind| self.feeds.has_listed(kind)) {
            return None;
        }
        let plan = networks::plan(known, &self.tools.settings, &self.numbers);
        self.numbers = plan.numbers.clone();
        self.waits_for_pods = plan.waits_for_pods;
        Some(plan)
    }

    /// The world with what was written to nodes.
    fn known(&mut self) -> World {
        self.forget_heard();
        let mut known = self.world.clone();
        for (name, (given, _)) in &self.unheard {
            given.record(name, &mut known);
        }
        known
    }

    /// Forgets what was written to nodes and heard of, or should have been.
    fn forget_heard(&mut self) {
        let now = Instant::now();
        let nodes = &self.world.nodes;
        self.unheard.retain(|name, (given, written)| {
            let node = nodes.get(&Key::cluster(name));
            now < *written + ECHO && node.is_some_and(|node| node.uid == given.uid && !given.is_on(node))
        });
    }

    async fn give_to_nodes(
        &mut self,
        known: &World,
        parts: Option<&Parts>,
    ) -> (BTreeMap<String, Given>, bool) {
        let NodesPlan { given, problems } = nodes::plan(known, &self.tools.settings, parts);
        self.tell(problems).await;
        let (api, writer) = (Api::<Node>::all(self.tools.client.clone()), &self.tools.writer);
        let requests = stream::iter(&given).map(async |(name, given)| {
            (name, given, writer.annotate(&api, name, &given.uid, &given.annotations).await)
        });
        let results: Vec<_> = requests.buffer_unordered(AT_ONCE).collect().await;
        let mut done = true;
        for (name, given, result) in results {
            match result {
                Ok(_) => {
                    info!(node = name, annotations = ?given.annotations.keys(), "a node has its place");
                    let earlier = self.unheard.remove(name).map(|(earlier, _)| earlier);
                    self.unheard.insert(name.clone(), (given.after(earlier), Instant::now()));
                    self.moved = true;
                }
                // It is gone, or another one by now: the watch will tell.
                Err(error) if error.is_not_found() || error.is_conflict() => {}
                Err(error) => {
                    self.complain(&error);
                    done = false;
                }
            }
        }
        (given, done)
    }

    /// Tells of a failure once, however often it is tried again.
    pub(crate) fn complain(&mut self, error: &WriteError) {
        let text = error.to_string();
        if !self.complaints.contains(&text) {
            warn!(error = text, "a write failed; trying again");
            self.complaints.insert(text);
        }
    }

    /// Tells problems that are new.
    async fn tell(&mut self, problems: Vec<Problem>) {
        self.tools.metrics.problems(problems.len());
        for problem in problems.iter().filter(|problem| !self.told.contains(problem)) {
            warn!(object = %problem.object, reason = problem.reason, "{}", problem.message);
            let object = ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some(problem.object.kind.clone()),
                name: Some(problem.object.name.clone()),
                uid: self.world.node(&problem.object.name).map(|node| node.uid.clone()),
                ..ObjectReference::default()
            };
            self.tools.events.warn(&object, "Allocate", problem.reason, &problem.message).await;
        }
        self.told = problems;
    }
}
