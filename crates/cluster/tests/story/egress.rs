//! Egress IPs on a real API server: nodes hold them, lose them when they fall silent or lose their label, and nobody has
//! what somebody else has.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use underlay_testkit::{ApiServer, Scratch, wait_for};

use crate::common::daemon::{Daemon, PATIENCE, apply, becomes, get, kubectl};
use crate::common::objects::prepare;

const LABEL: &str = "k8s.ovn.org/egress-assignable=";

#[test]
fn the_life_of_egress_ips() {
    let server = &ApiServer::start();
    let scratch = Scratch::new("egress");
    prepare(server, &scratch);
    let agents = Agents::start();
    nodes_are_ready(server, &scratch);
    let port = format!("--egress-ip-health-port={}", agents.port);
    let more = [port.as_str(), "--egress-ip-reachability-timeout=1", "--leader-elect-lease-duration=2"];
    let start = |name| Daemon::start_with(&server.kubeconfig(), &scratch, name, &more);
    let daemon = start("first");
    addresses_find_nodes(server, &scratch, &daemon);
    a_silent_node_loses_its_address(server, &agents);
    so_does_one_without_the_label(server);
    nobody_has_what_another_has(server, &scratch);
    what_others_do_to_the_record_is_undone(server);
    daemon.stop();
    a_restart_writes_nothing(server, &start("second"));
}

/// What agents say of themselves, here on addresses of this machine.
struct Agents {
    port: u16,
    alive: [Arc<AtomicBool>; 3],
}

impl Agents {
    fn start() -> Self {
        let first = TcpListener::bind("127.0.0.11:0").unwrap();
        let port = first.local_addr().unwrap().port();
        let others = ["127.0.0.12", "127.0.0.13"].map(|address| TcpListener::bind((address, port)).unwrap());
        let [second, third] = others;
        let alive = [first, second, third].map(|listener| {
            let alive = Arc::new(AtomicBool::new(true));
            let told = alive.clone();
            thread::spawn(move || answer(&listener, &told));
            alive
        });
        Self { port, alive }
    }

    fn set(&self, node: usize, alive: bool) {
        self.alive[node - 1].store(alive, Ordering::Relaxed);
    }
}

/// Answers for as long as it is alive; else takes questions and says nothing.
fn answer(listener: &TcpListener, alive: &AtomicBool) {
    let mut silent: Vec<TcpStream> = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        if alive.load(Ordering::Relaxed) {
            let _ = stream.read(&mut [0; 256]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n");
        } else {
            silent.push(stream);
        }
    }
}

fn nodes_are_ready(server: &ApiServer, scratch: &Scratch) {
    let node = |number: u8| {
        let primary = format!(r#"{{"ipv4":"172.18.0.{number}/16"}}"#);
        let annotations = json!({ "k8s.ovn.org/node-primary-ifaddr": primary });
        let metadata = json!({ "name": format!("n{number}"), "annotations": annotations });
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })
    };
    apply(server, scratch, &[node(1), node(2), node(3)]);
    for number in 1..=3 {
        let status = json!({ "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [{ "type": "InternalIP", "address": format!("127.0.0.1{number}") }],
        } });
        let (name, status) = (format!("n{number}"), status.to_string());
        kubectl(server, &["patch", "node", &name, "--subresource=status", "--type=merge", "-p", &status]);
    }
}

fn egress_ip(name: &str, addresses: &[&str]) -> Value {
    let spec = json!({ "egressIPs": addresses, "namespaceSelector": { "matchLabels": { "team": "x" } } });
    json!({ "apiVersion": "k8s.ovn.org/v1", "kind": "EgressIP", "metadata": { "name": name }, "spec": spec })
}

/// Who holds what: `<address>@<node>`.
fn held(object: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let item = |item: &Value| format!("{}@{}", text(&item["egressIP"]), text(&item["node"]));
    object["status"]["items"].as_array().into_iter().flatten().map(item).collect()
}

#[track_caller]
fn is_held(server: &ApiServer, name: &str, want: &[&str]) {
    becomes(server, &["eip", name], held, &want.iter().map(|item| (*item).to_owned()).collect());
}

/// Waits for an event on an egress IP.
#[track_caller]
fn is_told(server: &ApiServer, reason: &str, name: &str, part: &str) {
    let selector = format!("--field-selector=reason={reason}");
    wait_for(&format!("an event {reason} with {part:?}"), PATIENCE, || {
        let list = get(server, &["events.events.k8s.io", "-A", &selector]);
        let events = list["items"].as_array().unwrap();
        let told = |event: &&Value| {
            event["regarding"]["name"] == name
                && event["note"].as_str().is_some_and(|note| note.contains(part))
        };
        events.iter().find(told).map(|_| ()).ok_or_else(|| format!("{events:?}"))
    });
}

fn addresses_find_nodes(server: &ApiServer, scratch: &Scratch, daemon: &Daemon) {
    apply(server, scratch, &[egress_ip("a", &["172.18.0.100", "172.18.0.101"])]);
    is_told(server, "NoMatchingNodeFound", "a", "no node has the label k8s.ovn.org/egress-assignable");
    kubectl(server, &["label", "node", "n1", LABEL]);
    is_held(server, "a", &["172.18.0.100@n1"]);
    is_told(server, "UnassignedRequest", "a", "please tag more nodes");
    kubectl(server, &["label", "node", "n2", "n3", LABEL]);
    is_held(server, "a", &["172.18.0.100@n1", "172.18.0.101@n2"]);
    is_told(server, "EgressIPAssigned", "a", "node n2 holds 172.18.0.101");
    daemon.shows("/metrics", r#"underlay_writes_total{verb="apply-status",kind="EgressIP"} 2"#);
    daemon.shows("/debug/desired", "172.18.0.101");
    let table = String::from_utf8(server.kubectl(&["get", "eip", "a"]).stdout).unwrap();
    for word in ["EGRESSIPS", "ASSIGNED NODE", "ASSIGNED EGRESSIPS", "172.18.0.100", "n1"] {
        assert!(table.contains(word), "{table}");
    }
}

fn a_silent_node_loses_its_address(server: &ApiServer, agents: &Agents) {
    agents.set(1, false);
    is_held(server, "a", &["172.18.0.100@n3", "172.18.0.101@n2"]);
    is_told(server, "EgressIPUnassigned", "a", "node n1 gives up 172.18.0.100");
    agents.set(1, true);
}

fn so_does_one_without_the_label(server: &ApiServer) {
    // Until it has answered again, n1 is no place to go.
    kubectl(server, &["label", "node", "n2", "k8s.ovn.org/egress-assignable-"]);
    is_held(server, "a", &["172.18.0.100@n3", "172.18.0.101@n1"]);
}

fn nobody_has_what_another_has(server: &ApiServer, scratch: &Scratch) {
    apply(server, scratch, &[egress_ip("0", &["172.18.0.101", "172.18.0.2", "10.244.0.9"])]);
    is_told(server, "UnsupportedRequest", "0", "spec.egressIPs[0] 172.18.0.101: EgressIP a has it already");
    is_told(server, "EgressIPConflict", "0", "spec.egressIPs[1] 172.18.0.2: it is an address of node n2");
    is_told(server, "EgressIPConflict", "0", "spec.egressIPs[2] 10.244.0.9: it is in the range of pods");
    is_held(server, "0", &[]);
    apply(server, scratch, &[egress_ip("a", &["172.18.0.100"])]);
    is_held(server, "a", &["172.18.0.100@n3"]);
    is_held(server, "0", &["172.18.0.101@n1"]);
}

fn what_others_do_to_the_record_is_undone(server: &ApiServer) {
    let wrong = json!({ "status": { "items": [{ "node": "n3", "egressIP": "x" }] } }).to_string();
    kubectl(server, &["patch", "eip", "a", "--subresource=status", "--type=merge", "-p", &wrong]);
    is_held(server, "a", &["172.18.0.100@n3"]);
}

fn a_restart_writes_nothing(server: &ApiServer, daemon: &Daemon) {
    let version = |name| get(server, &["eip", name])["metadata"]["resourceVersion"].clone();
    let before = [version("a"), version("0")];
    daemon.shows("/debug/desired", "172.18.0.100");
    assert_eq!([version("a"), version("0")], before);
    let metrics = daemon.look("/metrics").unwrap();
    assert!(!metrics.contains("kind=\"EgressIP\""), "{metrics}");
}
