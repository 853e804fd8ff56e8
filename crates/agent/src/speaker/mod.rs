//! BGP: FRRConfigurations that select the node become FRR's configuration; how its sessions fare is told in objects.

mod refusals;
mod states;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::{Notify, watch};
use tokio::time::MissedTickBehavior;
use tracing::{debug, warn};
use underlay_frr::state::ESTABLISHED;
use underlay_frr::{Frr, Patience, Session, SessionReader, SyncError};
use underlay_plan::node::frr::{Conflict, Merged};
use underlay_runtime::edge::{Edge, EdgeMetrics, EdgeState, Publisher, Report, reached};
use underlay_runtime::feed::text_with_sources;
use underlay_runtime::objects::Writer;
use underlay_world::Key;

use crate::args::Speaker as Who;
use refusals::Refusals;
use states::{Told, redacted};

/// How often sessions are looked at. FRR tells nobody when one changes, and a look costs next to nothing.
const LOOK: Duration = Duration::from_millis(250);

/// For how long the rest of the node waits for FRR.
const HEAD_START: Duration = Duration::from_millis(300);

/// The node's speaker.
pub struct Speaker {
    merged: Publisher<Merged>,
    secrets: watch::Sender<BTreeSet<Key>>,
    state: watch::Receiver<EdgeState>,
}

/// Whose speaker it is, and where it tells how it fares.
pub struct Place<'a> {
    /// The node.
    pub node: &'a str,
    /// Namespace of the states of sessions.
    pub namespace: &'a str,
    /// The API server.
    pub api: Client,
    /// Writes to it.
    pub writer: Writer,
}

/// What became of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Applied {
    /// FRR's answer: nothing yet, or success, or what went wrong.
    result: String,
    /// FRR's configuration, without passwords.
    running: String,
    /// When neighbours that do not answer are tried in another way.
    again: Option<Instant>,
    /// What has no part in the configuration.
    conflicts: Vec<Conflict>,
}

impl Speaker {
    /// Starts it. It waits for its first configuration. Where frr-k8s does the work there is nothing to start: FRR, its
    /// file, its states and the secrets are none of ours then.
    pub fn start(who: Who, place: Place<'_>, frr: Frr, metrics: &EdgeMetrics) -> Option<Self> {
        if who == Who::FrrK8s {
            return None;
        }
        let merged = Publisher::default();
        let (applied, applied_seen) = watch::channel(Applied::default());
        let edge = Edge::new("frr", merged.plans(), metrics).resync(Duration::from_mins(1));
        let (state, waker) = (edge.state(), edge.waker());
        let reader = SessionReader::new(&frr.sockets);
        let mut memory = Memory::default();
        tokio::spawn(
            edge.run(async move |merged: Arc<Merged>| apply(&frr, &merged, &mut memory, &applied).await),
        );

        let told = Publisher::default();
        let node = place.node.to_owned();
        states::start(place, told.plans(), metrics);
        tokio::spawn(look(node, reader, told, applied_seen, merged.plans(), waker));
        Some(Self { merged, secrets: watch::Sender::default(), state })
    }

    /// Secrets with passwords of neighbours.
    pub fn secrets(&self) -> watch::Receiver<BTreeSet<Key>> {
        self.secrets.subscribe()
    }

    /// Hands over what the node's configurations come to, and returns its number if it is new. As long as a password is not
    /// known that belongs to it, FRR goes on with what it has.
    pub fn publish(&self, merged: Merged) -> Option<u64> {
        self.secrets.send_if_modified(|secrets| {
            let changed = *secrets != merged.secrets;
            secrets.clone_from(&merged.secrets);
            changed
        });
        if !merged.unread.is_empty() {
            return None;
        }
        let before = self.merged.last().map_or(0, |last| last.generation);
        let number = self.merged.publish(merged);
        (number != before).then_some(number)
    }

    /// Waits until FRR does what it should, though not for long: whatever keeps it, the node goes on.
    pub async fn reach(&self, number: u64) {
        let mut state = self.state.clone();
        let late = tokio::time::timeout(HEAD_START, reached(&mut state, number)).await.is_err();
        if late {
            debug!("FRR takes its time; the rest of the node does not wait for it");
        }
    }

    /// How far it is.
    pub fn state(&self) -> watch::Receiver<EdgeState> {
        self.state.clone()
    }
}

/// What is known from one configuration to the next.
#[derive(Default)]
struct Memory {
    refusals: Refusals,
    patience: Patience,
}

async fn apply(
    frr: &Frr,
    merged: &Merged,
    memory: &mut Memory,
    applied: &watch::Sender<Applied>,
) -> Result<Report, String> {
    if merged.is_empty() && !frr.sockets.exists() {
        // A node without FRR, and nobody asks for any.
        return Ok(Report::default());
    }
    let Memory { refusals, patience } = memory;
    let mut merged = refusals.leave_out(merged);
    let result = loop {
        match frr.sync(&merged.config, patience).await.map_err(SyncError::blamed) {
            Err(Ok((object, reason))) => merged = refusals.add(merged, object, reason),
            Err(Err(error)) => break Err(error),
            Ok(report) => break Ok(report),
        }
    };
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
        applied.again = patience.until();
        applied.running = running.unwrap_or(old.running.clone());
        applied.conflicts = told(&old.conflicts, merged.conflicts);
        *applied != old
    });
    result.map(|_| Report { changes }).map_err(|error| text_with_sources(&error))
}

/// What is left out, told once to those who read logs.
fn told(old: &[Conflict], conflicts: Vec<Conflict>) -> Vec<Conflict> {
    for conflict in conflicts.iter().filter(|conflict| !old.contains(conflict)) {
        let Conflict { object, field, reason } = conflict;
        warn!(%object, field, reason, "left out of FRR's configuration");
    }
    conflicts
}

/// Looks at the sessions again and again, and hands on what is to be told about them.
async fn look(
    node: String,
    mut reader: SessionReader,
    told: Publisher<Told>,
    mut applied: watch::Receiver<Applied>,
    mut merged: underlay_runtime::edge::Plans<Merged>,
    frr: Arc<Notify>,
) {
    let mut sessions: Option<Vec<Session>> = Some(Vec::new());
    let mut pause = tokio::time::interval(LOOK);
    pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // Without a configuration FRR is not ours to tell of.
    if merged.wait_for(Option::is_some).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            _ = pause.tick() => {}
            changed = applied.changed() => if changed.is_err() { return },
        }
        let now = reader.read().await.ok();
        let returned = sessions.is_none() && now.is_some();
        let changed = up(now.as_deref()) != up(sessions.as_deref());
        let due = applied.borrow().again.is_some_and(|again| again <= Instant::now());
        if returned || changed || due {
            frr.notify_one();
        }
        if applied.borrow().result.is_empty() {
            continue;
        }
        told.publish(Told::new(&node, &applied.borrow_and_update(), now.as_deref()));
        sessions = now;
    }
}

/// VRF and neighbour of the sessions that stand: BFD comes and goes with them.
fn up(sessions: Option<&[Session]>) -> BTreeSet<(&str, &str)> {
    let standing = sessions.unwrap_or_default().iter().filter(|session| session.state == ESTABLISHED);
    standing.map(|session| (session.vrf.as_str(), session.peer.as_str())).collect()
}
