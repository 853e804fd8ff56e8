//! The part of a definition that belongs to its topology.

use ipnet::IpNet;

use super::super::{
    IpamLifecycle, IpamMode, IpamSpec, Layer2Spec, Layer3Spec, LocalnetSpec, VlanMode, VlanSpec, says,
};
use super::own::own_addresses;
use super::subnets::{
    Subnet, address_of_each_family, check_layer3, check_mtu, cidr, cidr_of_each_family, cidrs, inside, masked,
};
use super::{
    Addressing, FieldError, Layer2, Layer3, Localnet, Network, NetworkRole, Topology, Transport, Written,
    ensure, missing, role, unknown,
};

/// A network without what its topology does not say.
fn network(role: NetworkRole, topology: Topology, mtu: Option<u32>, join_subnets: Vec<IpNet>) -> Network {
    Network { role, topology, transport: Transport::Geneve, mtu, join_subnets, uplink: None }
}

/// Reads a network in which each node has a subnet of its own.
pub fn layer3(spec: &Layer3Spec, at: &str, written: &Written<'_>) -> Result<Network, FieldError> {
    let role = role(spec.role.as_ref(), at)?;
    let mut subnets = vec![];
    for (index, subnet) in spec.subnets.iter().enumerate() {
        let field = format!("{at}.subnets[{index}].cidr");
        let cidr = cidr(&subnet.cidr).ok_or_else(|| FieldError::new(field, says::CIDR_INVALID))?;
        subnets.push(Subnet { cidr, host_subnet: subnet.host_subnet });
    }
    check_layer3(&subnets, role == NetworkRole::Secondary, at)?;
    let wholes: Vec<_> = subnets.iter().map(|subnet| subnet.cidr).collect();
    check_mtu(spec.mtu, &wholes, at, says::MTU_IPV6)?;
    let exclude_subnets = excluded(&spec.exclude_subnets, &wholes, at)?;
    let join_subnets = join_subnets(role, (&spec.join_subnets, at), written)?;
    Ok(network(role, Topology::Layer3(Layer3 { subnets, exclude_subnets }), spec.mtu, join_subnets))
}

/// Reads a network with one switch for all nodes.
pub fn layer2(spec: &Layer2Spec, at: &str, written: &Written<'_>) -> Result<Network, FieldError> {
    let role = role(spec.role.as_ref(), at)?;
    let subnets = cidr_of_each_family(&spec.subnets, at, "subnets")?;
    let addressing = addressing(spec.ipam.as_ref(), at)?;
    match addressing {
        Addressing::Allocated { .. } => ensure(!subnets.is_empty(), at, says::SUBNETS_REQUIRED)?,
        Addressing::GuestAssigned => {
            ensure(!subnets.is_empty(), at, says::GUEST_SUBNETS)?;
            ensure(role == NetworkRole::Primary, at, says::GUEST_PRIMARY)?;
        }
        Addressing::None => {
            ensure(subnets.is_empty(), at, says::SUBNETS_FORBIDDEN)?;
            ensure(role == NetworkRole::Secondary, at, says::DISABLED_SECONDARY)?;
        }
    }
    check_mtu(spec.mtu, &subnets, at, says::MTU_IPV6)?;
    let mut layer2 = Layer2 {
        addressing,
        gateways: address_of_each_family(&spec.default_gateway_ips, at, "defaultGatewayIPs")?,
        reserved_subnets: cidrs(&spec.reserved_subnets, at, "reservedSubnets")?,
        infrastructure_subnets: cidrs(&spec.infrastructure_subnets, at, "infrastructureSubnets")?,
        exclude_subnets: excluded(&spec.exclude_subnets, &subnets, at)?,
        subnets,
        own: vec![],
    };
    check_parts(&layer2, role, at)?;
    check_gateways(&layer2, role, at)?;
    if role == NetworkRole::Primary {
        layer2.own = own_addresses(&layer2, at)?;
    }
    let join_subnets = join_subnets(role, (&spec.join_subnets, at), written)?;
    Ok(network(role, Topology::Layer2(layer2), spec.mtu, join_subnets))
}

/// Reads a network outside the cluster.
pub fn localnet(spec: &LocalnetSpec, at: &str) -> Result<Network, FieldError> {
    let role = role(spec.role.as_ref(), at)?;
    ensure(role == NetworkRole::Secondary, &format!("{at}.role"), "must be Secondary")?;
    ensure(!spec.physical_network_name.is_empty(), &format!("{at}.physicalNetworkName"), "is missing")?;
    let named = !spec.physical_network_name.contains([',', ':']);
    ensure(named, &format!("{at}.physicalNetworkName"), says::PHYSICAL_NAME)?;
    let subnets = cidr_of_each_family(&spec.subnets, at, "subnets")?;
    let addressing = addressing(spec.ipam.as_ref(), at)?;
    ensure(addressing != Addressing::GuestAssigned, at, says::GUEST_LAYER2)?;
    ensure((addressing == Addressing::None) == subnets.is_empty(), at, says::LOCALNET_SUBNETS)?;
    check_mtu(spec.mtu, &subnets, at, says::MTU_IPV6_LOCALNET)?;
    let localnet = Localnet {
        physical_network: spec.physical_network_name.clone(),
        vlan: vlan(spec.vlan.as_ref(), at)?,
        exclude_subnets: excluded(&spec.exclude_subnets, &subnets, at)?,
        subnets,
        addressing,
    };
    Ok(network(role, Topology::Localnet(localnet), spec.mtu, vec![]))
}

fn addressing(ipam: Option<&IpamSpec>, at: &str) -> Result<Addressing, FieldError> {
    let at = format!("{at}.ipam");
    let persistent = match ipam.and_then(|ipam| ipam.lifecycle.as_ref()) {
        None => false,
        Some(IpamLifecycle::Persistent) => true,
        Some(other) => return Err(unknown(&at, "lifecycle", other.as_str())),
    };
    let addressing = match ipam.and_then(|ipam| ipam.mode.as_ref()) {
        None | Some(IpamMode::Enabled) => return Ok(Addressing::Allocated { persistent }),
        Some(IpamMode::GuestAssigned) => Addressing::GuestAssigned,
        Some(IpamMode::Disabled) => Addressing::None,
        Some(other) => return Err(unknown(&at, "mode", other.as_str())),
    };
    ensure(!persistent, &at, says::PERSISTENT_ENABLED)?;
    Ok(addressing)
}

fn excluded(texts: &[String], subnets: &[IpNet], at: &str) -> Result<Vec<IpNet>, FieldError> {
    let parts = cidrs(texts, at, "excludeSubnets")?;
    ensure(parts.is_empty() || !subnets.is_empty(), at, says::EXCLUDE_SUBNETS)?;
    ensure(inside(&parts, subnets), &format!("{at}.excludeSubnets"), says::EXCLUDE_INSIDE)?;
    Ok(parts)
}

fn check_parts(layer2: &Layer2, role: NetworkRole, at: &str) -> Result<(), FieldError> {
    let subnets = &layer2.subnets;
    let reserved = (
        &layer2.reserved_subnets,
        "reservedSubnets",
        [says::RESERVED_SUBNETS, says::RESERVED_PRIMARY, says::RESERVED_INSIDE, says::RESERVED_MASKED],
    );
    let infrastructure = (
        &layer2.infrastructure_subnets,
        "infrastructureSubnets",
        [
            says::INFRASTRUCTURE_SUBNETS,
            says::INFRASTRUCTURE_PRIMARY,
            says::INFRASTRUCTURE_INSIDE,
            says::INFRASTRUCTURE_MASKED,
        ],
    );
    for (parts, name, [without, secondary, outside, host_bits]) in [reserved, infrastructure] {
        if parts.is_empty() {
            continue;
        }
        ensure(!subnets.is_empty(), at, without)?;
        ensure(role == NetworkRole::Primary, at, secondary)?;
        ensure(inside(parts, subnets), &format!("{at}.{name}"), outside)?;
        ensure(masked(parts), at, host_bits)?;
    }
    let mut pairs = layer2
        .infrastructure_subnets
        .iter()
        .flat_map(|one| layer2.reserved_subnets.iter().map(move |other| (one, other)));
    let apart = pairs.all(|(one, other)| !underlay_net::cidr::overlap(one, other));
    ensure(apart, at, says::INFRASTRUCTURE_RESERVED)
}

fn check_gateways(layer2: &Layer2, role: NetworkRole, at: &str) -> Result<(), FieldError> {
    if layer2.gateways.is_empty() {
        return Ok(());
    }
    let all_in = |subnets: &[IpNet]| {
        layer2.gateways.iter().all(|gateway| subnets.iter().any(|subnet| subnet.contains(gateway)))
    };
    ensure(role == NetworkRole::Primary, at, says::GATEWAYS_PRIMARY)?;
    ensure(all_in(&layer2.subnets), at, says::GATEWAYS_INSIDE)?;
    ensure(layer2.gateways.len() == layer2.subnets.len(), at, says::GATEWAYS_FAMILIES)?;
    let infrastructure = &layer2.infrastructure_subnets;
    ensure(infrastructure.is_empty() || all_in(infrastructure), at, says::GATEWAYS_INFRASTRUCTURE)
}

/// The join subnets, from wherever they are written.
fn join_subnets(
    role: NetworkRole,
    (inner, at): (&[String], &str),
    written: &Written<'_>,
) -> Result<Vec<IpNet>, FieldError> {
    let outer = cidr_of_each_family(written.join_subnets, written.at, "joinSubnets")?;
    let inner = cidr_of_each_family(inner, at, "joinSubnets")?;
    let once = outer.is_empty() || inner.is_empty() || outer == inner;
    ensure(once, &format!("{at}.joinSubnets"), says::JOIN_SPELLINGS)?;
    let (join_subnets, at) = if inner.is_empty() { (outer, written.at) } else { (inner, at) };
    ensure(join_subnets.is_empty() || role == NetworkRole::Primary, at, says::JOIN_PRIMARY)?;
    Ok(join_subnets)
}

fn vlan(vlan: Option<&VlanSpec>, at: &str) -> Result<Option<u16>, FieldError> {
    let at = format!("{at}.vlan");
    let Some(vlan) = vlan else { return Ok(None) };
    match (&vlan.mode, &vlan.access) {
        (Some(VlanMode::Access), Some(access)) => {
            let field = format!("{at}.access.id");
            ensure((1..=4094).contains(&access.id), &field, "is not a VLAN: it must be from 1 to 4094")?;
            Ok(Some(access.id))
        }
        (Some(VlanMode::Access), None) => Err(FieldError::new(at, says::VLAN_ACCESS)),
        (Some(other), _) => Err(unknown(&at, "mode", other.as_str())),
        (None, _) => Err(missing(&at, "mode")),
    }
}
