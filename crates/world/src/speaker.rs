//! How the nodes' speakers fare, as they or frr-k8s tell it.

use std::collections::BTreeSet;

use underlay_api::frr::SUCCESS;
use underlay_api::{BGPSessionState, FRRNodeState};

/// A BGP session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The node.
    pub node: String,
    /// Its VRF; empty is the default one.
    pub vrf: String,
    /// The peer's address or interface.
    pub peer: String,
    /// Whether routes are exchanged.
    pub established: bool,
}

impl Session {
    /// Reads one; nothing of a session that nothing was told of.
    pub fn read(object: BGPSessionState) -> Option<Self> {
        let status = object.status?;
        let established = status.bgp_status == "Established";
        Some(Self { node: status.node, vrf: status.vrf, peer: status.peer, established })
    }
}

/// What became of a node's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Speaker {
    /// What is wrong with it, if anything is.
    pub problem: Option<String>,
    /// Prefixes that FRR originates, in any VRF.
    pub networks: BTreeSet<String>,
}

impl Speaker {
    /// Reads one. Of the configuration itself only what it originates is kept.
    pub fn read(object: FRRNodeState) -> Option<Self> {
        let status = object.status?;
        let network = |line: &str| line.trim().strip_prefix("network ").map(str::to_owned);
        let networks = status.running_config.lines().filter_map(network).collect();
        let results = [status.last_conversion_result, status.last_reload_result];
        let problem = results.into_iter().find(|result| !result.is_empty() && result != SUCCESS);
        Some(Self { problem, networks })
    }
}
