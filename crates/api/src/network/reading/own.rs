//! The addresses of a primary Layer2 network's own ports.
//!
//! They follow from the definition alone, so a definition in which somebody else could get them is refused here.

use std::net::IpAddr;

use ipnet::IpNet;
use underlay_net::Family;
use underlay_net::cidr::nth;

use super::{FieldError, Layer2, ensure};

/// The addresses of a network's own ports in one of its subnets. Pods never get them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnAddresses {
    /// The pods' gateway.
    pub gateway: IpAddr,
    /// The port by which the node itself is in the network.
    pub management: IpAddr,
}

/// The addresses of the network's own ports in each of its subnets, in their order.
pub fn own_addresses(layer2: &Layer2, at: &str) -> Result<Vec<OwnAddresses>, FieldError> {
    let mut all = vec![];
    for subnet in &layer2.subnets {
        let own = in_subnet(subnet, layer2, at)?;
        for (address, port) in [(own.gateway, "gateway"), (own.management, "management port")] {
            let free = !layer2.reserved_subnets.iter().any(|reserved| reserved.contains(&address));
            let reason = format!(
                "{address} is the address of the network's {port}: keep it out, or give infrastructureSubnets, where \
                the network then has its own addresses"
            );
            ensure(free, &format!("{at}.reservedSubnets"), &reason)?;
        }
        all.push(own);
    }
    Ok(all)
}

fn in_subnet(subnet: &IpNet, layer2: &Layer2, at: &str) -> Result<OwnAddresses, FieldError> {
    let family = Family::of_net(subnet);
    let chosen = layer2.gateways.iter().copied().find(|gateway| Family::of(*gateway) == family);
    if let Some(gateway) = chosen {
        let reason = format!("no port can have {gateway} in {subnet}");
        ensure(usable(gateway, subnet), &format!("{at}.defaultGatewayIPs"), &reason)?;
    }
    let infrastructure: Vec<_> =
        layer2.infrastructure_subnets.iter().filter(|part| Family::of_net(part) == family).collect();
    if infrastructure.is_empty() {
        let gateway = chosen.or_else(|| nth(subnet, 1));
        // By habit the second address, also where the gateway does not have the first.
        let mut addresses = [2, 1].into_iter().filter_map(|offset| nth(subnet, offset));
        let management = addresses.find(|address| Some(*address) != gateway);
        let reason = format!("{subnet} has no room for a gateway and a management port");
        return both(gateway, management).ok_or_else(|| FieldError::new(format!("{at}.subnets"), reason));
    }
    let addresses = || {
        let all = infrastructure.iter().flat_map(|part| (0..).map_while(|offset| nth(part, offset)));
        all.filter(|address| usable(*address, subnet))
    };
    let gateway = chosen.or_else(|| addresses().next());
    let management = addresses().find(|address| Some(*address) != gateway);
    let reason = format!("have no room for the gateway and the management port in {subnet}");
    both(gateway, management).ok_or_else(|| FieldError::new(format!("{at}.infrastructureSubnets"), reason))
}

fn both(gateway: Option<IpAddr>, management: Option<IpAddr>) -> Option<OwnAddresses> {
    Some(OwnAddresses { gateway: gateway?, management: management? })
}

/// Whether a port can have the address: it is neither the subnet itself nor its broadcast address.
fn usable(address: IpAddr, subnet: &IpNet) -> bool {
    subnet.contains(&address)
        && address != subnet.network()
        && !(address.is_ipv4() && address == subnet.broadcast())
}

#[cfg(test)]
mod tests {
    use super::super::Addressing;
    use super::*;

    fn own(subnets: &[&str], gateways: &[&str], infrastructure: &[&str], reserved: &[&str]) -> String {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let layer2 = Layer2 {
            subnets: nets(subnets),
            addressing: Addressing::Allocated { persistent: false },
            gateways: gateways.iter().map(|text| text.parse().unwrap()).collect(),
            reserved_subnets: nets(reserved),
            infrastructure_subnets: nets(infrastructure),
            exclude_subnets: vec![],
            own: vec![],
        };
        match own_addresses(&layer2, "at") {
            Ok(all) => {
                let texts = all.iter().map(|own| format!("{} {}", own.gateway, own.management));
                texts.collect::<Vec<_>>().join(", ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn without_a_word_they_are_the_first_two() {
        assert_eq!(own(&["10.0.0.0/24"], &[], &[], &[]), "10.0.0.1 10.0.0.2");
        assert_eq!(own(&["10.0.0.77/24", "fd10::/64"], &[], &[], &[]), "10.0.0.1 10.0.0.2, fd10::1 fd10::2");
        assert_eq!(own(&["10.0.0.0/30"], &[], &[], &[]), "10.0.0.1 10.0.0.2");
    }

    #[test]
    fn the_management_port_makes_room_for_the_gateway() {
        assert_eq!(own(&["10.0.0.0/24"], &["10.0.0.254"], &[], &[]), "10.0.0.254 10.0.0.2");
        assert_eq!(own(&["10.0.0.0/24"], &["10.0.0.2"], &[], &[]), "10.0.0.2 10.0.0.1");
        assert_eq!(own(&["10.0.0.0/24"], &["10.0.0.2"], &["10.0.0.0/30"], &[]), "10.0.0.2 10.0.0.1");
    }

    #[test]
    fn infrastructure_subnets_are_used_to_their_edges() {
        assert_eq!(own(&["10.0.0.0/24"], &[], &["10.0.0.4/30"], &[]), "10.0.0.4 10.0.0.5");
        assert_eq!(own(&["10.0.0.0/24"], &[], &["10.0.0.0/30"], &[]), "10.0.0.1 10.0.0.2");
        let parts = ["10.0.0.255/32", "10.0.0.9/32", "10.0.0.7/32"];
        assert_eq!(own(&["10.0.0.0/24"], &[], &parts, &[]), "10.0.0.9 10.0.0.7");
        assert_eq!(own(&["fd10::/64"], &[], &["fd10::/64"], &[]), "fd10::1 fd10::2");
        let one_family = own(&["10.0.0.0/24", "fd10::/64"], &[], &["10.0.0.8/30"], &[]);
        assert_eq!(one_family, "10.0.0.8 10.0.0.9, fd10::1 fd10::2");
    }

    #[test]
    fn nobody_else_can_get_them() {
        let why = "keep it out, or give infrastructureSubnets, where the network then has its own addresses";
        assert_eq!(
            own(&["10.0.0.0/24"], &[], &[], &["10.0.0.0/30"]),
            format!("at.reservedSubnets: 10.0.0.1 is the address of the network's gateway: {why}")
        );
        assert_eq!(
            own(&["10.0.0.0/24"], &["10.0.0.9"], &[], &["10.0.0.0/30"]),
            format!("at.reservedSubnets: 10.0.0.2 is the address of the network's management port: {why}")
        );
    }

    #[test]
    fn there_must_be_room_for_them() {
        let subnet = "at.subnets: 10.0.0.0/31 has no room for a gateway and a management port";
        assert_eq!(own(&["10.0.0.0/31"], &[], &[], &[]), subnet);
        assert_eq!(
            own(&["10.0.0.0/31"], &["10.0.0.1"], &[], &[]),
            "at.defaultGatewayIPs: no port can have 10.0.0.1 in 10.0.0.0/31"
        );
        assert_eq!(
            own(&["10.0.0.0/24"], &[], &["10.0.0.0/31"], &[]),
            "at.infrastructureSubnets: have no room for the gateway and the management port in 10.0.0.0/24"
        );
        assert_eq!(
            own(&["10.0.0.0/24"], &["10.0.0.255"], &[], &[]),
            "at.defaultGatewayIPs: no port can have 10.0.0.255 in 10.0.0.0/24"
        );
    }
}
