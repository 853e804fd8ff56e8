//! The same verdicts and texts from a real API server that has our definitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use underlay_api::FRRConfiguration;
use underlay_testkit::{ApiServer, OutputExt, Scratch};

use crate::cases::{Case, Verdict, frr_configurations, route_advertisements};
use crate::manifests::{everything, seeds};
use crate::meaning::meaning;

/// The server, with our definitions installed as they are shipped.
fn server() -> &'static ApiServer {
    static READY: OnceLock<&ApiServer> = OnceLock::new();
    READY.get_or_init(|| {
        let server = ApiServer::shared();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        server.kubectl(&["create", "--filename", folder.to_str().unwrap()]).ok();
        server.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).ok();
        for namespace in ["frr-k8s-system", "metallb-system"] {
            server.kubectl(&["create", "namespace", namespace]).ok();
        }
        server
    })
}

/// Runs kubectl with these objects as its file.
fn kubectl(arguments: &[&str], manifests: &[Value]) -> std::process::Output {
    let scratch = Scratch::new("manifests");
    let file = scratch.join("list.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": manifests });
    fs::write(&file, list.to_string()).unwrap();
    let mut arguments = arguments.to_vec();
    arguments.extend(["--filename", file.to_str().unwrap()]);
    server().kubectl(&arguments)
}

#[track_caller]
fn check(cases: &[Case]) {
    let (taken, refused): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.verdict == Verdict::Taken);
    let manifests = |cases: &[&Case]| cases.iter().map(|case| case.manifest.clone()).collect::<Vec<_>>();
    kubectl(&["create", "--dry-run=server"], &manifests(&taken)).ok();
    // kubectl would judge some of it by itself; the server is to do it.
    let said = kubectl(&["create", "--dry-run=server", "--validate=ignore"], &manifests(&refused)).refused();
    let errors = by_object(&said);
    for case in refused {
        let Some(text) = errors.get(case.name.as_str()) else { panic!("{} was taken: {said}", case.name) };
        let alike = match &case.verdict {
            Verdict::Taken => false,
            // The message and nothing else.
            Verdict::Rule(message) => text.trim_end().ends_with(&format!(": {message}")),
            Verdict::Schema(part) => text.contains(part),
        };
        assert!(alike, "{}: wanted {:?}, the server said {text:?}", case.name, case.verdict);
    }
}

/// What kubectl said about each object: an error begins with a line that has `"<name>" is invalid` in it.
fn by_object(said: &str) -> BTreeMap<&str, String> {
    let mut errors: BTreeMap<&str, String> = BTreeMap::new();
    let mut name = "";
    for line in said.lines() {
        if let Some((before, _)) = line.split_once("\" is invalid") {
            name = before.rsplit('"').next().unwrap_or_default();
        }
        let error = errors.entry(name).or_default();
        error.push_str(line);
        error.push('\n');
    }
    errors
}

#[test]
fn route_advertisements_are_judged_alike() {
    check(&route_advertisements());
}

#[test]
fn frr_configurations_are_judged_alike() {
    check(&frr_configurations());
}

#[test]
fn examples_are_taken_and_come_back() {
    let mut manifests: Vec<_> = seeds().into_iter().map(|(_, manifest)| manifest).collect();
    manifests.push(everything());
    let read = kubectl(&["create", "--output=json"], &manifests).ok();
    // One document after the other, in the order of the file.
    let stored = serde_json::Deserializer::from_str(&read).into_iter::<Value>().map(Result::unwrap);
    let stored: Vec<_> = stored.collect();
    assert_eq!(stored.len(), manifests.len());
    for (stored, manifest) in stored.iter().zip(&manifests) {
        assert_eq!(meaning(stored), meaning(manifest));
        if manifest["kind"] == "FRRConfiguration" {
            // What the server filled in makes no difference to us.
            let read =
                |manifest: &Value| serde_json::from_value::<FRRConfiguration>(manifest.clone()).unwrap();
            assert_eq!(read(stored).spec, read(manifest).spec);
        }
    }
}

#[test]
fn a_glance_tells_the_state() {
    let manifest = json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": { "name": "glance" },
        "spec": {
            "targetVRF": "blue",
            "advertisements": ["PodNetwork", "EgressIP"],
            "networkSelectors": [
                { "networkSelectionType": "DefaultNetwork" },
                {
                    "networkSelectionType": "ClusterUserDefinedNetworks",
                    "clusterUserDefinedNetworkSelector": { "networkSelector": {} },
                },
            ],
            "nodeSelector": {},
            "frrConfigurationSelector": {},
        },
    });
    kubectl(&["create"], &[manifest]).ok();
    let status = r#"{"status":{"status":"Accepted","conditions":[{"type":"Ready","status":"False","reason":"NoRoutes",
        "message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#;
    server()
        .kubectl(&["patch", "ra", "glance", "--subresource=status", "--type=merge", "--patch", status])
        .ok();
    let table = server().kubectl(&["get", "ra", "glance"]).ok();
    let lines: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "NAME STATUS READY TARGET VRF ADVERTISEMENTS AGE");
    let line = lines[1].join(" ");
    assert!(line.starts_with(r#"glance Accepted False blue ["PodNetwork","EgressIP"] "#), "{table}");
}

#[test]
fn fields_are_explained_in_our_words() {
    let text = server().kubectl(&["explain", "ra.spec.targetVRF"]).ok();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("`auto` advertises each network in its own VRF"), "{text}");
}
