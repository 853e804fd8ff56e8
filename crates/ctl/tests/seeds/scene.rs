//! A lab in which workflows are carried out, with web servers on two of its nodes.

#[path = "../topologies/web_server.rs"]
mod web_server;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt};

use super::cluster::{self, authority, get};

/// The port of the pods' web servers.
pub const PORT: u16 = 8080;

/// A lab.
pub struct Scene {
    pub lab: LabUnderTest,
    /// Nodes that have pods.
    pub workers: [Worker; 2],
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub struct Worker {
    pub name: &'static str,
    /// On the segment of all nodes.
    pub address: &'static str,
}

/// A web server.
#[derive(Debug, Clone)]
pub struct Pod {
    pub namespace: String,
    pub name: &'static str,
    /// In the network of its namespace.
    pub address: String,
}

impl Pod {
    /// Its node's part of the network.
    pub fn subnet(&self) -> String {
        let (network, _) = self.address.rsplit_once('.').expect("an address");
        format!("{network}.0/24")
    }
}

impl Scene {
    /// Brings a lab up from the text of its file.
    pub fn up(label: &str, file: &str, workers: [Worker; 2]) -> Self {
        Self { lab: LabUnderTest::up_from(label, file), workers }
    }

    /// Runs kubectl.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.lab.kubectl(arguments).ok()
    }

    /// Applies a manifest, as it is.
    pub fn apply(&self, manifest: &str) {
        cluster::apply(&self.lab, "manifest.yaml", manifest);
    }

    /// Applies an object.
    pub fn apply_object(&self, object: &Value) {
        self.apply(&object.to_string());
    }

    /// Reads objects.
    pub fn get(&self, what: &[&str]) -> Value {
        get(&self.lab, what)
    }

    /// Objects of a list.
    pub fn list(&self, what: &[&str]) -> Vec<Value> {
        self.get(what)["items"].as_array().cloned().unwrap_or_default()
    }

    /// Makes namespaces that may have a network of their own.
    pub fn make_namespaces(&self, names: &[&str]) {
        for name in names {
            self.apply(&format!(
                "apiVersion: v1\nkind: Namespace\nmetadata: {{ name: {name}, labels: \
                 {{ k8s.ovn.org/primary-user-defined-network: '' }} }}\n"
            ));
        }
    }

    /// Starts a web server on each worker, and waits for them.
    pub fn run_pods(&self, namespace: &str) {
        let manifest = self.workers.map(|Worker { name, .. }| web_server::manifest(namespace, name, PORT));
        self.apply(&manifest.join("---"));
        self.kubectl(&["wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", "-n", namespace]);
    }

    /// The web servers of a namespace, in the order of the workers. Those of the namespace `default` are in the default
    /// network, others in a network of their own.
    pub fn pods(&self, namespace: &str) -> [Pod; 2] {
        self.workers.map(|Worker { name, .. }| {
            let object = self.get(&["pod", name, "-n", namespace]);
            let text = object["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str().unwrap_or("{}");
            let networks: Value = serde_json::from_str(text).expect("JSON of the annotation");
            let mut networks = networks.as_object().into_iter().flatten();
            let own = networks.find(|(key, _)| (key.as_str() == "default") == (namespace == "default"));
            let address = own.and_then(|(_, own)| own["ip_addresses"][0].as_str()).unwrap_or_default();
            let (address, _) = address.split_once('/').unwrap_or_else(|| panic!("no address in {text}"));
            Pod { namespace: namespace.to_owned(), name, address: address.to_owned() }
        })
    }

    /// Runs a command in a pod.
    pub fn in_pod(&self, pod: &Pod, command: &[&str]) -> Result<String, String> {
        self.lab.kubectl(&[&["exec", pod.name, "-n", &pod.namespace, "--"], command].concat()).result()
    }

    /// Whom a web server takes a pod for that asks it.
    pub fn asker_seen(&self, from: &Pod, to: &Pod) -> Result<String, String> {
        let url = format!("http://{}/clientip", authority(&to.address, PORT));
        let seen = self.in_pod(from, &["curl", "--silent", "--show-error", "--max-time", "2", &url])?;
        Ok(host(&seen))
    }
}

/// The address of `address:port`.
pub fn host(authority: &str) -> String {
    authority.trim().rsplit_once(':').map_or(authority, |(host, _)| host).to_owned()
}
