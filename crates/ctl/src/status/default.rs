//! The default network: how its packets travel between nodes, and whether they do.

use serde::Serialize;
use underlay_runtime::report::AgentReport;
use underlay_world::settings::{NoOverlay, Routing};

use super::networks::Routes;
use crate::cluster::advertising::by_verdict;
use crate::cluster::facts::{Agent, Facts};
use crate::problem::Problem;

/// The default network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DefaultRow {
    /// `Geneve` or `NoOverlay`.
    pub transport: &'static str,
    /// How it is, in short.
    pub state: String,
    /// Nodes that tell BGP peers of their part.
    pub nodes_advertised: usize,
    /// Routes that BGP brought it, on all nodes.
    #[serde(flatten)]
    pub routes: Routes,
    /// Whether that is well.
    #[serde(skip)]
    pub well: bool,
}

/// The default network, as agents tell it; nothing if none does.
pub fn row(facts: &Facts) -> Option<DefaultRow> {
    let (transport, state, well) = match told(facts)?.no_overlay {
        None => ("Geneve", "in tunnels between nodes".to_owned(), true),
        Some(no_overlay) => {
            let (state, well) = routed(facts, no_overlay);
            ("NoOverlay", state, well)
        }
    };
    let plans = || facts.agents.keys().filter_map(|node| facts.report(node)?.plan.as_ref());
    Some(DefaultRow {
        transport,
        state,
        nodes_advertised: plans().filter(|plan| plan.advertised).count(),
        routes: Routes::sum(plans().map(|plan| (plan.learned, plan.imported, plan.dammed))),
        well,
    })
}

/// How a default network without overlay is, and whether that is well.
fn routed(facts: &Facts, no_overlay: NoOverlay) -> (String, bool) {
    let routing = match no_overlay.routing {
        Routing::Managed => "managed",
        Routing::Unmanaged => "unmanaged",
    };
    let snat = if no_overlay.outbound_snat { "enabled" } else { "disabled" };
    let (accepted, others) = by_verdict(facts.of_default_network());
    let (state, well) = match (accepted.as_slice(), others.as_slice()) {
        ([], []) => ("not advertised".to_owned(), false),
        ([], others) => (format!("{} not accepted", others.join(", ")), false),
        (accepted, _) => (format!("advertised by {}", accepted.join(", ")), true),
    };
    (format!("{state} (routing {routing}, outbound SNAT {snat})"), well)
}

/// What is wrong with it.
pub fn problem(facts: &Facts) -> Option<Problem> {
    let no_overlay = told(facts)?.no_overlay?;
    let (accepted, others) = by_verdict(facts.of_default_network());
    if !accepted.is_empty() {
        return None;
    }
    let hint = match no_overlay.routing {
        Routing::Managed => {
            "underlay-cluster makes its RouteAdvertisements: is it running, with the agents' settings?"
        }
        Routing::Unmanaged => "create RouteAdvertisements that select DefaultNetwork and an FRRConfiguration",
    };
    let what = if others.is_empty() {
        "has no overlay, and nobody advertises it: pods do not reach those on other nodes"
    } else {
        "has no overlay, and is advertised by nobody who is accepted: pods may not reach those on other nodes"
    };
    Some(Problem { about: "default network".to_owned(), what: what.to_owned(), hint: hint.to_owned() })
}

/// What the first agent that tells says: all have the same settings.
fn told(facts: &Facts) -> Option<&AgentReport> {
    facts.agents.values().find_map(|agent| match agent {
        Agent::Told(report) => Some(report.as_ref()),
        _ => None,
    })
}
