//! The leader at work: it follows the world, plans, and writes what differs.
//!
//! Nodes come first and alone need no definitions of other kinds: a cluster whose networks or advertisements cannot be
//! watched yet still gives its nodes their place. Networks are planned once all is known of them: what is missing then
//! is missing. What was written to a node counts from then on, even before its echo is heard: otherwise two plans in a
//! row could give one subnet to two nodes.
//!
//! Pods and endpoint slices change all the time, and no plan but that of endpoint slices depends on them, mostly: when
//! nothing else is new, only that one is made again, and only for the namespaces they are in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Namespace, Node, ObjectReference, Pod};
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};
use underlay_api::{
    BGPSessionState, ClusterUserDefinedNetwork, EgressIP, FRRConfiguration, FRRNodeState,
    RouteAdvertisements, UserDefinedNetwork,
};
use underlay_plan::cluster::networks::{Parts, slices};
use underlay_plan::cluster::transport::{self, Standing};
use underlay_plan::cluster::{
    Advertised, ClusterPlan, Given, NetworksPlan, NodesPlan, Numbers, Problem, networks, nodes,
};
use underlay_runtime::events::Events;
use underlay_runtime::feed;
use underlay_runtime::objects::{Basis, WriteError, Writer};
use underlay_runtime::pace::Pace;
use underlay_runtime::turn::{Feeds, Turn};
use underlay_world::slice::{MANAGED_BY, OURS, SOURCES};
use underlay_world::{AnyAttachment, AnySlice, Key, Kind, Settings, Version, World};

use crate::egress::Told;
use crate::metrics::Metrics;
use crate::networks::Failures;
use crate::news::News;
use crate::reach::{self, Probes, Targets};
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
const SHORTEST_LULL_OF_NETWORKS: Duration = Duration::from_millis(10);

/// Pods that have not ended: only those use networks.
const LIVING: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// What has to be known to advertise.
pub const OF_ADVERTISEMENTS: [&str; 5] = [
    Node::NAME,
    RouteAdvertisements::NAME,
    FRRConfiguration::NAME,
    FRRNodeState::NAME,
    BGPSessionState::NAME,
];
/// What people write, seldom in crowds: they wait for what comes of it.
const WRITTEN_BY_HAND: [&str; 2] = [RouteAdvertisements::NAME, FRRConfiguration::NAME];
/// What has to be listed to plan networks. Where a definition of these kinds is missing there are none; and where one
/// goes missing for a while, nothing is concluded from that.
pub const OF_NETWORKS: [&str; 5] = [
    ClusterUserDefinedNetwork::NAME,
    UserDefinedNetwork::NAME,
    AnyAttachment::NAME,
    Namespace::NAME,
    Pod::NAME,
];

/// What has to be listed to plan the endpoint slices of networks.
const OF_SLICES: [&str; 4] = [AnyAttachment::NAME, Namespace::NAME, Pod::NAME, AnySlice::NAME];

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
    /// The definition of the default network.
    pub default_network: Key,
    /// The lease by which managers agree who leads.
    pub lease: Key,
    /// Writes objects.
    pub writer: Writer,
    /// Writes events.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    /// Shows.
    pub view: View,
    /// How nodes are asked whether they live.
    pub probes: Probes,
}

/// The leader.
pub struct Leader {
    pub(crate) tools: Tools,
    pub(crate) feeds: Feeds,
    pub(crate) world: World,
    /// Written to nodes and not heard of yet.
    unheard: BTreeMap<String, Unheard>,
    /// The nodes that the last plan was made from.
    planned: BTreeMap<Key, Arc<underlay_world::Node>>,
    /// Whether this turn has written what the next one builds on.
    pub(crate) moved: bool,
    /// Problems that were told.
    told: Vec<Problem>,
    /// Failures that were told and still last.
    complaints: BTreeSet<String>,
    /// Whether a write of this turn failed for another reason than that somebody else was faster.
    failed: bool,
    /// Advertisements that have series in the metrics.
    pub(crate) measured: BTreeSet<String>,
    /// The numbers of networks in the last plan: they count before their echo is heard.
    pub(crate) numbers: Numbers,
    /// The nodes that are asked whether they live.
    pub(crate) targets: watch::Sender<Targets>,
    /// What was told of egress IPs.
    pub(crate) told_of_egress_ips: Told,
    /// Whether some network waits for pods to end; before the first plan, that may be.
    waits_for_pods: bool,
    /// How the default network stood when that was last told.
    pub(crate) standing: Option<Standing>,
}

/// What was written to a node and not heard of yet.
struct Unheard {
    given: Given,
    version: Version,
    written: Instant,
}

impl Leader {
    /// A leader that knows nothing yet.
    pub fn new(tools: Tools) -> Self {
        let client = &tools.client;
        let (targets, alive) = reach::watch(tools.probes);
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
            .with_optional(EgressIP::NAME, feed::everything::<EgressIP>(client))
            .with(reach::NAME, alive)
            .with(Namespace::NAME, feed::everything::<Namespace>(client))
            .with(Pod::NAME, feed::metadata::<Pod>(client, LIVING))
            .with(AnySlice::NAME, feed::watch::<AnySlice>(Api::all(client.clone()), managed_slices()));
        Self {
            tools,
            feeds,
            world: World::default(),
            unheard: BTreeMap::new(),
            planned: BTreeMap::new(),
            moved: false,
            told: Vec::new(),
            complaints: BTreeSet::new(),
            failed: false,
            measured: BTreeSet::new(),
            numbers: Numbers::default(),
            targets,
            told_of_egress_ips: Told::default(),
            waits_for_pods: true,
            standing: None,
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
            let Some(news) = news.filter(|_| self.feeds.has_listed(Node::NAME)) else { continue };
            let began = Instant::now();
            self.failed = false;
            let outcome = match &news {
                News::Endpoints(namespaces) => self.turn_of_slices(namespaces).await,
                News::Anything => self.turn().await,
            };
            debug!(?news, ?outcome, took = ?began.elapsed(), "a turn");
            let whole = news == News::Anything;
            // Who was outrun does not wait longer each time: he would be outrun again.
            if whole && !self.failed {
                pace.rest();
                self.complaints.clear();
            }
            // A smaller turn does not put off what a larger one has to do again.
            let larger = again.filter(|_| !whole);
            again = larger.or_else(|| (outcome == Outcome::Failed).then(|| Instant::now() + pace.wait()));
            self.tools.metrics.turn(began.elapsed(), self.failed, again.is_some());
            if outcome == Outcome::Moved {
                self.feeds.ask_again(Node::NAME);
            }
        }
    }

    /// Waits for something new, for the time to try again, or for an echo to be overdue. Nothing if it was nothing that
    /// a plan depends on.
    async fn wait(&mut self, again: Option<Instant>) -> Option<News> {
        let nodes = u32::try_from(self.world.nodes.len()).unwrap_or(u32::MAX);
        let lull = LULL_PER_NODE.saturating_mul(nodes).min(LONGEST_LULL);
        self.feeds.wait_for_lull(&OF_ADVERTISEMENTS, lull);
        self.feeds.wait_for_lull(&WRITTEN_BY_HAND, lull / 4);
        self.feeds.wait_for_lull(&OF_NETWORKS, lull.max(SHORTEST_LULL_OF_NETWORKS));
        let overdue = self.unheard.values().map(|unheard| unheard.written + ECHO).min();
        let time = async {
            match again.into_iter().chain(overdue).min() {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            turn = self.feeds.next(&mut self.world) => self.news(turn),
            () = time => Some(News::Anything),
        }
    }

    /// What a turn of the watches means. What we wrote to nodes ourselves is no news, but what the next step builds on.
    fn news(&mut self, turn: Turn) -> Option<News> {
        if self.moved || (turn.changed.contains(Node::NAME) && self.nodes_differ()) {
            return Some(News::Anything);
        }
        News::of(turn, self.waits_for_pods)
    }

    /// Whether nodes are others than those planned with, but for what we wrote to them.
    fn nodes_differ(&mut self) -> bool {
        let (planned, nodes) = (&self.planned, &self.world.nodes);
        let made =
            |name: &str, old, new| self.unheard.get(name).is_some_and(|unheard| unheard.given.made(old, new));
        let pairs = || planned.iter().zip(nodes);
        let same = planned.len() == nodes.len()
            && pairs()
                .all(|((key, old), (other, new))| key == other && (old == new || made(&key.name, old, new)));
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
        let mut networks = self.plan_networks(&known);
        let parts = networks.as_ref().map(|networks| &networks.parts);
        let (given, mut done) = self.give_to_nodes(&known, parts).await;
        let mut plan = ClusterPlan { nodes: given, problems: self.told.clone(), ..ClusterPlan::default() };
        done &= self.connect(&mut plan).await;
        done &= self.plan_egress_ips(&mut plan).await;
        let advertised = self.plan_advertised(networks.as_ref());
        // Nodes take a network for advertised when both are there; what is told of it comes last.
        let mut untold = BTreeMap::new();
        if let Some(advertised) = &advertised {
            let written = self.write_configurations(advertised).await;
            untold = written.0;
            done &= written.1;
        }
        if let Some(networks) = &mut networks
            && let Some(Advertised { advertisers, .. }) = &advertised
        {
            networks::announce(&mut networks.attachments, &self.world, advertisers);
        }
        let mut failures = Failures::new();
        if let Some(networks) = &networks {
            done &= self.write_networks(networks, &mut failures).await;
        }
        if self.knows_slices() {
            plan.slices = slices::plan(&self.world);
            done &= self.write_slices(&plan.slices).await;
        }
        let known = advertised.is_some();
        if let Some(advertised) = advertised {
            let (verdicts, told) = self.say_of_advertisements(&advertised, &untold).await;
            done &= told & self.tell_of_default_network(&verdicts).await;
            plan.frr_configurations.extend(advertised.configurations);
            plan.verdicts = verdicts;
        }
        if let Some(networks) = &mut networks {
            transport::judge(
                &mut networks.told,
                &self.world,
                &self.tools.settings,
                known.then_some(&plan.verdicts),
            );
            done &= self.say_of_routed(networks, &failures).await;
        }
        let networks = networks.unwrap_or_default();
        (plan.networks, plan.attachments) = (networks.told, networks.attachments);
        self.tools.view.plan(plan);
        match (done, self.moved) {
            (false, _) => Outcome::Failed,
            (true, true) => Outcome::Moved,
            (true, false) => Outcome::Settled,
        }
    }

    /// A turn in which nothing but endpoints in these namespaces can be others.
    async fn turn_of_slices(&mut self, namespaces: &BTreeSet<String>) -> Outcome {
        if !self.knows_slices() {
            return Outcome::Settled;
        }
        let steps = slices::plan_within(&self.world, namespaces.iter().map(String::as_str));
        let done = self.write_slices(&steps).await;
        self.tools.view.slices(steps);
        if done { Outcome::Settled } else { Outcome::Failed }
    }

    fn knows_slices(&self) -> bool {
        OF_SLICES.iter().all(|kind| self.feeds.has_listed(kind))
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
    pub(crate) fn known(&mut self) -> World {
        self.forget_heard();
        let mut known = self.world.clone();
        for (name, Unheard { given, version, .. }) in &self.unheard {
            given.record(name, &mut known);
            if let Some(node) = known.nodes.get_mut(&Key::cluster(name)) {
                Arc::make_mut(node).version = version.clone();
            }
        }
        known
    }

    /// Forgets what was written to nodes and heard of, or should have been.
    fn forget_heard(&mut self) {
        let now = Instant::now();
        let nodes = &self.world.nodes;
        self.unheard.retain(|name, Unheard { given, written, .. }| {
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
            let node = known.node(name).map(AsRef::as_ref);
            let still = |now: &Node| node.is_some_and(|node| has_same_place(node, now));
            let basis = match node {
                Some(node) => Basis::version(&given.uid, &node.version, &still),
                None => Basis::identity(&given.uid),
            };
            (name, given, writer.annotate(&api, name, basis, &given.annotations).await)
        });
        let results: Vec<_> = requests.buffer_unordered(AT_ONCE).collect().await;
        let mut done = true;
        for (name, given, result) in results {
            match result {
                Ok(node) => {
                    info!(node = name, annotations = ?given.annotations.keys(), "a node has its place");
                    let given = given.after(self.unheard.remove(name).map(|earlier| earlier.given));
                    let (version, written) = (Version::of(&node), Instant::now());
                    self.unheard.insert(name.clone(), Unheard { given, version, written });
                    self.moved = true;
                }
                // It is gone: the watch will tell.
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    self.complain(&error);
                    done = false;
                }
            }
        }
        (given, done)
    }

    /// Tells of a failure once, however often it is tried again. That somebody else was faster is none: it is known soon,
    /// and decided anew.
    pub(crate) fn complain(&mut self, error: &WriteError) {
        if error.is_conflict() {
            return;
        }
        self.failed = true;
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

/// Whether a node still has on record what it had when it was decided what to give it.
fn has_same_place(known: &underlay_world::Node, now: &Node) -> bool {
    let now = underlay_world::Node::read(now);
    (known.id, known.transit, &known.subnets) == (now.id, now.transit, &now.subnets)
}

/// The endpoint slices that matter here: the cluster's own and ours.
fn managed_slices() -> watcher::Config {
    let managers = [&SOURCES[..], &[OURS]].concat().join(",");
    watcher::Config::default().labels(&format!("{MANAGED_BY} in ({managers})"))
}
