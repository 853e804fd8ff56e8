//! No-overlay mode with managed routing, for the default network and for a tenant's: settings alone, and a
//! `ClusterUserDefinedNetwork`. What the documents show as generated is compared with what is.

use std::process::Command;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use super::Step;
use super::cluster::PATIENCE;
use super::said::{self, documents, shows};
use super::scene::Scene;
use super::wire::{self, Transport};

/// What the cluster generates for the default network.
const FABRIC: &str = include_str!("../../../../scenarios/seeds/managed-fabric.yaml");
/// The network, and what the cluster generates for it.
const BLUE: &str = include_str!("../../../../scenarios/seeds/blue-managed.yaml");
/// Another network, whose status the document shows.
const OTHER: &str = include_str!("../../../../scenarios/seeds/no-overlay-managed.yaml");
/// The label of all that is generated.
const LABEL: &str = "k8s.ovn.org/managed-internal-fabric=bgp";

pub const STEPS: &[Step] = &[
    ("the settings are the document's", |scene| {
        said::settings_are(scene, include_str!("managed.conf"));
    }),
    ("all is well, and says how", all_is_well),
    ("the mesh and the advertisement are as shown", the_mesh_is_as_shown),
    ("pods reach each other without tunnels", |scene| {
        scene.run_pods("default");
        wire::between_nodes(scene, "default", Transport::NoOverlay);
    }),
    ("pods leave with the node's address", |scene| the_node_is_seen(scene, "default")),
    ("the status of a tenant's network is as shown", a_status_is_as_shown),
    ("the tenant's manifest applies, and the rest is generated", a_tenants_manifest_applies),
    ("the tenant's pods reach each other without tunnels", |scene| {
        scene.run_pods("ns1");
        wire::between_nodes(scene, "ns1", Transport::NoOverlay);
    }),
    ("the tenant's pods leave with the node's address", |scene| the_node_is_seen(scene, "ns1")),
    ("an advertisement that somebody deletes comes back", an_advertisement_comes_back),
    ("the mesh comes back when somebody deletes it", the_mesh_comes_back),
];

fn all_is_well(scene: &Scene) {
    let kubeconfig = scene.lab.cli(&["kubeconfig"]).ok();
    wait_for("status to have no problems", PATIENCE, || {
        let mut desk = Command::new(LabUnderTest::program());
        let output = desk.args(["status", "--kubeconfig", kubeconfig.trim_end()]).output();
        let text = output.map_err(|error| error.to_string())?.result()?;
        let line = "default network: NoOverlay, advertised by ovnk-managed-";
        if text.contains(line) && text.contains("all is well") { Ok(()) } else { Err(text) }
    });
}

/// The one configuration that connects all nodes.
fn mesh(scene: &Scene) -> Value {
    let mut found = scene.list(&["frrconfigurations", "-n", "frr-k8s-system", "-l", LABEL]);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// The managed advertisement of networks that are selected in this way.
fn advertisement(scene: &Scene, selection: &str) -> Value {
    let mut found = scene.list(&["routeadvertisements", "-l", LABEL]);
    found.retain(|one| one["spec"]["networkSelectors"][0]["networkSelectionType"] == selection);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().expect("a name")
}

/// The document shows neither BFD nor graceful restart. Both are on here on purpose; the rest is as shown.
fn the_mesh_is_as_shown(scene: &Scene) {
    let [shown_advertisement, shown_mesh] = &documents(FABRIC)[..] else { panic!("two documents") };
    let (mesh, advertisement) = (mesh(scene), advertisement(scene, "DefaultNetwork"));
    for (have, shown) in [(&mesh, shown_mesh), (&advertisement, shown_advertisement)] {
        assert!(name(have).starts_with("ovnk-managed-"), "{have}");
        assert!(shows(&have["spec"], &shown["spec"]), "{have}");
    }
    assert!(shows(&mesh["metadata"]["labels"], &shown_mesh["metadata"]["labels"]), "{mesh}");
    assert_eq!(mesh["metadata"]["namespace"], shown_mesh["metadata"]["namespace"]);
    let neighbors = mesh["spec"]["bgp"]["routers"][0]["neighbors"].as_array().expect("neighbours");
    for neighbor in neighbors {
        assert_eq!(neighbor["bfdProfile"], "ovnk-managed", "{neighbor}");
        assert_eq!(neighbor["enableGracefulRestart"], true, "{neighbor}");
    }
    said::advertised(scene, name(&advertisement));
    assert_ne!(said::times(scene, "Lease", "Normal", "NoOverlayConfigurationReady"), 0, "it is told");
}

fn the_node_is_seen(scene: &Scene, namespace: &str) {
    for (pod, worker) in scene.pods(namespace).iter().zip(scene.workers) {
        assert_eq!(wire::seen_outside(scene, pod), worker.address);
    }
    let [pod, _] = scene.pods(namespace);
    assert_eq!(wire::seen_by_node(scene, &pod), scene.workers[0].address);
}

/// The namespaces that it is for are not there, and need not be.
fn a_status_is_as_shown(scene: &Scene) {
    scene.apply(OTHER);
    said::transport(scene, "my-cudn", said::ACCEPTED);
    scene.kubectl(&["delete", "clusteruserdefinednetwork", "my-cudn"]);
}

/// The first document is the admin's; the second one shows what comes of it. There the advertisement finds the network by
/// its label `network: blue`. Other networks may have that, so ours finds it by a label that only this one has. Of the two
/// spellings of the selector's type, what is generated has today's.
fn a_tenants_manifest_applies(scene: &Scene) {
    let [network, shown] = &documents(BLUE)[..] else { panic!("two documents") };
    scene.make_namespaces(&["ns1", "ns2"]);
    scene.apply_object(network);
    said::transport(scene, "blue", said::ACCEPTED);
    let have = advertisement(scene, "ClusterUserDefinedNetworks");
    assert!(name(&have).starts_with("ovnk-managed-"), "{have}");
    let (mut spec, mut shown) = (have["spec"].clone(), shown["spec"].clone());
    let selectors = [&mut spec, &mut shown].map(|spec| spec["networkSelectors"].take());
    assert!(shows(&spec, &shown), "{have}");
    let own = &selectors[0][0]["clusterUserDefinedNetworkSelector"]["networkSelector"]["matchLabels"];
    let labels = &scene.get(&["clusteruserdefinednetwork", "blue"])["metadata"]["labels"];
    assert!(shows(labels, own) && labels["network"] == "blue", "{own} in {labels}");
    said::advertised(scene, name(&have));
    assert!(!wire::switches(scene).contains("transit"), "{}", wire::switches(scene));
}

/// The network is advertised again by itself, and in the end all is as before.
fn an_advertisement_comes_back(scene: &Scene) {
    let before = advertisement(scene, "ClusterUserDefinedNetworks");
    scene.kubectl(&["delete", "routeadvertisements", name(&before)]);
    wait_for("the advertisement", PATIENCE, || {
        let found = scene.list(&["routeadvertisements", "-l", LABEL]);
        let again =
            |one: &&Value| name(one) == name(&before) && one["metadata"]["uid"] != before["metadata"]["uid"];
        found.iter().find(again).map(|_| ()).ok_or_else(|| format!("{found:?}"))
    });
    assert_eq!(advertisement(scene, "ClusterUserDefinedNetworks")["spec"], before["spec"]);
    said::transport(scene, "blue", said::ACCEPTED);
    wire::between_nodes(scene, "ns1", Transport::NoOverlay);
}

fn the_mesh_comes_back(scene: &Scene) {
    let before = mesh(scene);
    scene.kubectl(&["delete", "frrconfiguration", "-n", "frr-k8s-system", name(&before)]);
    wait_for("the mesh", PATIENCE, || {
        let now = scene.list(&["frrconfigurations", "-n", "frr-k8s-system", "-l", LABEL]);
        let again = |one: &Value| {
            one["metadata"]["uid"] != before["metadata"]["uid"] && one["spec"] == before["spec"]
        };
        if now.iter().any(again) { Ok(()) } else { Err(format!("{now:?}")) }
    });
    all_is_well(scene);
    wire::between_nodes(scene, "default", Transport::NoOverlay);
}
