//! Configurations that all nodes of a mesh share: each node is a neighbour in them, and none is its own.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use kube::ResourceExt;
use underlay_api::FRRConfiguration;
use underlay_api::frr::Neighbor;
use underlay_world::Node;

use crate::cluster::advertise::LABEL;
use crate::cluster::own_addresses;

/// Configurations without the node itself among the neighbours: FRR refuses a session with its own address. Of those
/// that are generated, which may be thousands, it has been left out before.
pub fn without_itself<'a>(
    configurations: impl Iterator<Item = &'a FRRConfiguration>,
    node: &Node,
) -> Vec<Cow<'a, FRRConfiguration>> {
    let own = own_addresses(node);
    let written = |one: &FRRConfiguration| !one.labels().contains_key(LABEL);
    let names = |one: &FRRConfiguration| {
        let mut routers = one.spec.bgp.routers.iter();
        routers.any(|router| router.neighbors.iter().any(|neighbor| is(neighbor, &own)))
    };
    let one = |one: &'a FRRConfiguration| {
        if written(one) && names(one) { Cow::Owned(others(one, &own)) } else { Cow::Borrowed(one) }
    };
    configurations.map(one).collect()
}

fn others(configuration: &FRRConfiguration, own: &BTreeSet<IpAddr>) -> FRRConfiguration {
    let mut others = configuration.clone();
    for router in &mut others.spec.bgp.routers {
        Arc::make_mut(router).neighbors.retain(|neighbor| !is(neighbor, own));
    }
    others
}

fn is(neighbor: &Neighbor, own: &BTreeSet<IpAddr>) -> bool {
    neighbor.address.parse().is_ok_and(|address: IpAddr| own.contains(&address))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_no_neighbour_of_itself() {
        let neighbors =
            ["172.18.0.2", "172.18.0.3", "FC00:0::2"].map(|address| json!({ "address": address, "asn": 1 }));
        let shared: FRRConfiguration = serde_json::from_value(json!({
            "metadata": { "name": "mesh" },
            "spec": { "bgp": { "routers": [{ "asn": 1, "neighbors": neighbors }] } },
        }))
        .unwrap();
        let node = |addresses: &[&str]| Node {
            addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
            ..Node::default()
        };
        let left = |node: &Node| -> Vec<String> {
            let found = without_itself([&shared].into_iter(), node);
            let neighbors = &found[0].spec.bgp.routers[0].neighbors;
            neighbors.iter().map(|neighbor| neighbor.address.clone()).collect()
        };
        assert_eq!(left(&node(&["172.18.0.2", "fc00::2"])), ["172.18.0.3"], "however its address is written");
        assert_eq!(left(&node(&["172.18.0.9"])).len(), 3);
        let untouched = without_itself([&shared].into_iter(), &node(&[]));
        assert!(matches!(untouched[0], Cow::Borrowed(_)));
    }
}
