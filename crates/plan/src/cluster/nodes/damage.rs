//! What of a node's record cannot stay: somebody wrote it by hand, or lost it. It is put right without asking, and told,
//! since pods may run with addresses of what is replaced.

use std::sync::Arc;

use ipnet::IpNet;
use underlay_api::annotations::{Annotation, NodeId, NodeSubnets, TransitAddresses};
use underlay_world::Node;

use super::{Place, object};
use crate::cluster::Problem;

/// Annotations of nodes that the cluster writes.
const OURS: [&str; 3] = [NodeId::KEY, NodeSubnets::KEY, TransitAddresses::KEY];

/// What is replaced on a node that is to have this place.
pub fn found(node: &Node, place: &Place) -> Vec<Problem> {
    let problem = |reason, message| Problem { object: object(node), reason, message };
    let unreadable = node.problems.iter().filter(|text| OURS.iter().any(|key| text.contains(key)));
    let mut problems: Vec<Problem> = unreadable
        .map(|text| problem("UnreadableAnnotation", format!("{text}; what it said is lost, and given anew")))
        .collect();
    if let (Some(NodeId(old)), Some(NodeId(new))) = (node.id, place.id)
        && old != new
    {
        let message = format!("node number {old} is another node's or none at all; it is {new} now");
        problems.push(problem("NodeIdReplaced", message));
    }
    let replaced = place.subnets.iter().filter_map(|change| replaced(node, change));
    problems.extend(replaced.map(|message| problem("SubnetReplaced", message)));
    problems
}

/// A sentence on subnets that are recorded and cannot stay, where others come in their place.
fn replaced(node: &Node, (network, new): &(Arc<str>, Vec<IpNet>)) -> Option<String> {
    let old = node.subnets_in(network).iter().filter(|net| !new.contains(net));
    let lost: Vec<String> = old.map(ToString::to_string).collect();
    if lost.is_empty() || new.is_empty() {
        return None;
    }
    let new: Vec<String> = new.iter().map(ToString::to_string).collect();
    Some(format!(
        "network {network}: {} is another node's or not of the network; the node has {} now, and its pods keep their \
         addresses until they are made anew",
        lost.join(", "),
        new.join(", ")
    ))
}
