//! Three tenants: their networks, their pods, and what each must be able to do.

use std::collections::BTreeSet;

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{Capture, OUTSIDE, PATIENCE, apply, authority, get, image};

/// The tenants; the first two have the same subnets.
pub const TENANTS: [(&str, &str, &str); 3] = [
    ("red", "10.200.0.0/16", "fd00:200::/48"),
    ("blue", "10.200.0.0/16", "fd00:200::/48"),
    ("green", "10.201.0.0/16", "fd00:201::/48"),
];
/// A pod in its network.
#[derive(Debug, Clone)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    /// Addresses in the tenant's network.
    pub addresses: Vec<String>,
    /// Addresses in the default network, for its node only.
    pub locked: Vec<String>,
}

fn network(name: &str, v4: &str, v6: &str) -> String {
    format!(
        r"
apiVersion: v1
kind: Namespace
metadata: {{ name: {name}, labels: {{ tenant: {name}, k8s.ovn.org/primary-user-defined-network: '' }} }}
---
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {{ name: {name} }}
spec:
  namespaceSelector: {{ matchLabels: {{ tenant: {name} }} }}
  network:
    topology: Layer3
    layer3: {{ role: Primary, subnets: [{{ cidr: {v4}, hostSubnet: 24 }}, {{ cidr: '{v6}', hostSubnet: 64 }}] }}
---
"
    )
}

/// Two pods and a service.
pub fn workload(name: &str, image: &str) -> String {
    let pod = |node: &str| {
        format!(
            r"
apiVersion: v1
kind: Pod
metadata: {{ name: {name}-{node}, namespace: {name}, labels: {{ app: web }} }}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 0
  containers:
    - name: web
      image: {image}
      imagePullPolicy: Never
      args: [netexec, --http-port=8080, --udp-port=8081]
      readinessProbe: {{ httpGet: {{ path: /healthz, port: 8080 }}, periodSeconds: 1 }}
      livenessProbe: {{ tcpSocket: {{ port: 8080 }}, periodSeconds: 1 }}
---
"
        )
    };
    let service = format!(
        r"
apiVersion: v1
kind: Service
metadata: {{ name: web, namespace: {name} }}
spec:
  ipFamilyPolicy: PreferDualStack
  selector: {{ app: web }}
  ports: [{{ port: 80, targetPort: 8080 }}]
---
"
    );
    [pod("worker1"), pod("worker2"), service].concat()
}

/// Networks and pods in one manifest, as a user would write it.
pub fn create(lab: &LabUnderTest) {
    let image = image();
    let networks = TENANTS.map(|(name, v4, v6)| network(name, v4, v6) + &workload(name, &image));
    apply(lab, "tenants.yaml", &networks.concat());
    for (name, ..) in TENANTS {
        wait_until_ready(lab, name);
    }
}

/// Waits for the pods of a tenant.
pub fn wait_until_ready(lab: &LabUnderTest, name: &str) {
    let wait = ["wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", "--namespace", name];
    if let Err(problem) = lab.kubectl(&wait).result() {
        let events = lab.kubectl(&["get", "events", "--namespace", name]).result();
        panic!("{problem}\n{}", events.unwrap_or_else(|error| error));
    }
}

/// The pods of a tenant: where they are, and their addresses in both networks.
pub fn pods(lab: &LabUnderTest, tenant: &str) -> Vec<Pod> {
    let list = get(lab, &["pods", "--namespace", tenant]);
    let pod = |pod: &Value| {
        let networks = pod["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str();
        let networks: Value = serde_json::from_str(networks.expect("a record")).expect("JSON of the record");
        let of = |role: &str| {
            let all = networks.as_object().into_iter().flatten();
            let network = all.map(|(_, network)| network).find(|network| network["role"] == role);
            let network = network.unwrap_or_else(|| panic!("no network with role {role} in {networks}"));
            let texts = network["ip_addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(|text| text.split('/').next().unwrap_or_default().to_owned()).collect()
        };
        Pod {
            namespace: tenant.to_owned(),
            name: pod["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            addresses: of("primary"),
            locked: of("infrastructure-locked"),
        }
    };
    list["items"].as_array().into_iter().flatten().map(pod).collect()
}

/// Runs a command in a pod.
pub fn in_pod(lab: &LabUnderTest, pod: &Pod, command: &[&str]) -> Result<String, String> {
    let exec = ["exec", "--namespace", &pod.namespace, &pod.name, "--"];
    lab.kubectl(&[&exec, command].concat()).result()
}

/// Fetches a URL from within a pod.
pub fn fetch(lab: &LabUnderTest, pod: &Pod, url: &str) -> Result<String, String> {
    in_pod(lab, pod, &["curl", "--silent", "--show-error", "--insecure", "--max-time", "3", url])
}

/// `kubectl get` alone says how a network is.
pub fn columns_tell_the_state(lab: &LabUnderTest) {
    let table = lab.kubectl(&["get", "clusteruserdefinednetworks"]).ok();
    for (name, ..) in TENANTS {
        let row = table.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(row.contains("True") && row.contains("Layer3") && row.contains("Primary"), "{table}");
    }
}

/// Ping, HTTP and UDP between the nodes, in both families.
pub fn pods_reach_their_own(lab: &LabUnderTest) {
    for (tenant, v4, _) in TENANTS {
        reach_each_other(lab, tenant, v4.trim_end_matches("0.0/16"));
    }
}

/// The same for one tenant, whose IPv4 addresses begin like this.
pub fn reach_each_other(lab: &LabUnderTest, tenant: &str, v4: &str) {
    let pods = pods(lab, tenant);
    let [from, to] = pods.as_slice() else { panic!("two pods: {pods:?}") };
    assert_eq!(to.addresses.len(), 2, "both families: {to:?}");
    assert!(to.addresses[0].starts_with(v4), "{to:?}");
    for address in &to.addresses {
        in_pod(lab, from, &["ping", "-c2", "-i0.2", "-W2", address]).expect("an answer");
        let url = format!("http://{}/hostname", authority(address, 8080));
        assert_eq!(fetch(lab, from, &url).as_ref(), Ok(&to.name), "{address}");
    }
}

/// The API server, by address and by name.
pub fn the_api_server_answers(lab: &LabUnderTest) {
    let kubernetes = clusters_addresses(lab, "default", "kubernetes");
    for (tenant, ..) in TENANTS {
        let pods = pods(lab, tenant);
        for address in &kubernetes {
            let url = format!("https://{}/healthz", authority(address, 443));
            assert_eq!(fetch(lab, &pods[0], &url).as_deref(), Ok("ok"), "{address} from {tenant}");
        }
        let url = "https://kubernetes.default.svc.cluster.local/healthz";
        assert_eq!(fetch(lab, &pods[1], url).as_deref(), Ok("ok"), "by name from {tenant}");
        for pod in &pods {
            names_resolve_at_the_first_try(lab, pod);
        }
    }
}

/// A resolver asks for both families at once, from one port. Here it may ask only once: none of the packets may get lost.
fn names_resolve_at_the_first_try(lab: &LabUnderTest, pod: &Pod) {
    let once = "export RES_OPTIONS=attempts:1; for each in $(seq 10); do \
                getent ahosts kubernetes.default.svc.cluster.local >/dev/null || echo lost; done";
    assert_eq!(in_pod(lab, pod, &["sh", "-c", once]).as_deref(), Ok(""), "{}/{}", pod.namespace, pod.name);
}

/// A tenant's own service: by address and by name, over both families, from both of its pods' nodes.
pub fn own_services_answer(lab: &LabUnderTest) {
    for (tenant, ..) in TENANTS {
        own_service_answers(lab, tenant);
    }
}

/// The same for one tenant.
pub fn own_service_answers(lab: &LabUnderTest, tenant: &str) {
    let pods = pods(lab, tenant);
    let all: BTreeSet<String> = pods.iter().map(|pod| pod.name.clone()).collect();
    let addresses = clusters_addresses(lab, tenant, "web");
    assert_eq!(addresses.len(), 2, "both families: {addresses:?}");
    for pod in &pods {
        for address in &addresses {
            let url = format!("http://{}/hostname", authority(address, 80));
            wait_for(&format!("{url} to lead {} to {all:?}", pod.name), PATIENCE, || {
                let answers = fetch_often(lab, pod, &url)?;
                if answers == all { Ok(()) } else { Err(format!("{answers:?}")) }
            });
        }
    }
    let url = format!("http://web.{tenant}.svc.cluster.local/hostname");
    for family in ["-4", "-6"] {
        let curl = ["curl", family, "--silent", "--show-error", "--max-time", "3", &url];
        let answer = in_pod(lab, &pods[0], &curl).expect("an answer by name");
        assert!(all.contains(&answer), "{answer}");
    }
}

/// Who answers at a URL, asked so often that all who can do; the first failure ends it.
fn fetch_often(lab: &LabUnderTest, pod: &Pod, url: &str) -> Result<BTreeSet<String>, String> {
    let curl = format!("curl --silent --show-error --max-time 3 '{url}' && echo");
    let script = format!("set -e; for n in $(seq 20); do {curl}; done");
    let answers = in_pod(lab, pod, &["sh", "-c", &script])?;
    Ok(answers.split_whitespace().map(str::to_owned).collect())
}

/// All addresses of a service.
pub fn clusters_addresses(lab: &LabUnderTest, namespace: &str, name: &str) -> Vec<String> {
    let service = get(lab, &["service", "--namespace", namespace, name]);
    let texts = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Outside, a tenant's packets come from the node.
pub fn pods_leave_with_the_nodes_address(lab: &LabUnderTest) {
    let node = get(lab, &["node", "worker1"]);
    let own = node["status"]["addresses"].as_array().into_iter().flatten();
    let own: Vec<&str> = own.filter_map(|address| address["address"].as_str()).collect();
    for (tenant, ..) in TENANTS {
        let pods = pods(lab, tenant);
        for outside in OUTSIDE {
            let seen = source_seen(lab, &pods[0], outside);
            assert!(
                own.contains(&seen.as_str()),
                "{tenant} comes to {outside} as {seen:?}, not one of {own:?}"
            );
        }
    }
}

/// Who a pod's ping comes from, as the host outside sees it.
fn source_seen(lab: &LabUnderTest, pod: &Pod, outside: &str) -> String {
    let (filter, words) = if outside.contains(':') {
        ("icmp6 and ip6[40] == 128", "IP6 ")
    } else {
        ("icmp[icmptype] == icmp-echo", "IP ")
    };
    let capture = Capture::start(lab, "outside", "eth0", filter);
    in_pod(lab, pod, &["ping", "-c1", "-W2", outside]).expect("an answer from outside");
    let packet = capture.packet();
    let rest = packet.split_once(words).map_or("", |(_, rest)| rest);
    rest.split(' ').next().unwrap_or_default().to_owned()
}
