//! Which networks a pod belongs to.
//!
//! What was decided for a pod stays: one that runs is not moved to another network because somebody defines one, and one
//! that was kept away from the default network stays away from it.

use std::collections::BTreeMap;

use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_world::local::Assigned;
use underlay_world::{Key, Pod};

use super::networks::{Attachment, Networks, Others};
use super::site::Site;

/// A pod's networks.
#[derive(Debug)]
pub struct Seat<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// What it was given before, if it was here.
    pub before: Option<&'a Assigned>,
    /// Whether the default network is only for probes.
    pub locked: bool,
    /// The other network that carries its traffic, as soon as that is there.
    pub own: Option<Attachment>,
    /// What it waits for.
    pub waiting: Option<String>,
}

/// Finds the networks of every pod of the node. Of pods for which they cannot be told, the problem is added to
/// `problems`; those that run keep what they have.
pub fn find<'a>(site: &Site<'a>, others: &Others<'_>, problems: &mut BTreeMap<Key, String>) -> Vec<Seat<'a>> {
    let (networks, mut seats) = (others.networks, Vec::new());
    for pod in site.world.pods.values().filter(|pod| pod.needs_port() && pod.node == site.node.name) {
        let before = site.local.assigned.get(&pod.key).filter(|before| before.uid == pod.uid);
        let namespace = networks.namespaces.get(&pod.key.namespace);
        let locked = before.map_or(networks.takes(&pod.key.namespace), |before| before.locked);
        let own = match (locked, kept(networks, before), namespace) {
            (false, ..) | (true, None, None) => None,
            (true, Some(kept), _) => Some(kept),
            (true, None, Some(Ok(attachment))) => Some(attachment.clone()),
            (true, None, Some(Err(problem))) => {
                problems.insert(pod.key.clone(), problem.clone());
                if before.is_none() {
                    continue;
                }
                None
            }
        };
        let waiting = match &own {
            _ if !locked => None,
            None => Some(format!("a primary network for namespace {}", pod.key.namespace)),
            Some(own) if others.sites.contains_key(own.network.as_str()) => None,
            Some(own) => {
                let reason = others.waiting.get(&own.network);
                Some(reason.cloned().unwrap_or_else(|| format!("network {}", own.network)))
            }
        };
        let own = own.filter(|_| waiting.is_none());
        seats.push(Seat { pod, before, locked, own, waiting });
    }
    seats
}

/// The network that a pod was on, if it is still there.
fn kept(networks: &Networks, before: Option<&Assigned>) -> Option<Attachment> {
    let mut names = before?.networks.keys().filter(|name| *name != DEFAULT_NETWORK);
    names.find_map(|name| {
        let network = networks.attachments.get(name)?;
        Some(Attachment { name: name.clone(), network: network.clone() })
    })
}
