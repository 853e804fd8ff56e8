//! A lab with pods in it, and ways to look at what they send: with other tools than those under test.

use std::io::Read;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, require_artifacts, wait_for};

/// A busy machine may take many times what an idle one does.
pub const PATIENCE: Duration = Duration::from_mins(1);
/// The host outside, in both families.
pub const OUTSIDE: [&str; 2] = ["203.0.113.10", "2001:db8:113::10"];

/// A pod of the deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub node: String,
    pub addresses: Vec<String>,
}

/// An image with a shell, curl and a web server, under the name that nodes have it by.
pub fn image() -> String {
    let names = require_artifacts().image_names().expect("names of the images");
    names.into_iter().find(|name| name.contains("/agnhost:")).expect("an image of agnhost")
}

/// A web server on every worker, two on each, and a service in front of them.
pub fn deploy(lab: &LabUnderTest) {
    let image = image();
    let manifest = format!(
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web }}
spec:
  replicas: 4
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {{ matchLabels: {{ app: web }} }}
          nodeTaintsPolicy: Honor
      containers:
        - name: web
          image: {image}
          imagePullPolicy: Never
          args: [netexec, --http-port=8080, --udp-port=8081]
          readinessProbe: {{ httpGet: {{ path: /healthz, port: 8080 }}, periodSeconds: 1 }}
          livenessProbe: {{ tcpSocket: {{ port: 8080 }}, periodSeconds: 1 }}
---
apiVersion: v1
kind: Service
metadata: {{ name: web }}
spec:
  ipFamilyPolicy: PreferDualStack
  selector: {{ app: web }}
  ports: [{{ port: 80, targetPort: 8080 }}]
"
    );
    apply(lab, "web.yaml", &manifest);
    lab.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]).ok();
}

/// Applies a manifest.
pub fn apply(lab: &LabUnderTest, name: &str, manifest: &str) {
    let file = lab.file(name, manifest);
    lab.kubectl(&["apply", "--filename", &file.to_string_lossy()]).ok();
}

/// Reads objects of the API.
pub fn get(lab: &LabUnderTest, what: &[&str]) -> Value {
    let text = lab.kubectl(&[&["get", "--output=json"], what].concat()).ok();
    serde_json::from_str(&text).expect("JSON of kubectl")
}

/// The deployment's pods.
pub fn pods(lab: &LabUnderTest) -> Vec<Pod> {
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
    };
    let list = get(lab, &["pods", "--selector=app=web"]);
    list["items"].as_array().into_iter().flatten().map(pod).collect()
}

/// The pods on a node.
pub fn pods_on(lab: &LabUnderTest, node: &str) -> Vec<Pod> {
    pods(lab).into_iter().filter(|pod| pod.node == node).collect()
}

/// An address with a port, as in URLs.
pub fn authority(address: &str, port: u16) -> String {
    if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
}

/// Runs a command in a pod.
pub fn in_pod(lab: &LabUnderTest, pod: &Pod, command: &[&str]) -> Result<String, String> {
    lab.kubectl(&[&["exec", &pod.name, "--"], command].concat()).result()
}

/// Fetches a URL from within a pod.
pub fn fetch_from_pod(lab: &LabUnderTest, pod: &Pod, url: &str) -> Result<String, String> {
    in_pod(lab, pod, &["curl", "--silent", "--show-error", "--insecure", "--max-time", "5", url])
}

/// Fetches a URL from within a machine.
pub fn fetch_from(lab: &LabUnderTest, machine: &str, url: &str) -> Result<String, String> {
    lab.exec(machine, &["curl", "--silent", "--show-error", "--insecure", "--max-time", "5", url]).result()
}

/// A capture of packets at a machine, from now on.
pub struct Capture {
    child: Child,
}

impl Capture {
    /// Begins to listen on an interface of a machine; returns once it does.
    pub fn start(lab: &LabUnderTest, machine: &str, interface: &str, filter: &str) -> Self {
        let tcpdump = format!("exec timeout 20 tcpdump -n -l -U -c 1 -i {interface} '{filter}' 2>&1");
        let mut child = lab
            .command()
            .args(["exec", machine, "--", "sh", "-c", &tcpdump])
            .stdout(Stdio::piped())
            .spawn()
            .expect("running the lab's command");
        let mut said = String::new();
        let mut byte = [0];
        let output = child.stdout.as_mut().expect("a pipe");
        while !said.contains("listening on") && output.read(&mut byte).expect("reading") == 1 {
            said.push(char::from(byte[0]));
        }
        assert!(said.contains("listening on"), "{said}");
        Self { child }
    }

    /// The packet that was seen, as tcpdump prints it.
    pub fn packet(mut self) -> String {
        let mut text = String::new();
        self.child.stdout.as_mut().expect("a pipe").read_to_string(&mut text).expect("reading");
        let _ = self.child.wait();
        text.lines().find(|line| line.contains(" IP")).unwrap_or_default().to_owned()
    }
}

/// Who a pod's ping comes from, as the host outside sees it.
pub fn source_seen_outside(lab: &LabUnderTest, pod: &Pod, outside: &str) -> String {
    let (filter, words) = if outside.contains(':') {
        ("icmp6 and ip6[40] == 128", "IP6 ")
    } else {
        ("icmp[icmptype] == icmp-echo", "IP ")
    };
    let capture = Capture::start(lab, "outside", "eth0", filter);
    let _ = in_pod(lab, pod, &["ping", "-c1", "-W2", outside]);
    let packet = capture.packet();
    let rest = packet.split_once(words).map_or("", |(_, rest)| rest);
    rest.split(' ').next().unwrap_or_default().to_owned()
}

/// Waits until a machine's text has something in it.
pub fn wait_for_text(
    lab: &LabUnderTest,
    what: &str,
    machine: &str,
    command: &[&str],
    has: impl Fn(&str) -> bool,
) {
    wait_for(what, PATIENCE, || {
        let text = lab.exec(machine, command).result()?;
        if has(&text) { Ok(()) } else { Err(text) }
    });
}
