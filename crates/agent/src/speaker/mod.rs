//! BGP: FRRConfigurations that select the node become FRR's configuration; how its sessions fare is told in objects.

mod states;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::{Notify, watch};
use tokio::time::MissedTickBehavior;
use tracing::warn;
use underlay_desired::frr::Config;
use underlay_frr::state::ESTABLISHED;
use underlay_frr::{Frr, Session, SessionReader};
use underlay_plan::node::frr::{Conflict, Merged};
use underlay_runtime::edge::{Edge, EdgeMetrics, EdgeState, Publisher, Report};
use underlay_runtime::feed::text_with_sources;
use underlay_runtime::objects::Writer;

use states::{Told, redacted};

/// How often sessions are looked at. FRR tells nobody when one changes, and a look costs next to nothing.
const LOOK: Duration = Duration::from_secs(1);

/// The node's speaker.
pub struct Speaker {
    config: Publisher<Config>,
    conflicts: watch::Sender<Vec<Conflict>>,
    state: watch::Receiver<EdgeState>,
}

/// What became of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Applied {
    /// FRR's answer: nothing yet, or success, or what went wrong.
    result: String,
    /// FRR's configuration, without passwords.
    running: String,
    /// Neighbours that wait for their session before BFD watches them.
    waiting: usize,
}

impl Speaker {
    /// Starts it. It waits for its first configuration.
    pub fn start(node: &str, namespace: &str, api: Client, writer: Writer, metrics: &EdgeMetrics) -> Self {
        let config = Publisher::default();
        let (conflicts, conflicts_seen) = watch::channel(Vec::new());
        let (applied, applied_seen) = watch::channel(Applied::default());
        let edge = Edge::new("frr", config.plans(), metrics).resync(Duration::from_mins(1));
        let (state, waker) = (edge.state(), edge.waker());
        tokio::spawn(edge.run(async move |config: Arc<Config>| apply(&config, &applied).await));

        let told = Publisher::default();
        states::start(node, namespace, api, writer, told.plans(), metrics);
        let node = node.to_owned();
        tokio::spawn(look(node, told, conflicts_seen, applied_seen, config.plans(), waker));
        Self { config, conflicts, state }
    }

    /// Hands over what the node's configurations come to.
    pub fn publish(&self, merged: Merged) {
        self.conflicts.send_if_modified(|conflicts| {
            if *conflicts == merged.conflicts {
                return false;
            }
            for Conflict { object, field, reason } in &merged.conflicts {
                warn!(%object, field, reason, "left out of FRR's configuration");
            }
            *conflicts = merged.conflicts;
            true
        });
        self.config.publish(merged.config);
    }

    /// How far it is.
    pub fn state(&self) -> watch::Receiver<EdgeState> {
        self.state.clone()
    }
}

async fn apply(config: &Config, applied: &watch::Sender<Applied>) -> Result<Report, String> {
    let frr = Frr::default();
    if *config == Config::default() && !frr.sockets.exists() {
        // A node without FRR, and nobody asks for any.
        return Ok(Report::default());
    }
    let result = frr.sync(config).await;
    let changes = result.as_ref().map_or(0, |report| report.commands);
    let first = applied.borrow().result.is_empty();
    let running = if changes > 0 || first || result.is_err() {
        frr.running_config().await.ok().map(|text| redacted(&text))
    } else {
        None
    };
    let answer = match &result {
        Ok(_) => underlay_api::frr::SUCCESS.to_owned(),
        Err(error) => text_with_sources(error),
    };
    applied.send_if_modified(|applied| {
        let old = applied.clone();
        applied.result = answer;
        applied.waiting = result.as_ref().map_or(0, |report| report.waiting);
        applied.running = running.unwrap_or(old.running.clone());
        *applied != old
    });
    result.map(|_| Report { changes }).map_err(|error| text_with_sources(&error))
}

/// Looks at the sessions again and again, and hands on what is to be told about them.
async fn look(
    node: String,
    told: Publisher<Told>,
    mut conflicts: watch::Receiver<Vec<Conflict>>,
    mut applied: watch::Receiver<Applied>,
    mut config: underlay_runtime::edge::Plans<Config>,
    frr: Arc<Notify>,
) {
    let mut reader = SessionReader::new(&Frr::default().sockets);
    let mut sessions: Option<Vec<Session>> = Some(Vec::new());
    let mut pause = tokio::time::interval(LOOK);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Without a configuration FRR is not ours to tell of.
    if config.wait_for(Option::is_some).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            _ = pause.tick() => {}
            changed = conflicts.changed() => if changed.is_err() { return },
            changed = applied.changed() => if changed.is_err() { return },
        }
        let now = reader.read().await.ok();
        let returned = sessions.is_none() && now.is_some();
        let newly_up = up(now.as_deref()) > up(sessions.as_deref()) && applied.borrow().waiting > 0;
        if returned || newly_up {
            frr.notify_one();
        }
        if applied.borrow().result.is_empty() {
            continue;
        }
        let state =
            Told::new(&node, &conflicts.borrow_and_update(), &applied.borrow_and_update(), now.as_deref());
        told.publish(state);
        sessions = now;
    }
}

fn up(sessions: Option<&[Session]>) -> usize {
    sessions.unwrap_or_default().iter().filter(|session| session.state == ESTABLISHED).count()
}
