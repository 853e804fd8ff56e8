//! The leader at work: it follows the world, plans, and writes what differs.
//!
//! Nodes come first and alone need no definitions of other kinds: a cluster whose advertisements cannot be watched yet
//! still gives its nodes their place. What was written to a node counts from then on, even before its echo is heard:
//! otherwise two plans in a row could give one subnet to two nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::core::v1::{Node, ObjectReference};
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};
use underlay_api::{BGPSessionState, FRRConfiguration, FRRNodeState, RouteAdvertisements};
use underlay_plan::cluster::{ClusterPlan, Given, NodesPlan, Problem, advertise, nodes};
use underlay_runtime::events::Events;
use underlay_runtime::feed;
use underlay_runtime::objects::{WriteError, Writer};
use underlay_runtime::pace::Pace;
use underlay_runtime::turn::Feeds;
use underlay_world::{Kind, Settings, World};

use crate::metrics::Metrics;
use crate::view::View;

/// Writes that are under way at once.
pub const AT_ONCE: usize = 16;
/// How long a write to a node counts without an echo. Watches are slower than this only when they are broken, and then
/// begin anew with a list.
const ECHO: Duration = Duration::from_secs(10);

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
    /// Problems that were told.
    told: Vec<Problem>,
    /// Failures that were told and still last.
    complaints: BTreeSet<String>,
    /// Advertisements that have series in the metrics.
    pub(crate) measured: BTreeSet<String>,
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
            .with_optional(BGPSessionState::NAME, feed::everything::<BGPSessionState>(client));
        Self {
            tools,
            feeds,
            world: World::default(),
            unheard: BTreeMap::new(),
            told: Vec::new(),
            complaints: BTreeSet::new(),
            measured: BTreeSet::new(),
        }
    }

    /// Leads for as long as it is polled.
    pub async fn run(mut self) {
        let mut pace = Pace::far();
        let mut again: Option<Instant> = None;
        loop {
            self.tools.view.lead(self.feeds.waiting());
            self.wait(again).await;
            self.tools.view.lead(self.feeds.waiting());
            if !self.feeds.has_listed(Node::NAME) {
                continue;
            }
            let began = Instant::now();
            let done = self.turn().await;
            self.tools.metrics.turn(began.elapsed(), !done);
            again = if done {
                pace.rest();
                self.complaints.clear();
                None
            } else {
                Some(Instant::now() + pace.wait())
            };
        }
    }

    /// Waits for something new, for the time to try again, or for an echo to be overdue.
    async fn wait(&mut self, again: Option<Instant>) {
        let overdue = self.unheard.values().map(|(_, written)| *written + ECHO).min();
        let time = async {
            match again.into_iter().chain(overdue).min() {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.feeds.next(&mut self.world) => {}
            () = time => {}
        }
    }

    /// One turn. False if it has to be done again.
    async fn turn(&mut self) -> bool {
        let (given, nodes_done) = self.give_to_nodes().await;
        let mut plan = ClusterPlan { nodes: given, problems: self.told.clone(), ..ClusterPlan::default() };
        let mut done = nodes_done;
        if self.feeds.is_ready() {
            let advertised = advertise::plan(&self.known());
            done &= self.write_advertised(&advertised).await;
            plan.frr_configurations = advertised.configurations;
            plan.verdicts = advertised.verdicts;
        }
        self.tools.view.plan(plan);
        done
    }

    /// The world with what was written to nodes.
    fn known(&mut self) -> World {
        let now = Instant::now();
        let nodes = &self.world.nodes;
        self.unheard.retain(|name, (given, written)| {
            let node = nodes.get(&underlay_world::Key::cluster(name));
            now < *written + ECHO && node.is_some_and(|node| node.uid == given.uid && !given.is_on(node))
        });
        let mut known = self.world.clone();
        for (name, (given, _)) in &self.unheard {
            given.record(name, &mut known);
        }
        known
    }

    async fn give_to_nodes(&mut self) -> (BTreeMap<String, Given>, bool) {
        let NodesPlan { given, problems } = nodes::plan(&self.known(), &self.tools.settings);
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
                    info!(node = name, annotations = ?given.annotations, "a node has its place");
                    self.unheard.insert(name.clone(), (given.clone(), Instant::now()));
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
