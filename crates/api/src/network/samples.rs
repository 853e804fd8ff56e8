//! Networks of every kind, for properties that hold for all of them.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ClusterUserDefinedNetworkSpec, Network};

/// Any network.
pub fn network() -> impl Strategy<Value = Network> {
    spec().prop_map(|spec| spec.network().expect("the definition is sound"))
}

/// The definition of any network. Every choice is sound together with every other.
pub fn spec() -> impl Strategy<Value = ClusterUserDefinedNetworkSpec> {
    let blocks = prop_oneof![layer3(), layer2(), localnet()];
    let uplink = option::of("[a-z][a-z0-9]{0,8}");
    (blocks, transport(), option::of(1280..=65536_u32), uplink).prop_map(
        |(mut block, transport, mtu, uplink)| {
            let mut network = json!({ "topology": block["topology"].take() });
            let name = network["topology"].as_str().unwrap_or_default().to_lowercase();
            block["block"]["mtu"] = json!(mtu);
            let primary = block["block"]["role"] == "Primary";
            let evpn = transport["transport"] == "EVPN";
            let carried = primary && (name == "layer3" || transport["transport"] != "NoOverlay");
            for (key, value) in transport.as_object().into_iter().flatten().filter(|_| carried) {
                network[key] = value.clone();
            }
            // Frames have a number of their own in one topology only.
            if carried && evpn && name == "layer3" {
                network["evpn"]["macVRF"] = Value::Null;
            }
            network[name] = block["block"].take();
            let uplinks: Vec<_> = uplink.into_iter().filter(|_| primary && !(carried && evpn)).collect();
            serde_json::from_value(json!({ "namespaceSelector": {}, "network": network, "uplinks": uplinks }))
                .expect("the fields are of the right types")
        },
    )
}

fn layer3() -> impl Strategy<Value = Value> {
    let family = |cidrs: fn(u8) -> String, lengths: std::ops::RangeInclusive<u8>| {
        (1..4_u8, option::of(lengths)).prop_map(move |(count, length)| {
            (0..count).map(|index| json!({ "cidr": cidrs(index), "hostSubnet": length })).collect::<Vec<_>>()
        })
    };
    let ipv4 = family(|index| format!("10.{index}.0.9/16"), 17..=31);
    let ipv6 = family(|index| format!("fd{index:02}::/48"), 64..=64);
    let exclude = vec((0..255_u8).prop_map(|third| format!("10.0.{third}.4/30")), 0..4);
    (any::<bool>(), ipv4, ipv6, exclude, join()).prop_map(|(primary, mut ipv4, mut ipv6, exclude, join)| {
        if !primary {
            ipv4.truncate(1);
            ipv6.truncate(1);
        }
        ipv4.append(&mut ipv6);
        let join = if primary { join } else { vec![] };
        let block = json!({
            "role": role(primary), "subnets": ipv4, "excludeSubnets": exclude, "joinSubnets": join,
        });
        json!({ "topology": "Layer3", "block": block })
    })
}

fn layer2() -> impl Strategy<Value = Value> {
    let choices = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (choices, 0..4_u8, join()).prop_map(|((primary, ipv6, gateway, infrastructure, reserved), mode, join)| {
        let some = |there: bool, list: [&'static str; 2]| {
            let families = list.into_iter().filter(|text| ipv6 || !text.contains("::"));
            if there { families.collect() } else { vec![] }
        };
        let ipam = match (mode, primary) {
            (0, _) => json!(null),
            (1, _) => json!({ "mode": "Enabled", "lifecycle": "Persistent" }),
            (_, true) => json!({ "mode": "GuestAssigned" }),
            (_, false) => json!({ "mode": "Disabled" }),
        };
        let subnets = ipam["mode"] != "Disabled";
        let block = json!({
            "role": role(primary),
            "ipam": ipam,
            "subnets": some(subnets, ["10.20.0.9/16", "fd20::/64"]),
            "defaultGatewayIPs": some(gateway && primary, ["10.20.0.7", "fd20::7"]),
            "infrastructureSubnets": some(infrastructure && primary, ["10.20.0.0/29", "fd20::/120"]),
            "reservedSubnets": some(reserved && primary, ["10.20.1.0/24", "fd20::1:0/112"]),
            "excludeSubnets": some(reserved && subnets, ["10.20.2.0/24", "fd20::2:0/112"]),
            "joinSubnets": if primary { join } else { vec![] },
        });
        json!({ "topology": "Layer2", "block": block })
    })
}

fn localnet() -> impl Strategy<Value = Value> {
    let vlan = option::of(1..=4094_u16);
    ("[a-z][a-z0-9]{0,8}", any::<bool>(), any::<bool>(), vlan).prop_map(
        |(name, subnets, persistent, vlan)| {
            let ipam = match (subnets, persistent) {
                (true, true) => json!({ "lifecycle": "Persistent" }),
                (true, false) => json!(null),
                (false, _) => json!({ "mode": "Disabled" }),
            };
            let block = json!({
                "role": "Secondary",
                "physicalNetworkName": name,
                "ipam": ipam,
                "subnets": if subnets { vec!["10.30.0.0/24", "fd30::/64"] } else { vec![] },
                "excludeSubnets": if subnets { vec!["10.30.0.0/28"] } else { vec![] },
                "vlan": vlan.map(|id| json!({ "mode": "Access", "access": { "id": id } })),
            });
            json!({ "topology": "Localnet", "block": block })
        },
    )
}

fn transport() -> impl Strategy<Value = Value> {
    let no_overlay = |(block, snat, routing): (&str, &str, &str)| json!({ "transport": "NoOverlay", block: { "outboundSNAT": snat, "routing": routing } });
    let no_overlay = (
        prop_oneof![Just("noOverlay"), Just("noOverlayOptions")],
        prop_oneof![Just("Enable"), Just("Enabled"), Just("Disable"), Just("Disabled")],
        prop_oneof![Just("Managed"), Just("Unmanaged")],
    )
        .prop_map(no_overlay);
    let evpn =
        (1..1000_u32, prop_oneof![Just(""), Just("65000:1"), Just("*:7")]).prop_map(|(vni, target)| {
            let (mac, ip) = (json!({ "vni": vni, "routeTarget": target }), json!({ "vni": vni + 1000 }));
            json!({ "transport": "EVPN", "evpn": { "vtep": "v", "macVRF": mac, "ipVRF": ip } })
        });
    prop_oneof![Just(json!({})), Just(json!({ "transport": "Geneve" })), no_overlay, evpn]
}

fn join() -> impl Strategy<Value = Vec<&'static str>> {
    prop_oneof![Just(vec![]), Just(vec!["100.70.0.0/16"]), Just(vec!["100.70.0.0/16", "fd70::/64"])]
}

fn role(primary: bool) -> &'static str {
    if primary { "Primary" } else { "Secondary" }
}
