//! What is on the wire while pods and the host outside ask each other.

use underlay_testkit::{OutputExt, wait_for};

use super::cluster::{self, Capture, OUTSIDE, PATIENCE, authority};
use super::listener::Listener;
use super::scene::{PORT, Pod, Scene, host};

/// What carries a network between nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Geneve,
    NoOverlay,
}

/// A pod on one worker asks one on the other: they see each other's own addresses, and what passes the second one's uplink
/// does so in tunnels, or as it is.
pub fn between_nodes(scene: &Scene, namespace: &str, transport: Transport) {
    let [from, to] = scene.pods(namespace);
    reached(scene, &from, &to);
    let machine = scene.workers[1].name;
    let filter = format!("udp port 6081 or (host {} and tcp port {PORT})", to.address);
    let listener = Listener::start(&scene.lab, machine, &filter);
    let seen = scene.asker_seen(&from, &to).expect("an answer");
    assert_eq!(seen, from.address, "whom {} took the asker for", to.address);
    let packets = listener.packets(&scene.lab).into_iter();
    let (mut tunnels, plain): (Vec<String>, Vec<String>) =
        packets.partition(|packet| packet.contains("Geneve"));
    // Other networks may have their tunnels.
    tunnels.retain(|packet| packet.contains(&to.address));
    match transport {
        Transport::Geneve => {
            assert!(!tunnels.is_empty() && plain.is_empty(), "in tunnels: {tunnels:?}, others: {plain:?}");
        }
        Transport::NoOverlay => {
            assert!(tunnels.is_empty() && !plain.is_empty(), "in tunnels: {tunnels:?}, others: {plain:?}");
        }
    }
}

/// Waits until a pod reaches another: routes have to be learned first.
fn reached(scene: &Scene, from: &Pod, to: &Pod) {
    wait_for(&format!("an answer of {}", to.address), PATIENCE, || scene.asker_seen(from, to));
}

/// Waits until a pod does not reach another any more.
pub fn cut_off(scene: &Scene, namespace: &str) {
    let [from, to] = scene.pods(namespace);
    wait_for(&format!("{} to be out of reach", to.address), PATIENCE, || {
        match scene.asker_seen(&from, &to) {
            Err(problem) if problem.contains("curl: (") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

/// The host outside reaches a pod at its own address, and is seen under its own.
pub fn reached_from_outside(scene: &Scene, pod: &Pod) {
    let url = format!("http://{}/clientip", authority(&pod.address, PORT));
    let seen = wait_for(&format!("an answer of {}", pod.address), PATIENCE, || {
        cluster::fetch_from(&scene.lab, "outside", &url)
    });
    assert_eq!(host(&seen), OUTSIDE[0], "whom {} took the host outside for", pod.address);
}

/// Under which address the host outside sees a pod.
pub fn seen_outside(scene: &Scene, pod: &Pod) -> String {
    source_of_ping(scene, pod, ["outside", "eth0"], OUTSIDE[0])
}

/// Under which address the other worker sees the first one's pod.
pub fn seen_by_node(scene: &Scene, pod: &Pod) -> String {
    let far = scene.workers[1];
    source_of_ping(scene, pod, [far.name, "eth0"], far.address)
}

fn source_of_ping(scene: &Scene, pod: &Pod, [machine, interface]: [&str; 2], address: &str) -> String {
    let filter = format!("icmp[icmptype] == icmp-echo and dst host {address}");
    let capture = Capture::start(&scene.lab, machine, interface, &filter);
    scene.in_pod(pod, &["ping", "-c1", "-W3", address]).expect("an answer to a ping");
    let packet = capture.packet();
    let mut words = packet.split_whitespace().skip_while(|word| *word != "IP");
    words.nth(1).unwrap_or_default().to_owned()
}

/// Routes of a router of OVN, on the first worker: prefix, next hop and what is looked at.
pub fn routes(scene: &Scene, router: &str) -> Vec<[String; 3]> {
    let text = scene.lab.exec(scene.workers[0].name, &["ovn-nbctl", "lr-route-list", router]).ok();
    let route = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        Some([words.next()?, words.next()?, words.next().filter(|word| word.ends_with("-ip"))?])
    };
    text.lines().filter_map(route).collect()
}

/// Logical switches of the first worker.
pub fn switches(scene: &Scene) -> String {
    scene.lab.exec(scene.workers[0].name, &["ovn-nbctl", "ls-list"]).ok()
}
