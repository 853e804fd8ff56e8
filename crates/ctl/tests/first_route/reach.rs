//! Who reaches whom.

use underlay_testkit::{LabUnderTest, OutputExt};

use crate::cluster::{
    OUTSIDE, Pod, authority, fetch_from, fetch_from_pod, get, in_pod, pods, pods_on, source_seen_outside,
};

/// Pods of one node and of two: ping, HTTP, UDP and a TCP stream, in every family they have.
pub fn pods_reach_pods(lab: &LabUnderTest) {
    let (here, there) = (pods_on(lab, "worker1"), pods_on(lab, "worker2"));
    assert_eq!((here.len(), there.len()), (2, 2), "two on every worker");
    let (from, neighbor, remote) = (&here[0], &here[1], &there[0]);
    for to in [from, neighbor, remote] {
        for address in &to.addresses {
            let url = format!("http://{}/hostname", authority(address, 8080));
            assert_eq!(fetch_from_pod(lab, from, &url).as_ref(), Ok(&to.name), "{address}");
        }
    }
    for to in [neighbor, remote] {
        for address in &to.addresses {
            in_pod(lab, from, &["ping", "-c2", "-i0.2", "-W2", address]).expect("an answer");
            let dial = format!(
                "http://localhost:8080/dial?host={}&port=8081&protocol=udp&request=hostname&tries=1",
                address.replace(':', "%3A")
            );
            let answer = fetch_from_pod(lab, from, &dial).expect("an answer");
            assert!(answer.contains(&to.name), "{answer}");
        }
    }
    stream(lab, from, remote);
}

/// 20 MB over one connection; what arrives is what was sent.
fn stream(lab: &LabUnderTest, from: &Pod, to: &Pod) {
    for (number, address) in to.addresses.iter().enumerate() {
        let port = 9000 + number;
        let family = if address.contains(':') { "-6" } else { "-4" };
        // Nothing of the session may stay with the listener, or the session would wait for it.
        let receive =
            format!("(nc {family} -l {port} | sha256sum > /tmp/sum{port}) < /dev/null > /dev/null 2>&1 &");
        in_pod(lab, to, &["sh", "-c", &receive]).expect("a listener");
        let send = format!(
            "sleep 0.3; head -c 20000000 /bin/bash /dev/zero | head -c 20000000 | tee /tmp/sent | nc -N -w 10 {address} {port}; \
             sha256sum < /tmp/sent"
        );
        let original = in_pod(lab, from, &["sh", "-c", &send]).expect("a sender");
        let arrived =
            in_pod(lab, to, &["sh", "-c", &format!("sleep 0.2; cat /tmp/sum{port}")]).expect("a sum");
        assert_eq!(arrived.split(' ').next(), original.split(' ').next(), "{address}");
    }
}

/// Nodes reach pods, those of others too; so does the kubelet, or no pod would be ready.
pub fn nodes_reach_pods(lab: &LabUnderTest) {
    for pod in pods(lab) {
        for node in ["control", "worker1", "worker2"] {
            for address in &pod.addresses {
                let url = format!("http://{}/hostname", authority(address, 8080));
                assert_eq!(fetch_from(lab, node, &url).as_ref(), Ok(&pod.name), "{address} from {node}");
            }
        }
    }
    let list = get(lab, &["pods", "--selector=app=web"]);
    for pod in list["items"].as_array().into_iter().flatten() {
        assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "the liveness probe passes");
    }
}

/// Pods and nodes reach services: ours, and the API server's.
pub fn services(lab: &LabUnderTest) {
    let addresses = |name: &str| -> Vec<String> {
        let service = get(lab, &["service", name]);
        let texts = service["spec"]["clusterIPs"].as_array().into_iter().flatten();
        texts.filter_map(|ip| ip.as_str()).map(str::to_owned).collect()
    };
    let names: Vec<String> = pods(lab).into_iter().map(|pod| pod.name).collect();
    let client = &pods_on(lab, "worker1")[0];
    for address in addresses("web") {
        let url = format!("http://{}/hostname", authority(&address, 80));
        let answer = fetch_from_pod(lab, client, &url).expect("an answer");
        assert!(names.contains(&answer), "{answer}");
        for node in ["control", "worker1", "worker2"] {
            let answer = fetch_from(lab, node, &url).expect("an answer");
            assert!(names.contains(&answer), "{answer} from {node}");
        }
    }
    for address in addresses("kubernetes") {
        let url = format!("https://{}/healthz", authority(&address, 443));
        for pod in pods(lab) {
            assert_eq!(fetch_from_pod(lab, &pod, &url).as_deref(), Ok("ok"), "from {}", pod.name);
        }
        for node in ["control", "worker1", "worker2"] {
            assert_eq!(fetch_from(lab, node, &url).as_deref(), Ok("ok"), "from {node}");
        }
    }
}

/// A service without endpoints refuses at once, and takes connections again when it has some.
pub fn a_service_without_endpoints_refuses(lab: &LabUnderTest) {
    lab.kubectl(&["create", "service", "clusterip", "nobody", "--tcp=80:80"]).ok();
    let service = get(lab, &["service", "nobody"]);
    let address = service["spec"]["clusterIP"].as_str().expect("an address").to_owned();
    let client = &pods_on(lab, "worker1")[0];
    let url = format!("http://{}/", authority(&address, 80));
    underlay_testkit::wait_for("a refusal", crate::cluster::PATIENCE, || {
        match fetch_from_pod(lab, client, &url) {
            Err(text) if text.contains("exit code 7") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    lab.kubectl(&["delete", "service", "nobody"]).ok();
}

/// What is not advertised leaves with the node's address.
pub fn pods_leave_with_the_nodes_address(lab: &LabUnderTest) {
    let pod = &pods_on(lab, "worker1")[0];
    for (outside, node) in OUTSIDE.iter().zip(["172.30.0.11", "fd00:172:30::11"]) {
        if pod.addresses.iter().any(|own| own.contains(':') == node.contains(':')) {
            assert_eq!(source_seen_outside(lab, pod, outside), node);
        }
    }
}

/// What is not advertised is not reached from outside, not even by who knows the way.
pub fn pods_are_not_reached_from_outside(lab: &LabUnderTest) {
    let pod = &pods_on(lab, "worker1")[0];
    let node = get(lab, &["node", "worker1"]);
    let subnets = node["metadata"]["annotations"]["k8s.ovn.org/node-subnets"].as_str().unwrap_or_default();
    let subnets: serde_json::Value = serde_json::from_str(subnets).expect("JSON");
    for subnet in subnets["default"].as_array().expect("subnets").iter().filter_map(|net| net.as_str()) {
        let via = if subnet.contains(':') { "fd00:172:30::11" } else { "172.30.0.11" };
        lab.exec("tor", &["ip", "route", "add", subnet, "via", via]).ok();
    }
    for address in &pod.addresses {
        let url = format!("http://{}/hostname", authority(address, 8080));
        let answer = lab.exec("outside", &["curl", "--silent", "--max-time", "2", &url]).result();
        assert!(answer.is_err(), "{address} answers from outside: {answer:?}");
    }
    for subnet in subnets["default"].as_array().expect("subnets").iter().filter_map(|net| net.as_str()) {
        lab.exec("tor", &["ip", "route", "del", subnet]).ok();
    }
}
