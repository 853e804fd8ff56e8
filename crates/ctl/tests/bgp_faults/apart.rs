//! Networks that the world can reach do not reach each other, not even through the world.

use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::cluster::{PATIENCE, authority};
use crate::looks::{ALL, NODES, ROUTERS};
use crate::node::{kill, sh, wait_until_back, wait_until_well};
use crate::place::{PORT, Place, Pod};
use crate::traffic::Background;

/// A port where nobody listens: what arrives for it was sent by this test.
const KNOCK: u16 = 8083;
/// Where nodes read their settings.
const SETTINGS: &str = "/etc/underlay/underlay.conf";

/// Nothing passes from one network to another, nor from a node to a tenant's pod: far ends and routers listen.
pub fn strictly(place: &Place) {
    let ears = Ears::open(&place.lab);
    for network in ALL {
        let from = place.pod(network, "worker1");
        assert_eq!(knock_from_pod(place, &from, &others(place, network)), "", "{network} was answered");
    }
    // Nobody is told where red is: what is sent there goes into the world, and does not come back.
    let heard: Vec<String> = ears
        .close(&place.lab)
        .into_iter()
        .filter(|line| at_worker(line) || !line.contains("> 10.30."))
        .collect();
    assert_eq!(heard, Vec::<String>::new(), "something crossed");

    let ears = Ears::open(&place.lab);
    let tenants: Vec<String> = others(place, "default");
    let answers = lab_knock(&place.lab, "worker1", &tenants);
    let heard: Vec<String> =
        ears.close(&place.lab).into_iter().filter(|line| arrived_at_a_pod(line)).collect();
    assert_eq!((answers.as_str(), heard), ("", vec![]), "a node's program reached a tenant");

    for network in ALL {
        let ears = Ears::open(&place.lab);
        let (from, to) = (place.pod(network, "worker1"), place.pod(network, "worker2"));
        assert_eq!(knock_from_pod(place, &from, &to.addresses), to.name, "{network}: its own pods");
        assert!(!ears.close(&place.lab).is_empty(), "{network}: the same ears hear its own packets");
    }
}

/// Where isolation is loose, tenants meet at the router, and nowhere else. The default network has no part in it: its
/// pods are behind every tenant pod's other interface, which is for the node alone.
pub fn loosely(place: &Place) {
    let section = "\\n[ovnkubernetesfeature]\\nadvertised-udn-isolation-mode=loose\\n";
    let loosen = format!("cp {SETTINGS} {SETTINGS}.strict; printf '{section}' >> {SETTINGS}");
    with_settings(place, &loosen);
    for (from, to, nodes) in [
        ("blue", "green", &["worker1", "worker2"][..]),
        ("green", "blue", &["worker1", "worker2"]),
        // Red leaves with the address of worker1, and what is sent to that by a pod there is for the node itself.
        ("red", "green", &["worker2"]),
    ] {
        for node in nodes {
            meet_at_a_router(place, &place.pod(from, "worker1"), &place.pod(to, node));
        }
    }
    with_settings(place, &format!("mv {SETTINGS}.strict {SETTINGS}"));
    let (from, to) = (place.pod("blue", "worker1"), place.pod("green", "worker2"));
    assert_eq!(knock_from_pod(place, &from, &to.addresses), "", "apart again");
}

fn meet_at_a_router(place: &Place, from: &Pod, to: &Pod) {
    let ears = Ears::open(&place.lab);
    wait_for(&format!("{to:?} to answer {from:?}"), PATIENCE, || {
        let answer = knock_from_pod(place, from, &to.addresses);
        if answer == to.name { Ok(()) } else { Err(answer) }
    });
    let heard = ears.close(&place.lab);
    let at_router = |line: &&String| ROUTERS.iter().any(|(router, _)| line.starts_with(router));
    assert!(heard.iter().any(|line| at_router(&line)), "not through a router: {heard:?}");
}

/// Changes the settings of all nodes and starts their agents anew; returns when they are done.
fn with_settings(place: &Place, script: &str) {
    for node in NODES {
        sh(&place.lab, node, script);
        let old = kill(&place.lab, node, "underlay-agent");
        wait_until_back(&place.lab, node, "underlay-agent", &old);
    }
    for node in NODES {
        wait_until_well(&place.lab, node);
        let rules = || place.lab.exec(node, &["ovn-nbctl", "--bare", "--columns=match", "list", "ACL"]).ok();
        let loose = sh(&place.lab, node, &format!("grep -c loose {SETTINGS} || true")).trim() == "1";
        wait_for(&format!("the rules of {node}, loose: {loose}"), PATIENCE, || {
            let kept = sh(
                &place.lab,
                node,
                "ovn-nbctl --bare --columns=match find ACL external_ids:k8s.ovn.org/owner-type=AdvertisedNetwork",
            );
            if kept.trim().is_empty() == loose { Ok(()) } else { Err(rules()) }
        });
        sh(&place.lab, node, "ovn-nbctl --wait=hv --timeout=20 sync");
    }
}

/// Addresses of the pods of all other networks, on both workers.
fn others(place: &Place, network: &str) -> Vec<String> {
    let others = ALL.into_iter().filter(|other| *other != network);
    others
        .flat_map(|other| ["worker1", "worker2"].map(|node| place.pod(other, node).addresses).concat())
        .collect()
}

/// Tries all addresses at once, where nobody listens and where pods do. What was answered.
fn knocks(addresses: &[String]) -> String {
    assert!(!addresses.is_empty(), "nobody to knock at");
    let places = addresses.iter().flat_map(|address| [KNOCK, PORT].map(|port| authority(address, port)));
    let tries = places.map(|place| format!("curl -s -m 2 'http://{place}/hostname' & "));
    tries.collect::<String>() + "wait"
}

fn knock_from_pod(place: &Place, from: &Pod, addresses: &[String]) -> String {
    place.in_pod(from, &["sh", "-c", &knocks(addresses)]).unwrap_or_else(|error| error)
}

fn lab_knock(lab: &LabUnderTest, machine: &str, addresses: &[String]) -> String {
    lab.exec(machine, &["sh", "-c", &knocks(addresses)]).result().unwrap_or_else(|error| error)
}

/// Whether a packet was seen at the cable of a pod, and not only on its way.
fn arrived_at_a_pod(line: &str) -> bool {
    let interface = line.split_whitespace().nth(2).unwrap_or_default();
    at_worker(line) && !["eth0", "br-ex", "lo"].contains(&interface)
}

fn at_worker(line: &str) -> bool {
    line.starts_with("worker2")
}

/// Listeners at the far ends and at the routers.
struct Ears(Vec<(&'static str, Background)>);

impl Ears {
    fn open(lab: &LabUnderTest) -> Self {
        let tcpdump = format!("tcpdump --immediate-mode -n -l -U -i any 'tcp dst port {KNOCK}'");
        let machines = ["worker2", ROUTERS[0].0, ROUTERS[1].0];
        let ears = machines.map(|machine| (machine, Background::start(lab, machine, &tcpdump)));
        for (_, ear) in &ears {
            ear.wait_for("listening on");
        }
        Self(ears.into())
    }

    /// What was heard, each line with the machine.
    fn close(self, lab: &LabUnderTest) -> Vec<String> {
        // What has passed is printed at once, but by another process than the one that sent it.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let heard = self.0.into_iter().map(|(machine, ear)| (machine, ear.stop(lab)));
        let lines = heard.map(|(machine, text)| {
            let packets = text.lines().filter(|line| line.contains(" IP "));
            packets.map(|line| format!("{machine} {line}")).collect::<Vec<_>>()
        });
        lines.flatten().collect()
    }
}
