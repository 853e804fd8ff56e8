//! No-overlay mode for the default network with unmanaged routing: an FRRConfiguration for an external route reflector and a
//! RouteAdvertisements, both the users'.
//!
//! The document creates both before the programs start. Here they come after, so that what is said without them is seen too.
//! In the end the document's full mesh takes the reflector's place.

use serde_json::json;
use underlay_testkit::wait_for;

use super::Step;
use super::cluster::PATIENCE;
use super::said;
use super::scene::Scene;
use super::wire::{self, Transport};

const MANIFEST: &str = include_str!("../../../../scenarios/seeds/external-reflector.yaml");
/// Sessions between all nodes, for the same advertisement.
const FULL_MESH: &str = include_str!("../../../../scenarios/seeds/full-mesh.yaml");
/// The lab has no namespace for the default network's definition, so events are about the managers' lease.
const ABOUT: &str = "Lease";
const NOBODY: [&str; 3] = [ABOUT, "Warning", "NoRouteAdvertisements"];
const NOT_ACCEPTED: [&str; 3] = [ABOUT, "Warning", "RouteAdvertisementsNotAccepted"];
const READY: [&str; 3] = [ABOUT, "Normal", "NoOverlayConfigurationReady"];

pub const STEPS: &[Step] = &[
    ("the settings are the document's", |scene| {
        said::settings_are(scene, include_str!("unmanaged.conf"));
    }),
    ("that nobody advertises the network is an event", nobody_advertises),
    ("the manifests apply, and all is ready", the_manifests_apply),
    ("every node tells the reflector of its pods", every_node_tells_the_reflector),
    ("OVN has no transit switch, and remote pods behind the gateway", ovn_routes_to_other_nodes),
    ("pods reach each other without tunnels", |scene| {
        wire::between_nodes(scene, "default", Transport::NoOverlay);
    }),
    ("pods and the world see each other's own addresses, nodes the node's", addresses_are_seen),
    (
        "the network is cut off without its advertisement, and back with it",
        the_advertisement_goes_and_returns,
    ),
    ("an advertisement without anybody to tell is an event", an_advertisement_is_not_accepted),
    ("a full mesh of the users' own does as well", a_full_mesh_takes_over),
];

fn nobody_advertises(scene: &Scene) {
    wait_for("the event", PATIENCE, || match said::times(scene, NOBODY[0], NOBODY[1], NOBODY[2]) {
        0 => Err("not told".to_owned()),
        _ => Ok(()),
    });
    scene.run_pods("default");
    wire::cut_off(scene, "default");
}

fn the_manifests_apply(scene: &Scene) {
    said::tells(scene, READY, || scene.apply(MANIFEST));
    said::advertised(scene, "default");
}

/// The part of the default network that a node has.
fn subnet(scene: &Scene, node: &str) -> String {
    let object = scene.get(&["node", node]);
    let text = object["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].as_str().unwrap_or("{}");
    let subnets: serde_json::Value = serde_json::from_str(text).expect("JSON of the annotation");
    subnets["default"][0].as_str().expect("the node's subnet").to_owned()
}

fn every_node_tells_the_reflector(scene: &Scene) {
    let label = "k8s.ovn.org/route-advertisements=default";
    let generated = scene.list(&["frrconfigurations", "-n", "frr-k8s-system", "-l", label]);
    assert_eq!(generated.len(), 3, "{generated:?}");
    for node in ["control", "worker1", "worker2"] {
        let subnet = subnet(scene, node);
        let shown = json!({
            "bgp": { "routers": [{
                "asn": 64512,
                "neighbors": [{
                    "address": "172.20.0.2", "asn": 64512, "disableMP": true,
                    "toAdvertise": { "allowed": { "mode": "filtered", "prefixes": [subnet] } },
                }],
                "prefixes": [subnet],
            }] },
            "nodeSelector": { "matchLabels": { "kubernetes.io/hostname": node } },
        });
        assert!(generated.iter().any(|one| said::shows(&one["spec"], &shown)), "{node}: {generated:?}");
    }
}

/// As the document draws it for shared gateway mode: the cluster router sends all that local pods send to the gateway
/// router, and that one has the learned routes.
fn ovn_routes_to_other_nodes(scene: &Scene) {
    assert!(!wire::switches(scene).contains("transit"), "{}", wire::switches(scene));
    let [own, far] = scene.workers.map(|worker| subnet(scene, worker.name));
    let cluster = wire::routes(scene, "ovn_cluster_router");
    let from_pods = |route: &&[String; 3]| route[0] == own && route[2] == "src-ip";
    assert_eq!(cluster.iter().filter(from_pods).count(), 1, "{cluster:?}");
    assert!(cluster.iter().all(|route| route[0] != far), "{cluster:?}");
    let learned = [far, scene.workers[1].address.to_owned(), "dst-ip".to_owned()];
    wait_for("the learned route in OVN", PATIENCE, || {
        let gateway = wire::routes(scene, "GR_worker1");
        if gateway.contains(&learned) { Ok(()) } else { Err(format!("{gateway:?}")) }
    });
}

fn addresses_are_seen(scene: &Scene) {
    for pod in &scene.pods("default") {
        wire::reached_from_outside(scene, pod);
        assert_eq!(wire::seen_outside(scene, pod), pod.address);
    }
    let [pod, _] = scene.pods("default");
    assert_eq!(wire::seen_by_node(scene, &pod), scene.workers[0].address);
}

/// The default network has no condition: events tell what conditions tell of others.
fn the_advertisement_goes_and_returns(scene: &Scene) {
    said::tells(scene, NOBODY, || {
        scene.kubectl(&["delete", "routeadvertisements", "default"]);
    });
    wire::cut_off(scene, "default");
    said::tells(scene, READY, || scene.apply(MANIFEST));
    said::advertised(scene, "default");
    wire::between_nodes(scene, "default", Transport::NoOverlay);
}

fn an_advertisement_is_not_accepted(scene: &Scene) {
    said::tells(scene, NOT_ACCEPTED, || {
        scene.kubectl(&["delete", "frrconfiguration", "external-rr", "-n", "frr-k8s-system"]);
    });
    wait_for("the advertisement's status", PATIENCE, || {
        let status = scene.get(&["routeadvertisements", "default"])["status"]["status"].clone();
        let want = "Not Accepted: configuration pending: no FRRConfigurations selected";
        if status == want { Ok(()) } else { Err(status.to_string()) }
    });
}

/// Every node is among its own neighbours there, and nobody minds.
fn a_full_mesh_takes_over(scene: &Scene) {
    said::tells(scene, READY, || scene.apply(FULL_MESH));
    said::advertised(scene, "default");
    wire::between_nodes(scene, "default", Transport::NoOverlay);
}
