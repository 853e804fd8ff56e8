//! Egress IPs with traffic: outside sees the address wherever a pod runs, and goes on seeing it when its node dies.

// Not everything that other tests need is needed here.
#[allow(dead_code, reason = "shared with the tests of the first route")]
#[path = "../first_route/cluster.rs"]
mod cluster;

use std::time::Instant;

use serde_json::{Value, json};
use underlay_testkit::{LabUnderTest, OutputExt, turn, wait_for};

use cluster::{OUTSIDE, PATIENCE, apply, authority, fetch_from, get, image};

type Step = (&'static str, fn(&LabUnderTest));

const STEPS: &[Step] = &[
    ("pods in two networks", create),
    ("without a node that may hold the address, pods leave with their node's", nobody_holds_it),
    ("outside sees the address, from pods of both nodes and networks", one_node_holds_it),
    ("what stays inside is as ever", inside_is_as_ever),
    ("pods that are advertised are reached from outside all the same", advertised_pods_answer),
    ("only pods that are selected leave with it", selectors_are_followed),
    ("another node gets the label: the address moves there", it_moves_with_the_label),
    ("the holder's agent is started again: nobody notices", an_agent_starts_again),
    ("the holder is cut off: the address moves", it_leaves_a_node_that_is_gone),
    ("an address of no node's network is advertised by its holder, and by nobody else", it_is_advertised),
    ("without the egress IP all is as before", everything_is_taken_back),
];

/// Namespaces, and the network each has.
const NAMESPACES: [&str; 2] = ["shop", "red"];
const NODES: [&str; 2] = ["worker1", "worker2"];
/// The address in both families.
const ADDRESSES: [&str; 2] = ["172.30.0.100", "fd00:172:30::100"];
/// Where outside tells who asks.
const PORT: u16 = 9000;
const LABEL: &str = "k8s.ovn.org/egress-assignable";

#[test]
fn pods_leave_with_an_address_of_their_own() {
    let _turn = turn();
    let lab = LabUnderTest::up("egress", &[]);
    for (name, step) in STEPS {
        let started = Instant::now();
        println!("step: {name}");
        step(&lab);
        println!("      {:.1} s", started.elapsed().as_secs_f64());
    }
}

fn create(lab: &LabUnderTest) {
    let image = image();
    let namespace = |name: &str, labels: &Value| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } });
    let pod = |namespace: &str, node: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": node, "namespace": namespace, "labels": { "app": "web" } },
            "spec": {
                "nodeName": node, "terminationGracePeriodSeconds": 0,
                "containers": [{
                    "name": "web", "image": image, "imagePullPolicy": "Never",
                    "args": ["netexec", "--http-port=8080"],
                }],
            },
        })
    };
    let subnets =
        json!([{ "cidr": "10.200.0.0/16", "hostSubnet": 24 }, { "cidr": "fd00:200::/48", "hostSubnet": 64 }]);
    let network = json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "ClusterUserDefinedNetwork", "metadata": { "name": "red" },
        "spec": {
            "namespaceSelector": { "matchLabels": { "tenant": "red" } },
            "network": { "topology": "Layer3", "layer3": { "role": "Primary", "subnets": subnets } },
        },
    });
    let own = json!({ "team": "shop", "tenant": "red", "k8s.ovn.org/primary-user-defined-network": "" });
    let mut objects = vec![namespace("shop", &json!({ "team": "shop" })), namespace("red", &own), network];
    objects.extend(NAMESPACES.iter().flat_map(|namespace| NODES.map(|node| pod(namespace, node))));
    apply(lab, "egress.json", &json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string());
    apply(lab, "egress-ip.yaml", include_str!("../../../../examples/egress-ip.yaml"));
    for namespace in NAMESPACES {
        let wait =
            ["wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s", "--namespace", namespace];
        lab.kubectl(&wait).ok();
    }
    let server = format!("agnhost netexec --http-port={PORT} > /dev/null 2>&1 &");
    lab.exec("outside", &["sh", "-c", &server]).ok();
}

/// Fetches a URL from within a pod.
fn fetch(lab: &LabUnderTest, namespace: &str, pod: &str, url: &str) -> Result<String, String> {
    let curl = ["curl", "--silent", "--show-error", "--insecure", "--max-time", "3", url];
    lab.kubectl(&[&["exec", "--namespace", namespace, pod, "--"], &curl[..]].concat()).result()
}

/// Who a pod is, as the host outside sees it: its address without the port.
fn seen(lab: &LabUnderTest, namespace: &str, pod: &str, outside: &str) -> Result<String, String> {
    let answer = fetch(lab, namespace, pod, &format!("http://{}/clientip", authority(outside, PORT)))?;
    let address = answer.rsplit_once(':').map_or(answer.as_str(), |(address, _)| address);
    Ok(address.trim_matches(['[', ']']).to_owned())
}

/// Waits until outside sees a pod under these addresses, one of each family.
fn is_seen_as(lab: &LabUnderTest, namespace: &str, pod: &str, addresses: [&str; 2]) {
    for (outside, address) in OUTSIDE.iter().zip(addresses) {
        wait_for(&format!("{namespace}/{pod} to be seen as {address}"), PATIENCE, || {
            let seen = seen(lab, namespace, pod, outside)?;
            if seen == address { Ok(()) } else { Err(seen) }
        });
    }
}

/// The addresses of a node.
fn own(node: &str) -> [&'static str; 2] {
    if node == "worker1" { ["172.30.0.11", "fd00:172:30::11"] } else { ["172.30.0.12", "fd00:172:30::12"] }
}

fn all_are_seen_as(lab: &LabUnderTest, addresses: impl Fn(&str) -> [&'static str; 2]) {
    for namespace in NAMESPACES {
        for node in NODES {
            is_seen_as(lab, namespace, node, addresses(node));
        }
    }
}

/// Waits until a node holds both addresses.
fn is_held_by(lab: &LabUnderTest, node: &str) {
    wait_for(&format!("{node} to hold the addresses"), PATIENCE, || {
        let items = get(lab, &["eip", "shop"])["status"]["items"].clone();
        let holders = items.as_array().into_iter().flatten().filter(|item| item["node"] == node).count();
        if holders == 2 { Ok(()) } else { Err(items.to_string()) }
    });
}

fn nobody_holds_it(lab: &LabUnderTest) {
    all_are_seen_as(lab, own);
}

fn one_node_holds_it(lab: &LabUnderTest) {
    lab.kubectl(&["label", "node", "worker1", &format!("{LABEL}=")]).ok();
    is_held_by(lab, "worker1");
    all_are_seen_as(lab, |_| ADDRESSES);
}

/// Pods reach each other, nodes, and the API server.
fn inside_is_as_ever(lab: &LabUnderTest) {
    for namespace in NAMESPACES {
        for (from, to) in [("worker1", "worker2"), ("worker2", "worker1")] {
            for address in addresses_of(lab, namespace, to) {
                let url = format!("http://{}/clientip", authority(&address, 8080));
                let answer = fetch(lab, namespace, from, &url).expect("an answer of the other pod");
                let own = addresses_of(lab, namespace, from);
                assert!(
                    own.iter().any(|own| answer.contains(own)),
                    "{from} comes as {answer}, not as {own:?}"
                );
            }
            let url = "https://kubernetes.default.svc.cluster.local/healthz";
            // The name server may be asked before it has heard of anything.
            let answer = wait_for(&format!("{namespace}/{from}: the API server by name"), PATIENCE, || {
                fetch(lab, namespace, from, url)
            });
            assert_eq!(answer, "ok", "{namespace}/{from}");
            for node in ["172.30.0.10", "172.30.0.11", "172.30.0.12"] {
                let url = format!("http://{}/healthz", authority(node, 9411));
                let answer = fetch(lab, namespace, from, &url);
                assert_eq!(answer.as_deref().map(str::trim), Ok("ok"), "{namespace}/{from} to {node}");
            }
        }
    }
}

/// The addresses of a pod in its network.
fn addresses_of(lab: &LabUnderTest, namespace: &str, pod: &str) -> Vec<String> {
    let pod = get(lab, &["pod", "--namespace", namespace, pod]);
    let record = pod["metadata"]["annotations"]["k8s.ovn.org/pod-networks"].as_str().expect("a record");
    let record: Value = serde_json::from_str(record).expect("JSON of the record");
    let mut networks = record.as_object().into_iter().flatten().map(|(_, network)| network);
    let own = networks.find(|network| network["role"] == "primary").expect("a primary network");
    let texts = own["ip_addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| text.split('/').next().unwrap_or_default().to_owned()).collect()
}

/// Who comes from outside to a pod's own address is answered from there, by the node that the pod is on.
fn advertised_pods_answer(lab: &LabUnderTest) {
    apply(lab, "advertise.yaml", include_str!("../../../../examples/advertise-pods.yaml"));
    for node in NODES {
        for address in addresses_of(lab, "shop", node) {
            let url = format!("http://{}/hostname", authority(&address, 8080));
            wait_for(&format!("{url} to answer outside"), PATIENCE, || {
                match fetch_from(lab, "outside", &url)? {
                    name if name == node => Ok(()),
                    other => Err(other),
                }
            });
        }
    }
    all_are_seen_as(lab, |_| ADDRESSES);
    let file = lab.file("advertise.yaml", include_str!("../../../../examples/advertise-pods.yaml"));
    lab.kubectl(&["delete", "--filename", &file.to_string_lossy()]).ok();
    all_are_seen_as(lab, |_| ADDRESSES);
}

fn selectors_are_followed(lab: &LabUnderTest) {
    lab.kubectl(&["label", "pod", "--namespace", "shop", "worker1", "worker2", "app-"]).ok();
    for node in NODES {
        is_seen_as(lab, "shop", node, own(node));
    }
    is_seen_as(lab, "red", "worker2", ADDRESSES);
    lab.kubectl(&["label", "namespace", "red", "team-"]).ok();
    for node in NODES {
        is_seen_as(lab, "red", node, own(node));
    }
    lab.kubectl(&["label", "pod", "--namespace", "shop", "worker1", "worker2", "app=web"]).ok();
    lab.kubectl(&["label", "namespace", "red", "team=shop"]).ok();
    all_are_seen_as(lab, |_| ADDRESSES);
}

fn it_moves_with_the_label(lab: &LabUnderTest) {
    lab.kubectl(&["label", "node", "worker2", &format!("{LABEL}=")]).ok();
    is_held_by(lab, "worker1");
    lab.kubectl(&["label", "node", "worker1", &format!("{LABEL}-")]).ok();
    is_held_by(lab, "worker2");
    all_are_seen_as(lab, |_| ADDRESSES);
    is_gone_from(lab, "worker1");
    lab.kubectl(&["label", "node", "worker1", &format!("{LABEL}=")]).ok();
}

/// Waits until nothing in a node's database translates to the address.
fn is_gone_from(lab: &LabUnderTest, node: &str) {
    wait_for(&format!("{node} to give the address up"), PATIENCE, || {
        let rows =
            lab.exec(node, &["ovn-nbctl", "--bare", "--columns=external_ip", "list", "nat"]).result()?;
        if ADDRESSES.iter().any(|address| rows.contains(address)) { Err(rows) } else { Ok(()) }
    });
}

fn an_agent_starts_again(lab: &LabUnderTest) {
    let pid = lab.exec("worker2", &["pgrep", "--exact", "underlay-agent"]).ok();
    lab.exec("worker2", &["kill", "-9", pid.trim()]).ok();
    all_are_seen_as(lab, |_| ADDRESSES);
    is_held_by(lab, "worker2");
}

/// Pods of a node that is cut off are cut off too; those of others are seen as before.
fn it_leaves_a_node_that_is_gone(lab: &LabUnderTest) {
    lab.exec("worker2", &["ip", "link", "set", "eth0", "down"]).ok();
    is_held_by(lab, "worker1");
    for namespace in NAMESPACES {
        is_seen_as(lab, namespace, "worker1", ADDRESSES);
    }
    lab.exec("worker2", &["ip", "link", "set", "eth0", "up"]).ok();
    is_gone_from(lab, "worker2");
    all_are_seen_as(lab, |_| ADDRESSES);
    is_held_by(lab, "worker1");
}

/// An address that no node has for a neighbour: BGP leads to who holds it, wherever that is.
fn it_is_advertised(lab: &LabUnderTest) {
    let far = ["198.51.100.7", "2001:db8:99::7"];
    let networks = json!([
        { "networkSelectionType": "DefaultNetwork" },
        {
            "networkSelectionType": "ClusterUserDefinedNetworks",
            "clusterUserDefinedNetworkSelector": { "networkSelector": {} },
        },
    ]);
    let advertisement = json!({
        "apiVersion": "k8s.ovn.org/v1", "kind": "RouteAdvertisements", "metadata": { "name": "egress" },
        "spec": {
            "networkSelectors": networks, "nodeSelector": {}, "frrConfigurationSelector": {},
            "advertisements": ["EgressIP"],
        },
    });
    apply(lab, "advertise-egress.json", &advertisement.to_string());
    let patch = json!({ "spec": { "egressIPs": far } }).to_string();
    lab.kubectl(&["patch", "eip", "shop", "--type=merge", "--patch", &patch]).ok();
    for (holder, other) in [("worker1", "worker2"), ("worker2", "worker1")] {
        lab.kubectl(&["label", "node", holder, &format!("{LABEL}="), "--overwrite"]).ok();
        lab.kubectl(&["label", "node", other, &format!("{LABEL}-")]).ok();
        is_held_by(lab, holder);
        let ways = far.iter().zip(["ipv4", "ipv6"]).zip(own(holder).into_iter().zip(own(other)));
        for ((address, family), (here, there)) in ways {
            wait_for(&format!("the route to {address} by {holder} alone"), PATIENCE, || {
                let show = format!("show bgp {family} unicast {address} json");
                let routes = lab.exec("tor", &["vtysh", "-c", &show]).result()?;
                let by = |node: &str| routes.contains(&format!("\"ip\":\"{node}\""));
                if by(here) && !by(there) { Ok(()) } else { Err(routes) }
            });
        }
        all_are_seen_as(lab, |_| far);
    }
    lab.kubectl(&["delete", "routeadvertisements", "egress"]).ok();
    wait_for("the routes to go", PATIENCE, || {
        let routes = lab.exec("tor", &["sh", "-c", "ip route; ip -6 route"]).result()?;
        if far.iter().any(|address| routes.contains(address)) { Err(routes) } else { Ok(()) }
    });
    all_are_seen_as(lab, own);
}

fn everything_is_taken_back(lab: &LabUnderTest) {
    lab.kubectl(&["delete", "eip", "shop"]).ok();
    all_are_seen_as(lab, own);
    for node in NODES {
        is_gone_from(lab, node);
        let sets =
            lab.exec(node, &["ovn-nbctl", "--bare", "--columns=external_ids", "list", "address_set"]).ok();
        assert!(!sets.contains("EgressIP"), "{sets}");
    }
}
