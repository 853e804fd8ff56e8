mod properties;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use underlay_world::slice::{OURS, SOURCES};
use underlay_world::{AnyAttachment, AnySlice, Key, World};

use super::super::tests::server::{merge, put};
use super::{Step, plan, plan_within};

/// What an API server holds of endpoint slices and all that they depend on, by `<namespace>/<name>`.
#[derive(Debug, Clone, Default)]
struct Server {
    slices: BTreeMap<String, Value>,
    attachments: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    /// Namespaces on their way out.
    ending: Vec<String>,
    serial: u32,
}

fn metadata(key: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    json!({ "name": name, "namespace": namespace, "uid": format!("uid-{key}"), "resourceVersion": "1" })
}

/// An endpoint that is a pod, as the controller writes it.
fn endpoint(pod: &str, address: &str) -> Value {
    let (namespace, name) = pod.split_once('/').unwrap();
    json!({
        "addresses": [address],
        "conditions": { "ready": true, "serving": true, "terminating": false },
        "nodeName": "n1",
        "zone": "east",
        "hints": { "forZones": [{ "name": "east" }] },
        "targetRef": { "kind": "Pod", "name": name, "namespace": namespace, "uid": format!("uid-{pod}") },
    })
}

impl Server {
    /// A namespace's primary network with these subnets.
    fn network(&mut self, key: &str, network: &str, subnets: &str) {
        let config = json!({
            "cniVersion": "1.1.0", "type": "ovn-k8s-cni-overlay", "name": network, "netAttachDefName": key,
            "topology": "layer3", "role": "primary", "subnets": subnets,
        });
        let object = json!({ "metadata": metadata(key), "spec": { "config": config.to_string() } });
        self.attachments.insert(key.to_owned(), object);
    }

    /// A pod with these addresses by an attachment.
    fn pod(&mut self, key: &str, attachment: &str, addresses: &[&str]) {
        let mac = "0a:58:0a:0a:00:05";
        let networks = json!({
            "default": { "ip_addresses": ["10.244.0.5/24"], "mac_address": mac, "role": "infrastructure-locked" },
            attachment: { "ip_addresses": addresses, "mac_address": mac, "role": "primary" },
        });
        self.pod_with(key, &networks.to_string());
    }

    fn pod_with(&mut self, key: &str, networks: &str) {
        let mut metadata = metadata(key);
        metadata["annotations"] = json!({ "k8s.ovn.org/pod-networks": networks });
        self.pods.insert(key.to_owned(), json!({ "metadata": metadata }));
    }

    fn slice(&mut self, key: &str, manager: &str, address_type: &str, endpoints: Value) {
        let mut metadata = metadata(key);
        self.serial += 1;
        metadata["resourceVersion"] = self.serial.to_string().into();
        metadata["labels"] =
            json!({ "endpointslice.kubernetes.io/managed-by": manager, "kubernetes.io/service-name": "web" });
        let mut object = json!({ "metadata": metadata, "addressType": address_type });
        object["ports"] = json!([{ "name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http" }]);
        object["endpoints"] = endpoints;
        self.slices.insert(key.to_owned(), object);
    }

    /// A slice of the cluster's with these endpoints.
    fn source(&mut self, key: &str, address_type: &str, endpoints: Value) {
        self.slice(key, SOURCES[0], address_type, endpoints);
    }

    fn world(&self) -> World {
        let mut world = World::default();
        self.slices.values().for_each(|object| put::<AnySlice>(&mut world, object));
        self.attachments.values().for_each(|object| put::<AnyAttachment>(&mut world, object));
        self.pods.values().for_each(|object| put::<PartialObjectMeta<v1::Pod>>(&mut world, object));
        for name in &self.ending {
            let metadata = json!({ "name": name, "deletionTimestamp": "2026-01-01T00:00:00Z" });
            put::<v1::Namespace>(&mut world, &json!({ "metadata": metadata }));
        }
        world
    }

    fn take(&mut self, key: &Key, step: &Step) {
        let name = key.to_string();
        let uid = self.slices.get(&name).map(|slice| slice["metadata"]["uid"].clone());
        match step {
            Step::Create(object) => {
                let mut object = serde_json::to_value(object).unwrap();
                assert_eq!(object["metadata"]["name"], key.name.as_str());
                self.serial += 1;
                object["metadata"]["uid"] = format!("uid-{}", self.serial).into();
                assert!(self.slices.insert(name, object).is_none(), "{key} is there");
            }
            Step::Repair { uid: meant, patch } => {
                assert_eq!(uid, Some(json!(meant)));
                merge(self.slices.get_mut(&name).unwrap(), patch);
            }
            Step::Delete { uid: meant } => {
                assert_eq!(uid, Some(json!(meant)));
                self.slices.remove(&name);
            }
        }
    }

    /// Plans and carries out. Returns what was done, by name.
    fn turn(&mut self) -> BTreeMap<Key, Step> {
        let steps = plan(&self.world());
        for (key, step) in &steps {
            self.take(key, step);
        }
        steps
    }

    /// Slices of ours, by their source.
    fn ours(&self) -> BTreeMap<&str, &Value> {
        let ours =
            |slice: &&Value| slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == OURS;
        let ours = self.slices.values().filter(ours);
        ours.map(|slice| (slice["metadata"]["annotations"][super::SOURCE].as_str().unwrap(), slice)).collect()
    }

    /// Addresses of our slice with this source.
    fn addresses(&self, source: &str) -> Vec<String> {
        let endpoints = self.ours()[source]["endpoints"].as_array().cloned().unwrap_or_default();
        endpoints.iter().map(|endpoint| endpoint["addresses"][0].as_str().unwrap().to_owned()).collect()
    }
}

/// A tenant with both families, a service and two pods.
fn tenant() -> Server {
    let mut server = Server::default();
    server.network("red/net", "cluster_udn_red", "10.10.0.0/16/24,fd10::/48/64");
    server.pod("red/a", "red/net", &["10.10.0.5/24", "fd10::5/64"]);
    server.pod("red/b", "red/net", &["10.10.1.6/24", "fd10:0:0:1::6/64"]);
    let both = |one, two| json!([endpoint("red/a", one), endpoint("red/b", two)]);
    server.source("red/web-v4", "IPv4", both("10.244.0.5", "10.244.1.6"));
    server.source("red/web-v6", "IPv6", both("fd00::5", "fd00:0:0:1::6"));
    server
}

#[test]
fn a_slice_has_the_same_endpoints_at_their_addresses_in_the_network() {
    let mut server = tenant();
    assert_eq!(server.turn().len(), 2);
    assert_eq!(server.addresses("web-v4"), ["10.10.0.5", "10.10.1.6"]);
    assert_eq!(server.addresses("web-v6"), ["fd10::5", "fd10:0:0:1::6"]);
    let (ours, source) = (server.ours()["web-v4"], &server.slices["red/web-v4"]);
    let mut endpoint = source["endpoints"][0].clone();
    endpoint["addresses"] = json!(["10.10.0.5"]);
    assert_eq!(ours["endpoints"][0], endpoint, "all else is the same");
    assert_eq!((&ours["ports"], &ours["addressType"]), (&source["ports"], &source["addressType"]));
    let metadata = &ours["metadata"];
    let labels = json!({
        "endpointslice.kubernetes.io/managed-by": "endpointslice-mirror-controller.k8s.ovn.org",
        "k8s.ovn.org/service-name": "web",
        "k8s.ovn.org/source-endpointslice-version": "1",
    });
    assert_eq!(metadata["labels"], labels, "not the label that others go by");
    let annotations = json!({
        "k8s.ovn.org/endpointslice-network": "cluster_udn_red",
        "k8s.ovn.org/source-endpointslice": "web-v4",
    });
    assert_eq!(metadata["annotations"], annotations);
    let owner = json!([{
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "name": "web-v4",
        "uid": "uid-red/web-v4", "controller": true,
    }]);
    assert_eq!(metadata["ownerReferences"], owner, "it holds nothing up");
    assert_eq!(server.turn(), BTreeMap::new());
}

#[test]
fn who_is_not_in_the_network_is_left_out_until_it_is() {
    let mut server = tenant();
    let strange = |uid: &str| {
        let mut strange = endpoint("red/a", "10.244.0.5");
        strange["targetRef"]["uid"] = uid.into();
        strange
    };
    server.pod("blue/x", "red/net", &["10.10.9.9/24"]);
    server.pod_with("red/odd", "?");
    server.source(
        "red/web-v4",
        "IPv4",
        json!([
            endpoint("red/late", "10.244.0.8"),
            endpoint("blue/x", "10.244.0.9"),
            endpoint("red/odd", "10.244.0.7"),
            strange("uid-of-an-earlier-pod"),
        ]),
    );
    server.turn();
    assert_eq!(server.addresses("web-v4"), [] as [&str; 0]);
    server.pod("red/late", "red/net", &["10.10.0.8/24"]);
    server.turn();
    assert_eq!(server.addresses("web-v4"), ["10.10.0.8"]);
    server.pods.remove("red/late");
    server.turn();
    assert_eq!(server.addresses("web-v4"), [] as [&str; 0]);
}

#[test]
fn what_is_no_pod_stays_as_people_wrote_it() {
    let mut server = tenant();
    let theirs = json!({ "addresses": ["192.0.2.7"] });
    server.slice("red/outside", SOURCES[1], "IPv4", json!([theirs, endpoint("red/a", "10.244.0.5")]));
    server.turn();
    assert_eq!(server.addresses("outside"), ["192.0.2.7", "10.10.0.5"]);
}

#[test]
fn only_slices_of_the_clusters_controllers_in_a_network_of_their_family_have_a_twin() {
    let mut server = Server::default();
    server.network("red/net", "cluster_udn_red", "10.10.0.0/16/24");
    let one = |key| json!([endpoint(key, "10.244.0.5")]);
    server.source("red/v6", "IPv6", one("red/a"));
    server.source("red/names", "FQDN", json!([{ "addresses": ["example.com"] }]));
    server.slice("red/own", "me", "IPv4", one("red/a"));
    server.source("default/web", "IPv4", one("default/a"));
    assert_eq!(plan(&server.world()), BTreeMap::new());
}

#[test]
fn changes_are_followed_and_nothing_more_is_written() {
    let mut server = tenant();
    server.turn();
    server.pod("red/a", "red/net", &["10.10.0.9/24", "fd10::5/64"]);
    let steps = server.turn();
    let [(_, Step::Repair { patch, .. })] = &steps.iter().collect::<Vec<_>>()[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(patch["endpoints"][0]["addresses"], json!(["10.10.0.9"]));
    assert_eq!(patch["metadata"].as_object().unwrap().len(), 1, "{patch}");
    server.slices.remove("red/web-v4");
    server.turn();
    assert_eq!(server.ours().keys().collect::<Vec<_>>(), [&"web-v6"]);
    server.attachments.clear();
    server.turn();
    assert!(server.ours().is_empty());
    assert!(server.slices.contains_key("red/web-v6"), "it is not ours");
}

#[test]
fn what_people_do_to_ours_is_undone() {
    let mut server = tenant();
    server.turn();
    let want = server.slices.clone();
    let (name, _) = want.iter().find(|(name, _)| name.starts_with("red/web-v4-")).unwrap();
    let patch = json!({
        "metadata": {
            "labels": { "kubernetes.io/service-name": "web", "k8s.ovn.org/service-name": "other" },
            "annotations": { "k8s.ovn.org/endpointslice-network": null },
            "ownerReferences": null,
        },
        "endpoints": [],
        "ports": null,
    });
    merge(server.slices.get_mut(name).unwrap(), &patch);
    server.turn();
    assert_eq!(server.slices, want);
    let type_ = json!({ "addressType": "FQDN" });
    merge(server.slices.get_mut(name).unwrap(), &type_);
    server.turn();
    assert!(!server.slices.contains_key(name), "that cannot be changed back");
    server.turn();
    assert_eq!(server.slices.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
}

#[test]
fn a_foreign_slice_of_the_same_name_is_left_alone() {
    let mut server = tenant();
    let name = plan(&server.world()).keys().next().unwrap().to_string();
    server.source(&name, "IPv4", json!([]));
    let before = server.slices[&name].clone();
    server.turn();
    assert_eq!(server.slices[&name], before);
    assert_eq!(server.turn(), BTreeMap::new());
}

#[test]
fn nothing_is_made_in_a_namespace_on_its_way_out() {
    let mut server = tenant();
    server.ending.push("red".to_owned());
    assert_eq!(plan(&server.world()), BTreeMap::new());
}

#[test]
fn names_fit_and_differ() {
    let long = "a.".repeat(126) + "z";
    let names = [super::name(&long, "x"), super::name(&long, "y"), super::name("web", "x")];
    assert!(names.iter().all(|name| name.len() <= 253), "{names:?}");
    assert!(names[0] != names[1]);
    assert!(names[2].starts_with("web-") && names[2].len() == 14, "{}", names[2]);
    assert!(!names[0].contains(".-"), "{}", names[0]);
}

#[test]
fn two_networks_of_a_namespace_have_their_own() {
    let mut server = tenant();
    server.network("red/other", "other", "10.20.0.0/16/24");
    server.pod("red/b", "red/other", &["10.20.0.6/24"]);
    server.turn();
    let worlds = server.world();
    let of = |network: &str| {
        let ours = server.slices.values().filter(|slice| {
            slice["addressType"] == "IPv4"
                && slice["metadata"]["annotations"]["k8s.ovn.org/endpointslice-network"] == network
        });
        ours.map(|slice| slice["endpoints"][0]["addresses"][0].clone()).collect::<Vec<_>>()
    };
    assert_eq!((of("cluster_udn_red"), of("other")), (vec![json!("10.10.0.5")], vec![json!("10.20.0.6")]));
    assert_eq!(plan_within(&worlds, ["red", "nowhere"]), BTreeMap::new());
}
