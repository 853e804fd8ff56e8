//! A topology of `examples/` in a lab, with a pod of each network on both workers.

#[path = "web_server.rs"]
mod web_server;

use std::path::PathBuf;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use super::cluster::{self, Capture, PATIENCE, authority, get};

/// Nodes that have pods.
const WORKERS: [&str; 2] = ["worker1", "worker2"];
/// The port of the pods' web servers.
pub const PORT: u16 = 8080;

/// A topology in a lab.
pub struct Place {
    pub lab: LabUnderTest,
    directory: PathBuf,
}

/// A pod of a network.
#[derive(Debug, Clone)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    /// In its network, one of each family that this has.
    pub addresses: Vec<String>,
}

impl Place {
    /// Brings the lab of an example up.
    pub fn up(example: &str) -> Self {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
        Self::up_from(&example.replace('-', ""), directory)
    }

    /// Brings up the lab that a directory describes.
    pub fn up_from(label: &str, directory: PathBuf) -> Self {
        let file = std::fs::read_to_string(directory.join("lab.yaml")).expect("the directory's lab");
        Self { lab: LabUnderTest::up_from(label, &file), directory }
    }

    /// Applies files of the example, as they are.
    pub fn apply(&self, files: &[&str]) {
        for file in files {
            self.kubectl(&["apply", "--filename", &self.directory.join(file).to_string_lossy()]);
        }
    }

    /// Runs kubectl.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.lab.kubectl(arguments).ok()
    }

    /// Starts a web server in each namespace on each worker, and waits for them.
    pub fn run_pods(&self, namespaces: &[&str]) {
        let pods = namespaces.iter().flat_map(|namespace| WORKERS.map(|node| (namespace, node)));
        let manifest: Vec<String> =
            pods.map(|(namespace, node)| web_server::manifest(namespace, node, PORT)).collect();
        cluster::apply(&self.lab, "pods.yaml", &manifest.join("---"));
        for namespace in namespaces {
            let ready =
                ["wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", "--namespace", namespace];
            self.kubectl(&ready);
        }
    }

    /// The pod of a network on a worker, with its addresses in that network.
    pub fn pod(&self, network: &str, node: &str) -> Pod {
        let object = get(&self.lab, &["pod", node, "--namespace", network]);
        let text = object["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str().unwrap_or("{}");
        let networks: Value = serde_json::from_str(text).expect("JSON of the annotation");
        let own = networks.as_object().into_iter().flatten();
        let own = own.filter(|(name, _)| (name.as_str() == "default") == (network == "default"));
        let addresses = own.flat_map(|(_, own)| own["ip_addresses"].as_array().into_iter().flatten());
        let address = |text: &Value| {
            let text = text.as_str().unwrap_or_default();
            text.split_once('/').map_or(text, |(address, _)| address).to_owned()
        };
        let addresses: Vec<String> = addresses.map(address).collect();
        assert!(!addresses.is_empty(), "no addresses in {text}");
        Pod { namespace: network.to_owned(), name: node.to_owned(), addresses }
    }

    /// Runs a command in a pod.
    pub fn in_pod(&self, pod: &Pod, command: &[&str]) -> Result<String, String> {
        self.lab
            .kubectl(&[&["exec", &pod.name, "--namespace", &pod.namespace, "--"], command].concat())
            .result()
    }

    /// Fetches what a pod's web server takes the asker's address for, from within another pod.
    pub fn asker_seen_by(&self, from: &Pod, address: &str) -> Result<String, String> {
        let url = format!("http://{}/clientip", authority(address, PORT));
        let seen = self.in_pod(from, &["curl", "--silent", "--show-error", "--max-time", "3", &url])?;
        Ok(host(&seen))
    }

    /// The advertisement of this name and all networks without overlay are accepted.
    pub fn all_is_accepted(&self, advertisement: &str) {
        let condition = format!("routeadvertisements/{advertisement}");
        self.kubectl(&["wait", &condition, "--for=condition=Accepted", "--timeout=60s"]);
        self.kubectl(&["wait", &condition, "--for=condition=Ready", "--timeout=60s"]);
        self.transport_is_accepted("green");
    }

    /// A network's transport is accepted.
    pub fn transport_is_accepted(&self, network: &str) {
        let condition = format!("clusteruserdefinednetwork/{network}");
        self.kubectl(&["wait", &condition, "--for=condition=TransportAccepted", "--timeout=60s"]);
    }

    /// The host outside reaches the pods of a network at their own addresses, under its own.
    pub fn reached_from_outside(&self, network: &str) {
        for node in WORKERS {
            for address in self.pod(network, node).addresses {
                let url = format!("http://{}/clientip", authority(&address, PORT));
                let seen = wait_for(&format!("an answer of {address}"), PATIENCE, || {
                    cluster::fetch_from(&self.lab, "outside", &url)
                });
                assert_eq!(host(&seen), outside(&address), "whom {address} took the host outside for");
            }
        }
    }

    /// The host outside sees the pods of a network under their own addresses.
    pub fn seen_outside(&self, network: &str) {
        for node in WORKERS {
            let pod = self.pod(network, node);
            for address in &pod.addresses {
                assert_eq!(self.source_seen_outside(&pod, outside(address)), *address);
            }
        }
    }

    /// The host outside sees the node of a network's pod.
    pub fn node_seen_outside(&self, network: &str) {
        let pod = self.pod(network, "worker1");
        for address in &pod.addresses {
            let node = if address.contains(':') { "fd00:172:30::11" } else { "172.30.0.11" };
            assert_eq!(self.source_seen_outside(&pod, outside(address)), node);
        }
    }

    /// Whom the host outside takes a pod for.
    pub fn source_seen_outside(&self, pod: &Pod, outside: &str) -> String {
        let filter =
            if outside.contains(':') { "icmp6 and ip6[40] == 128" } else { "icmp[icmptype] == icmp-echo" };
        let capture = Capture::start(&self.lab, "outside", "eth0", filter);
        self.in_pod(pod, &["ping", "-c1", "-W3", outside]).expect("the host outside answers");
        let packet = capture.packet();
        let mut words = packet.split_whitespace().skip_while(|word| !word.starts_with("IP"));
        words.nth(1).unwrap_or_default().to_owned()
    }

    /// Nodes reach pods and pods reach nodes, services and names, on the same node and on another.
    pub fn node_and_services_are_reached(&self) {
        let far = self.pod("default", "worker2");
        for address in &far.addresses {
            let url = format!("http://{}/healthz", authority(address, PORT));
            cluster::fetch_from(&self.lab, "worker1", &url).expect("a node reaches a pod of another");
        }
        self.kubectl(&[
            "expose",
            "pod",
            "worker2",
            "--name=far",
            &format!("--port={PORT}"),
            "--selector=app=web",
        ]);
        let near = self.pod("default", "worker1");
        wait_for("the service by name", PATIENCE, || {
            let url = format!("http://far.default.svc.cluster.local:{PORT}/healthz");
            self.in_pod(&near, &["curl", "--silent", "--show-error", "--max-time", "3", &url])
        });
        let service =
            get(&self.lab, &["service", "far"])["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
        for _ in 0..8 {
            let url = format!("http://{}/healthz", authority(&service, PORT));
            cluster::fetch_from(&self.lab, "worker1", &url).expect("a node reaches a service");
        }
        for (network, node) in
            [("default", "172.30.0.12"), ("green", "172.30.0.12"), ("green", "172.30.0.11")]
        {
            let pod = self.pod(network, "worker1");
            self.in_pod(&pod, &["ping", "-c1", "-W3", node]).expect("a pod reaches a node");
        }
        for network in ["blue", "green"] {
            let pod = self.pod(network, "worker1");
            wait_for("kubernetes.default", PATIENCE, || {
                let url = "https://kubernetes.default.svc.cluster.local/version";
                self.in_pod(&pod, &["curl", "--silent", "--show-error", "--insecure", "--max-time", "3", url])
            });
        }
    }
}

/// The address of the host outside, in the family of another address.
pub fn outside(like: &str) -> &'static str {
    let [four, six] = cluster::OUTSIDE;
    if like.contains(':') { six } else { four }
}

/// The address of `address:port`.
fn host(authority: &str) -> String {
    let host = authority.trim().rsplit_once(':').map_or(authority, |(host, _)| host);
    host.trim_matches(['[', ']']).to_owned()
}
