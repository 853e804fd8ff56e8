//! Definitions as they may be stored where nobody asked our rules.

use serde_json::{Value, json};

use super::*;
use crate::network::{ClusterUserDefinedNetworkSpec, UserDefinedNetworkSpec};

fn cluster(network: &Value) -> Result<Network, String> {
    let spec = json!({ "namespaceSelector": {}, "network": network });
    let spec = serde_json::from_value::<ClusterUserDefinedNetworkSpec>(spec).unwrap();
    spec.network().map_err(|error| error.to_string())
}

fn namespaced(spec: &Value) -> Result<Network, String> {
    let spec = serde_json::from_value::<UserDefinedNetworkSpec>(spec.clone()).unwrap();
    spec.network().map_err(|error| error.to_string())
}

/// A primary Layer3 network with these fields beside its block.
fn layer3(fields: &Value) -> Value {
    let block = json!({ "role": "Primary", "subnets": [{ "cidr": "10.10.0.0/16" }] });
    let mut network = json!({ "topology": "Layer3", "layer3": block });
    network.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    network
}

#[test]
fn every_spelling_is_one_network() {
    let no_overlay = |block: &str, snat: &str| {
        let fields =
            json!({ "transport": "NoOverlay", block: { "outboundSNAT": snat, "routing": "Managed" } });
        cluster(&layer3(&fields)).unwrap()
    };
    let network = no_overlay("noOverlay", "Enabled");
    let options = NoOverlay { outbound_snat: true, routing: Some(Routing::Managed) };
    assert_eq!(network.transport, Transport::NoOverlay(options));
    for (block, snat) in
        [("noOverlay", "Enable"), ("noOverlayOptions", "Enable"), ("noOverlayOptions", "Enabled")]
    {
        assert_eq!(no_overlay(block, snat), network);
    }
    assert_eq!(cluster(&layer3(&json!({ "transport": "Geneve" }))), cluster(&layer3(&json!({}))));
    let join = json!(["100.70.0.0/16"]);
    let beside = layer3(&json!({ "joinSubnets": join }));
    let mut inside = layer3(&json!({}));
    inside["layer3"]["joinSubnets"] = join;
    assert_eq!(namespaced(&beside), namespaced(&inside));
    assert_eq!(namespaced(&inside), cluster(&inside), "the resource makes no difference");
}

#[test]
fn what_is_wrong_is_named_from_the_top() {
    let subnets =
        |subnets: Value| json!({ "topology": "Layer3", "layer3": { "role": "Primary", "subnets": subnets } });
    for (network, at) in [
        (json!({}), "topology: is missing"),
        (json!({ "topology": "Layer4" }), "topology: \"Layer4\" is not known"),
        (json!({ "topology": "Layer3", "layer3": {} }), "layer3.role: is missing"),
        (json!({ "topology": "Layer3", "layer3": { "role": "Main" } }), "layer3.role: \"Main\" is not known"),
        (subnets(json!([])), "layer3.subnets: is missing"),
        (
            subnets(json!([{ "cidr": "10.0.0.0/8" }, { "cidr": "x" }])),
            "layer3.subnets[1].cidr: CIDR is invalid",
        ),
        (
            subnets(json!([{ "cidr": "10.0.0.0/8", "hostSubnet": 8 }])),
            "layer3.subnets[0]: HostSubnet must be smaller than CIDR subnet",
        ),
        (layer3(&json!({ "transport": "Pigeon" })), "transport: \"Pigeon\" is not known to this version"),
        (
            layer3(&json!({ "transport": "NoOverlay", "noOverlay": { "outboundSNAT": "Maybe" } })),
            "noOverlay.outboundSNAT: \"Maybe\" is not known to this version",
        ),
        (
            layer3(&json!({ "transport": "NoOverlay", "noOverlayOptions": { "outboundSNAT": "Enable" } })),
            "noOverlayOptions.routing: is missing",
        ),
        (layer3(&json!({ "transport": "EVPN", "evpn": { "ipVRF": { "vni": 1 } } })), "evpn.vtep: is missing"),
        (
            layer3(&json!({ "transport": "EVPN", "evpn": { "vtep": "v", "ipVRF": {} } })),
            "evpn.ipVRF.vni: is not a number from 1 to 16777215",
        ),
        (
            json!({ "topology": "Layer2", "layer2": { "role": "Primary", "subnets": ["10.0.0.0/8"], "mtu": 100 } }),
            "layer2.mtu: is not a number from 576 to 65536",
        ),
        (
            json!({ "topology": "Layer2", "layer2": { "role": "Primary", "ipam": { "mode": "Later" } } }),
            "layer2.ipam.mode: \"Later\" is not known to this version",
        ),
    ] {
        let error = cluster(&network).expect_err(at);
        assert!(error.starts_with(&format!("spec.network.{at}")), "{error}, not {at}");
    }
    let error =
        namespaced(&json!({ "topology": "Layer2", "layer2": { "role": "Primary", "subnets": ["x"] } }));
    assert_eq!(error, Err("spec.layer2.subnets[0]: CIDR is invalid".to_owned()));
}

#[test]
fn a_network_knows_its_families() {
    let network = cluster(&layer3(&json!({}))).unwrap();
    assert!(network.has(Family::V4) && !network.has(Family::V6));
    assert_eq!(network.subnets(), ["10.10.0.0/16".parse().unwrap()]);
    assert_eq!((network.role.to_string().as_str(), network.topology.as_str()), ("primary", "layer3"));
}
