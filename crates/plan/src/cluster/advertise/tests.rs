mod kept;
mod overlap;
mod properties;
mod tenants;
mod vrfs;

use serde_json::{Value, json};
use underlay_api::ClusterUserDefinedNetwork;
use underlay_api::annotations::PrimaryAddresses;
use underlay_world::Kind;
use underlay_world::kind::key_of;

use super::*;

/// Two nodes with subnets and addresses, a source for all nodes, and an advertisement of the default network.
#[derive(Clone)]
struct Scene {
    nodes: Vec<Value>,
    sources: Vec<Value>,
    networks: Vec<Value>,
    spec: Value,
    /// Advertisements beside that one, by name, in the order in which they were made after it.
    others: Vec<(&'static str, Value)>,
    settings: Settings,
}

/// A plan with what is recorded alone.
fn plan(world: &World) -> Advertised {
    super::plan(world, &Settings::default(), &Numbers::default())
}

impl Scene {
    fn new() -> Self {
        Self {
            nodes: vec![node("a", 1), node("b", 2)],
            sources: vec![source("peers", &json!([router(&json!([peer("192.0.2.1")]))]))],
            networks: vec![],
            spec: json!({
                "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
                "nodeSelector": {},
                "frrConfigurationSelector": {},
                "advertisements": ["PodNetwork"],
            }),
            others: vec![],
            settings: Settings::default(),
        }
    }

    /// With these networks of tenants, which are selected instead of the default one.
    fn of_tenants(networks: &[(&str, Value)]) -> Self {
        let mut scene = Self::new().with("networkSelectors", tenants(&json!({})));
        for (place, (name, network)) in networks.iter().enumerate() {
            scene.networks.push(cluster_network(name, place + 1, network));
        }
        for (number, node) in scene.nodes.iter_mut().enumerate() {
            let subnets: BTreeMap<String, Vec<String>> = networks
                .iter()
                .filter(|(_, network)| network["topology"] == "Layer3")
                .map(|(name, network)| (format!("cluster_udn_{name}"), part(network, number + 1)))
                .chain([("default".to_owned(), vec![format!("10.244.{}.0/24", number + 1)])])
                .collect();
            node["metadata"]["annotations"][NodeSubnets::KEY] = json!(json!(subnets).to_string());
        }
        scene
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }

    fn routers(mut self, routers: &Value) -> Self {
        self.sources = vec![source("peers", routers)];
        self
    }

    fn world(&self) -> World {
        let mut world = World::default();
        for object in &self.nodes {
            let node = Node::read(&serde_json::from_value(object.clone()).unwrap());
            world.nodes.insert(Key::cluster(&node.name), Arc::new(node));
        }
        for object in &self.sources {
            put(&mut world, serde_json::from_value(object.clone()).unwrap());
        }
        for object in &self.networks {
            let object: ClusterUserDefinedNetwork = serde_json::from_value(object.clone()).unwrap();
            world.cluster_networks.insert(key_of(&object.metadata), object.read().unwrap());
        }
        let all = [("ra", self.spec.clone())].into_iter().chain(self.others.clone());
        for (place, (name, spec)) in all.enumerate() {
            let created = format!("2026-01-01T00:00:{place:02}Z");
            let object = json!({ "metadata": { "name": name, "creationTimestamp": created }, "spec": spec });
            let advertisements: RouteAdvertisements = serde_json::from_value(object).unwrap();
            world.advertisements.insert(Key::cluster(name), Arc::new(advertisements));
        }
        world
    }

    fn plan(&self) -> Advertised {
        super::plan(&self.world(), &self.settings, &Numbers::default())
    }

    /// What is said, and how many objects there are.
    #[track_caller]
    fn says(&self, want: &str) {
        self.says_of("ra", want);
    }

    #[track_caller]
    fn says_of(&self, name: &str, want: &str) {
        assert_eq!(self.plan().verdicts[name].message(name), want);
    }

    /// The configuration for a node, as JSON.
    fn spec_for(&self, node: &str) -> Value {
        let plan = self.plan();
        let origin = format!("ra/peers/{node}");
        let fits = |generated: &&Generated| {
            generated.object.metadata.annotations.as_ref().unwrap()[GeneratedFrom::KEY] == origin
        };
        let found = plan.configurations.values().find(fits);
        let found = found.unwrap_or_else(|| panic!("nothing for {node}: {:?}", plan.verdicts));
        serde_json::to_value(&found.object.spec).unwrap()
    }
}

/// Selects networks of tenants by their labels.
fn tenants(labels: &Value) -> Value {
    json!([{
        "networkSelectionType": "ClusterUserDefinedNetworks",
        "clusterUserDefinedNetworkSelector": { "networkSelector": labels },
    }])
}

fn layer3(cidr: &str) -> Value {
    json!({ "topology": "Layer3", "layer3": { "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": 24 }] } })
}

fn layer2(cidr: &str) -> Value {
    json!({ "topology": "Layer2", "layer2": { "role": "Primary", "subnets": [cidr] } })
}

/// The part of a node, of a range that begins like `10.1.0.0`.
fn part(network: &Value, number: usize) -> Vec<String> {
    let range = network["layer3"]["subnets"][0]["cidr"].as_str().unwrap();
    vec![format!("{}{number}.0/24", range.split_once("0.0/").unwrap().0)]
}

/// A ClusterUserDefinedNetwork with its number on record, labelled with its name.
fn cluster_network(name: &str, number: usize, network: &Value) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": name,
            "labels": { "network": name },
            "annotations": { "k8s.ovn.org/network-id": number.to_string() },
        },
        "spec": { "namespaceSelector": {}, "network": network },
    })
}

fn put(world: &mut World, object: FRRConfiguration) {
    let key = key_of(&object.metadata);
    world.frr_configurations.insert(key, Arc::new(object));
}

fn node(name: &str, number: u8) -> Value {
    json!({ "metadata": {
        "name": name,
        "labels": { "kubernetes.io/hostname": name },
        "annotations": {
            (NodeSubnets::KEY): format!(r#"{{"default":["10.244.{number}.0/24","fd00:{number}::/64"]}}"#),
            (PrimaryAddresses::KEY): format!(r#"{{"ipv4":"172.18.0.{number}/16","ipv6":"fc00::{number}/64"}}"#),
        },
    } })
}

fn source(name: &str, routers: &Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "frr", "labels": { "for": name } }, "spec": { "bgp": { "routers": routers } } })
}

fn router(neighbors: &Value) -> Value {
    json!({ "asn": 64512, "neighbors": neighbors })
}

fn peer(address: &str) -> Value {
    json!({ "address": address, "asn": 64512 })
}

const FINE: &str =
    "ovn-kubernetes cluster-manager validated the resource and requested the necessary configuration changes";

#[test]
fn every_node_tells_its_own_prefixes() {
    let scene = Scene::new();
    scene.says(FINE);
    assert_eq!(scene.plan().configurations.len(), 2);
    let raw = "router bgp 64512\n address-family ipv4 unicast\n  neighbor 192.0.2.1 allowas-in origin\n \
               exit-address-family\nexit\n!\n";
    let want = json!({
        "bgp": { "routers": [{
            "asn": 64512,
            "prefixes": ["10.244.2.0/24", "fd00:2::/64"],
            "neighbors": [{
                "address": "192.0.2.1",
                "asn": 64512,
                "toAdvertise": { "allowed": { "mode": "filtered", "prefixes": ["10.244.2.0/24"] } },
                "addressFamilies": ["unicast"],
            }],
        }] },
        "nodeSelector": { "matchLabels": { "kubernetes.io/hostname": "b" } },
        "raw": { "priority": 10, "rawConfig": raw },
    });
    assert_eq!(scene.spec_for("b"), want);
}

#[test]
fn what_is_generated_can_be_found_again() {
    let plan = Scene::new().plan();
    let (key, generated) = plan.configurations.first_key_value().unwrap();
    let metadata = &generated.object.metadata;
    assert_eq!(key.namespace, "frr");
    assert_eq!(metadata.name.as_ref(), Some(&key.name));
    let hash = key.name.strip_prefix(PREFIX).unwrap();
    assert!(hash.len() == 10 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()), "{hash}");
    assert_eq!(metadata.labels.as_ref().unwrap()[LABEL], "ra");
    let origin = &metadata.annotations.as_ref().unwrap()[GeneratedFrom::KEY];
    assert!(["ra/peers/a", "ra/peers/b"].contains(&origin.as_str()));
    assert!(is_generated(key, &generated.object));
    let why: Vec<String> = generated.why.objects().map(ToString::to_string).collect();
    assert_eq!(why.len(), 3);
    assert!(why.contains(&"RouteAdvertisements ra".to_owned()), "{why:?}");
    assert!(why.contains(&"FRRConfiguration frr/peers".to_owned()), "{why:?}");
}

#[test]
fn sources_of_one_name_in_two_namespaces_stay_apart() {
    let mut scene = Scene::new();
    let mut other = scene.sources[0].clone();
    other["metadata"]["namespace"] = "other".into();
    scene.sources.push(other);
    assert_eq!(scene.plan().configurations.len(), 4);
    let names: BTreeSet<String> = scene.plan().configurations.into_keys().map(|key| key.name).collect();
    assert_eq!(names.len(), 4);
}

#[test]
fn the_request_itself_is_judged_first() {
    let scene = || Scene::new();
    scene()
        .with("advertisements", json!(["PodNetwork", "EgressIP"]))
        .with("targetVRF", json!("auto"))
        .says("configuration error: advertising EgressIP not supported with TargetVRF set to 'auto'");
    scene().with("advertisements", json!([])).says("configuration error: no advertisements");
    scene()
        .with("advertisements", json!(["Later"]))
        .says("configuration error: unsupported advertisement Later");
    scene()
        .with("networkSelectors", json!([{ "networkSelectionType": "NetworkAttachmentDefinitions" }]))
        .says("configuration error: unsupported network selection type NetworkAttachmentDefinitions");
    scene()
        .with("networkSelectors", json!([{ "networkSelectionType": "ClusterUserDefinedNetworks" }]))
        .says("configuration pending: no networks selected");
    scene().with("networkSelectors", json!([])).says("configuration pending: no networks selected");
    scene()
        .with("nodeSelector", json!({ "matchLabels": { "a": "b" } }))
        .says("configuration error: node selector has to select all nodes if pod network is advertised");
    let mut nobody = scene();
    nobody.nodes.clear();
    nobody.says("configuration pending: no nodes selected");
    scene()
        .with("frrConfigurationSelector", json!({ "matchLabels": { "for": "nobody" } }))
        .says("configuration pending: no FRRConfigurations selected");
}

#[test]
fn a_name_too_long_for_a_label_is_refused() {
    let mut world = Scene::new().world();
    let advertisements = world.advertisements.pop_first().unwrap().1;
    let name = "x".repeat(64);
    world.advertisements.insert(Key::cluster(&name), advertisements);
    let message = plan(&world).verdicts[&name].message(&name);
    assert_eq!(
        message,
        "configuration error: the name has 64 characters and labels hold 63: use a shorter one"
    );
}

#[test]
fn selectors_that_make_no_sense_are_refused() {
    let odd = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    let scene = Scene::new().with("frrConfigurationSelector", odd.clone());
    let message = scene.plan().verdicts["ra"].message("ra");
    assert!(message.starts_with("configuration error: frrConfigurationSelector: "), "{message}");
    let mut scene = Scene::new();
    scene.sources[0]["spec"]["nodeSelector"] = odd;
    let message = scene.plan().verdicts["ra"].message("ra");
    assert!(
        message.starts_with("configuration error: FRRConfiguration frr/peers nodeSelector: "),
        "{message}"
    );
}

#[test]
fn neighbors_that_cannot_be_are_refused() {
    Scene::new().routers(&json!([router(&json!([{ "asn": 1 }]))])).says(
        "configuration error: neighbor with neither address nor interface on FRRConfiguration frr/peers",
    );
    let dual = json!({ "address": "192.0.2.1", "asn": 1, "dualStackAddressFamily": true });
    Scene::new().routers(&json!([router(&json!([dual]))])).says(
        "configuration error: DualStackAddressFamily==true not supported, seen on FRRConfiguration frr/peers \
         neighbor 192.0.2.1",
    );
    Scene::new().routers(&json!([router(&json!([peer("router.example")]))])).says(
        "configuration error: neighbor router.example on FRRConfiguration frr/peers has an address that is no IP \
         address",
    );
}

#[test]
fn a_source_without_a_router_that_fits_is_refused() {
    let none = "configuration error: FRRConfiguration \"peers\" selected for node \"a\" has no VRF matching the \
                RouteAdvertisements target VRF or any selected network";
    Scene::new().with("targetVRF", json!("blue")).says(none);
    Scene::new().routers(&json!([])).says(none);
    let mut v4 = Scene::new().routers(&json!([router(&json!([peer("2001:db8::1")]))]));
    v4.nodes = vec![node("a", 1)];
    v4.nodes[0]["metadata"]["annotations"][NodeSubnets::KEY] = json!(r#"{"default":["10.244.1.0/24"]}"#);
    v4.says(none);
}

#[test]
fn default_is_a_name_of_the_default_vrf_and_auto_finds_it() {
    let plain = Scene::new().spec_for("a");
    for target in ["", "default", "auto"] {
        let scene = Scene::new().with("targetVRF", json!(target));
        scene.says(FINE);
        assert_eq!(scene.spec_for("a"), plain, "{target:?}");
    }
}

#[test]
fn another_vrf_and_the_default_one_take_over_each_others_routes() {
    let mut blue = router(&json!([peer("192.0.2.1")]));
    blue["vrf"] = "blue".into();
    blue["id"] = "192.0.2.9".into();
    let scene = Scene::new().routers(&json!([router(&json!([peer("192.0.2.7")])), blue]));
    let spec = scene.with("targetVRF", json!("blue")).spec_for("a");
    let routers = &spec["bgp"]["routers"];
    assert_eq!(routers.as_array().unwrap().len(), 2);
    assert_eq!(routers[0]["vrf"], "blue");
    assert_eq!(routers[0]["imports"], json!([{ "vrf": "default" }]));
    assert_eq!(routers[1], json!({ "asn": 64512, "id": "192.0.2.9", "imports": [{ "vrf": "blue" }] }));
    assert!(spec["raw"]["rawConfig"].as_str().unwrap().starts_with("router bgp 64512 vrf blue\n"));
}

#[test]
fn neighbors_hear_their_family_and_the_unnumbered_both() {
    let unnumbered = json!({ "interface": "eth1", "asn": 64512 });
    let scene =
        Scene::new().routers(&json!([router(&json!([peer("2001:db8::1"), unnumbered, peer("192.0.2.1")]))]));
    let spec = scene.spec_for("a");
    let heard = |place: usize| {
        spec["bgp"]["routers"][0]["neighbors"][place]["toAdvertise"]["allowed"]["prefixes"].clone()
    };
    assert_eq!(heard(0), json!(["fd00:1::/64"]));
    assert_eq!(heard(1), json!(["10.244.1.0/24", "fd00:1::/64"]));
    assert_eq!(heard(2), json!(["10.244.1.0/24"]));
    let raw = "router bgp 64512\n address-family ipv4 unicast\n  neighbor 192.0.2.1 allowas-in origin\n  \
               neighbor eth1 allowas-in origin\n exit-address-family\n address-family ipv6 unicast\n  \
               neighbor 2001:db8::1 allowas-in origin\n  neighbor eth1 allowas-in origin\n \
               exit-address-family\nexit\n!\n";
    assert_eq!(spec["raw"]["rawConfig"], raw);
}

#[test]
fn a_node_is_no_peer_of_itself_however_its_address_is_written() {
    let mesh = json!([router(&json!([peer("172.18.0.1"), peer("fc00:0:0::1"), peer("172.18.0.2")]))]);
    let spec = Scene::new().routers(&mesh).spec_for("a");
    let neighbors = spec["bgp"]["routers"][0]["neighbors"].as_array().unwrap();
    assert_eq!(neighbors.len(), 1);
    assert_eq!(neighbors[0]["address"], "172.18.0.2");
}

#[test]
fn a_mesh_of_one_is_a_mesh() {
    let mut alone = Scene::new().routers(&json!([router(&json!([peer("172.18.0.1")]))]));
    alone.nodes.pop();
    alone.says(FINE);
    assert_eq!(alone.plan().configurations, BTreeMap::new());
}

#[test]
fn what_else_the_source_says_stays() {
    let mut neighbor = peer("192.0.2.1");
    neighbor["bfdProfile"] = "fast".into();
    neighbor["toReceive"] = json!({ "allowed": { "mode": "all" } });
    neighbor["toAdvertise"] =
        json!({ "allowed": { "mode": "all" }, "withCommunity": [{ "community": "1:1", "prefixes": ["x"] }] });
    let mut scene = Scene::new().routers(&json!([router(&json!([neighbor]))]));
    scene.sources[0]["spec"]["bgp"]["bfdProfiles"] = json!([{ "name": "fast" }]);
    scene.sources[0]["spec"]["raw"] = json!({ "priority": 5, "rawConfig": "! theirs" });
    let spec = scene.spec_for("a");
    assert_eq!(spec["bgp"]["bfdProfiles"], json!([{ "name": "fast" }]));
    assert_eq!(spec["raw"]["priority"], 10, "theirs is in the source, which FRR hears too");
    let neighbor = &spec["bgp"]["routers"][0]["neighbors"][0];
    assert_eq!(neighbor["bfdProfile"], "fast");
    assert_eq!(neighbor["toReceive"]["allowed"]["mode"], "all");
    assert_eq!(
        neighbor["toAdvertise"],
        json!({ "allowed": { "mode": "filtered", "prefixes": ["10.244.1.0/24"] } })
    );
}

#[test]
fn nodes_that_nothing_is_for_are_named() {
    let mut scene = Scene::new();
    scene.sources[0]["spec"]["nodeSelector"] = json!({ "matchLabels": { "kubernetes.io/hostname": "a" } });
    scene.says(&format!("{FINE}; no selected FRRConfiguration is for node b"));
    assert_eq!(scene.plan().configurations.len(), 1);
    scene.with("targetVRF", json!("auto")).says(
        "configuration error: selected FRRConfigurations for node \"b\" don't match all selected networks with \
         target VRF 'auto'",
    );
}

#[test]
fn generated_configurations_are_selected_but_no_source() {
    let mut scene = Scene::new();
    scene.sources[0]["metadata"]["name"] = "ovnk-generated-0123456789".into();
    scene.says(&format!("{FINE}; no selected FRRConfiguration is for nodes a, b"));
    assert_eq!(scene.plan().configurations, BTreeMap::new());
}

#[test]
fn a_node_that_waits_keeps_its_part_and_holds_up_nobody() {
    let mut world = Scene::new().world();
    let before = plan(&world);
    for generated in before.configurations.values() {
        put(&mut world, generated.object.as_ref().clone());
    }
    let mut node = world.node("b").unwrap().as_ref().clone();
    node.subnets = NodeSubnets::default();
    node.problems = vec![format!("annotation {}: odd", NodeSubnets::KEY)];
    world.nodes.insert(Key::cluster("b"), Arc::new(node.clone()));
    let waits = plan(&world);
    assert_eq!(
        waits.verdicts["ra"].message("ra"),
        "configuration pending: will wait for subnet annotation to be set for node \"b\" and network \"default\": \
         annotation k8s.ovn.org/node-subnets: odd"
    );
    let objects = |plan: &Advertised| {
        let specs = plan.configurations.iter();
        specs.map(|(key, generated)| (key.clone(), generated.object.spec.clone())).collect::<Vec<_>>()
    };
    assert_eq!(objects(&waits), objects(&before));

    node.problems.clear();
    for name in ["b", "c", "d"] {
        let more = Node { name: name.to_owned(), ..node.clone() };
        world.nodes.insert(Key::cluster(name), Arc::new(more));
    }
    assert!(
        plan(&world).verdicts["ra"].message("ra").ends_with("network \"default\"; the same for nodes c, d")
    );
}

#[test]
fn a_node_without_addresses_waits() {
    let mut scene = Scene::new();
    scene.nodes[0]["metadata"]["annotations"].as_object_mut().unwrap().remove(PrimaryAddresses::KEY);
    scene.says("configuration pending: will wait for an address of node \"a\" to be known");
    scene.nodes[0]["status"] = json!({ "addresses": [{ "type": "InternalIP", "address": "172.18.0.1" }] });
    scene.says(FINE);
}
