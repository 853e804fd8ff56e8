//! A `ClusterUserDefinedNetwork` in no-overlay mode with unmanaged routing: the network, an FRRConfiguration for an
//! external router, and a RouteAdvertisements, all the users'.

use serde_json::{Value, json};
use underlay_testkit::wait_for;

use super::Step;
use super::cluster::PATIENCE;
use super::said::{self, Said, documents};
use super::scene::Scene;
use super::wire::{self, Transport};

const MANIFEST: &str = include_str!("../../../../scenarios/seeds/blue-unmanaged.yaml");
/// Another network, whose status the document shows.
const OTHER: &str = include_str!("../../../../scenarios/seeds/no-overlay-unmanaged.yaml");

pub const STEPS: &[Step] = &[
    ("each object of the manifest changes the status as written", the_status_follows_the_manifest),
    ("the attachments say that there is no overlay", attachments_say_so),
    ("pods reach each other without tunnels", |scene| {
        scene.run_pods("ns1");
        wire::between_nodes(scene, "ns1", Transport::NoOverlay);
    }),
    ("OVN has no transit switch for it, and remote pods behind the gateway", ovn_routes_to_other_nodes),
    ("pods and the world see each other's own addresses, nodes the node's", addresses_are_seen),
    ("the transport is accepted only while the network is advertised", the_advertisement_goes_and_returns),
    ("the status of another network is as shown", a_status_is_as_shown),
];

/// Waits for a condition that is not well, and for the event that tells the same.
fn is_told(scene: &Scene, said: Said, act: impl FnOnce()) {
    said::tells(scene, ["ClusterUserDefinedNetwork", "Warning", said[1]], act);
    said::transport(scene, "blue", said);
}

/// First the network alone, then with its advertisement, and in the end the whole manifest as it is.
fn the_status_follows_the_manifest(scene: &Scene) {
    let [network, _, advertisement] = &documents(MANIFEST)[..] else { panic!("three documents") };
    scene.make_namespaces(&["ns1", "ns2"]);
    is_told(scene, said::MISSING, || scene.apply_object(network));
    is_told(scene, said::NOT_ACCEPTED, || scene.apply_object(advertisement));
    scene.apply(MANIFEST);
    said::transport(scene, "blue", said::ACCEPTED);
    said::advertised(scene, "blue");
}

/// The document writes the transport as `noOverlay` and says nothing of SNAT. Programs around us read `no-overlay` and
/// `outboundSNAT` today, so that is what is written; the document's word is read as well.
fn attachments_say_so(scene: &Scene) {
    for namespace in ["ns1", "ns2"] {
        let have = said::attachment(scene, namespace, "blue");
        let shown = json!({
            "name": "cluster_udn_blue",
            "type": "ovn-k8s-cni-overlay",
            "topology": "layer3",
            "mtu": 1500,
            "netAttachDefName": format!("{namespace}/blue"),
            "role": "primary",
            "transport": "no-overlay",
            "outboundSNAT": "disabled",
        });
        assert!(said::shows(&have, &shown), "{have}");
    }
}

fn ovn_routes_to_other_nodes(scene: &Scene) {
    // The default network of this lab has its overlay, and its transit switch.
    let switches = wire::switches(scene);
    assert!(switches.contains("(transit_switch)") && !switches.contains("blue_transit_switch"), "{switches}");
    let [near, far] = scene.pods("ns1").map(|pod| pod.subnet());
    let cluster = wire::routes(scene, "cluster_udn_blue_ovn_cluster_router");
    assert!(cluster.iter().any(|route| route[0] == near && route[2] == "src-ip"), "{cluster:?}");
    assert!(cluster.iter().all(|route| route[0] != far), "{cluster:?}");
    let learned = [far, scene.workers[1].address.to_owned(), "dst-ip".to_owned()];
    wait_for("the learned route in OVN", PATIENCE, || {
        let gateway = wire::routes(scene, "GR_cluster_udn_blue_ovn-worker");
        if gateway.contains(&learned) { Ok(()) } else { Err(format!("{gateway:?}")) }
    });
}

fn addresses_are_seen(scene: &Scene) {
    for pod in &scene.pods("ns1") {
        wire::reached_from_outside(scene, pod);
        assert_eq!(wire::seen_outside(scene, pod), pod.address);
    }
    let [pod, _] = scene.pods("ns1");
    assert_eq!(wire::seen_by_node(scene, &pod), scene.workers[0].address);
}

fn the_advertisement_goes_and_returns(scene: &Scene) {
    is_told(scene, said::MISSING, || {
        scene.kubectl(&["delete", "routeadvertisements", "blue"]);
    });
    wire::cut_off(scene, "ns1");
    scene.apply(MANIFEST);
    said::transport(scene, "blue", said::ACCEPTED);
    said::advertised(scene, "blue");
    wire::between_nodes(scene, "ns1", Transport::NoOverlay);
    wire::reached_from_outside(scene, &scene.pods("ns1")[1]);
}

/// It has the addresses of the first network, so that one goes before. The document does not show what advertises it; here
/// it is the first one's advertisement, made out to this one's name. The namespaces that it is for need not be there.
fn a_status_is_as_shown(scene: &Scene) {
    scene.kubectl(&["delete", "pods", "--all", "-n", "ns1"]);
    scene.kubectl(&["delete", "clusteruserdefinednetwork/blue", "routeadvertisements/blue"]);
    scene.apply(OTHER);
    let mut advertisement: Value = documents(MANIFEST).remove(2);
    advertisement["metadata"]["name"] = "my-cudn".into();
    let selector = &mut advertisement["spec"]["networkSelectors"][0]["clusterUserDefinedNetworkSelector"];
    selector["networkSelector"]["matchLabels"] = json!({ "k8s.ovn.org/metadata.name": "my-cudn" });
    scene.apply_object(&advertisement);
    said::transport(scene, "my-cudn", said::ACCEPTED);
    scene.kubectl(&["delete", "clusteruserdefinednetwork/my-cudn", "routeadvertisements/my-cudn"]);
    scene.kubectl(&["delete", "frrconfiguration", "blue", "-n", "frr-k8s-system"]);
}
