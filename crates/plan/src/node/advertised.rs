//! Whether the node's part of the default network is told to BGP peers.
//!
//! The truth is what the speaker is told: a generated FRRConfiguration for this node that originates the node's subnet.
//! So addresses are never un-NATed before somebody is told the way back, and a mistake in an advertisement that leaves
//! the generated configurations in place leaves this in place too.

use ipnet::IpNet;
use underlay_api::FRRConfiguration;
use underlay_world::select::picks;
use underlay_world::{Node, World};

/// Label of generated configurations; the value is the advertisement's name.
pub const GENERATED_LABEL: &str = "k8s.ovn.org/route-advertisements";

/// Whether any generated configuration for the node originates one of these subnets.
pub fn is_advertised(world: &World, node: &Node, subnets: &[IpNet]) -> bool {
    world.frr_configurations.values().any(|configuration| originates(configuration, node, subnets))
}

fn originates(configuration: &FRRConfiguration, node: &Node, subnets: &[IpNet]) -> bool {
    let labels = configuration.metadata.labels.as_ref();
    let generated = labels.is_some_and(|labels| labels.contains_key(GENERATED_LABEL));
    let routers = &configuration.spec.bgp.routers;
    let mut prefixes = routers.iter().flat_map(|router| &router.prefixes);
    generated
        && prefixes.any(|prefix| prefix.parse().is_ok_and(|net: IpNet| subnets.contains(&net)))
        && picks(&configuration.spec.node_selector, &node.labels).unwrap_or(false)
}
