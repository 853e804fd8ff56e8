//! Daemons of the lab's machines, and how the agent of a node fares.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{PATIENCE, Pod, apply, authority, fetch_from, get, image, pods_on, wait_for_text};

/// After this long whatever can recover has recovered.
pub const RECOVERY: Duration = Duration::from_secs(30);

/// Runs a script in a machine that must succeed.
#[track_caller]
pub fn sh(lab: &LabUnderTest, machine: &str, script: &str) -> String {
    lab.exec(machine, &["sh", "-ec", script]).ok()
}

/// What a machine says of one of its daemons.
pub fn daemon(lab: &LabUnderTest, machine: &str, name: &str) -> Value {
    let path = lab.paths().shared_directory(machine).join("status.json");
    let text = fs::read(path).unwrap_or_default();
    let status: Value = serde_json::from_slice(&text).unwrap_or_default();
    let daemons = status["daemons"].as_array().into_iter().flatten();
    daemons.into_iter().find(|daemon| daemon["name"] == name).cloned().unwrap_or_default()
}

/// Kills a daemon without a chance to say goodbye. Returns its number.
pub fn kill(lab: &LabUnderTest, machine: &str, name: &str) -> String {
    let number = number(&daemon(lab, machine, name));
    lab.exec(machine, &["kill", "-9", &number]).ok();
    number
}

/// A daemon's number inside its machine.
fn number(daemon: &Value) -> String {
    daemon["pid"].to_string()
}

/// Waits until a daemon runs under another number than this one.
pub fn wait_until_back(lab: &LabUnderTest, machine: &str, name: &str, old: &str) {
    wait_for(&format!("{name} of {machine}"), PATIENCE, || {
        let now = daemon(lab, machine, name);
        if now["state"] == "up" && number(&now) != old { Ok(()) } else { Err(now.to_string()) }
    });
}

/// The agent of a node is kept from running until this is dropped. The lab starts something else in its place.
pub struct Down<'a> {
    lab: &'a LabUnderTest,
    node: &'a str,
}

const AGENT: &str = "/opt/underlay/bin/underlay-agent";

impl<'a> Down<'a> {
    pub fn hold(lab: &'a LabUnderTest, node: &'a str) -> Self {
        let script = format!(
            "printf '#!/bin/sh\\nexec sleep 600\\n' > /tmp/idle; chmod 755 /tmp/idle; mount --bind /tmp/idle {AGENT}"
        );
        sh(lab, node, &script);
        let down = Self { lab, node };
        let old = kill(lab, node, "underlay-agent");
        wait_for("something else in the agent's place", PATIENCE, || {
            let now = daemon(lab, node, "underlay-agent");
            if now["pid"].is_number() && number(&now) != old { Ok(()) } else { Err(now.to_string()) }
        });
        down
    }
}

impl Drop for Down<'_> {
    fn drop(&mut self) {
        sh(self.lab, self.node, &format!("umount {AGENT}"));
        kill(self.lab, self.node, "underlay-agent");
    }
}

/// What the agent of a node measures: lines of name and value.
pub fn metrics(lab: &LabUnderTest, node: &str) -> Result<String, String> {
    lab.exec(node, &["curl", "--silent", "--max-time", "5", "http://localhost:9411/metrics"]).result()
}

/// Waits until the agent of a node has carried out its plan and nothing is wrong.
pub fn wait_until_well(lab: &LabUnderTest, node: &str) {
    let ready = ["curl", "--silent", "--fail-with-body", "--max-time", "5", "http://localhost:9411/readyz"];
    wait_for(&format!("the agent of {node}"), RECOVERY, || {
        lab.exec(node, &ready).result()?;
        let text = metrics(lab, node)?;
        let failing = |line: &&str| line.starts_with("underlay_edge_failing") && !line.ends_with(" 0");
        match text.lines().find(failing) {
            None => Ok(()),
            Some(line) => Err(line.to_owned()),
        }
    });
}

/// Waits until all BGP sessions of a node stand.
pub fn wait_for_sessions(lab: &LabUnderTest, node: &str) {
    wait_for_text(lab, "BGP sessions", node, &["vtysh", "-c", "show bgp summary json"], |text| {
        text.matches("\"state\":\"Established\"").count() == 2
    });
}

/// Waits until the pods of worker1 are reached from outside, in both families, and every node has heard of the pods of
/// the two others: from then on nothing moves by itself.
pub fn wait_until_advertised(lab: &LabUnderTest) {
    let pod = &pods_on(lab, "worker1")[0];
    for address in &pod.addresses {
        wait_until_reached(lab, pod, address);
    }
    let routes = ["sh", "-c", "ip route show proto bgp; ip -6 route show proto bgp"];
    let of_others = |text: &str, subnets: &str| text.lines().filter(|line| line.starts_with(subnets)).count();
    for node in ["control", "worker1", "worker2"] {
        wait_for_text(lab, "the routes of the other nodes", node, &routes, |text| {
            of_others(text, "10.244.") == 2 && of_others(text, "fd00:10:244:") == 2
        });
    }
}

/// Waits until the peer has no route to the pods of worker1.
pub fn wait_until_withdrawn(lab: &LabUnderTest) {
    wait_for_text(lab, "the route to be withdrawn", "tor", &["ip", "route"], |text| {
        !text.contains("10.244.")
    });
}

fn wait_until_reached(lab: &LabUnderTest, pod: &Pod, address: &str) {
    let url = format!("http://{}/hostname", authority(address, 8080));
    wait_for("a pod to be reached from outside", RECOVERY, || match fetch_from(lab, "outside", &url)? {
        name if name == pod.name => Ok(()),
        other => Err(other),
    });
}

/// Starts pods on worker1 and does not wait.
pub fn start_pods(lab: &LabUnderTest, names: &[String]) {
    let image = image();
    let pod = |name: &String| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{ name: {name}, labels: {{ app: extra }} }}
spec:
  nodeName: worker1
  terminationGracePeriodSeconds: 0
  containers:
    - {{ name: web, image: {image:?}, imagePullPolicy: Never, args: [netexec, --http-port=8080] }}
"
        )
    };
    apply(lab, "pods.yaml", &names.iter().map(pod).collect::<String>());
}

/// Waits until pods run, and returns them.
pub fn wait_until_running(lab: &LabUnderTest, names: &[String]) -> Vec<Pod> {
    let mut command = vec!["wait", "pod", "--for=condition=Ready", "--timeout=60s"];
    command.extend(names.iter().map(String::as_str));
    lab.kubectl(&command).ok();
    names.iter().map(|name| running_pod(lab, name)).collect()
}

fn running_pod(lab: &LabUnderTest, name: &str) -> Pod {
    let pod = get(lab, &["pod", name]);
    let addresses = pod["status"]["podIPs"].as_array().into_iter().flatten();
    let addresses = addresses.filter_map(|entry| entry["ip"].as_str()).map(str::to_owned).collect();
    Pod { name: name.to_owned(), node: "worker1".to_owned(), addresses }
}

/// Starts a pod on worker1, reaches it from outside, and lets it go again.
pub fn a_new_pod_works(lab: &LabUnderTest, name: &str) {
    let names = [name.to_owned()];
    start_pods(lab, &names);
    for pod in wait_until_running(lab, &names) {
        pod.addresses.iter().for_each(|address| wait_until_reached(lab, &pod, address));
    }
    delete_pods(lab, &names, false);
}

/// Deletes pods.
pub fn delete_pods(lab: &LabUnderTest, names: &[String], wait: bool) {
    let wait = format!("--wait={wait}");
    let mut command = vec!["delete", "pod", "--now", &wait];
    command.extend(names.iter().map(String::as_str));
    lab.kubectl(&command).ok();
}
