//! From facts to rows: a neighbour of a node, by what is configured and what FRR has.

use std::collections::BTreeSet;

use serde::Serialize;
use underlay_api::frr::Neighbor;
use underlay_plan::node::mesh::without_itself;
use underlay_runtime::report::PeerReport;
use underlay_world::select::picks;

use crate::cluster::facts::{ESTABLISHED, Facts, same_peer, same_vrf};
use crate::problem::{Problem, silent_agents};

/// What is said of a neighbour that is configured and that FRR does not have.
const ABSENT: &str = "not in FRR";

/// All neighbours of the nodes that were asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Overview {
    /// By node, VRF and name.
    pub peers: Vec<PeerRow>,
    /// What is wrong, besides sessions that do not stand.
    pub problems: Vec<Problem>,
}

/// A neighbour of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerRow {
    /// The node.
    pub node: String,
    /// The neighbour's address or interface.
    pub peer: String,
    /// The VRF.
    pub vrf: String,
    /// The neighbour's AS, once it is known.
    #[serde(rename = "asn")]
    pub remote_as: Option<u32>,
    /// FRR's word for the session's state.
    pub state: String,
    /// For how many seconds it is so, if FRR tells.
    pub seconds: Option<u64>,
    /// Prefixes that were received and accepted, if FRR tells.
    pub received: Option<u64>,
    /// Prefixes that were sent, if FRR tells.
    pub sent: Option<u64>,
    /// FRR's word for the state of BFD, where BFD watches.
    pub bfd: Option<String>,
    /// Why the session was lost last, in FRR's words.
    pub last_reset: Option<String>,
}

impl PeerRow {
    /// Whether routes are exchanged.
    pub fn is_up(&self) -> bool {
        self.state == ESTABLISHED
    }
}

/// All neighbours of the nodes that were asked.
pub fn overview(facts: &Facts) -> Overview {
    let mut overview = Overview { peers: vec![], problems: silent_agents(facts) };
    for node in facts.agents.keys() {
        let mut rows = told(facts, node);
        for (vrf, neighbor) in configured(facts, node) {
            if !rows.iter().any(|row| same_vrf(&row.vrf, &vrf) && same_peer(&row.peer, &neighbor)) {
                let (peer, state) = (neighbor, ABSENT.to_owned());
                rows.push(PeerRow {
                    node: node.clone(),
                    peer,
                    vrf: named(&vrf),
                    state,
                    ..PeerRow::default()
                });
            }
        }
        rows.sort_by(|one, other| (&one.vrf, &one.peer).cmp(&(&other.vrf, &other.peer)));
        overview.peers.extend(rows);
        let problem = facts.report(node).and_then(|report| report.speaker.problem.as_ref());
        overview.problems.extend(problem.map(|problem| {
            let hint = "who speaks BGP there: FRR of the agent, or frr-k8s in a pod?";
            Problem::new(&format!("node {node}"), format!("FRR could not be asked: {problem}"), hint)
        }));
    }
    overview
}

/// What FRR says; where it could not be asked, what was published.
fn told(facts: &Facts, node: &str) -> Vec<PeerRow> {
    let asked = facts.report(node).filter(|report| report.speaker.problem.is_none());
    if let Some(report) = asked {
        return report.speaker.peers.iter().map(|peer| row(node, peer)).collect();
    }
    let published = facts.sessions.iter().filter(|session| session.node == node);
    let row = |session: &underlay_api::frr::BGPSessionStateStatus| PeerRow {
        node: node.to_owned(),
        peer: session.peer.clone(),
        vrf: named(&session.vrf),
        state: session.bgp_status.clone(),
        bfd: Some(session.bfd_status.clone()).filter(|bfd| !bfd.is_empty() && bfd != "N/A"),
        ..PeerRow::default()
    };
    published.map(row).collect()
}

fn row(node: &str, peer: &PeerReport) -> PeerRow {
    PeerRow {
        node: node.to_owned(),
        peer: peer.peer.clone(),
        vrf: named(&peer.vrf),
        remote_as: Some(peer.remote_as).filter(|asn| *asn != 0),
        state: peer.state.clone(),
        seconds: peer.seconds,
        received: Some(peer.received),
        sent: Some(peer.sent),
        bfd: peer.bfd.clone(),
        // What kept a session from being tried before it stood for the first time is of no interest any more.
        last_reset: peer.last_reset.clone().filter(|_| peer.dropped > 0 || peer.state != ESTABLISHED),
    }
}

/// Neighbours that a node should have: VRF, and address or interface.
fn configured(facts: &Facts, node: &str) -> BTreeSet<(String, String)> {
    let Some(node) = facts.nodes.get(node).map(|facts| &facts.node) else { return BTreeSet::new() };
    let own = facts.configurations.iter();
    let own = own.filter(|one| picks(&one.spec.node_selector, &node.labels).unwrap_or(false));
    let name = |neighbor: &Neighbor| {
        if neighbor.address.is_empty() { neighbor.interface.clone() } else { neighbor.address.clone() }
    };
    let mut all = BTreeSet::new();
    for configuration in without_itself(own, node) {
        for router in &configuration.spec.bgp.routers {
            all.extend(router.neighbors.iter().map(|neighbor| (router.vrf.clone(), name(neighbor))));
        }
    }
    all
}

/// The default VRF by its name.
fn named(vrf: &str) -> String {
    if vrf.is_empty() { "default".to_owned() } else { vrf.to_owned() }
}
