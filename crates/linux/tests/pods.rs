//! Interfaces of pods, in two real namespaces, with `ip` as the witness.

// Helpers of tests may unwrap as tests may.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use underlay_linux::veth::{configure_pod, read_pod};
use underlay_linux::{Fault, Kernel, PodInterface, Veth};
use underlay_testkit::Netns;

fn veth() -> Veth {
    let mac = "0a:58:0a:f4:01:05".parse().unwrap();
    Veth { host: "3f1c9d2b7a6e504".to_owned(), pod: "eth0".to_owned(), mtu: 1400, mac }
}

fn interface() -> PodInterface {
    PodInterface {
        name: "eth0".to_owned(),
        mac: "0a:58:0a:f4:01:05".parse().unwrap(),
        mtu: 1400,
        addresses: vec!["10.244.1.5/24".parse().unwrap(), "fd00:10:244:2::5/64".parse().unwrap()],
        // The second is outside the pod's subnet: it is on the link all the same.
        gateways: vec!["10.244.1.1".parse().unwrap(), "fe80::1".parse().unwrap()],
        routes: vec![
            ("100.64.0.0/16".parse().unwrap(), Some("10.244.1.1".parse().unwrap())),
            ("10.9.0.0/16".parse().unwrap(), None),
            ("10.10.0.0/16".parse().unwrap(), Some("10.9.0.1".parse().unwrap())),
        ],
    }
}

fn json(netns: &Netns, arguments: &[&str]) -> Vec<Value> {
    serde_json::from_str(&netns.ip(&[&["-json"], arguments].concat())).unwrap()
}

/// Returns whether the pair was there already.
async fn make(node: &Netns, pod: &Netns) -> Result<bool, Fault> {
    let kernel = Kernel::open_in(&node.path()).await?;
    let kept = kernel.create_veth(&veth(), &pod.path()).await?;
    configure_pod(&pod.path(), &interface()).await?;
    Ok(kept)
}

#[tokio::test]
async fn a_pod_gets_its_interface_and_loses_it() {
    let (node, pod) = (Netns::new(), Netns::new());
    // A second time finds what the first left, and disturbs nothing.
    assert!(!make(&node, &pod).await.unwrap());
    check(&node, &pod);
    let neighbor =
        ["neighbor", "replace", "10.244.1.9", "lladdr", "02:00:00:00:00:09", "dev", "eth0", "nud", "stale"];
    pod.ip(&neighbor);
    let index = json(&node, &["link", "show", &veth().host])[0]["ifindex"].clone();
    pod.ip(&["route", "del", "default"]);
    assert!(make(&node, &pod).await.unwrap());
    check(&node, &pod);
    assert_eq!(json(&node, &["link", "show", &veth().host])[0]["ifindex"], index);
    assert_eq!(json(&pod, &["neighbor", "show", "10.244.1.9"]).len(), 1, "neighbours are not forgotten");
    // Of an attempt that broke off only the pod's half of the work may be missing.
    configure_pod(&pod.path(), &interface()).await.unwrap();
    check(&node, &pod);

    let state = read_pod(&pod.path(), "eth0").await.unwrap().unwrap();
    assert!(state.link.up && state.link.mtu == 1400 && state.link.mac == Some(veth().mac));
    assert_eq!(state.addresses, interface().addresses.into_iter().collect());
    let routes: Vec<String> = state.routes.iter().map(|(net, ip)| format!("{net} {ip}")).collect();
    let expected =
        ["0.0.0.0/0 10.244.1.1", "10.10.0.0/16 10.9.0.1", "100.64.0.0/16 10.244.1.1", "::/0 fe80::1"];
    assert_eq!(routes, expected);

    let kernel = Kernel::open_in(&node.path()).await.unwrap();
    for _ in 0..2 {
        kernel.delete_link(&veth().host).await.unwrap();
    }
    assert_eq!(kernel.link(&veth().host).await.unwrap(), None);
    assert_eq!(read_pod(&pod.path(), "eth0").await.unwrap(), None);
}

fn check(node: &Netns, pod: &Netns) {
    let host = &json(node, &["address", "show", &veth().host])[0];
    assert_eq!(host["mtu"], 1400);
    assert_eq!(host["operstate"], "UP");
    let mode = &json(node, &["-details", "link", "show", &veth().host])[0]["inet6_addr_gen_mode"];
    assert_eq!(mode, "none");
    assert_eq!(host["addr_info"].as_array().unwrap().len(), 0, "the node's end has no address");
    assert_eq!(json(node, &["link"]).len(), 2, "the loopback and the node's end");

    let eth0 = &json(pod, &["address", "show", "eth0"])[0];
    assert_eq!(eth0["address"], "0a:58:0a:f4:01:05");
    let addresses: Vec<&Value> = eth0["addr_info"].as_array().unwrap().iter().collect();
    let global: Vec<&Value> =
        addresses.iter().copied().filter(|address| address["scope"] == "global").collect();
    assert_eq!(global.len(), 2);
    assert!(global.iter().all(|address| address["tentative"].is_null()), "{global:?}");
    assert_eq!(json(pod, &["link", "show", "lo"])[0]["flags"][1], "UP");
    assert_eq!(json(pod, &["route", "show", "default"])[0]["gateway"], "10.244.1.1");
    assert_eq!(json(pod, &["-6", "route", "show", "default"])[0]["gateway"], "fe80::1");
}

#[tokio::test]
async fn ends_that_are_not_a_pair_are_made_anew() {
    let (node, pod, other) = (Netns::new(), Netns::new(), Netns::new());
    make(&node, &other).await.unwrap();
    assert!(!make(&node, &pod).await.unwrap(), "the node's end led elsewhere");
    check(&node, &pod);
    assert_eq!(json(&other, &["link"]).len(), 1, "only the loopback");
    node.ip(&["link", "del", &veth().host]);
    node.ip(&["link", "add", &veth().host, "type", "bridge"]);
    pod.ip(&["link", "add", "eth0", "type", "bridge"]);
    assert!(!make(&node, &pod).await.unwrap());
    check(&node, &pod);
}

#[tokio::test]
async fn a_namespace_that_is_gone_is_told() {
    let node = Netns::new();
    let kernel = Kernel::open_in(&node.path()).await.unwrap();
    let gone = std::path::Path::new("/run/netns/there-is-no-such-pod");
    assert!(matches!(kernel.create_veth(&veth(), gone).await, Err(Fault::Namespace { .. })));
    assert!(matches!(configure_pod(gone, &interface()).await, Err(Fault::Namespace { .. })));
}
