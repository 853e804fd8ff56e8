//! The texts of the ecosystem, and that what we write is what we read.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::network::{Addressing, NetworkSpec, samples};

/// The network of a ClusterUserDefinedNetwork with this in it.
fn network(spec: Value) -> Network {
    let network = serde_json::from_value::<NetworkSpec>(spec).unwrap();
    ClusterUserDefinedNetworkSpec { network, ..Default::default() }.network().unwrap()
}

/// The network of a configuration with these keys, beside those that every one has.
fn read(keys: &Value) -> Result<Network, String> {
    let mut all = json!({ "cniVersion": "0.3.1", "type": PLUGIN, "name": "net" });
    all.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    let read = NetConf::parse(&all.to_string()).map_err(|error| error.to_string())?;
    assert_eq!((read.name.as_str(), read.cni_version.as_str()), ("net", "0.3.1"));
    Ok(read.network.unwrap())
}

#[test]
fn the_default_networks_text_is_its_configuration() {
    assert_eq!(NetConf::parse(NetConf::DEFAULT_NETWORK), Ok(NetConf::default_network()));
    assert_eq!(NetConf::default_network().render(), NetConf::DEFAULT_NETWORK);
    let older = r#"{"cniVersion":"0.4.0","name":"default","type":"ovn-k8s-cni-overlay","logLevel":"5"}"#;
    let older = NetConf::parse(older).unwrap();
    assert_eq!((older.network, older.other["logLevel"].as_str()), (None, Some("5")));
}

#[test]
fn networks_are_written_as_others_write_them() {
    let no_overlay = network(json!({
        "topology": "Layer3",
        "layer3": { "role": "Primary", "mtu": 1500, "subnets": [{ "cidr": "10.10.0.0/16", "hostSubnet": 24 }] },
        "transport": "NoOverlay",
        "noOverlayOptions": { "outboundSNAT": "Disable", "routing": "Unmanaged" },
    }));
    assert_eq!(
        NetConf::new("cluster_udn_blue", "ns1", "blue", no_overlay).render(),
        concat!(
            r#"{"cniVersion":"1.1.0","joinSubnet":"100.65.0.0/16,fd99::/64","mtu":1500,"name":"cluster_udn_blue","#,
            r#""netAttachDefName":"ns1/blue","outboundSNAT":"disabled","role":"primary","subnets":"10.10.0.0/16/24","#,
            r#""topology":"layer3","transport":"no-overlay","type":"ovn-k8s-cni-overlay"}"#
        )
    );
    let machines = network(json!({
        "topology": "Layer2",
        "layer2": {
            "role": "Primary",
            "subnets": ["192.168.100.0/24"],
            "ipam": { "lifecycle": "Persistent" },
            "defaultGatewayIPs": ["192.168.100.2"],
            "infrastructureSubnets": ["192.168.100.0/30"],
            "reservedSubnets": ["192.168.100.200/29"],
        },
    }));
    let mut machines = NetConf::new("cluster_udn_blue", "ns1", "blue", machines);
    machines.transit_subnets = vec!["100.88.0.0/16".parse().unwrap()];
    assert_eq!(
        machines.render(),
        concat!(
            r#"{"allowPersistentIPs":true,"cniVersion":"1.1.0","defaultGatewayIPs":"192.168.100.2","#,
            r#""infrastructureSubnets":"192.168.100.0/30","joinSubnet":"100.65.0.0/16,fd99::/64","#,
            r#""name":"cluster_udn_blue","netAttachDefName":"ns1/blue","reservedSubnets":"192.168.100.200/29","#,
            r#""role":"primary","subnets":"192.168.100.0/24","topology":"layer2","transitSubnet":"100.88.0.0/16","#,
            r#""type":"ovn-k8s-cni-overlay"}"#
        )
    );
}

#[test]
fn what_others_leave_out_goes_without_saying() {
    let layer2 = read(&json!({ "topology": "layer2", "allowPersistentIPs": true })).unwrap();
    assert!(!layer2.is_primary());
    assert!(matches!(&layer2.topology, Topology::Layer2(layer2) if layer2.addressing == Addressing::None));
    let localnet =
        read(&json!({ "topology": "localnet", "subnets": "10.0.0.0/24, fd10::/64", "vlanID": 7 })).unwrap();
    assert_eq!(localnet.subnets().len(), 2);
    let Topology::Localnet(localnet) = localnet.topology else { panic!("it is a localnet") };
    assert_eq!((localnet.physical_network.as_str(), localnet.vlan), ("net", Some(7)));
}

#[test]
fn each_spelling_of_a_transport_is_read() {
    let layer3 = |transport: &str, snat: &str| {
        let keys = json!({ "topology": "layer3", "role": "primary", "subnets": "10.10.0.0/16/24" });
        let mut keys = keys.as_object().unwrap().clone();
        keys.extend([("transport".to_owned(), transport.into()), ("outboundSNAT".to_owned(), snat.into())]);
        read(&keys.into()).map(|network| network.transport)
    };
    let no_overlay =
        |outbound_snat| Ok(Transport::NoOverlay(crate::network::NoOverlay { outbound_snat, routing: None }));
    for spelling in ["no-overlay", "noOverlay", "nooverlay"] {
        assert_eq!(layer3(spelling, "enable"), no_overlay(true));
        assert_eq!(layer3(spelling, "enabled"), no_overlay(true));
        assert_eq!(layer3(spelling, "disabled"), no_overlay(false));
        assert_eq!(layer3(spelling, ""), no_overlay(false));
    }
    assert_eq!(layer3("geneve", ""), Ok(Transport::Geneve));
    assert_eq!(layer3("", ""), Ok(Transport::Geneve));
    let odd =
        Err("CNI configuration: transport: \"pigeon\" is none of geneve, no-overlay and evpn".to_owned());
    assert_eq!(layer3("pigeon", ""), odd);
}

#[test]
fn what_is_wrong_is_named_by_its_key() {
    for (keys, problem) in [
        (json!({ "topology": "layer3" }), "subnets: is missing"),
        (
            json!({ "topology": "layer3", "subnets": "10.0.0.0/8/7/6" }),
            "subnets: \"10.0.0.0/8/7/6\" is not a subnet",
        ),
        (
            json!({ "topology": "layer3", "subnets": "10.0.0.0/24" }),
            "subnets[0]: cannot use a host subnet length",
        ),
        (json!({ "topology": "layer2", "subnets": "10.0.0.0" }), "subnets[0]: CIDR is invalid"),
        (json!({ "topology": "layer2", "role": "main" }), "role: \"main\" is none of primary and secondary"),
        (json!({ "topology": "ring" }), "topology: \"ring\" is none of layer3, layer2 and localnet"),
        (json!({}), "topology: \"\" is none of"),
        (json!({ "topology": "localnet", "role": "primary" }), "role: must be Secondary"),
        (
            json!({ "topology": "localnet", "subnets": "10.0.0.0/24", "vlanID": 4095 }),
            "vlan.access.id: is not a VLAN",
        ),
        (json!({ "topology": "layer2", "ipamMode": "dhcp" }), "ipamMode: \"dhcp\" is none of guest-assigned"),
        (
            json!({ "topology": "layer2", "transitSubnet": "10.0.0.0" }),
            "transitSubnet: \"10.0.0.0\" is not a subnet",
        ),
    ] {
        let error = read(&keys).expect_err(&keys.to_string());
        let said = error.strip_prefix("CNI configuration: ").is_some_and(|error| error.starts_with(problem));
        assert!(said, "{keys}: {error}");
    }
    assert!(matches!(NetConf::parse("{"), Err(BadNetConf::Text(_))));
    assert!(matches!(
        NetConf::parse(r#"{"type":"ovn-k8s-cni-overlay","mtu":"1500"}"#),
        Err(BadNetConf::Text(_))
    ));
    let nameless = NetConf::parse(r#"{"type":"ovn-k8s-cni-overlay"}"#).unwrap_err();
    assert_eq!(nameless.to_string(), "CNI configuration: name: is missing");
}

#[test]
fn other_plugins_are_left_alone() {
    for text in [
        r#"{"cniVersion":"0.3.1","name":"m","type":"macvlan","mtu":"automatic"}"#,
        r#"{"cniVersion":"0.3.1","name":"m","plugins":[{"type":"bridge"}]}"#,
        "{}",
    ] {
        assert_eq!(NetConf::parse(text), Err(BadNetConf::Foreign), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(network in samples::network(), transit: bool) {
        let mut written = NetConf::new("cluster_udn_a", "ns", "a", network.clone());
        if transit {
            written.transit_subnets = vec!["100.88.0.0/16".parse().unwrap(), "fd97::/64".parse().unwrap()];
        }
        let text = written.render();
        let read = NetConf::parse(&text).unwrap();
        prop_assert_eq!(read.render(), text, "it reads as itself");
        // Two things are not the same: defaults are said, and what nodes need not know is not.
        let mut want = network;
        if want.is_primary() && want.join_subnets.is_empty() {
            want.join_subnets = DEFAULT_JOIN_SUBNETS.iter().map(|subnet| subnet.parse().unwrap()).collect();
        }
        if let Transport::NoOverlay(no_overlay) = &mut want.transport {
            no_overlay.routing = None;
        }
        prop_assert_eq!(read.network, Some(want));
        prop_assert_eq!(read.transit_subnets, written.transit_subnets);
    }

    #[test]
    fn no_text_panics(text in ".*", key in "[a-z]{1,8}", value in "[0-9a-f:./,]{0,20}") {
        let _ = NetConf::parse(&text);
        for topology in ["layer3", "layer2", "localnet"] {
            let keys = json!({ "topology": topology, "subnets": value, "excludeSubnets": value, key.as_str(): value });
            let _ = read(&keys);
        }
    }
}
