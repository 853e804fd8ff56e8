//! What the nodes carry. All kinds of networks are defined, numbered and attached to their namespaces; of those that
//! nodes do not carry yet, this says so, instead of leaving pods to wait without a word.

use underlay_api::conditions::Verdict;
use underlay_api::network::conditions::{GENEVE_ACCEPTED, GENEVE_CONFIGURED};
use underlay_api::network::{Network, Topology, Transport};

/// Reason of a network whose transport nodes do not have yet.
const NO_TRANSPORT: &str = "TransportNotSupported";
/// Reason of a network that nodes do not carry yet for another cause.
const NOT_CARRIED: &str = "NetworkNotSupported";

/// Whether nodes reach the pods of a network by routes that are advertised.
pub fn is_routed(network: &Network) -> bool {
    matches!(network.transport, Transport::NoOverlay(_)) && network.uplink.is_none()
}

/// Whether pods reach those on other nodes the way a network asks for: a verdict, a reason and a sentence. Nothing where
/// that depends on advertisements.
pub fn transport(network: &Network) -> Option<(Verdict, &'static str, String)> {
    (!is_routed(network)).then(|| tunnelled(network))
}

fn tunnelled(network: &Network) -> (Verdict, &'static str, String) {
    let no = |reason, what: &str| {
        let message =
            format!("{what} not supported yet: nodes do not carry this network, and its pods do not start");
        (Verdict::False, reason, message)
    };
    match &network.transport {
        Transport::Evpn(_) => return no(NO_TRANSPORT, "transport EVPN is"),
        Transport::NoOverlay(_) | Transport::Geneve => {}
    }
    match &network.topology {
        Topology::Layer2(_) => no(NOT_CARRIED, "topology Layer2 is"),
        Topology::Localnet(_) => no(NOT_CARRIED, "topology Localnet is"),
        Topology::Layer3(_) if !network.is_primary() => no(NOT_CARRIED, "role Secondary is"),
        Topology::Layer3(_) if network.uplink.is_some() => no(NOT_CARRIED, "uplinks are"),
        Topology::Layer3(_) => (Verdict::True, GENEVE_ACCEPTED, GENEVE_CONFIGURED.to_owned()),
    }
}
