//! What the system says, compared with what the documents write: settings, conditions, events, generated objects.

use std::collections::BTreeSet;

use serde_json::Value;
use underlay_testkit::{OutputExt, wait_for};

use super::cluster::PATIENCE;
use super::scene::Scene;

/// A condition as a document writes it: status, reason and message.
pub type Said = [&'static str; 3];

/// `TransportAccepted` of a network without overlay that is advertised.
pub const ACCEPTED: Said =
    ["True", "NoOverlayTransportAccepted", "No-overlay transport has been configured."];
/// `TransportAccepted` of one that nobody advertises.
pub const MISSING: Said = [
    "False",
    "NoOverlayRouteAdvertisementsIsMissing",
    "No RouteAdvertisements CR is advertising the pod networks.",
];
/// `TransportAccepted` of one whose advertisement `blue` is not accepted.
pub const NOT_ACCEPTED: Said = [
    "False",
    "NoOverlayRouteAdvertisementsNotAccepted",
    "RouteAdvertisements CR blue advertises the pod subnets, but its status is not accepted.",
];
/// `TransportAccepted` of a network with overlay.
pub const GENEVE: Said = ["True", "GeneveTransportAccepted", "Geneve transport has been configured."];

/// The documents of a manifest.
pub fn documents(manifest: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(manifest).expect("the manifest's documents")
}

/// Waits until `TransportAccepted` of a network says what is written.
pub fn transport(scene: &Scene, network: &str, want: Said) {
    wait_for(&format!("{} of {network}", want[1]), PATIENCE, || {
        let object = scene.get(&["clusteruserdefinednetwork", network]);
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|one| one["type"] == "TransportAccepted");
        let said = found.map(|one| ["status", "reason", "message"].map(|field| one[field].as_str()));
        if said == Some(want.map(Some)) { Ok(()) } else { Err(format!("{conditions:?}")) }
    });
}

/// Waits until an advertisement is accepted, and its routes are told.
pub fn advertised(scene: &Scene, name: &str) {
    for condition in ["Accepted", "Ready"] {
        let condition = format!("--for=condition={condition}");
        scene.kubectl(&["wait", "routeadvertisements", name, &condition, "--timeout=60s"]);
    }
    assert_eq!(scene.get(&["routeadvertisements", name])["status"]["status"], "Accepted");
}

/// How often an event was told about objects of a kind. One that is told again is counted, not made again.
pub fn times(scene: &Scene, kind: &str, type_: &str, reason: &str) -> u64 {
    let events = scene.list(&["events.events.k8s.io", "-A", &format!("--field-selector=reason={reason}")]);
    let of = |event: &&Value| event["regarding"]["kind"] == kind && event["type"] == type_;
    events.iter().filter(of).map(|event| event["series"]["count"].as_u64().unwrap_or(1)).sum()
}

/// Does something, and waits until an event is told because of it.
pub fn tells(scene: &Scene, [kind, type_, reason]: [&str; 3], act: impl FnOnce()) {
    let before = times(scene, kind, type_, reason);
    act();
    wait_for(&format!("the event {reason}"), PATIENCE, || {
        let now = times(scene, kind, type_, reason);
        if now > before { Ok(()) } else { Err(format!("told {now} times, as before")) }
    });
}

/// Lines of a configuration file, each with its section.
fn settings(text: &str) -> BTreeSet<String> {
    let (mut section, mut found) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        match line.split_once('=') {
            Some((key, value)) => {
                found.insert(format!("{section} {}={}", key.trim(), value.trim()));
            }
            None if !line.is_empty() => line.clone_into(&mut section),
            None => {}
        }
    }
    found
}

/// Manager and agents run with all that an example of the configuration file says, and with nothing else about transport
/// and routing.
pub fn settings_are(scene: &Scene, example: &str) {
    for machine in ["control", "worker1", "worker2"] {
        let file = scene.lab.exec(machine, &["cat", "/etc/underlay/underlay.conf"]).ok();
        let mut have = settings(&file);
        have.retain(|line| !["cluster-subnets", "mtu", "service-cidrs"].iter().any(|own| line.contains(own)));
        assert_eq!(have, settings(example), "{machine}: {file}");
    }
}

/// Whether all that a document shows of an object is in the object, under the same names. Lists have to be as long as shown.
pub fn shows(have: &Value, shown: &Value) -> bool {
    match (have, shown) {
        (Value::Object(have), Value::Object(shown)) => {
            shown.iter().all(|(key, shown)| have.get(key).is_some_and(|have| shows(have, shown)))
        }
        (Value::Array(have), Value::Array(shown)) => {
            have.len() == shown.len() && have.iter().zip(shown).all(|(have, shown)| shows(have, shown))
        }
        _ => have == shown,
    }
}

/// The configuration of an attachment definition.
pub fn attachment(scene: &Scene, namespace: &str, name: &str) -> Value {
    let object = scene.get(&["network-attachment-definitions", name, "-n", namespace]);
    serde_json::from_str(object["spec"]["config"].as_str().unwrap_or_default())
        .expect("JSON of the definition")
}
