//! What is on the wire between two nodes while a pod asks another.

// With its path, so that this file can be used from elsewhere.
#[path = "listener.rs"]
mod listener;

use underlay_testkit::wait_for;

use super::cluster::PATIENCE;
use super::place::{PORT, Place};
use listener::Listener;

/// How packets travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// In Geneve tunnels.
    Tunnel,
    /// As they are.
    AsTheyAre,
}

/// A pod on one worker asks one on the other: they see each other's own addresses, and what passes the second one's uplink
/// is as it should be.
pub fn between_nodes(place: &Place, network: &str, travel: Travel) {
    let (from, to) = (place.pod(network, "worker1"), place.pod(network, "worker2"));
    for (own, address) in from.addresses.iter().zip(&to.addresses) {
        // The first answers may come before all nodes have learned all routes.
        wait_for(&format!("an answer of {address}"), PATIENCE, || place.asker_seen_by(&from, address));
        let tunnels = Listener::start(&place.lab, "worker2", "udp port 6081");
        let plain = Listener::start(&place.lab, "worker2", &format!("host {address} and tcp port {PORT}"));
        let seen = place.asker_seen_by(&from, address).expect("an answer");
        assert_eq!(seen, *own, "whom {address} took the asker for");
        let inside =
            |packets: &[String]| packets.iter().filter(|packet| packet.contains(address.as_str())).count();
        let (tunnels, plain) = (tunnels.packets(&place.lab), plain.packets(&place.lab));
        match travel {
            Travel::Tunnel => {
                assert!(inside(&tunnels) > 0, "{network}: no tunnel carried {address}: {tunnels:?}");
                assert!(plain.is_empty(), "{network}: outside of tunnels: {plain:?}");
            }
            Travel::AsTheyAre => {
                assert!(!plain.is_empty(), "{network}: nothing of {address} passed");
                assert_eq!(inside(&tunnels), 0, "{network}: in tunnels: {tunnels:?}");
            }
        }
    }
}
