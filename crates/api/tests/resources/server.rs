//! The same verdicts and texts from a real API server that has our definitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use underlay_api::network::conditions::{
    ATTACHMENT_CREATED, INTERNAL_ERROR, NETWORK_ALLOCATION_SUCCEEDED, NETWORK_CREATED, NO_OVERLAY_MISSING,
    TRANSPORT_ACCEPTED,
};
use underlay_api::{FRRConfiguration, IPAMClaim};
use underlay_testkit::{ApiServer, OutputExt, Scratch, wait_for};

use crate::cases::{Case, Verdict, frr_configurations, route_advertisements};
use crate::manifests::{everything, seeds, seeds_in};
use crate::meaning::meaning;
use crate::networks;

/// The server, with our definitions installed as they are shipped.
fn server() -> &'static ApiServer {
    static READY: OnceLock<&ApiServer> = OnceLock::new();
    READY.get_or_init(|| {
        let server = ApiServer::shared();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        server.kubectl(&["create", "--filename", folder.to_str().unwrap()]).ok();
        server.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).ok();
        let namespace =
            |name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        let namespaces =
            ["frr-k8s-system", "metallb-system", "vm-workloads", "openshift-frr-k8s"].map(namespace);
        kubectl_on(server, &["create"], &namespaces).ok();
        server
    })
}

/// Runs kubectl with these objects as its file.
fn kubectl(arguments: &[&str], manifests: &[Value]) -> Output {
    kubectl_on(server(), arguments, manifests)
}

fn kubectl_on(server: &ApiServer, arguments: &[&str], manifests: &[Value]) -> Output {
    let scratch = Scratch::new("manifests");
    let file = scratch.join("list.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": manifests });
    fs::write(&file, list.to_string()).unwrap();
    let mut arguments = arguments.to_vec();
    arguments.extend(["--filename", file.to_str().unwrap()]);
    server.kubectl(&arguments)
}

#[track_caller]
fn check(cases: &[Case]) {
    check_all(cases, "create");
}

/// Creates the objects, or replaces what is there with them.
#[track_caller]
fn check_all(cases: &[Case], verb: &str) {
    let (taken, refused): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.verdict == Verdict::Taken);
    let manifests = |cases: &[&Case]| cases.iter().map(|case| case.manifest.clone()).collect::<Vec<_>>();
    kubectl(&[verb, "--dry-run=server"], &manifests(&taken)).ok();
    // kubectl would judge some of it by itself; the server is to do it.
    let said = kubectl(&[verb, "--dry-run=server", "--validate=ignore"], &manifests(&refused)).refused();
    let errors = by_object(&said);
    for case in refused {
        let Some(text) = errors.get(case.name.as_str()) else { panic!("{} was taken: {said}", case.name) };
        let alike = match &case.verdict {
            Verdict::Taken => false,
            Verdict::Rules(messages) => says(text, messages),
            Verdict::Schema(part) => text.contains(part),
        };
        assert!(alike, "{}: wanted {:?}, the server said {text:?}", case.name, case.verdict);
    }
}

/// Whether an error is these messages and nothing else: one, or several in brackets with commas between them.
fn says(text: &str, messages: &[String]) -> bool {
    let said = |message: &String| match messages {
        [_] => text.trim_end().ends_with(&format!(": {message}")),
        _ => [",", "]"].iter().any(|end| text.contains(&format!(": {message}{end}"))),
    };
    text.matches(": Invalid value: ").count() == messages.len() && messages.iter().all(said)
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
fn networks_are_judged_alike() {
    let (changes, new): (Vec<_>, Vec<_>) =
        networks::cases().into_iter().partition(|case| case.before.is_some());
    check(&new);
    kubectl(&["create"], &changes.iter().filter_map(|case| case.before.clone()).collect::<Vec<_>>()).ok();
    check_all(&changes, "replace");
}

#[test]
fn examples_are_taken_and_come_back() {
    let mut manifests: Vec<_> = seeds().into_iter().map(named_after_file).collect();
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

/// Some examples have the same names.
fn named_after_file((file, mut manifest): (String, Value)) -> Value {
    let name = manifest["metadata"]["name"].as_str().unwrap();
    manifest["metadata"]["name"] = format!("{file}-{name}").into();
    manifest
}

#[test]
fn examples_of_before_are_refused() {
    let manifests: Vec<_> = seeds_in("superseded").into_iter().map(named_after_file).collect();
    let said = kubectl(&["create", "--dry-run=server", "--validate=ignore"], &manifests).refused();
    let errors = by_object(&said);
    for manifest in manifests {
        let error = &errors[manifest["metadata"]["name"].as_str().unwrap()];
        assert!(error.contains("spec.advertisements in body must be of type array"), "{error}");
    }
}

#[test]
fn examples_of_others_are_not_ours() {
    let manifests: Vec<_> = seeds_in("others").into_iter().map(|(_, manifest)| manifest).collect();
    let said = kubectl(&["create", "--dry-run=server"], &manifests).refused();
    for manifest in manifests {
        let kind = manifest["kind"].as_str().unwrap();
        let unknown = format!("no matches for kind \"{kind}\" in version {}", manifest["apiVersion"]);
        // The one kind that is everywhere, for a program that we do not need; its labels are missing.
        let incomplete = kind == "Deployment" && said.contains("`selector` does not match template `labels`");
        assert!(said.contains(&unknown) || incomplete, "{kind}: {said}");
    }
}

/// What `kubectl get` shows of an object with this status: the names of the columns, and what is in them.
fn glance(resource: &str, manifest: &Value, status: &Value) -> [String; 2] {
    let name = manifest["metadata"]["name"].as_str().unwrap();
    kubectl(&["create"], std::slice::from_ref(manifest)).ok();
    let patch = json!({ "status": status }).to_string();
    let patch = ["patch", resource, name, "--subresource=status", "--type=merge", "--patch", &patch];
    server().kubectl(&patch).ok();
    let table = server().kubectl(&["get", resource, name]).ok();
    let line = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = table.lines().map(line).collect();
    lines.try_into().unwrap_or_else(|_| panic!("two lines: {table}"))
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    let since = "2026-01-01T00:00:00Z";
    json!({ "type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": since })
}

#[test]
fn a_glance_tells_the_state_of_advertisements() {
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
    let status = json!({ "status": "Accepted", "conditions": [condition("Ready", "False", "NoRoutes")] });
    let [columns, line] = glance("ra", &manifest, &status);
    assert_eq!(columns, "NAME STATUS READY TARGET VRF ADVERTISEMENTS AGE");
    assert!(line.starts_with(r#"glance Accepted False blue ["PodNetwork","EgressIP"] "#), "{line}");
}

#[test]
fn a_glance_tells_the_state_of_networks() {
    let created = condition(NETWORK_CREATED, "True", ATTACHMENT_CREATED);
    let allocated = condition(NETWORK_ALLOCATION_SUCCEEDED, "False", INTERNAL_ERROR);
    let connected = condition(TRANSPORT_ACCEPTED, "False", NO_OVERLAY_MISSING);
    let (_, mut cluster) = seeds().into_iter().find(|(file, _)| file == "no-overlay-managed").unwrap();
    cluster["metadata"]["name"] = json!("glance");
    let [columns, line] = glance("cudn", &cluster, &json!({ "conditions": [created, allocated, connected] }));
    assert_eq!(columns, "NAME TOPOLOGY ROLE TRANSPORT CREATED ALLOCATED CONNECTED AGE");
    assert!(line.starts_with("glance Layer3 Primary NoOverlay True False False "), "{line}");

    let (_, mut namespaced) =
        seeds().into_iter().find(|(_, seed)| seed["kind"] == "UserDefinedNetwork").unwrap();
    namespaced["metadata"]["name"] = json!("glance");
    let [columns, line] = glance("udn", &namespaced, &json!({ "conditions": [created, allocated] }));
    assert_eq!(columns, "NAME TOPOLOGY ROLE CREATED ALLOCATED AGE");
    assert!(line.starts_with("glance Layer2 Primary True False "), "{line}");
    let wide = server().kubectl(&["get", "udn", "glance", "--output=wide"]).ok();
    assert!(wide.contains(r#"["192.168.100.0/24"]"#), "{wide}");
}

#[test]
fn claims_keep_what_others_write() {
    let manifest = json!({
        "apiVersion": "k8s.cni.cncf.io/v1alpha1",
        "kind": "IPAMClaim",
        "metadata": { "name": "claim" },
        "spec": { "network": "cluster_udn_blue", "interface": "eth0" },
    });
    let status = json!({
        "ips": ["10.20.0.5/16"],
        "ownerPod": { "name": "virt-launcher-a" },
        "conditions": [condition("IPsAllocated", "True", "SuccessfulAllocation")],
    });
    glance("ipamclaim", &manifest, &status);
    let stored = server().kubectl(&["get", "ipamclaim", "claim", "--output=json"]).ok();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored["status"], status);
    let claim: IPAMClaim = serde_json::from_value(stored.clone()).unwrap();
    let again = serde_json::to_value(&claim).unwrap();
    assert_eq!((&again["spec"], &again["status"]), (&stored["spec"], &stored["status"]));
}

#[test]
fn fields_are_explained_in_our_words() {
    // The server explains a resource a while after it serves it.
    let text = wait_for("an explanation", Duration::from_secs(30), || {
        let output = server().kubectl(&["explain", "ra.spec.targetVRF"]);
        let (text, problem) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(text.into_owned()) } else { Err(problem.into_owned()) }
    });
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("`auto` advertises each network in its own VRF"), "{text}");
}
