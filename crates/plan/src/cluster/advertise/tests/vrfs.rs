//! Where routes are told, what is leaked between VRFs, and what is taken from peers.

use underlay_api::frr::Router;
use underlay_world::settings::{NoOverlay, Routing};

use super::*;

fn vrf(name: &str, address: &str) -> Value {
    let mut router = router(&json!([peer(address)]));
    router["vrf"] = name.into();
    router
}

fn without_overlay(cidr: &str) -> Value {
    let mut network = layer3(cidr);
    network["transport"] = "NoOverlay".into();
    network["noOverlay"] = json!({ "outboundSNAT": "Disabled", "routing": "Unmanaged" });
    network
}

fn with_default(labels: &Value) -> Value {
    let mut selectors = tenants(labels);
    selectors.as_array_mut().unwrap().push(json!({ "networkSelectionType": "DefaultNetwork" }));
    selectors
}

#[test]
fn routes_of_tenants_are_leaked_into_the_default_vrf_and_back() {
    let scene =
        Scene::of_tenants(&[("blue", without_overlay("10.10.0.0/16")), ("red", layer3("10.20.0.0/16"))]);
    let scene = scene.routers(&json!([router(&json!([peer("172.18.0.5")])), vrf("blue", "172.18.0.6")]));
    scene.says(FINE);
    let told = json!(["10.10.1.0/24", "10.20.1.0/24"]);
    let want = json!([
        {
            "asn": 64512,
            "prefixes": told,
            "imports": [{ "vrf": "blue" }, { "vrf": "red" }],
            "neighbors": [{
                "address": "172.18.0.5",
                "asn": 64512,
                "toAdvertise": { "allowed": { "mode": "filtered", "prefixes": told } },
                "toReceive": {
                    "allowed": { "mode": "filtered", "prefixes": [{ "prefix": "10.10.0.0/16", "ge": 24, "le": 24 }] },
                },
                "addressFamilies": ["unicast"],
            }],
        },
        { "asn": 64512, "vrf": "blue", "imports": [{ "vrf": "default" }] },
        { "asn": 64512, "vrf": "red", "imports": [{ "vrf": "default" }] },
    ]);
    assert_eq!(scene.spec_for("a")["bgp"]["routers"], want);
}

#[test]
fn a_named_vrf_takes_all_and_leaks_into_the_others() {
    let scene =
        Scene::of_tenants(&[("blue", layer3("10.1.0.0/16"))]).routers(&json!([vrf("blue", "192.0.2.1")]));
    let scene = scene.with("networkSelectors", with_default(&json!({}))).with("targetVRF", json!("blue"));
    scene.says(FINE);
    let spec = scene.spec_for("a");
    let routers = &spec["bgp"]["routers"];
    assert_eq!(routers[0]["vrf"], "blue");
    assert_eq!(routers[0]["prefixes"], json!(["10.1.1.0/24", "10.244.1.0/24"]));
    assert_eq!(routers[0]["imports"], json!([{ "vrf": "default" }]));
    assert_eq!(routers[1], json!({ "asn": 64512, "imports": [{ "vrf": "blue" }] }));
    assert_eq!(routers.as_array().unwrap().len(), 2);
}

#[test]
fn with_auto_each_network_has_its_own_router() {
    let scene =
        Scene::of_tenants(&[("blue", without_overlay("10.1.0.0/16")), ("red", layer3("10.1.0.0/16"))]);
    let routers = json!([vrf("blue", "182.18.0.5"), vrf("red", "192.18.0.5"), vrf("green", "192.0.2.1")]);
    let scene = scene.routers(&routers).with("targetVRF", json!("auto"));
    scene.says(FINE);
    let spec = scene.spec_for("b");
    let routers = spec["bgp"]["routers"].as_array().unwrap();
    assert_eq!(routers.len(), 2);
    for (router, vrf) in routers.iter().zip(["blue", "red"]) {
        assert_eq!((&router["vrf"], &router["prefixes"]), (&json!(vrf), &json!(["10.1.2.0/24"])));
        assert_eq!(router["imports"], json!(null), "nothing is leaked");
    }
    let taken = |place: usize| routers[place]["neighbors"][0]["toReceive"]["allowed"]["prefixes"].clone();
    assert_eq!(taken(0), json!([{ "prefix": "10.1.0.0/16", "ge": 24, "le": 24 }]));
    assert_eq!(taken(1), json!(null), "red has its tunnels");
    let raw = spec["raw"]["rawConfig"].as_str().unwrap();
    assert!(
        raw.starts_with("router bgp 64512 vrf blue\n") && raw.contains("\nrouter bgp 64512 vrf red\n"),
        "{raw}"
    );
}

#[test]
fn with_auto_every_network_needs_a_router() {
    let networks = [("blue", layer3("10.1.0.0/16")), ("red", layer3("10.1.0.0/16"))];
    let mut scene = Scene::of_tenants(&networks)
        .routers(&json!([vrf("blue", "192.0.2.1")]))
        .with("targetVRF", json!("auto"));
    scene.says(
        "configuration error: selected FRRConfigurations for node \"a\" don't match all selected networks with target \
         VRF 'auto'",
    );
    // A second source has it.
    scene.sources.push(source("more", &json!([vrf("red", "192.0.2.2")])));
    scene.says(FINE);
    assert_eq!(scene.plan().configurations.len(), 4);
    // A source for a network that is not on the node has nothing to say there, and that is no mistake.
    for node in &mut scene.nodes {
        node["metadata"]["annotations"][NodeSubnets::KEY] = r#"{"cluster_udn_blue":["10.1.1.0/24"]}"#.into();
    }
    scene.says(FINE);
    assert_eq!(scene.plan().configurations.len(), 2);
    // One for none of them is.
    scene.sources.push(source("none", &json!([vrf("green", "192.0.2.3")])));
    scene.says(
        "configuration error: FRRConfiguration \"none\" selected for node \"a\" has no VRF matching the \
         RouteAdvertisements target VRF or any selected network",
    );
}

#[test]
fn without_overlay_nodes_hear_of_each_others_parts() {
    let mut scene = Scene::of_tenants(&[("blue", without_overlay("10.1.0.0/16"))]);
    scene.settings.no_overlay = Some(NoOverlay { outbound_snat: true, routing: Routing::Unmanaged });
    let mut other = peer("2001:db8::1");
    other["toReceive"] = json!({ "allowed": { "mode": "all" } });
    let mut scene = scene
        .routers(&json!([router(&json!([peer("192.0.2.1"), other]))]))
        .with("networkSelectors", with_default(&json!({})));
    let text =
        json!({ "default": ["10.128.0.0/23", "fd00::/64"], "cluster_udn_blue": ["10.1.1.0/24"] }).to_string();
    scene.nodes[0]["metadata"]["annotations"][NodeSubnets::KEY] = text.into();
    let spec = scene.spec_for("a");
    let taken = |place: usize| spec["bgp"]["routers"][0]["neighbors"][place]["toReceive"]["allowed"].clone();
    let want = json!([
        { "prefix": "10.1.0.0/16", "ge": 24, "le": 24 },
        { "prefix": "10.128.0.0/14", "ge": 23, "le": 23 },
    ]);
    assert_eq!(taken(0), json!({ "mode": "filtered", "prefixes": want }));
    assert_eq!(taken(1), json!({ "mode": "all" }), "no range of its family");
}

#[test]
fn what_is_too_much_for_one_object_is_in_several() {
    let names: Vec<String> = (0..120).map(|number| format!("net{number:03}")).collect();
    let networks: Vec<(&str, Value)> = names
        .iter()
        .enumerate()
        .map(|(number, name)| (name.as_str(), layer3(&format!("10.{number}.0.0/16"))))
        .collect();
    let scene = Scene::of_tenants(&networks);
    scene.says(FINE);
    let plan = scene.plan();
    assert_eq!(plan.configurations.len(), 6, "three for each of two nodes");
    let mut vrfs = BTreeSet::new();
    for generated in plan.configurations.values() {
        let spec = &generated.object.spec;
        assert!(spec.bgp.routers.len() <= 50);
        let host = &spec.node_selector.match_labels.as_ref().unwrap()["kubernetes.io/hostname"];
        vrfs.extend(spec.bgp.routers.iter().map(|router| (host.clone(), router.vrf.clone())));
    }
    assert_eq!(vrfs.len(), 242, "each VRF and the default one, on each of two nodes");
    let routers = plan.configurations.values().flat_map(|generated| &generated.object.spec.bgp.routers);
    let different: BTreeSet<*const Router> = routers.map(Arc::as_ptr).collect();
    assert_eq!(different.len(), 122, "each node has its own one, and they share the others");
}
