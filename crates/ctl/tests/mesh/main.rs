//! A cluster without overlay and without a router that speaks BGP: the nodes tell each other where pods are, in a mesh
//! that the cluster manages.

// Not everything that other tests need is needed here.
#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;

use std::process::Command;
use std::time::Instant;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, turn, wait_for};

use cluster::{
    Capture, OUTSIDE, PATIENCE, Pod, apply, authority, deploy, fetch_from_pod, get, image, pods_on,
    source_seen_outside,
};

/// What an example of the documents asks for.
const BLUE: &str = include_str!("../../../../scenarios/seeds/blue-managed.yaml");
/// The managed FRRConfiguration.
const FABRIC: [&str; 4] = ["frrconfigurations", "-A", "-l", "k8s.ovn.org/managed-internal-fabric=bgp"];

type Step = (&'static str, fn(&LabUnderTest));

const STEPS: &[Step] = &[
    ("all is well, and says how", all_is_well),
    ("pods reach each other without tunnels", pods_reach_each_other),
    ("pods leave with the node's address", pods_leave_with_the_nodes_address),
    ("a tenant's network joins", a_tenants_network_joins),
    ("the mesh comes back when somebody deletes it", the_mesh_comes_back),
];

#[test]
fn nodes_without_overlay_find_each_other() {
    let _turn = turn();
    let lab = LabUnderTest::up_from("mesh", include_str!("lab.yaml"));
    deploy(&lab);
    for (name, step) in STEPS {
        let started = Instant::now();
        println!("step: {name}");
        step(&lab);
        println!("      {:.1} s", started.elapsed().as_secs_f64());
    }
}

fn all_is_well(lab: &LabUnderTest) {
    let kubeconfig = lab.cli(&["kubeconfig"]).ok();
    wait_for("status to have no problems", PATIENCE, || {
        let mut desk = Command::new(LabUnderTest::program());
        let output = desk.args(["status", "--kubeconfig", kubeconfig.trim_end()]).output();
        let text = output.map_err(|error| error.to_string())?.result()?;
        let line = "default network: NoOverlay, advertised by ovnk-managed-";
        if text.contains(line) && text.contains("all is well") { Ok(()) } else { Err(text) }
    });
}

fn one_on_each(lab: &LabUnderTest) -> [Pod; 2] {
    ["worker1", "worker2"].map(|node| pods_on(lab, node).into_iter().next().expect("a pod there"))
}

/// A pod sees who asks, and the wire has no tunnel on it.
fn pods_reach_each_other(lab: &LabUnderTest) {
    let [near, far] = one_on_each(lab);
    for (own, address) in near.addresses.iter().zip(&far.addresses) {
        let capture = Capture::start(lab, "worker2", "eth0", "udp port 6081 or tcp port 8080");
        let url = format!("http://{}/clientip", authority(address, 8080));
        wait_for(&format!("{url} to answer"), PATIENCE, || {
            let seen = fetch_from_pod(lab, &near, &url)?;
            if seen.contains(own.as_str()) { Ok(()) } else { Err(seen) }
        });
        let packet = capture.packet();
        assert!(packet.contains(own.as_str()) && !packet.contains("6081"), "{packet}");
    }
}

fn pods_leave_with_the_nodes_address(lab: &LabUnderTest) {
    let [near, _] = one_on_each(lab);
    assert_eq!(source_seen_outside(lab, &near, OUTSIDE[0]), "172.30.0.11");
    assert_eq!(source_seen_outside(lab, &near, OUTSIDE[1]), "fd00:172:30::11");
}

fn a_tenants_network_joins(lab: &LabUnderTest) {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ns1\n  labels:\n    \
                     k8s.ovn.org/primary-user-defined-network: \"\"\n";
    apply(lab, "ns1.yaml", namespace);
    let network = BLUE.split("\n---\n").next().unwrap_or_default();
    apply(lab, "blue.yaml", network);
    wait_for("the network's transport", PATIENCE, || {
        let blue = get(lab, &["clusteruserdefinednetwork", "blue"]);
        let conditions = blue["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let accepted = conditions.iter().any(|one| one["reason"] == "NoOverlayTransportAccepted");
        if accepted { Ok(()) } else { Err(format!("{conditions:?}")) }
    });
    for node in ["worker1", "worker2"] {
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{ name: on-{node}, namespace: ns1 }}\nspec:\n  nodeName: {node}\n  \
             terminationGracePeriodSeconds: 0\n  containers:\n  - {{ name: web, image: {}, imagePullPolicy: Never, \
             args: [netexec, --http-port=8080] }}\n",
            image()
        );
        apply(lab, &format!("{node}.yaml"), &pod);
    }
    lab.kubectl(&["wait", "-n", "ns1", "--for=condition=Ready", "pod", "--all", "--timeout=60s"]).ok();
    let own = |name: &str| {
        let pod = get(lab, &["pod", "-n", "ns1", name]);
        let text =
            pod["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str().unwrap_or("{}").to_owned();
        let networks: Value = serde_json::from_str(&text).expect("JSON of the pod's networks");
        let address = networks["ns1/blue"]["ip_addresses"][0].as_str().unwrap_or_default();
        address.split('/').next().unwrap_or_default().to_owned()
    };
    let (near, far) = (own("on-worker1"), own("on-worker2"));
    let capture = Capture::start(lab, "worker2", "eth0", "udp port 6081 or tcp port 8080");
    let url = format!("http://{far}:8080/clientip");
    wait_for(&format!("{url} to answer"), PATIENCE, || {
        let command =
            ["exec", "-n", "ns1", "on-worker1", "--", "curl", "--silent", "--show-error", "--max-time", "5"];
        let seen = lab.kubectl(&[&command[..], &[&url]].concat()).result()?;
        if seen.contains(&near) { Ok(()) } else { Err(seen) }
    });
    let packet = capture.packet();
    assert!(packet.contains(&near) && !packet.contains("6081"), "{packet}");
}

fn the_mesh_comes_back(lab: &LabUnderTest) {
    let before = get(lab, &FABRIC)["items"][0].clone();
    let name = before["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    lab.kubectl(&["delete", "frrconfiguration", "-n", "frr-k8s-system", &name]).ok();
    wait_for("the mesh", PATIENCE, || {
        let now = get(lab, &FABRIC)["items"][0].clone();
        let again = now["metadata"]["uid"] != before["metadata"]["uid"] && now["spec"] == before["spec"];
        if again { Ok(()) } else { Err(now.to_string()) }
    });
    all_is_well(lab);
    pods_reach_each_other(lab);
}
