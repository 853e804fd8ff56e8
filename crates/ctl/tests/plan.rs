//! `kubectl underlay plan --cluster` on a real API server: what would change is told, and nothing is written.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use underlay_testkit::{ApiServer, OutputExt, Scratch};

fn folder(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name).display().to_string()
}

fn plan(api: &ApiServer, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-underlay"));
    command.arg("plan").arg("--cluster").arg("--kubeconfig").arg(api.kubeconfig());
    command.args(arguments).output().expect("kubectl-underlay runs")
}

fn outlook(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Names and versions of all objects that could have been written to.
fn versions(api: &ApiServer) -> String {
    let kinds = "nodes,namespaces,pods,services,endpointslices,network-attachment-definitions,\
                 clusteruserdefinednetworks,userdefinednetworks,routeadvertisements,frrconfigurations,events";
    let columns =
        "custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name,V:.metadata.resourceVersion";
    api.kubectl(&["get", kinds, "--all-namespaces", "--output", columns]).ok()
}

fn changes(outlook: &Value, action: &str) -> Vec<String> {
    let changes = outlook["api"].as_array().into_iter().flatten();
    let wanted = changes.filter(|change| change["action"] == action);
    wanted.map(|change| change["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_live_cluster_is_planned_and_not_written_to() {
    let (api, scratch) = (ApiServer::shared(), Scratch::new("plan"));
    api.kubectl(&["apply", "--filename", &folder("deploy/crds")]).ok();
    api.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]).ok();
    let world = folder("scenarios/tenants/world");
    let file = |name: &str| format!("{world}/{name}.yaml");
    for name in ["nodes", "namespaces"] {
        api.kubectl(&["apply", "--filename", &file(name)]).ok();
    }
    let before = versions(api);

    // New networks: everything that comes of them, on every node and in the API.
    let networks = file("networks");
    let output = plan(api, &["--filename", &networks, "--output", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let told = outlook(&output);
    assert_eq!(told["objects"][0]["fate"], "new");
    let added = changes(&told, "add");
    assert!(added.contains(&"NetworkAttachmentDefinition red-web/red".to_owned()), "{added:?}");
    assert_eq!(told["nodes"].as_array().map(Vec::len), Some(3));
    let notes = told["notes"].to_string();
    assert!(notes.contains("no agent told the settings"), "{notes}");

    // The same once they are there: nothing is new in the files.
    api.kubectl(&["apply", "--filename", &networks]).ok();
    let stored = versions(api);
    let output = plan(api, &["--filename", &networks, "--output", "json"]);
    let told = outlook(&output);
    assert_eq!(told["objects"][0]["fate"], "unchanged");
    assert_eq!((changes(&told, "add").len(), told["nodes"].as_array().map(Vec::len)), (0, Some(0)), "{told}");

    // Rules that look at what was there before count too.
    let text =
        std::fs::read_to_string(&networks).expect("the file").replace("10.200.0.0/16", "10.199.0.0/16");
    let changed = scratch.join("changed.yaml");
    std::fs::write(&changed, text).expect("written");
    let output = plan(api, &["--filename", &changed.display().to_string()]);
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("the API server would not take it: spec.network"), "{shown}");

    // Away with them.
    let output = plan(api, &["--filename", &networks, "--delete", "--output", "diff"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("- ClusterUserDefinedNetwork blue"), "{shown}");

    assert_eq!(versions(api), stored, "nothing was written");
    assert!(stored.lines().count() > before.lines().count());
}

#[test]
fn files_that_cannot_be_read_are_told_before_anybody_is_asked() {
    let scratch = Scratch::new("plan-files");
    let file = scratch.join("bad.yaml");
    let text = "apiVersion: k8s.ovn.org/v1\nkind: RouteAdvertisment\nmetadata: { name: a }\n";
    std::fs::write(&file, text).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-underlay"))
        .args(["plan", "--filename"])
        .arg(&file)
        .output()
        .expect("kubectl-underlay runs");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("bad.yaml, document 1: kind: there is no RouteAdvertisment in k8s.ovn.org"),
        "{told}"
    );
}
