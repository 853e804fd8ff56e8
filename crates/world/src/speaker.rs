//! How the nodes' speakers fare, as they or frr-k8s tell it.

use std::collections::{BTreeMap, BTreeSet};

use underlay_api::frr::SUCCESS;
use underlay_api::{BGPSessionState, FRRNodeState};

/// How the default VRF is called where it has to have a name.
const DEFAULT_VRF: &str = "default";

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
        let vrf = if status.vrf == DEFAULT_VRF { String::new() } else { status.vrf };
        Some(Self { node: status.node, vrf, peer: status.peer, established })
    }
}

/// What became of a node's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Speaker {
    /// What is wrong with it, if anything is.
    pub problem: Option<String>,
    /// Prefixes that FRR originates, by VRF; that of the default one is empty.
    pub networks: BTreeMap<String, BTreeSet<String>>,
}

impl Speaker {
    /// Reads one. Of the configuration itself only what it originates is kept.
    pub fn read(object: FRRNodeState) -> Option<Self> {
        let status = object.status?;
        let networks = networks(&status.running_config);
        let results = [status.last_conversion_result, status.last_reload_result];
        let problem = results.into_iter().find(|result| !result.is_empty() && result != SUCCESS);
        Some(Self { problem, networks })
    }
}

/// What FRR originates, as its configuration says.
fn networks(configuration: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut networks: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut vrf = "";
    for line in configuration.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["router", "bgp", _, "vrf", name, ..] => vrf = name,
            ["router", ..] => vrf = "",
            ["network", prefix, ..] => {
                networks.entry(vrf.to_owned()).or_default().insert((*prefix).to_owned());
            }
            _ => {}
        }
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_originated_is_known_by_vrf() {
        let text = "router bgp 64512\n address-family ipv4 unicast\n  network 10.244.0.0/24\n exit-address-family\nexit\n!\n\
                    router bgp 64512 vrf blue\n address-family ipv4 unicast\n  network 10.0.1.0/24\n  network 10.0.2.0/24\n\
                    exit-address-family\nexit\n";
        let seen = networks(text);
        let of = |vrf: &str| seen[vrf].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!((of(""), of("blue")), (vec!["10.244.0.0/24"], vec!["10.0.1.0/24", "10.0.2.0/24"]));
    }
}
