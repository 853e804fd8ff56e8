//! Names: what a pod is told about its name server, and what it gets when it asks.

use std::collections::BTreeSet;

use underlay_testkit::LabUnderTest;

use crate::cluster::{Pod, get, in_pod, pods_on};

/// Pods of every node resolve names of services as programs do, with the C library and the pod's own settings.
pub fn pods_resolve_names(lab: &LabUnderTest) {
    for node in ["worker1", "worker2"] {
        let pod = &pods_on(lab, node)[0];
        for (name, service) in [
            ("kubernetes.default", ["default", "kubernetes"]),
            ("web", ["default", "web"]),
            ("kube-dns.kube-system.svc.cluster.local", ["kube-system", "kube-dns"]),
        ] {
            assert_eq!(resolved(lab, pod, name), cluster_ips(lab, service), "{name} in {}", pod.name);
        }
        let unknown = in_pod(lab, pod, &["getent", "ahosts", "nowhere.example.com"]);
        assert!(unknown.is_err(), "{unknown:?}");
    }
}

/// The name server answers at each of its addresses, over UDP and TCP, from names to addresses and back.
pub fn every_address_answers(lab: &LabUnderTest) {
    let pod = &pods_on(lab, "worker1")[0];
    let servers = cluster_ips(lab, ["kube-system", "kube-dns"]);
    assert!(!servers.is_empty());
    for server in &servers {
        for transport in ["+notcp", "+tcp"] {
            for address in &servers {
                assert_eq!(
                    dig(lab, pod, server, &[transport, "-x", address]),
                    "kube-dns.kube-system.svc.cluster.local."
                );
            }
            let outside = dig(lab, pod, server, &[transport, "+noshort", "+comments", "example.com"]);
            assert!(outside.contains("status: NXDOMAIN"), "{outside}");
        }
    }
}

/// Addresses of a service.
fn cluster_ips(lab: &LabUnderTest, [namespace, name]: [&str; 2]) -> BTreeSet<String> {
    let service = get(lab, &["service", "--namespace", namespace, name]);
    let texts = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
    texts.filter_map(|ip| ip.as_str()).map(str::to_owned).collect()
}

/// Addresses that a name has for a pod.
fn resolved(lab: &LabUnderTest, pod: &Pod, name: &str) -> BTreeSet<String> {
    let lines =
        in_pod(lab, pod, &["getent", "ahosts", name]).unwrap_or_else(|error| panic!("{name}: {error}"));
    lines.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn dig(lab: &LabUnderTest, pod: &Pod, server: &str, question: &[&str]) -> String {
    let at = format!("@{server}");
    let asked = in_pod(lab, pod, &[&["dig", "+short", "+tries=1", &at], question].concat());
    asked.unwrap_or_else(|error| panic!("{server}: {error}")).trim().to_owned()
}
