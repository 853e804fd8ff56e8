//! Annotations of networks of one's own: their numbers, and what pods ask for in them.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::json;

use super::{comes_back, mac, name, net, nets, parsed, refuses, says};
use crate::annotations::*;

#[test]
fn keys_between_nodes() {
    says("[16711684,16715779]", &TunnelKeys(vec![TunnelKeys::SWITCHES + 1, TunnelKeys::FIRST_ROUTER]));
    says("[]", &TunnelKeys::default());
    assert!(!TunnelKeys::default().is_silent(), "an empty list says that the network was seen");
    refuses::<TunnelKeys>("[16777216]", "16777216 is not a key from 1 to 16777215");
    refuses::<TunnelKeys>("[0]", "0 is not a key");
    refuses::<TunnelKeys>(r#"["1"]"#, "invalid type");
}

#[test]
fn numbers_of_networks_on_nodes() {
    let numbers = |pairs: &[(&str, u16)]| pairs.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect();
    says(
        r#"{"cluster_udn_blue":"1","default":"0"}"#,
        &NetworkIds(numbers(&[("default", 0), ("cluster_udn_blue", 1)])),
    );
    refuses::<NetworkIds>(r#"{"blue":"4096"}"#, "network blue: \"4096\" is not a number from 0 to 4095");
    says(r#"{"ns_red":"5"}"#, &Layer2TunnelIds(numbers(&[("ns_red", 5)])));
    refuses::<Layer2TunnelIds>(r#"{"ns_red":"0"}"#, "from 1 to 32767");
    refuses::<Layer2TunnelIds>(r#"{"ns_red":5}"#, "invalid type");
    says("2.0", &Layer2Topology(Layer2Topology::TRANSIT_ROUTER.to_owned()));
}

#[test]
fn requests_in_full_and_in_short() {
    let net2 = NetworkRequest {
        name: "net2".to_owned(),
        namespace: Some("other".to_owned()),
        interface: Some("eth5".to_owned()),
        ..NetworkRequest::default()
    };
    let net1 = NetworkRequest { name: "net1".to_owned(), ..NetworkRequest::default() };
    let both = NetworkRequests(vec![net1, net2]);
    assert_eq!(NetworkRequests::parse("net1, other/net2@eth5"), Ok(both.clone()));
    says(r#"[{"name":"net1"},{"name":"net2","namespace":"other","interface":"eth5"}]"#, &both);
    assert_eq!(NetworkRequests::parse(""), Ok(NetworkRequests::default()));
    for text in ["/net", "a/b/c", "net@", "a,,b", "@eth0"] {
        refuses::<NetworkRequests>(text, "is not a network: write it like other/net2@eth5");
    }
    refuses::<NetworkRequests>(r#"[{"namespace":"a"}]"#, "entry 0: has no name");
    refuses::<NetworkRequests>(r#"[{"name":"a","ips":["10.0.0.1"]}]"#, "a: \"10.0.0.1\" is not an address");
}

#[test]
fn what_a_pod_asks_for_in_its_primary_network() {
    let text = concat!(
        r#"[{"name":"default","namespace":"ovn-kubernetes","ips":["192.168.0.3/24"],"#,
        r#""mac":"aa:bb:cc:dd:ee:ff","ipam-claim-reference":"c"}]"#
    );
    let request = NetworkRequest {
        name: "default".to_owned(),
        namespace: Some("ovn-kubernetes".to_owned()),
        addresses: nets(&["192.168.0.3/24"]),
        mac: Some(parsed("aa:bb:cc:dd:ee:ff")),
        claim: Some("c".to_owned()),
        ..NetworkRequest::default()
    };
    says(text, &DefaultNetworkRequest(request));
    refuses::<DefaultNetworkRequest>("[]", "names 0 networks instead of one");
    refuses::<DefaultNetworkRequest>("a,b", "names 2 networks instead of one");
}

#[test]
fn a_claim_is_named_in_three_ways() {
    let pod = |annotations: &[(&str, &str)]| {
        let texts = annotations.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        ObjectMeta { annotations: Some(texts.collect()), ..ObjectMeta::default() }
    };
    let request = (DefaultNetworkRequest::KEY, r#"[{"name":"default","ipam-claim-reference":"vm-1"}]"#);
    let (old, udn) = ("k8s.ovn.org/primary-udn-ipamclaim", "k8s.ovn.org/ovn-udn-ipamclaim-reference");
    let claim = Ok(Some("vm-1".to_owned()));
    assert_eq!(primary_claim(&pod(&[])), Ok(None));
    for annotations in [
        &[request][..],
        &[(old, "vm-1")],
        &[(udn, "vm-1")],
        &[request, (old, "vm-1"), (udn, "vm-1")],
        &[(DefaultNetworkRequest::KEY, "default"), (udn, "vm-1")],
    ] {
        assert_eq!(primary_claim(&pod(annotations)), claim, "{annotations:?}");
    }
    assert_eq!(
        primary_claim(&pod(&[(old, "vm-2"), request])).unwrap_err().to_string(),
        r#"annotation k8s.ovn.org/primary-udn-ipamclaim: names the IPAMClaim "vm-2", but "#.to_owned()
            + r#"v1.multus-cni.io/default-network names "vm-1": use one of them"#
    );
    assert!(primary_claim(&pod(&[(old, "vm-2"), (udn, "vm-1")])).is_err());
    assert!(primary_claim(&pod(&[(DefaultNetworkRequest::KEY, "[]"), (udn, "vm-1")])).is_err());
}

prop_compose! {
    fn request()(
        name in name(),
        namespace in option::of(name()),
        interface in option::of(name()),
        addresses in vec(net(), 0..3),
        mac in option::of(mac()),
        claim in option::of(name()),
        gateways in vec(any::<std::net::IpAddr>(), 0..2),
        later: bool,
    ) -> NetworkRequest {
        let other = later.then(|| ("later".to_owned(), json!({ "than": "us" }))).into_iter().collect();
        NetworkRequest { name, namespace, interface, addresses, mac, gateways, claim, other }
    }
}

proptest! {
    #[test]
    fn values_come_back(
        requests in vec(request(), 0..3),
        one in request(),
        numbers in btree_map(name(), 1..=NetworkId::LAST, 0..3),
        keys in vec(1..=TunnelKeys::LAST, 0..3),
        claim in name(),
    ) {
        comes_back(&NetworkRequests(requests))?;
        comes_back(&DefaultNetworkRequest(one))?;
        comes_back(&NetworkIds(numbers.clone()))?;
        comes_back(&Layer2TunnelIds(numbers))?;
        comes_back(&TunnelKeys(keys))?;
        comes_back(&PrimaryClaim(claim.clone()))?;
        comes_back(&UdnClaimReference(claim))?;
    }
}
