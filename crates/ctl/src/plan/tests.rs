//! Plans of manifests, without a cluster: the scenarios, and what is done to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use underlay_api::annotations::{Annotation, PodNetworks};
use underlay_plan::node::networks;
use underlay_world::settings::Topology;
use underlay_world::{Definition, Key, Pod, Settings, World};

use super::alike;
use super::compare::{Action, Change};
use super::files::{Document, Origin};
use super::node::{NodeDifference, compare};
use super::outlook::{Case, Fate, FileObject, Outlook};
use super::settle::Settled;
use super::{files, from_files, kinds, manifest, outlook, screen, settle, text};

fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).join("world")
}

fn case_of(documents: Vec<Document>) -> Case {
    let known = kinds::all();
    let wishes = manifest::sort_out(documents, &known, "default").expect("manifests");
    from_files(wishes, Settings::default()).expect("objects")
}

fn tenants() -> Vec<Document> {
    files::read(&[scenario("tenants")]).expect("manifests")
}

fn written(value: Value) -> Document {
    Document { origin: Origin { file: "x.yaml".to_owned(), document: 1 }, value }
}

fn network(name: &str, cidr: &str) -> Value {
    json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork", "metadata": { "name": name },
        "spec": {
            "namespaceSelector": { "matchLabels": { "tenant": name } },
            "network": { "topology": "Layer3", "layer3": {
                "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": 24 }],
            } },
        },
    })
}

/// A cluster in which the tenants' files have been applied and everything is done.
fn tenants_at_rest() -> World {
    settle::settle(case_of(tenants()).after, &Settings::default()).world
}

/// What comes of one change in a cluster at rest.
fn after(change: impl FnOnce(&mut World)) -> Outlook {
    let before = tenants_at_rest();
    let mut after = before.clone();
    change(&mut after);
    Outlook::new(Case { before, after, ..Case::default() }, usize::MAX)
}

fn names(changes: &[Change], action: Action) -> Vec<&str> {
    changes.iter().filter(|change| change.action == action).map(|change| change.name.as_str()).collect()
}

fn on<'a>(outlook: &'a Outlook, node: &str) -> &'a [Change] {
    let node = outlook.nodes.iter().find(|one| one.node == node);
    &node.expect("something changes there").changes
}

#[test]
fn two_tenants_with_the_same_addresses_are_planned_on_every_node() {
    let outlook = Outlook::new(case_of(tenants()), usize::MAX);
    assert!(!outlook.is_refused(), "{:?}", outlook.objects);
    let made = names(&outlook.api, Action::Add);
    for name in ["NetworkAttachmentDefinition red-web/red", "ClusterUserDefinedNetwork blue", "Node node-c"] {
        assert!(made.contains(&name), "{name} in {made:?}");
    }
    assert_eq!(outlook.nodes.len(), 3);
    let here = on(&outlook, "node-a");
    let switch = here.iter().find(|change| change.name == "Logical_Switch cluster_udn_red_node-a");
    let switch = switch.expect("a switch");
    assert_eq!((switch.layer, switch.action), ("northbound", Action::Add));
    assert_eq!(switch.why, ["ClusterUserDefinedNetwork red", "Node node-a"]);
    let pod = |name: &str, attachment: &str| {
        let change = here.iter().find(|change| change.name == name).expect(name);
        change.after[attachment].clone()
    };
    assert_eq!(pod("Pod red-web/shop", "red-web/red"), pod("Pod blue/shop", "blue/blue"));
    let layers: Vec<&str> = outlook.nodes[0].counts.keys().copied().collect();
    assert_eq!(layers, ["filter", "flows", "host", "northbound", "pods", "southbound", "switch"]);
}

#[test]
fn a_cluster_at_rest_stays_as_it_is() {
    let outlook = after(|_| {});
    assert_eq!((outlook.api.len(), outlook.on_nodes()), (0, 0), "{:?}", outlook.api);
    assert!(screen::text(&outlook).contains("nothing would change"));
    assert_eq!(text::diff(&outlook), "");
}

#[test]
fn one_more_network_is_all_that_changes() {
    let known = kinds::all();
    let outlook = after(|world| {
        for object in [
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "green", "labels": {
                "tenant": "green", "k8s.ovn.org/primary-user-defined-network": "",
            } } }),
            network("green", "10.201.0.0/16"),
        ] {
            let wishes = manifest::sort_out(vec![written(object)], &known, "").expect("manifests");
            let wish = &wishes.objects[0];
            wish.known.enter(world, wish.value.clone()).expect("an object");
        }
    });
    assert_eq!(
        names(&outlook.api, Action::Add),
        ["ClusterUserDefinedNetwork green", "NetworkAttachmentDefinition green/green"]
    );
    assert_eq!(names(&outlook.api, Action::Change), ["Node node-a", "Node node-b", "Node node-c"]);
    let part = outlook.api.iter().find(|change| change.name == "Node node-b").expect("its part");
    assert_eq!(json!(part.after), json!({ "subnets of cluster_udn_green": ["10.201.1.0/24"] }));
    let gone: Vec<&str> =
        outlook.nodes.iter().flat_map(|node| names(&node.changes, Action::Remove)).collect();
    assert_eq!(gone, [""; 0], "nothing goes");
    let diff = text::diff(&outlook);
    assert!(diff.contains("+     subnets of cluster_udn_green: 10.201.1.0/24"), "{diff}");
    assert!(diff.contains("@@ node node-c: northbound @@"), "{diff}");
}

#[test]
fn a_network_that_goes_takes_everything_with_it() {
    let known = kinds::all();
    let delete = |world: &mut World| {
        let kind = known.iter().find(|known| known.kind == "ClusterUserDefinedNetwork").expect("a kind");
        kind.leave(world, &Key::cluster("red"));
    };
    let outlook = after(delete);
    let gone = names(&outlook.api, Action::Remove);
    assert_eq!(
        gone,
        [
            "ClusterUserDefinedNetwork red",
            "NetworkAttachmentDefinition red-db/red",
            "NetworkAttachmentDefinition red-web/red",
        ]
    );
    assert!(names(on(&outlook, "node-c"), Action::Remove).contains(&"Logical_Switch cluster_udn_red_node-c"));

    // As long as a pod uses it, it stays and says so.
    let outlook = after(|world| {
        let networks =
            r#"{"red-web/red":{"ip_addresses":["10.200.0.3/24"],"mac_address":"0a:58:0a:c8:00:03"}}"#;
        let key = Key::new("red-web", "shop");
        let mut pod = Pod::clone(&world.pods[&key]);
        pod.networks = Some(PodNetworks::decode(networks).expect("networks"));
        world.pods.insert(key.clone(), Arc::new(pod));
        let networks = vec![("red-web/red".to_owned(), vec!["10.200.0.3".parse().expect("an address")])];
        let attached = underlay_world::Attached::To { uid: "red-web-shop".to_owned(), networks };
        world.attached.insert(key, Arc::new(attached));
        delete(world);
    });
    assert_eq!(names(&outlook.api, Action::Remove), ["NetworkAttachmentDefinition red-db/red"]);
    assert!(outlook.is_refused());
    assert!(outlook.others[0].said[0].contains("red-web/shop"), "{:?}", outlook.others);
}

#[test]
fn what_cannot_be_is_said_of_its_object() {
    let mut documents = tenants();
    documents.push(written(network("yellow", "10.128.0.0/16")));
    let outlook = Outlook::new(case_of(documents), 0);
    let judged = outlook.objects.iter().find(|judged| judged.object.name == "yellow").expect("the object");
    assert!(judged.refused && outlook.is_refused());
    assert!(judged.said[0].contains("overlaps cluster subnet"), "{:?}", judged.said);
    assert!(judged.said[0].contains("spec.network.layer3.subnets[0]"), "{:?}", judged.said);
}

#[test]
fn what_the_api_server_would_not_take_does_not_count() {
    let mut bad = network("yellow", "10.201.0.0/16");
    bad["spec"]["network"]["layer3"]["subnets"] = json!([{ "cidr": "10.201.0.0/16", "hostSubnet": 12 }]);
    let outlook = Outlook::new(case_of(vec![written(bad)]), 0);
    let judged = &outlook.objects[0];
    assert!(judged.refused, "{judged:?}");
    assert!(
        judged.said[0].starts_with("the API server would not take it: spec.network.layer3"),
        "{judged:?}"
    );
    assert_eq!(outlook.api, [], "it would never be stored");
}

#[test]
fn without_nodes_only_the_cluster_is_planned() {
    let outlook = Outlook::new(case_of(vec![written(network("blue", "10.200.0.0/16"))]), 0);
    let note = "no Node among the files: only what the cluster manager would write is shown";
    assert!(outlook.notes.contains(&note.to_owned()), "{:?}", outlook.notes);
    assert_eq!(outlook.nodes, []);
    assert_eq!(names(&outlook.api, Action::Add), ["ClusterUserDefinedNetwork blue"]);
}

#[test]
fn an_advertisement_comes_down_to_lines_of_frr() {
    let documents = files::read(&[scenario("first-route")]).expect("manifests");
    let outlook = Outlook::new(case_of(documents), usize::MAX);
    let lines = on(&outlook, "node-a");
    let told =
        lines.iter().find(|change| change.layer == "frr" && change.name.contains("network 10.128.0.0/23"));
    let told = told.expect("the node's own subnet");
    assert!(told.why.iter().any(|why| why.starts_with("FRRConfiguration frr-k8s-system/")), "{told:?}");
    let waiting = outlook.nodes[0].waiting.as_deref().expect("nothing is known of its switch");
    assert!(waiting.starts_with("the name of the node's chassis"), "{waiting}");
}

#[test]
fn the_advertisement_of_a_tenants_network_is_shown_with_all_that_follows() {
    let known = kinds::all();
    let outlook = after(|world| {
        for object in [
            json!({ "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration",
                    "metadata": { "namespace": "frr-k8s-system", "name": "peers" },
                    "spec": { "bgp": { "routers": [{ "asn": 64512, "neighbors": [
                        { "address": "172.18.0.254", "asn": 64513 },
                    ] }] } } }),
            json!({ "apiVersion": "k8s.ovn.org/v1", "kind": "RouteAdvertisements", "metadata": { "name": "blue" },
                    "spec": {
                        "networkSelectors": [{
                            "networkSelectionType": "ClusterUserDefinedNetworks",
                            "clusterUserDefinedNetworkSelector": { "networkSelector": { "matchLabels": {
                                "k8s.ovn.org/metadata.name": "blue",
                            } } },
                        }],
                        "nodeSelector": {}, "frrConfigurationSelector": {}, "advertisements": ["PodNetwork"],
                    } }),
        ] {
            let wishes = manifest::sort_out(vec![written(object)], &known, "").expect("manifests");
            let wish = &wishes.objects[0];
            wish.known.enter(world, wish.value.clone()).expect("an object");
        }
    });
    let generated = outlook.api.iter().filter(|change| change.name.contains("/ovnk-generated-"));
    let told: Vec<&Change> = generated.filter(|change| change.action == Action::Add).collect();
    assert_eq!(told.len(), 3, "one a node: {:?}", outlook.api);
    assert!(told.iter().all(|change| change.after["prefixes"][0].is_string()), "{told:?}");
    let nad = outlook.api.iter().find(|change| change.name.starts_with("NetworkAttachmentDefinition"));
    assert_eq!(
        nad.expect("blue's").after["k8s.ovn.org/route-advertisements"],
        json!(r#"["blue"]"#),
        "{:?}",
        outlook.api
    );
    for node in ["node-a", "node-b", "node-c"] {
        let layers: BTreeSet<&str> = on(&outlook, node).iter().map(|change| change.layer).collect();
        assert!(layers.contains("frr"), "{node}: {layers:?}");
    }
}

#[test]
fn tables_tell_what_is_refused_and_how_much_changes() {
    let mut case = case_of(tenants());
    let object = case.objects.iter_mut().find(|object| object.object.name == "red").expect("the object");
    *object = FileObject { fate: Fate::Changed, broken_rules: vec!["spec: no".to_owned()], ..object.clone() };
    let shown = screen::text(&Outlook::new(case, 30));
    for text in
        ["1 object is refused", "the API server would not take it: spec: no", "Node: 3 new", "node-b  +"]
    {
        assert!(shown.contains(text), "{text:?} in {shown}");
    }
}

/// Something that is done to a world.
type Edit = Box<dyn Fn(&mut World)>;

/// Changes of many kinds, each with a name.
fn changes() -> Vec<(&'static str, Edit)> {
    let entering = |object: Value| -> Edit {
        Box::new(move |world: &mut World| {
            let known = kinds::all();
            let wishes = manifest::sort_out(vec![written(object.clone())], &known, "").expect("manifests");
            let wish = &wishes.objects[0];
            wish.known.enter(world, wish.value.clone()).expect("an object");
        })
    };
    let pod = |namespace: &str, node: &str| {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "new", "namespace": namespace, "uid": "n" },
                "spec": { "nodeName": node, "containers": [] } })
    };
    let service = |namespace: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "new", "namespace": namespace },
                "spec": { "clusterIPs": ["172.16.1.9"], "ports": [{ "port": 80 }] } })
    };
    let labelled = |labels: Value| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "blue", "labels": labels } });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-d", "uid": "d", "annotations": {
        "k8s.ovn.org/node-chassis-id": "d", "k8s.ovn.org/node-encap-ips": "[\"172.18.0.9\"]",
    } } });
    vec![
        ("a network nobody has", entering(network("green", "10.201.0.0/16"))),
        ("a pod of a tenant's", entering(pod("red-web", "node-c"))),
        ("a pod of the default network", entering(pod("default", "node-b"))),
        ("a service of a tenant's", entering(service("blue"))),
        ("a service for all", entering(service("default"))),
        ("a namespace that leaves its network", entering(labelled(json!({ "tenant": "red" })))),
        (
            "a namespace that goes to another network",
            entering(labelled(json!({ "tenant": "red", "k8s.ovn.org/primary-user-defined-network": "" }))),
        ),
        ("one more node", entering(node)),
        ("a node less", Box::new(|world| _ = world.nodes.remove(&Key::cluster("node-b")))),
    ]
}

/// What differs on every node, with or without leaving out what is alike.
fn nodes_planned(before: &Settled, after: &Settled, leave_out: bool) -> Vec<NodeDifference> {
    let (settings, told) = (Settings::default(), BTreeMap::new());
    let sides = [before, after].map(|side| (side, networks::find(&side.world, &settings)));
    let [before, after] = &sides;
    let mut alike = alike::networks((&before.0.world, &before.1), (&after.0.world, &after.1));
    if !leave_out {
        alike.clear();
    }
    let names: BTreeSet<&Key> = before.0.world.nodes.keys().chain(after.0.world.nodes.keys()).collect();
    let one = |key: &Key| {
        let plan = |side| outlook::node_plan(&key.name, side, &told, &settings, &alike);
        compare(&key.name, &plan(before), plan(after), usize::MAX)
    };
    names.into_iter().map(one).collect()
}

#[test]
fn what_is_left_out_as_alike_is_alike() {
    let settings = Settings::default();
    let before = settle::settle(tenants_at_rest(), &settings);
    for (name, change) in changes() {
        let mut world = tenants_at_rest();
        change(&mut world);
        let after = settle::settle(world, &settings);
        let whole = nodes_planned(&before, &after, false);
        assert_eq!(nodes_planned(&before, &after, true), whole, "{name}");
    }
}

#[test]
fn what_the_mesh_is_made_of_is_shown() {
    let mut settings = Settings::default();
    settings.managed.topology = Some(Topology::FullMesh);
    let before = settle::settle(tenants_at_rest(), &settings);
    let mut blue = network("mesh", "10.77.0.0/16");
    blue["spec"]["network"]["transport"] = json!("NoOverlay");
    blue["spec"]["network"]["noOverlay"] = json!({ "outboundSNAT": "Enabled", "routing": "Managed" });
    let blue = Definition::of_cluster(serde_json::from_value(blue).unwrap());
    let mut after = before.world.clone();
    after.cluster_networks.insert(Key::cluster("mesh"), Arc::new(blue));
    let case = Case { before: before.world, after, settings, ..Case::default() };
    let outlook = Outlook::new(case, usize::MAX);
    let made = |kind: &str| {
        let begin = format!("{kind} ");
        let named =
            |change: &&Change| change.name.starts_with(&begin) && change.name.contains("ovnk-managed-");
        outlook.api.iter().filter(named).collect::<Vec<_>>()
    };
    let [advertisement] = made("RouteAdvertisements")[..] else { panic!("{:?}", outlook.api) };
    assert_eq!(advertisement.after["spec"]["advertisements"], json!(["PodNetwork"]));
    assert_eq!(advertisement.why, ["ClusterUserDefinedNetwork mesh"]);
    assert_eq!(made("FRRConfiguration").len(), 1);
}
