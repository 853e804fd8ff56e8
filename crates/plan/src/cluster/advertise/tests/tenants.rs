//! Networks of tenants: which are selected, what nodes say of them, and which cannot be advertised.

use std::collections::BTreeSet;

use underlay_api::NetworkAttachmentDefinition;
use underlay_world::AnyAttachment;

use super::*;

fn two() -> Scene {
    Scene::of_tenants(&[("blue", layer3("10.1.0.0/16")), ("red", layer3("10.2.0.0/16"))])
}

fn prefixes(scene: &Scene, node: &str) -> Value {
    scene.spec_for(node)["bgp"]["routers"][0]["prefixes"].clone()
}

fn advertisers(scene: &Scene) -> Value {
    json!(
        scene
            .plan()
            .advertisers
            .iter()
            .map(|(network, by)| (network.to_string(), by))
            .collect::<BTreeMap<_, _>>()
    )
}

#[test]
fn networks_are_selected_by_label_and_by_name() {
    let scene = two();
    scene.says(FINE);
    assert_eq!(prefixes(&scene, "b"), json!(["10.1.2.0/24", "10.2.2.0/24"]));
    assert_eq!(advertisers(&scene), json!({ "cluster_udn_blue": ["ra"], "cluster_udn_red": ["ra"] }));
    let blue = [json!({ "network": "blue" }), json!({ "k8s.ovn.org/metadata.name": "blue" })];
    for labels in blue {
        let scene = two().with("networkSelectors", tenants(&json!({ "matchLabels": labels })));
        assert_eq!(prefixes(&scene, "b"), json!(["10.1.2.0/24"]), "{labels}");
        assert_eq!(advertisers(&scene), json!({ "cluster_udn_blue": ["ra"] }));
    }
    let none = two().with("networkSelectors", tenants(&json!({ "matchLabels": { "network": "green" } })));
    none.says("configuration pending: no networks selected");
    assert_eq!(advertisers(&none), json!({}));
}

#[test]
fn the_default_network_and_tenants_go_together() {
    let mut selectors = tenants(&json!({}));
    selectors.as_array_mut().unwrap().push(json!({ "networkSelectionType": "DefaultNetwork" }));
    let scene = two().with("networkSelectors", selectors);
    scene.says(FINE);
    assert_eq!(prefixes(&scene, "a"), json!(["10.1.1.0/24", "10.2.1.0/24", "10.244.1.0/24"]));
    let why: Vec<String> =
        scene.plan().configurations.values().next().unwrap().why.objects().map(ToString::to_string).collect();
    assert!(why.contains(&"ClusterUserDefinedNetwork red".to_owned()), "{why:?}");
}

#[test]
fn a_network_on_one_switch_is_told_whole_by_all() {
    let scene = Scene::of_tenants(&[("flat", layer2("10.9.0.0/16"))]);
    scene.says(FINE);
    for node in ["a", "b"] {
        assert_eq!(prefixes(&scene, node), json!(["10.9.0.0/16"]));
    }
}

#[test]
fn networks_that_cannot_be_advertised_are_named() {
    let scene = |network: Value| Scene::of_tenants(&[("blue", network)]);
    let mut secondary = layer3("10.1.0.0/16");
    secondary["layer3"]["role"] = "Secondary".into();
    scene(secondary).says(
        "configuration error: selected network \"cluster_udn_blue\" is not the default nor a primary network",
    );
    let localnet = json!({ "topology": "Localnet", "localnet": { "role": "Secondary", "physicalNetworkName": "x", "subnets": ["10.1.0.0/16"] } });
    scene(localnet).says(
        "configuration error: selected network \"cluster_udn_blue\" is not the default nor a primary network",
    );
    scene(layer2("10.1.0.0/16")).with("advertisements", json!(["EgressIP"])).says(
        "configuration error: EgressIP advertisement is currently not supported for Layer2 networks, network: \
         cluster_udn_blue",
    );
    scene(layer3("10.1.0.0/16")).with("advertisements", json!(["EgressIP"])).says(FINE);
    let mut evpn = layer3("10.1.0.0/16");
    evpn["transport"] = "EVPN".into();
    evpn["evpn"] = json!({ "vtep": "v", "ipVRF": { "vni": 7 } });
    scene(evpn.clone()).says(
        "configuration error: EVPN network \"cluster_udn_blue\" with VRF \"blue\" requires TargetVRF to be 'auto' or \
         \"blue\", got \"\"",
    );
    scene(evpn).with("targetVRF", json!("auto")).says(
        "configuration error: selected network \"cluster_udn_blue\" has transport EVPN, which is not supported yet",
    );
}

#[test]
fn a_vrf_is_of_one_network() {
    let long = "a-name-of-more-letters";
    let scene = Scene::of_tenants(&[(long, layer3("10.1.0.0/16")), ("mp1-udn-vrf", layer3("10.2.0.0/16"))]);
    scene.says(
        "configuration error: vrf \"mp1-udn-vrf\" found to be mapped to multiple networks \
         [cluster_udn_a-name-of-more-letters cluster_udn_mp1-udn-vrf]",
    );
}

#[test]
fn only_egress_may_be_told_by_some_nodes() {
    let nodes = json!({ "matchLabels": { "kubernetes.io/hostname": "a" } });
    let egress = two().with("advertisements", json!(["EgressIP"])).with("nodeSelector", nodes.clone());
    egress.says(FINE);
    assert_eq!(egress.plan().configurations, BTreeMap::new(), "no address is held by anybody");
    assert_eq!(advertisers(&egress), json!({}), "pods are not advertised");
    two()
        .with("nodeSelector", nodes)
        .says("configuration error: node selector has to select all nodes if pod network is advertised");
}

/// An attachment of a network, as it is made.
fn attach(world: &mut World, name: &str, advertisers: Option<&str>) {
    let mut annotations = json!({ "k8s.ovn.org/network-name": format!("cluster_udn_{name}") });
    if let Some(advertisers) = advertisers {
        annotations[LABEL] = advertisers.into();
    }
    let owner = json!({ "apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork", "name": name, "uid": name, "controller": true });
    let object: NetworkAttachmentDefinition = serde_json::from_value(json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("nad-{name}"), "annotations": annotations,
            "labels": { "k8s.ovn.org/user-defined-network": "" }, "ownerReferences": [owner],
        },
        "spec": { "config": "" },
    }))
    .unwrap();
    world.attachments.insert(key_of(&object.metadata), AnyAttachment(object).read().unwrap());
}

#[test]
fn a_node_without_its_part_is_named_and_holds_up_nothing_else() {
    let mut scene = two();
    let text = json!({ "default": ["10.244.2.0/24"], "cluster_udn_red": ["10.2.2.0/24"] }).to_string();
    scene.nodes[1]["metadata"]["annotations"][NodeSubnets::KEY] = text.into();
    scene.says(
        "configuration pending: will wait for subnet annotation to be set for node \"b\" and network \
         \"cluster_udn_blue\"",
    );
    assert_eq!(prefixes(&scene, "a"), json!(["10.1.1.0/24", "10.2.1.0/24"]));
    assert_eq!(prefixes(&scene, "b"), json!(["10.2.2.0/24"]), "what it has is told");
    assert_eq!(advertisers(&scene), json!({ "cluster_udn_blue": ["ra"], "cluster_udn_red": ["ra"] }));
    scene.nodes.push(node("c", 3));
    scene.says(
        "configuration pending: will wait for subnet annotation to be set for node \"b\" and network \
         \"cluster_udn_blue\"; the same for node c; will wait for subnet annotation to be set for node \"c\" and \
         network \"cluster_udn_red\"",
    );
}

#[test]
fn nobody_waits_for_a_network_that_no_namespace_has() {
    let mut scene = Scene::of_tenants(&[("blue", layer3("10.1.0.0/16"))]);
    scene.nodes = vec![node("a", 1)];
    scene.says(FINE);
    assert_eq!(scene.plan().configurations, BTreeMap::new());
    let mut world = scene.world();
    attach(&mut world, "blue", None);
    let message = plan(&world).verdicts["ra"].message("ra");
    assert!(message.ends_with("node \"a\" and network \"cluster_udn_blue\""), "{message}");
}

#[test]
fn a_network_that_goes_is_told_for_as_long_as_nodes_have_it() {
    let mut scene = two();
    scene.networks[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(prefixes(&scene, "a"), json!(["10.1.1.0/24", "10.2.1.0/24"]));
    let text = json!({ "cluster_udn_red": ["10.2.1.0/24"] }).to_string();
    scene.nodes = vec![node("a", 1)];
    scene.nodes[0]["metadata"]["annotations"][NodeSubnets::KEY] = text.into();
    scene.says(FINE);
    assert_eq!(prefixes(&scene, "a"), json!(["10.2.1.0/24"]));
    // One that was edited into nonsense goes on as it was.
    let mut scene = two();
    scene.networks[0]["spec"]["network"]["layer3"]["subnets"] = json!([{ "cidr": "nonsense" }]);
    assert_eq!(prefixes(&scene, "a"), json!(["10.1.1.0/24", "10.2.1.0/24"]));
}

#[test]
fn several_may_advertise_one_network() {
    let mut scene = two();
    let mut other = scene.spec.clone();
    other["networkSelectors"] = tenants(&json!({ "matchLabels": { "network": "red" } }));
    scene.others.push(("second", other));
    scene.says(FINE);
    scene.says_of("second", FINE);
    assert_eq!(scene.plan().configurations.len(), 4);
    assert_eq!(
        advertisers(&scene),
        json!({ "cluster_udn_blue": ["ra"], "cluster_udn_red": ["ra", "second"] })
    );
}

#[test]
fn a_mistake_leaves_what_attachments_say() {
    let mut scene = two();
    let mut world = scene.world();
    for generated in plan(&world).configurations.values() {
        put(&mut world, generated.object.as_ref().clone());
    }
    attach(&mut world, "blue", Some(r#"["ra"]"#));
    attach(&mut world, "red", Some(r#"["other"]"#));
    scene.spec["targetVRF"] = "nowhere".into();
    world.advertisements = scene.world().advertisements;
    let planned = plan(&world);
    assert_eq!(planned.verdicts["ra"].reason(), "ConfigurationError");
    assert_eq!(planned.configurations.len(), 2);
    let want: BTreeMap<Arc<str>, BTreeSet<String>> =
        [("cluster_udn_blue".into(), ["ra".to_owned()].into())].into();
    assert_eq!(planned.advertisers, want);
}
