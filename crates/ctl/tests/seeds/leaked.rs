//! Advertising pod IPs from a user-defined network over BGP: a node's peer, a tenant's network with overlay, and an
//! advertisement of it in the default VRF.
//!
//! The document's own RouteAdvertisements was overtaken by a newer document: it is refused, and what says the same today is
//! applied instead. That one selects all nodes, which is a must for pod networks now; but the document's peer is for one node
//! alone, so the others are named in the status and tell nobody.

use serde_json::Value;
use underlay_testkit::OutputExt;

use super::Step;
use super::said::{self, documents};
use super::scene::Scene;
use super::wire::{self, Transport};

/// The peer, as it is in the document.
const PEERING: &str = include_str!("../../../../scenarios/seeds/peering.yaml");
/// The advertisement, as it is in the document.
const OVERTAKEN: &str = include_str!("../../../../scenarios/seeds/superseded/leaked-network.yaml");
/// The advertisement in today's words.
const ADVERTISEMENT: &str = include_str!("../../../../scenarios/leaked-network/world/advertisements.yaml");
/// The network that the document tells of, in the namespace `blue`.
const NETWORK: &str = include_str!("../../../../scenarios/leaked-network/world/networks.yaml");
/// What comes of all that. It says what the document shows as generated, in words that FRRConfigurations have today.
const GENERATED: &str = include_str!("../../../../scenarios/leaked-network/want/objects.yaml");

pub const STEPS: &[Step] = &[
    ("a network with overlay says so", a_network_with_overlay),
    ("the peering applies, the advertisement of the document is refused", the_peering_applies),
    ("the advertisement in today's words is accepted", the_advertisement_is_accepted),
    ("what is generated says what the document shows", what_is_generated),
    ("pods on the node that has the peer and the world see each other's own addresses", addresses_are_seen),
    ("pods reach each other in tunnels", |scene| {
        wire::between_nodes(scene, "blue", Transport::Geneve);
    }),
];

fn a_network_with_overlay(scene: &Scene) {
    scene.apply(NETWORK);
    said::transport(scene, "blue", said::GENEVE);
    scene.run_pods("blue");
}

fn the_peering_applies(scene: &Scene) {
    scene.kubectl(&["create", "namespace", "metallb-system"]);
    scene.apply(PEERING);
    let file = scene.lab.file("overtaken.yaml", OVERTAKEN);
    let refused = scene.lab.kubectl(&["apply", "--filename", &file.to_string_lossy()]).refused();
    assert!(refused.contains("advertisements"), "{refused}");
}

fn the_advertisement_is_accepted(scene: &Scene) {
    scene.apply(ADVERTISEMENT);
    said::advertised(scene, "default");
    let object = scene.get(&["routeadvertisements", "default"]);
    let conditions = object["status"]["conditions"].as_array().expect("conditions");
    let accepted = conditions.iter().find(|one| one["type"] == "Accepted").expect("a verdict");
    let message = accepted["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("is for nodes ovn-control, ovn-worker2"), "{message}");
}

/// The document's node has the network's second part. Here it has the one that was next when it joined the cluster.
fn what_is_generated(scene: &Scene) {
    let generated = GENERATED.replace("10.0.1.0/24", &scene.pods("blue")[0].subnet());
    let of_peers = |one: &&Value| one["kind"] == "FRRConfiguration";
    let documents = documents(&generated);
    let shown = documents.iter().find(of_peers).expect("a generated configuration");
    let label = "k8s.ovn.org/route-advertisements=default";
    let generated = scene.list(&["frrconfigurations", "-A", "-l", label]);
    let [have] = &generated[..] else { panic!("not one: {generated:?}") };
    for part in ["metadata", "spec"] {
        assert!(said::shows(&have[part], &shown[part]), "{have}");
    }
}

fn addresses_are_seen(scene: &Scene) {
    let [pod, _] = scene.pods("blue");
    wire::reached_from_outside(scene, &pod);
    assert_eq!(wire::seen_outside(scene, &pod), pod.address);
}
