//! Networks change while others are in use: a namespace joins one, another tenant comes with its own, and both leave.

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{self, PATIENCE, apply, get, image};
use crate::tenants::{Pod, in_pod, own_service_answers, pods, reach_each_other, wait_until_ready, workload};
use crate::traffic::{Stream, network_of};

/// A namespace that joins the network of blue.
const ANNEX: &str = "annex";
/// A tenant with a network that is defined in its own namespace; its subnets are those of red.
const VIOLET: &str = "violet";
/// Slices that the cluster manager made.
const SLICES: &str =
    "--selector=endpointslice.kubernetes.io/managed-by=endpointslice-mirror-controller.k8s.ovn.org";

/// Neighbours of red come and go; a connection of red's does not notice.
pub fn neighbours_come_and_go(lab: &LabUnderTest) {
    let stream = stream(lab, "red");
    a_namespace_joins(lab);
    a_namespace_has_its_own(lab);
    the_namespace_leaves(lab);
    its_own_goes(lab);
    wait_for("the connection to flow", PATIENCE, || stream.flows());
    let gap = stream.stop();
    println!("      {gap}");
    assert_eq!(gap.lost, 0, "{gap}");
}

/// A connection between the pods of a tenant.
fn stream(lab: &LabUnderTest, tenant: &str) -> Stream {
    let pods = pods(lab, tenant);
    let inside = |pod: &Pod, node: &str| {
        // Others may have the same address in their network, but none in the default one.
        let addresses = pod.locked.clone();
        let pod = cluster::Pod { name: pod.name.clone(), node: node.to_owned(), addresses };
        lab.network(node, Some(&network_of(lab, &pod)))
    };
    let (from, to) = (inside(&pods[0], "worker1"), inside(&pods[1], "worker2"));
    let address = pods[1].addresses[0].parse().expect("an address");
    let stream = Stream::start("TCP between pods of a tenant", from, &to, address);
    wait_for("the connection to flow", PATIENCE, || stream.flows());
    stream
}

fn select(lab: &LabUnderTest, tenants: &str) {
    let patch = format!(
        r#"{{"spec":{{"namespaceSelector":{{"matchLabels":null,"matchExpressions":
           [{{"key":"tenant","operator":"In","values":[{tenants}]}}]}}}}}}"#
    );
    lab.kubectl(&["patch", "clusteruserdefinednetwork", "blue", "--type=merge", "--patch", &patch]).ok();
}

fn namespace(name: &str) -> String {
    format!(
        r"
apiVersion: v1
kind: Namespace
metadata: {{ name: {name}, labels: {{ tenant: {name}, k8s.ovn.org/primary-user-defined-network: '' }} }}
---
"
    )
}

fn a_namespace_joins(lab: &LabUnderTest) {
    apply(lab, "annex.yaml", &(namespace(ANNEX) + &workload(ANNEX, &image())));
    select(lab, r#""blue","annex""#);
    wait_until_ready(lab, ANNEX);
    let (old, new) = (pods(lab, "blue"), pods(lab, ANNEX));
    for (from, to) in [(&old[0], &new[1]), (&new[0], &old[1])] {
        for address in &to.addresses {
            in_pod(lab, from, &["ping", "-c2", "-i0.2", "-W2", address]).expect("an answer");
        }
    }
    own_service_answers(lab, ANNEX);
}

fn a_namespace_has_its_own(lab: &LabUnderTest) {
    let network = r"
apiVersion: k8s.ovn.org/v1
kind: UserDefinedNetwork
metadata: { name: own, namespace: violet }
spec:
  topology: Layer3
  layer3:
    role: Primary
    subnets: [{ cidr: 10.200.0.0/16, hostSubnet: 24 }, { cidr: 'fd00:200::/48', hostSubnet: 64 }]
---
";
    apply(lab, "violet.yaml", &(namespace(VIOLET) + network + &workload(VIOLET, &image())));
    wait_until_ready(lab, VIOLET);
    reach_each_other(lab, VIOLET, "10.200.");
    own_service_answers(lab, VIOLET);
}

/// Deletes the pods of a namespace.
fn clear(lab: &LabUnderTest, namespace: &str) {
    lab.kubectl(&["delete", "pod", "--all", "--now", "--namespace", namespace]).ok();
}

/// Waits until a namespace has no attachment definition, and no slices of a network.
fn wait_until_detached(lab: &LabUnderTest, namespace: &str) {
    wait_for(&format!("nothing of a network in {namespace}"), PATIENCE, || {
        let definitions = get(lab, &["network-attachment-definitions", "--namespace", namespace]);
        let slices = get(lab, &["endpointslices", SLICES, "--namespace", namespace]);
        let names = [definitions, slices].iter().flat_map(names).collect::<Vec<_>>();
        if names.is_empty() { Ok(()) } else { Err(names.join(", ")) }
    });
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].to_string()).collect()
}

fn the_namespace_leaves(lab: &LabUnderTest) {
    clear(lab, ANNEX);
    select(lab, r#""blue""#);
    wait_until_detached(lab, ANNEX);
}

fn its_own_goes(lab: &LabUnderTest) {
    clear(lab, VIOLET);
    lab.kubectl(&["delete", "userdefinednetwork", "own", "--timeout=60s", "--namespace", VIOLET]).ok();
    wait_until_detached(lab, VIOLET);
}
