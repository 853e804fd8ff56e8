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

use crate::cases::{Case, Verdict, egress_ips, frr_configurations, route_advertisements};
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
        kubectl_on(server, &["create", "--validate=ignore"], &namespaces).ok();
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
fn egress_ips_are_judged_alike() {
    check(&egress_ips());
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

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    let since = "2026-01-01T00:00:00Z";
    json!({ "type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": since })
}

/// Objects called `glance`, one of each kind that has a status worth a look.
fn objects_with_status() -> [Value; 4] {
    let object = |version: &str, kind: &str, spec: Value, status: Value| {
        let metadata = json!({ "name": "glance" });
        json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status })
    };
    let example = |kind: &str| {
        let (_, example) = seeds().into_iter().find(|(_, example)| example["kind"] == kind).unwrap();
        example["spec"].clone()
    };
    let advertisements = json!({
        "targetVRF": "blue",
        "advertisements": ["PodNetwork", "EgressIP"],
        "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
        "nodeSelector": {},
        "frrConfigurationSelector": {},
    });
    let ready = json!({ "status": "Accepted", "conditions": [condition("Ready", "False", "NoRoutes")] });
    let conditions = json!([
        condition(NETWORK_CREATED, "True", ATTACHMENT_CREATED),
        condition(NETWORK_ALLOCATION_SUCCEEDED, "False", INTERNAL_ERROR),
        condition(TRANSPORT_ACCEPTED, "Unknown", NO_OVERLAY_MISSING),
    ]);
    let conditions = json!({ "conditions": conditions });
    let claimed = json!({
        "ips": ["10.20.0.5/16"],
        "ownerPod": { "name": "virt-launcher-a" },
        "conditions": [condition("IPsAllocated", "True", "SuccessfulAllocation")],
    });
    let claim = json!({ "network": "cluster_udn_blue", "interface": "eth0" });
    let ours = "k8s.ovn.org/v1";
    [
        object(ours, "RouteAdvertisements", advertisements, ready),
        object(ours, "ClusterUserDefinedNetwork", example("ClusterUserDefinedNetwork"), conditions.clone()),
        object(ours, "UserDefinedNetwork", example("UserDefinedNetwork"), conditions),
        object("k8s.cni.cncf.io/v1alpha1", "IPAMClaim", claim, claimed),
    ]
}

#[test]
fn a_glance_tells_the_state() {
    let objects = objects_with_status();
    kubectl(&["create"], &objects).ok();
    let stored = kubectl(&["replace", "--subresource=status", "--output=json"], &objects).ok();
    let names = ["ra/glance", "cudn/glance", "udn/glance"];
    let tables = server().kubectl(&[&["get", "--output=wide"], &names[..]].concat()).ok();
    let lines: Vec<_> =
        tables.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let [ra, ra_line, _, cudn, cudn_line, _, udn, udn_line] = lines.as_slice() else { panic!("{tables}") };
    assert_eq!(ra, "NAME STATUS READY TARGET VRF ADVERTISEMENTS AGE");
    assert!(ra_line.contains(r#"/glance Accepted False blue ["PodNetwork","EgressIP"] "#), "{ra_line}");
    assert_eq!(cudn, "NAME TOPOLOGY ROLE TRANSPORT CREATED ALLOCATED CONNECTED SUBNETS MESSAGE AGE");
    let subnets = r#"[{"cidr":"10.10.0.0/16","hostSubnet":24}]"#;
    let want = format!("/glance Layer3 Primary NoOverlay True False Unknown {subnets} ");
    assert!(cudn_line.contains(&want), "{cudn_line}");
    assert_eq!(udn, "NAME TOPOLOGY ROLE CREATED ALLOCATED SUBNETS MESSAGE AGE");
    assert!(udn_line.contains(r#"/glance Layer2 Primary True False ["192.168.100.0/24"] "#), "{udn_line}");

    let stored = serde_json::Deserializer::from_str(&stored).into_iter::<Value>().map(Result::unwrap);
    for (stored, object) in stored.zip(&objects) {
        assert_eq!(stored["status"], object["status"], "all of the status is kept");
        if object["kind"] == "IPAMClaim" {
            let claim: IPAMClaim = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(claim.status).unwrap(), stored["status"]);
        }
    }
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
