//! Cluster DNS: `CoreDNS` in one pod, behind the addresses that the kubelets tell every pod.

use serde_json::{Value, json};

use super::control_plane::kubeconfig_path;
use super::{Place, Step, words};
use crate::pki::{Actor, nth_address};
use crate::topology::Kubernetes;

/// Names below this are the cluster's own.
pub(super) const DOMAIN: &str = "cluster.local";
/// What `CoreDNS` answers, and how.
const COREFILE: &str = include_str!("Corefile");
const NAMESPACE: &str = "kube-system";
/// Account, rights, settings and Deployment.
const NAME: &str = "coredns";
/// The Service's name is given: clients look for it.
const SERVICE: &str = "kube-dns";

/// Addresses of the name server, one of each family that services have.
pub(super) fn addresses(kubernetes: &Kubernetes) -> Vec<String> {
    kubernetes.service_subnets.iter().filter_map(|subnet| nth_address(subnet, 10)).collect()
}

/// Gives the cluster its DNS.
pub(super) fn create(kubernetes: &Kubernetes, place: &Place, admin: &str) -> Step {
    // In this order: a pod cannot be made without its account, and would wait for its settings.
    let mut items = rights();
    items.extend([settings(), service(kubernetes), deployment(&place.dns_image)]);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    Step::Feed {
        argv: words(&format!("kubectl --kubeconfig {admin} create --validate=false -f -")),
        input: list.to_string(),
    }
}

/// Waits until names are answered.
pub(super) fn wait() -> Step {
    let kubectl = format!("kubectl --kubeconfig {} --namespace {NAMESPACE}", kubeconfig_path(Actor::Admin));
    Step::Run(words(&format!("{kubectl} rollout status --timeout=120s deployment/{NAME}")))
}

fn rights() -> Vec<Value> {
    let list_and_watch = |group: &str, resources: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": ["list", "watch"] });
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "name": NAME, "namespace": NAMESPACE },
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": NAME },
            "rules": [
                list_and_watch("", &["namespaces", "pods", "services"]),
                list_and_watch("discovery.k8s.io", &["endpointslices"]),
            ],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": NAME },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }],
        }),
    ]
}

fn settings() -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "data": { "Corefile": COREFILE },
    })
}

/// What programs that look for a cluster's DNS go by.
fn labels() -> Value {
    json!({ "k8s-app": SERVICE })
}

fn service(kubernetes: &Kubernetes) -> Value {
    let addresses = addresses(kubernetes);
    let family = |address: &String| if address.contains(':') { "IPv6" } else { "IPv4" };
    let families: Vec<&str> = addresses.iter().map(family).collect();
    let policy = if families.len() > 1 { "RequireDualStack" } else { "SingleStack" };
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": SERVICE, "namespace": NAMESPACE, "labels": labels() },
        "spec": {
            "selector": labels(),
            "clusterIP": addresses.first(),
            "clusterIPs": addresses,
            "ipFamilies": families,
            "ipFamilyPolicy": policy,
            "ports": [
                { "name": "dns", "port": 53, "protocol": "UDP" },
                { "name": "dns-tcp", "port": 53, "protocol": "TCP" },
                { "name": "metrics", "port": 9153, "protocol": "TCP" },
            ],
        },
    })
}

fn deployment(image: &str) -> Value {
    let probe = |path: &str, port: u16, every: u32| json!({ "httpGet": { "path": path, "port": port }, "periodSeconds": every });
    let container = json!({
        "name": NAME,
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "volumeMounts": [{ "name": "settings", "mountPath": "/etc/coredns", "readOnly": true }],
        // The lab waits for it: look often.
        "readinessProbe": probe("/ready", 8181, 1),
        "livenessProbe": probe("/health", 8080, 10),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] },
            "readOnlyRootFilesystem": true,
        },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels() },
        "spec": {
            // One is enough to test with, and spares memory.
            "replicas": 1,
            "selector": { "matchLabels": labels() },
            "template": {
                "metadata": { "labels": labels() },
                "spec": {
                    "serviceAccountName": NAME,
                    "priorityClassName": "system-cluster-critical",
                    // It is the name server, and asks none.
                    "dnsPolicy": "Default",
                    // A cluster of one node has names as well.
                    "tolerations": [{ "key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule" }],
                    "containers": [container],
                    "volumes": [{ "name": "settings", "configMap": { "name": NAME } }],
                },
            },
        },
    })
}
