//! What is told about the speaker: one FRRNodeState, and a BGPSessionState for every session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::ListParams;
use underlay_api::frr::{BGPSessionStateStatus, FRRNodeStateStatus, SUCCESS};
use underlay_api::{BGPSessionState, FRRNodeState};
use underlay_frr::Session;
use underlay_frr::tree::redact;
use underlay_net::hash::fnv1a64;
use underlay_plan::node::frr::Conflict;
use underlay_runtime::edge::{Edge, EdgeMetrics, Plans, Report};
use underlay_runtime::feed::text_with_sources;
use underlay_runtime::objects::{Basis, Writer};

use super::{Applied, Place};

/// Labels of session states, as frr-k8s has them.
const NODE: &str = "frrk8s.metallb.io/node";
const PEER: &str = "frrk8s.metallb.io/peer";
const VRF: &str = "frrk8s.metallb.io/vrf";
/// After this long a request that nobody waits for has arrived or never will.
const LATE: Duration = Duration::from_secs(30);
/// What is said of a session that BFD does not watch.
const NO_BFD: &str = "N/A";

/// All there is to tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// The node's state.
    pub node: FRRNodeStateStatus,
    /// Sessions by the names of their objects.
    pub sessions: BTreeMap<String, BGPSessionStateStatus>,
}

impl Told {
    /// Puts it together. Sessions that cannot be read are told as none.
    pub(super) fn new(node: &str, applied: &Applied, sessions: Option<&[Session]>) -> Self {
        let conversion = applied
            .conflicts
            .iter()
            .map(|Conflict { object, field, reason }| format!("{object}: {field}: {reason}"))
            .collect::<Vec<_>>()
            .join("\n");
        Self {
            node: FRRNodeStateStatus {
                running_config: applied.running.clone(),
                last_reload_result: applied.result.clone(),
                last_conversion_result: if conversion.is_empty() { SUCCESS.to_owned() } else { conversion },
            },
            sessions: sessions.unwrap_or_default().iter().map(|session| tell(node, session)).collect(),
        }
    }
}

fn tell(node: &str, session: &Session) -> (String, BGPSessionStateStatus) {
    let name = format!("{node}-{:016x}", fnv1a64(&format!("{}/{}", session.vrf, session.peer)));
    let status = BGPSessionStateStatus {
        bgp_status: session.state.clone(),
        bfd_status: session.bfd.clone().unwrap_or_else(|| NO_BFD.to_owned()),
        node: node.to_owned(),
        peer: session.peer.clone(),
        vrf: session.vrf.clone(),
    };
    (name, status)
}

/// FRR shows passwords in the clear; nobody else does.
pub(super) fn redacted(config: &str) -> String {
    config.lines().map(redact).collect::<Vec<_>>().join("\n")
}

/// Writes what is told, and only what is new.
pub(super) fn start(place: Place<'_>, plans: Plans<Told>, metrics: &EdgeMetrics) {
    let mut teller = Teller {
        node: place.node.to_owned(),
        nodes: Api::all(place.api.clone()),
        sessions: Api::namespaced(place.api, place.namespace),
        writer: place.writer,
        known: None,
        failed: None,
    };
    let edge = Edge::new("frr-states", plans, metrics).resync(LATE);
    tokio::spawn(edge.run(async move |told: Arc<Told>| {
        teller.doubt();
        let result = teller.write(&told).await;
        if result.is_err() {
            // What was written is not certain any more: look first.
            teller.known = None;
            teller.failed = Some(Instant::now());
        }
        result
    }));
}

struct Teller {
    node: String,
    nodes: Api<FRRNodeState>,
    sessions: Api<BGPSessionState>,
    writer: Writer,
    /// What the API server has.
    known: Option<Told>,
    /// When a write failed last.
    failed: Option<Instant>,
}

impl Teller {
    /// A request that was given up may still arrive and put an old state in the place of a newer one: look once more
    /// when it must have.
    fn doubt(&mut self) {
        if self.failed.is_some_and(|failed| failed.elapsed() >= LATE) {
            self.failed = None;
            self.known = None;
        }
    }

    async fn write(&mut self, told: &Told) -> Result<Report, String> {
        let mut known = match self.known.take() {
            Some(known) => known,
            None => self.read().await.map_err(|error| text_with_sources(&error))?,
        };
        let mut changes = 0;
        if known.node != told.node {
            changes += 1;
            self.write_node(&told.node, known.node == FRRNodeStateStatus::default()).await?;
            known.node = told.node.clone();
        }
        for (name, status) in &told.sessions {
            if known.sessions.get(name) != Some(status) {
                changes += 1;
                self.write_session(name, status, !known.sessions.contains_key(name)).await?;
            }
        }
        for name in known.sessions.keys().filter(|name| !told.sessions.contains_key(*name)) {
            changes += 1;
            self.writer
                .delete(&self.sessions, name, Basis::identity(""))
                .await
                .map_err(|error| text_with_sources(&error))?;
        }
        self.known = Some(told.clone());
        Ok(Report { changes })
    }

    async fn read(&self) -> kube::Result<Told> {
        let node = self.nodes.get_opt(&self.node).await?.and_then(|state| state.status).unwrap_or_default();
        let own = ListParams::default().labels(&format!("{NODE}={}", self.node));
        let sessions = self.sessions.list(&own).await?;
        let entry = |state: BGPSessionState| Some((state.metadata.name?, state.status.unwrap_or_default()));
        Ok(Told { node, sessions: sessions.items.into_iter().filter_map(entry).collect() })
    }

    async fn write_node(&self, status: &FRRNodeStateStatus, new: bool) -> Result<(), String> {
        if new {
            let metadata = ObjectMeta { name: Some(self.node.clone()), ..ObjectMeta::default() };
            let object = FRRNodeState { metadata, ..FRRNodeState::default() };
            self.writer.apply(&self.nodes, &object).await.map_err(|error| text_with_sources(&error))?;
        }
        let written = self.writer.apply_status(&self.nodes, &self.node, Basis::identity(""), status).await;
        written.map(drop).map_err(|error| text_with_sources(&error))
    }

    async fn write_session(
        &self,
        name: &str,
        status: &BGPSessionStateStatus,
        new: bool,
    ) -> Result<(), String> {
        if new {
            // A label may not have colons.
            let label = |value: &str| value.replace(':', "-");
            let labels = [(NODE, self.node.clone()), (PEER, label(&status.peer)), (VRF, label(&status.vrf))];
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value)).into()),
                ..ObjectMeta::default()
            };
            let object = BGPSessionState { metadata, ..BGPSessionState::default() };
            self.writer.apply(&self.sessions, &object).await.map_err(|error| text_with_sources(&error))?;
        }
        let written = self.writer.apply_status(&self.sessions, name, Basis::identity(""), status).await;
        written.map(drop).map_err(|error| text_with_sources(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        let text = "router bgp 1\n neighbor 10.0.0.1 password s3cret word\n exit";
        assert_eq!(redacted(text), "router bgp 1\n neighbor 10.0.0.1 password ***\n exit");
    }
}
