//! The transport of a definition, from whichever spelling.

use std::net::Ipv4Addr;

use super::super::{NoOverlaySpec, OutboundSnat, RoutingName, TransportName, VrfSpec, says};
use super::{
    Evpn, FieldError, Network, NoOverlay, Routing, Topology, Transport, Vrf, Written, ensure, missing,
    unknown,
};

/// The last VXLAN number.
const LAST_VNI: u32 = 16_777_215;

/// Reads how packets get to pods on other nodes.
pub fn read(written: &Written<'_>, network: &Network) -> Result<Transport, FieldError> {
    let at = written.at;
    let name = written.transport.unwrap_or(&TransportName::Geneve);
    let (no_overlay, evpn) = (*name == TransportName::NoOverlay, *name == TransportName::Evpn);
    let layer3 = matches!(network.topology, Topology::Layer3(_));
    let localnet = matches!(network.topology, Topology::Localnet(_));
    ensure(!no_overlay || layer3 && network.is_primary(), at, says::NO_OVERLAY_LAYER3)?;
    ensure(no_overlay || written.no_overlay.is_none(), at, says::NO_OVERLAY_FORBIDDEN)?;
    ensure(no_overlay || written.no_overlay_options.is_none(), at, says::NO_OVERLAY_OPTIONS)?;
    ensure(!evpn || !localnet && network.is_primary(), at, says::EVPN_PRIMARY)?;
    ensure(evpn || written.evpn.is_none(), at, says::EVPN_FORBIDDEN)?;
    match name {
        TransportName::Geneve => Ok(Transport::Geneve),
        TransportName::NoOverlay => read_no_overlay(written).map(Transport::NoOverlay),
        TransportName::Evpn => read_evpn(written, layer3).map(Transport::Evpn),
        TransportName::Other(other) => Err(unknown(at, "transport", other)),
    }
}

fn read_no_overlay(written: &Written<'_>) -> Result<NoOverlay, FieldError> {
    let at = written.at;
    let one = |spec: Option<&NoOverlaySpec>, name| {
        spec.map(|spec| options(spec, &format!("{at}.{name}"))).transpose()
    };
    match (one(written.no_overlay, "noOverlay")?, one(written.no_overlay_options, "noOverlayOptions")?) {
        (Some(one), Some(other)) if one != other => Err(FieldError::new(at, says::NO_OVERLAY_SPELLINGS)),
        (Some(options), _) | (None, Some(options)) => Ok(options),
        (None, None) => Err(FieldError::new(at, says::NO_OVERLAY_REQUIRED)),
    }
}

fn options(spec: &NoOverlaySpec, at: &str) -> Result<NoOverlay, FieldError> {
    let outbound_snat = match &spec.outbound_snat {
        Some(OutboundSnat::Enabled) => true,
        Some(OutboundSnat::Disabled) => false,
        Some(other) => return Err(unknown(at, "outboundSNAT", other.as_str())),
        None => return Err(missing(at, "outboundSNAT")),
    };
    let routing = match &spec.routing {
        Some(RoutingName::Managed) => Routing::Managed,
        Some(RoutingName::Unmanaged) => Routing::Unmanaged,
        Some(other) => return Err(unknown(at, "routing", other.as_str())),
        None => return Err(missing(at, "routing")),
    };
    Ok(NoOverlay { outbound_snat, routing: Some(routing) })
}

fn read_evpn(written: &Written<'_>, layer3: bool) -> Result<Evpn, FieldError> {
    let at = written.at;
    let spec = written.evpn.ok_or_else(|| FieldError::new(at, says::EVPN_REQUIRED))?;
    let evpn = Evpn {
        vtep: spec.vtep.clone(),
        mac_vrf: spec.mac_vrf.as_ref().map(|spec| vrf(spec, &format!("{at}.evpn.macVRF"))).transpose()?,
        ip_vrf: spec.ip_vrf.as_ref().map(|spec| vrf(spec, &format!("{at}.evpn.ipVRF"))).transpose()?,
    };
    check_evpn(&evpn, layer3, at)?;
    Ok(evpn)
}

/// Checks what the VXLAN networks of one network must be to each other.
pub fn check_evpn(evpn: &Evpn, layer3: bool, at: &str) -> Result<(), FieldError> {
    let inner = format!("{at}.evpn");
    ensure(!evpn.vtep.is_empty(), &format!("{inner}.vtep"), "is missing")?;
    ensure(evpn.mac_vrf.is_some() || evpn.ip_vrf.is_some(), &inner, says::EVPN_NO_VRF)?;
    let same = evpn.mac_vrf.as_ref().zip(evpn.ip_vrf.as_ref()).is_some_and(|(mac, ip)| mac.vni == ip.vni);
    ensure(!same, &inner, says::EVPN_SAME_VNI)?;
    if layer3 {
        ensure(evpn.mac_vrf.is_none(), at, says::EVPN_MAC_VRF_FORBIDDEN)?;
        ensure(evpn.ip_vrf.is_some(), at, says::EVPN_IP_VRF_REQUIRED)
    } else {
        ensure(evpn.mac_vrf.is_some(), at, says::EVPN_MAC_VRF_REQUIRED)
    }
}

/// Reads a VXLAN network. Its route target ends up in FRR's configuration, so nothing but a route target may pass.
pub fn vrf(spec: &VrfSpec, at: &str) -> Result<Vrf, FieldError> {
    ensure((1..=LAST_VNI).contains(&spec.vni), &format!("{at}.vni"), "is not a number from 1 to 16777215")?;
    let target = Some(spec.route_target.clone()).filter(|target| !target.is_empty());
    let sound = target.as_deref().is_none_or(is_route_target);
    ensure(sound, &format!("{at}.routeTarget"), "is not a route target: write it like 65000:100")?;
    Ok(Vrf { vni: spec.vni, route_target: target })
}

/// Two numbers with a colon between them, six bytes together; the first may be an address, or anyone.
fn is_route_target(text: &str) -> bool {
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok()).flatten()
    };
    let Some((administrator, value)) = text.split_once(':') else { return false };
    let Some(value) = number(value) else { return false };
    let fits = |number: u32| u16::try_from(number).is_ok();
    let short = fits(value);
    match number(administrator) {
        Some(system) => fits(system) || short,
        None => administrator == "*" || administrator.parse::<Ipv4Addr>().is_ok() && short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_targets_have_six_bytes() {
        for text in ["65000:100", "65535:4294967295", "65536:65535", "192.0.2.1:65535", "*:4294967295"] {
            assert!(is_route_target(text), "{text}");
        }
        for text in [
            "",
            ":",
            "1",
            "1:",
            ":1",
            "1:2:3",
            "65536:65536",
            "192.0.2.1:65536",
            "*:4294967296",
            "a:1",
            "1:1\n",
        ] {
            assert!(!is_route_target(text), "{text}");
        }
    }
}
