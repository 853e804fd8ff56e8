use proptest::prelude::*;
use serde_json::{Value, json};
use underlay_api::ClusterUserDefinedNetwork;
use underlay_world::Node;
use underlay_world::settings::NoOverlay;

use super::*;

/// A cluster whose default network, and networks of tenants, are carried by the mesh.
fn settings() -> Settings {
    let mut settings = Settings {
        cluster_subnets: ["10.128.0.0/16", "fd01::/48"]
            .map(|net| {
                SubnetRange::new(net.parse().unwrap(), if net.contains(':') { 64 } else { 24 }).unwrap()
            })
            .into(),
        no_overlay: Some(NoOverlay { outbound_snat: true, routing: settings::Routing::Managed }),
        ..Settings::default()
    };
    settings.managed.as_number = 64514;
    settings.managed.topology = Some(Topology::FullMesh);
    settings
}

/// The same with a default network that has its overlay.
fn for_tenants() -> Settings {
    Settings { no_overlay: None, ..settings() }
}

fn add_node(world: &mut World, name: &str, addresses: &[&str]) {
    let addresses: Vec<Value> =
        addresses.iter().map(|address| json!({ "type": "InternalIP", "address": address })).collect();
    let object = json!({ "metadata": { "name": name }, "status": { "addresses": addresses } });
    let node = Node::read(&serde_json::from_value(object).unwrap());
    world.nodes.insert(Key::cluster(name), Arc::new(node));
}

fn add_network(world: &mut World, name: &str, routing: Option<&str>) {
    let mut network = json!({
        "topology": "Layer3", "layer3": { "role": "Primary", "subnets": [{ "cidr": "10.10.0.0/16" }] },
    });
    if let Some(routing) = routing {
        network["transport"] = json!("NoOverlay");
        network["noOverlayOptions"] = json!({ "outboundSNAT": "Enable", "routing": routing });
    }
    let object = json!({
        "metadata": { "name": name, "uid": name }, "spec": { "namespaceSelector": {}, "network": network },
    });
    let object: ClusterUserDefinedNetwork = serde_json::from_value(object).unwrap();
    world.cluster_networks.insert(Key::cluster(name), Arc::new(Definition::of_cluster(object)));
}

fn three_nodes() -> World {
    let mut world = World::default();
    add_node(&mut world, "c", &["172.18.0.4"]);
    add_node(&mut world, "a", &["172.18.0.2", "172.18.0.200", "fc00::2"]);
    add_node(&mut world, "b", &["fc00::3", "172.18.0.3"]);
    world
}

fn base(fabric: &Fabric) -> Value {
    let found: Vec<&Generated> = fabric.configurations.values().collect();
    let [base] = found.as_slice() else { panic!("{found:?}") };
    serde_json::to_value(base.object.as_ref()).unwrap()
}

fn peers(fabric: &Fabric) -> Vec<String> {
    let neighbors =
        base(fabric)["spec"]["bgp"]["routers"][0]["neighbors"].as_array().cloned().unwrap_or_default();
    neighbors.iter().map(|neighbor| neighbor["address"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_default_network_is_told_from_every_node_to_every_other() {
    let fabric = plan(&three_nodes(), &settings(), true);
    assert_eq!(peers(&fabric), ["172.18.0.2", "172.18.0.3", "172.18.0.4", "fc00::2", "fc00::3"]);
    let object = base(&fabric);
    assert_eq!(object["metadata"]["namespace"], "frr-k8s-system");
    assert_eq!(object["metadata"]["labels"], json!({ "k8s.ovn.org/managed-internal-fabric": "bgp" }));
    let bgp = &object["spec"]["bgp"];
    let neighbor = |address: &str, prefix: &str, length: u8| {
        json!({
            "address": address, "asn": 64514, "bfdProfile": "ovnk-managed", "enableGracefulRestart": true,
            "connectTime": "1s", "addressFamilies": ["unicast"],
            "toReceive": { "allowed": {
                "mode": "filtered", "prefixes": [{ "prefix": prefix, "ge": length, "le": length }],
            } },
        })
    };
    assert_eq!(bgp["routers"][0]["asn"], 64514);
    assert_eq!(bgp["routers"][0]["neighbors"][0], neighbor("172.18.0.2", "10.128.0.0/16", 24));
    assert_eq!(bgp["routers"][0]["neighbors"][4], neighbor("fc00::3", "fd01::/48", 64));
    assert_eq!(bgp["bfdProfiles"][0]["name"], "ovnk-managed");
    assert_eq!(object["spec"].get("nodeSelector"), None, "for all nodes");

    let [advertisement] = fabric.advertisements.values().collect::<Vec<_>>()[..] else { panic!() };
    assert!(is_ours(&advertisement.object.metadata));
    assert_eq!(
        serde_json::to_value(&advertisement.object.spec).unwrap(),
        json!({
            "advertisements": ["PodNetwork"],
            "frrConfigurationSelector": { "matchLabels": { "k8s.ovn.org/managed-internal-fabric": "bgp" } },
            "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
            "nodeSelector": {},
        })
    );
}

#[test]
fn every_network_that_asks_has_its_own_advertisement() {
    let mut world = three_nodes();
    add_network(&mut world, "blue", Some("Managed"));
    add_network(&mut world, "red", Some("Managed"));
    add_network(&mut world, "own", Some("Unmanaged"));
    add_network(&mut world, "tunnelled", None);
    let fabric = plan(&world, &for_tenants(), true);
    let names = ["cluster_udn_blue", "cluster_udn_red"].map(|network| Key::cluster(&name_of(network)));
    let wanted: BTreeSet<&Key> = names.iter().collect();
    assert_eq!(fabric.advertisements.keys().collect::<BTreeSet<_>>(), wanted);
    let neighbor = &base(&fabric)["spec"]["bgp"]["routers"][0]["neighbors"][0];
    assert_eq!(neighbor.get("toReceive"), None, "routes of each network come in with its advertisement");
    let blue = &world.cluster_networks[&Key::cluster("blue")];
    let mark = mark(blue, &for_tenants()).unwrap();
    let selector = &fabric.advertisements[&names[0]].object.spec.network_selectors[0];
    assert_eq!(
        serde_json::to_value(selector).unwrap(),
        json!({
            "networkSelectionType": "ClusterUserDefinedNetworks",
            "clusterUserDefinedNetworkSelector": { "networkSelector": { "matchLabels": { MARK: mark } } },
        })
    );
    for name in ["own", "tunnelled"] {
        assert_eq!(super::mark(&world.cluster_networks[&Key::cluster(name)], &for_tenants()), None);
    }
}

#[test]
fn names_of_any_length_have_marks_that_are_labels() {
    let mut world = World::default();
    let long = "n".repeat(253);
    add_network(&mut world, &long, Some("Managed"));
    let mark = mark(&world.cluster_networks[&Key::cluster(&long)], &settings()).unwrap();
    assert!(mark.len() <= 63 && mark.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{mark}");
    assert!(name_of(&format!("cluster_udn_{long}")).len() <= 63);
}

#[test]
fn nobody_asks_and_nothing_is_made() {
    let mut world = three_nodes();
    add_network(&mut world, "blue", Some("Unmanaged"));
    assert_eq!(plan(&world, &for_tenants(), true), Fabric::default());
    add_network(&mut world, "blue", Some("Managed"));
    let mut without = for_tenants();
    without.managed.topology = None;
    assert_eq!(plan(&world, &without, true), Fabric::default(), "nobody said who speaks with whom");
    assert_eq!(mark(&world.cluster_networks[&Key::cluster("blue")], &without), None);
}

#[test]
fn one_node_or_none_is_a_mesh() {
    let mut world = World::default();
    let fabric = plan(&world, &settings(), true);
    assert_eq!(peers(&fabric), [] as [&str; 0]);
    assert_eq!(base(&fabric)["spec"]["bgp"]["routers"][0]["asn"], 64514);
    add_node(&mut world, "a", &["172.18.0.2"]);
    assert_eq!(peers(&plan(&world, &settings(), true)), ["172.18.0.2"]);
}

#[test]
fn what_is_recorded_is_what_is_wanted_and_leftovers_go() {
    let mut world = three_nodes();
    add_network(&mut world, "blue", Some("Managed"));
    let fabric = plan(&world, &settings(), true);
    assert!(fabric.record(&mut world));
    assert!(!fabric.record(&mut world), "nothing is left to do");
    assert_eq!(plan(&world, &settings(), true), fabric);

    // Somebody edits, removes a label, and leaves something of the same name without our mark.
    let key = fabric.configurations.keys().next().unwrap().clone();
    let foreign = Key::cluster("ovnk-managed-theirs");
    let edited = Arc::make_mut(world.frr_configurations.get_mut(&key).unwrap());
    edited.spec.bgp.routers.clear();
    edited.metadata.labels = Some([("team".to_owned(), "x".to_owned())].into());
    world.advertisements.insert(foreign.clone(), Arc::new(RouteAdvertisements::default()));
    assert!(fabric.record(&mut world));
    assert_eq!(world.frr_configurations[&key].spec, fabric.configurations[&key].object.spec);
    assert_eq!(world.frr_configurations[&key].metadata.labels.as_ref().unwrap().len(), 2, "theirs stays");
    assert!(world.advertisements.contains_key(&foreign));

    // Nobody asks any more.
    world.cluster_networks.clear();
    assert!(plan(&world, &for_tenants(), true).record(&mut world));
    assert!(world.frr_configurations.is_empty() && world.advertisements.len() == 1);
}

#[test]
fn what_is_not_known_stays() {
    let mut world = three_nodes();
    add_network(&mut world, "blue", Some("Managed"));
    let fabric = plan(&world, &for_tenants(), true);
    fabric.record(&mut world);
    let definition = Arc::make_mut(world.cluster_networks.get_mut(&Key::cluster("blue")).unwrap());
    let (field, reason) = ("spec".to_owned(), "is of a later version".to_owned());
    definition.network = Err(network::FieldError { field, reason });
    let kept = plan(&world, &for_tenants(), true);
    assert!(!kept.record(&mut world), "of a definition that cannot be read, all stays");
    world.cluster_networks.clear();
    assert!(!plan(&world, &for_tenants(), false).record(&mut world), "which networks there are is not known");
    assert!(plan(&world, &for_tenants(), true).record(&mut world));
}

proptest! {
    /// Whatever the order in which nodes and networks were heard of, and however often it is planned, it is the same;
    /// and it names every node once.
    #[test]
    fn the_same_world_has_the_same_fabric(
        numbers in proptest::collection::btree_set(1_u8..=250, 0..8),
        networks in proptest::collection::btree_map("[a-z]{1,8}", any::<Option<bool>>(), 0..5),
        default in any::<bool>(),
    ) {
        let settings = if default { settings() } else { for_tenants() };
        let build = |backwards: bool| {
            let mut world = World::default();
            let mut nodes: Vec<u8> = numbers.iter().copied().collect();
            let mut networks: Vec<(&String, &Option<bool>)> = networks.iter().collect();
            if backwards {
                nodes.reverse();
                networks.reverse();
            }
            for number in nodes {
                add_node(&mut world, &format!("n{number}"), &[&format!("172.18.0.{number}")]);
            }
            for (name, managed) in networks {
                let routing = managed.map(|managed| if managed { "Managed" } else { "Unmanaged" });
                add_network(&mut world, name, routing);
            }
            world
        };
        let fabric = plan(&build(false), &settings, true);
        prop_assert_eq!(&fabric, &plan(&build(true), &settings, true));
        let managed = networks.values().filter(|managed| **managed == Some(true)).count();
        prop_assert_eq!(fabric.advertisements.len(), managed + usize::from(default));
        prop_assert_eq!(fabric.configurations.len(), usize::from(!fabric.advertisements.is_empty()));
        if !fabric.configurations.is_empty() {
            let wanted: BTreeSet<String> = numbers.iter().map(|number| format!("172.18.0.{number}")).collect();
            prop_assert_eq!(peers(&fabric).into_iter().collect::<BTreeSet<_>>(), wanted);
        }
        let mut world = build(false);
        fabric.record(&mut world);
        prop_assert_eq!(&plan(&world, &settings, true), &fabric, "whoever begins anew comes to the same");
        prop_assert!(!fabric.record(&mut world));
    }
}
