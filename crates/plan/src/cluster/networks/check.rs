//! Whether a network can be as its definition says, next to the cluster's own ranges.

use ipnet::IpNet;
use underlay_api::nad::DEFAULT_JOIN_SUBNETS;
use underlay_api::network::{Network, Topology, conditions};
use underlay_net::Family;
use underlay_net::cidr::overlap;
use underlay_world::settings::HOST_LENGTH_V6;
use underlay_world::{Definition, Scope, Settings};

/// The network of a definition, or a sentence that says what is wrong and in which field.
pub fn check<'a>(definition: &'a Definition, settings: &Settings) -> Result<&'a Network, String> {
    let network =
        definition.network.as_ref().map_err(|error| conditions::not_rendered(&error.to_string()))?;
    if let Some(Err(problem)) = &definition.namespaces {
        return Err(format!("spec.namespaceSelector: {problem}"));
    }
    let at = match definition.scope() {
        Scope::Cluster => "spec.network",
        Scope::Namespace => "spec",
    };
    let at = format!("{at}.{}", network.topology.as_str());
    fits(network, settings, &at, &definition.network_name())
        .map_err(|problem| conditions::not_rendered(&format!("invalid subnet configuration: {problem}")))?;
    Ok(network)
}

fn fits(network: &Network, settings: &Settings, at: &str, name: &str) -> Result<(), String> {
    if matches!(network.topology, Topology::Localnet(_)) {
        // A network outside the cluster has whatever addresses it has there.
        return Ok(());
    }
    check_families(network, settings, at, name)?;
    let transit = matches!(network.topology, Topology::Layer3(_));
    let built_in = built_in(settings, transit);
    let own: Vec<Range> = network
        .subnets()
        .into_iter()
        .enumerate()
        .map(|(index, net)| Range {
            what: "user defined subnet",
            net,
            field: format!("{at}.subnets[{index}]"),
        })
        .collect();
    let join: Vec<Range> = join_subnets(network)
        .into_iter()
        .enumerate()
        .map(|(index, net)| Range {
            what: "user defined join subnet",
            net,
            field: format!("{at}.joinSubnets[{index}]"),
        })
        .collect();
    for one in own.iter().chain(&join) {
        for (what, net) in &built_in {
            refuse_overlap(one, what, net)?;
        }
    }
    for one in &own {
        for other in &join {
            refuse_overlap(one, other.what, &other.net)?;
        }
    }
    Ok(())
}

/// A range of the user's, and where it is written.
struct Range {
    what: &'static str,
    net: IpNet,
    field: String,
}

fn refuse_overlap(one: &Range, what: &str, net: &IpNet) -> Result<(), String> {
    if !overlap(&one.net, net) {
        return Ok(());
    }
    Err(format!(
        "pod or join subnet overlaps with already configured internal subnets: {} \"{}\" overlaps {what} \"{net}\" ({})",
        one.what, one.net, one.field
    ))
}

/// Nodes have addresses of the cluster's families only, and parts of one length in IPv6.
fn check_families(network: &Network, settings: &Settings, at: &str, name: &str) -> Result<(), String> {
    for family in Family::ALL {
        if network.has(family) && !settings.families().any(|known| known == family) {
            let word = match family {
                Family::V4 => "ipv4",
                Family::V6 => "ipv6",
            };
            return Err(format!(
                "error while parsing subnets: network {name} is attempting to use {word} subnets but the cluster \
                 does not support {word} ({at}.subnets)"
            ));
        }
    }
    let Topology::Layer3(layer3) = &network.topology else { return Ok(()) };
    for (index, subnet) in layer3.subnets.iter().enumerate() {
        if Family::of_net(&subnet.cidr) == Family::V6 && subnet.host_length() != HOST_LENGTH_V6 {
            return Err(format!(
                "error while parsing subnets: IPv6 only supports /{HOST_LENGTH_V6} host subnets \
                 ({at}.subnets[{index}].hostSubnet)"
            ));
        }
    }
    Ok(())
}

/// Subnets for the routers of a primary network, whoever chose them.
fn join_subnets(network: &Network) -> Vec<IpNet> {
    match network.join_subnets.as_slice() {
        [] if network.is_primary() => {
            DEFAULT_JOIN_SUBNETS.iter().filter_map(|text| text.parse().ok()).collect()
        }
        chosen => chosen.to_vec(),
    }
}

/// The cluster's own ranges. Those between nodes move out of the way of a network that has its own.
fn built_in(settings: &Settings, transit: bool) -> Vec<(&'static str, IpNet)> {
    let mut ranges = Vec::new();
    for family in Family::ALL {
        ranges.push(("built-in join subnet", settings.join.of(family)));
        ranges.push(("masquerade subnet", settings.masquerade.of(family)));
        ranges.extend(settings.cluster_nets(family).map(|net| ("cluster subnet", net)));
        ranges.extend(settings.service_nets(family).map(|net| ("service subnet", net)));
        if transit {
            ranges.push(("transit switch subnet", settings.transit.of(family)));
        }
    }
    ranges
}
