//! Pods on the lab's nodes: scheduled, probed, asked and reached.

use std::collections::BTreeMap;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, require_artifacts, wait_for};

use crate::PATIENCE;

/// Where an unready pod says so.
const BROKEN: &str = "/tmp/broken";

/// A pod of the deployment.
#[derive(Debug, Clone)]
pub struct Pod {
    pub name: String,
    pub node: String,
    /// IPv4 first, then IPv6.
    pub addresses: Vec<String>,
    pub restarts: u64,
}

/// An image with a shell, curl and a web server, under the name that nodes have it by.
fn image() -> String {
    let names = require_artifacts().image_names().expect("names of the images");
    names.into_iter().find(|name| name.contains("/agnhost:")).expect("an image of agnhost")
}

fn deployment() -> String {
    format!(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web }}
spec:
  replicas: 6
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: web
          image: {image}
          imagePullPolicy: Never
          args: [netexec, --http-port=8080]
          startupProbe: {{ httpGet: {{ path: /healthz, port: 8080 }}, periodSeconds: 1, failureThreshold: 60 }}
          readinessProbe: {{ exec: {{ command: [sh, -c, "! test -e {BROKEN}"] }}, periodSeconds: 1 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: web }}
spec:
  ipFamilyPolicy: RequireDualStack
  selector: {{ app: web }}
  ports: [{{ port: 80, targetPort: 8080 }}]
"#,
        image = image()
    )
}

/// Reads objects of the API.
pub fn get(lab: &LabUnderTest, what: &[&str]) -> Value {
    let text = lab.kubectl(&[&["get", "--output=json"], what].concat()).ok();
    serde_json::from_str(&text).expect("JSON of kubectl")
}

/// The pods of the deployment.
pub fn pods(lab: &LabUnderTest) -> Vec<Pod> {
    let list = get(lab, &["pods", "--selector=app=web"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pod = |pod: &Value| Pod {
        name: text(&pod["metadata"]["name"]),
        node: text(&pod["spec"]["nodeName"]),
        addresses: pod["status"]["podIPs"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|ip| text(&ip["ip"]))
            .collect(),
        restarts: pod["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap_or_default(),
    };
    list["items"].as_array().into_iter().flatten().map(pod).collect()
}

/// One pod on that node.
pub fn pod_on(lab: &LabUnderTest, node: &str) -> Pod {
    pods(lab).into_iter().find(|pod| pod.node == node).expect("a pod on every worker")
}

pub fn nodes_are_ready(lab: &LabUnderTest) {
    let list = get(lab, &["nodes"]);
    let mut seen = BTreeMap::new();
    for node in list["items"].as_array().expect("a list") {
        let ready =
            node["status"]["conditions"].as_array().into_iter().flatten().find(|c| c["type"] == "Ready");
        let addresses: Vec<&str> = node["status"]["addresses"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|address| address["type"] == "InternalIP")
            .filter_map(|address| address["address"].as_str())
            .collect();
        seen.insert(
            node["metadata"]["name"].as_str().unwrap_or_default(),
            (ready.is_some_and(|c| c["status"] == "True"), addresses),
        );
    }
    let wanted = BTreeMap::from([
        ("control", (true, vec!["172.30.0.10", "fd00:172:30::10"])),
        ("worker1", (true, vec!["172.30.0.11", "fd00:172:30::11"])),
        ("worker2", (true, vec!["172.30.0.12", "fd00:172:30::12"])),
    ]);
    assert_eq!(seen, wanted);
}

pub fn deployment_spreads(lab: &LabUnderTest) {
    let file = lab.file("web.yaml", &deployment());
    lab.kubectl(&["apply", "--filename", &file.to_string_lossy()]).ok();
    lab.kubectl(&["rollout", "status", "deployment/web", &format!("--timeout={}s", PATIENCE.as_secs())]).ok();
    let mut nodes = BTreeMap::new();
    for pod in pods(lab) {
        *nodes.entry(pod.node).or_insert(0) += 1;
        assert_eq!(pod.addresses.len(), 2, "{} has {:?}", pod.name, pod.addresses);
        assert!(pod.addresses[0].contains('.') && pod.addresses[1].contains(':'), "{:?}", pod.addresses);
    }
    // The scheduler spreads; the control plane's taint keeps pods off it.
    assert_eq!(nodes.values().sum::<u32>(), 6, "{nodes:?}");
    assert_eq!(nodes.into_keys().collect::<Vec<_>>(), ["worker1", "worker2"]);
}

pub fn exec_and_logs(lab: &LabUnderTest) {
    for node in ["worker1", "worker2"] {
        let pod = pod_on(lab, node);
        assert_eq!(lab.kubectl(&["exec", &pod.name, "--", "hostname"]).ok().trim(), pod.name);
        let code = lab.kubectl(&["exec", &pod.name, "--", "sh", "-c", "exit 3"]).status.code();
        assert_eq!(code, Some(3));
        let log = lab.kubectl(&["logs", &pod.name]).ok();
        assert!(log.contains("Started HTTP server on port 8080"), "{log}");
    }
}

/// How many endpoints are ready, by family.
fn ready_endpoints(lab: &LabUnderTest) -> BTreeMap<String, usize> {
    let list = get(lab, &["endpointslices", "--selector=kubernetes.io/service-name=web"]);
    let mut counts = BTreeMap::new();
    for slice in list["items"].as_array().into_iter().flatten() {
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let ready = endpoints.filter(|endpoint| endpoint["conditions"]["ready"] == true).count();
        *counts.entry(slice["addressType"].as_str().unwrap_or_default().to_owned()).or_insert(0) += ready;
    }
    counts
}

fn wait_for_endpoints(lab: &LabUnderTest, count: usize) {
    let wanted = BTreeMap::from([("IPv4".to_owned(), count), ("IPv6".to_owned(), count)]);
    wait_for(&format!("{count} ready endpoints of each family"), PATIENCE, || {
        let seen = ready_endpoints(lab);
        if seen == wanted { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

pub fn probes_and_endpoints(lab: &LabUnderTest) {
    wait_for_endpoints(lab, 6);
    let pod = pod_on(lab, "worker1").name;
    lab.kubectl(&["exec", &pod, "--", "touch", BROKEN]).ok();
    wait_for_endpoints(lab, 5);
    lab.kubectl(&["exec", &pod, "--", "rm", BROKEN]).ok();
    wait_for_endpoints(lab, 6);
}

/// Fetches a pod's own name from its web server, from within a machine.
pub fn fetch(lab: &LabUnderTest, machine: &str, address: &str) -> Result<String, String> {
    lab.exec(machine, &["curl", "--silent", "--show-error", "--max-time", "5", &url(address)]).result()
}

fn url(address: &str) -> String {
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    format!("http://{host}:8080/hostname")
}

pub fn reached_across_nodes(lab: &LabUnderTest) {
    let (one, two) = (pod_on(lab, "worker1"), pod_on(lab, "worker2"));
    for (from, to) in [(&one, &two), (&two, &one)] {
        for address in &to.addresses {
            assert_eq!(
                fetch(lab, &from.node, address).as_ref(),
                Ok(&to.name),
                "{} from {}",
                address,
                from.node
            );
            assert_eq!(fetch(lab, "control", address).as_ref(), Ok(&to.name), "{address} from control");
            let curl = ["curl", "--silent", "--show-error", "--max-time", "5", &url(address)];
            let answer = lab.kubectl(&[&["exec", &from.name, "--"], curl.as_slice()].concat()).ok();
            assert_eq!(answer, to.name, "{address} from pod {}", from.name);
        }
    }
}
