//! The admin's desk tells of tenants' networks what is so, and what a change would bring.

use std::process::{Command, Output};

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt};

use crate::tenants::{TENANTS, pods};

fn desk(lab: &LabUnderTest, arguments: &[&str]) -> Output {
    let kubeconfig = lab.cli(&["kubeconfig"]).ok();
    let mut command = Command::new(LabUnderTest::program());
    command.args(arguments).args(["--kubeconfig", kubeconfig.trim_end()]);
    command.output().expect("kubectl-underlay runs")
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Every network is a row, with all nodes behind it.
pub fn status_has_all_networks(lab: &LabUnderTest) {
    let told = json(&desk(lab, &["status", "--output", "json"]));
    for (name, subnet, _) in TENANTS {
        let rows = told["networks"].as_array().into_iter().flatten();
        let row = rows.into_iter().find(|row| row["name"] == format!("cudn/{name}"));
        let row = row.unwrap_or_else(|| panic!("no {name} in {told}"));
        assert_eq!((&row["state"], &row["subnets"][0]), (&"Ready".into(), &subnet.into()), "{told}");
        assert_eq!((&row["nodesReady"], &row["nodes"]), (&3.into(), &3.into()), "{told}");
    }
}

/// A tenant's pod is followed on its network, by name and by an address that two networks have.
pub fn explain_follows_a_tenants_pod(lab: &LabUnderTest) {
    let pod = &pods(lab, "red")[0];
    let name = format!("red/{}", pod.name);
    let told = desk(lab, &["explain", &name]).ok();
    assert!(told.contains("cudn/red") && told.contains(&pod.addresses[0]), "{told}");
    let unclear = desk(lab, &["explain", &pod.addresses[0]]);
    let shared = pods(lab, "blue").iter().any(|other| other.addresses[0] == pod.addresses[0]);
    if shared {
        assert_eq!(unclear.status.code(), Some(2), "two pods have {}", pod.addresses[0]);
        assert!(unclear.refused().contains("--network"));
    }
    let told = desk(lab, &["explain", &pod.addresses[0], "--network", "cudn/red"]).ok();
    assert!(told.starts_with(&format!("pod {name}\n")), "{told}");
    let told = desk(lab, &["explain", "cudn/red"]).ok();
    assert!(told.contains("control, worker1, worker2 carry it"), "{told}");
}

/// What is there is planned as it is: nothing would change. One more network would, everywhere.
pub fn plan_agrees_with_what_is_there(lab: &LabUnderTest) {
    let network = |name: &str| {
        format!(
            r"
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {{ name: {name} }}
spec:
  namespaceSelector: {{ matchLabels: {{ tenant: {name} }} }}
  network: {{ topology: Layer3, layer3: {{ role: Primary, subnets: [{{ cidr: 10.202.0.0/16, hostSubnet: 24 }}] }} }}
---
apiVersion: v1
kind: Namespace
metadata: {{ name: {name}, labels: {{ tenant: {name}, k8s.ovn.org/primary-user-defined-network: '' }} }}
"
        )
    };
    let namespace = |labels: &str| {
        format!("{{ apiVersion: v1, kind: Namespace, metadata: {{ name: red, labels: {{ {labels} }} }} }}")
    };
    let labels = "tenant: red, k8s.ovn.org/primary-user-defined-network: ''";
    let same = lab.file("same.yaml", &namespace(labels));
    let plan = |file: &std::path::Path| {
        let file = file.to_string_lossy().into_owned();
        json(&desk(lab, &["plan", "--cluster", "--output", "json", "--filename", &file]))
    };
    let told = plan(&same);
    assert_eq!((&told["api"], &told["nodes"]), (&Value::Array(vec![]), &Value::Array(vec![])), "{told}");
    assert_eq!(told["notes"], Value::Array(vec![]), "every agent told of its node");

    // A label that the manifest had and has no longer goes, and the network with it, if no pod were there.
    let told = plan(&lab.file("apart.yaml", &namespace("tenant: none")));
    assert!(told["others"].to_string().contains("network in use by the following pods"), "{told}");

    let grey = lab.file("grey.yaml", &network("grey"));
    let told = plan(&grey);
    for node in ["control", "worker1", "worker2"] {
        let nodes = told["nodes"].as_array().into_iter().flatten();
        let changes = nodes.filter(|one| one["node"] == node).filter_map(|one| one["changes"].as_array());
        let switch = format!("Logical_Switch cluster_udn_grey_{node}");
        assert!(changes.flatten().any(|change| change["name"] == switch), "{switch} in {told}");
    }
    let kinds = lab.kubectl(&["get", "clusteruserdefinednetworks,namespaces", "--output=name"]).ok();
    assert!(!kinds.contains("grey"), "nothing was written: {kinds}");
}
