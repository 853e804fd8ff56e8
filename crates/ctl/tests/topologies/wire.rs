//! What is on the wire between two nodes while a pod asks another.

use std::io::Read;
use std::process::{Child, Stdio};

use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use super::cluster::PATIENCE;
use super::place::{PORT, Place};

/// How packets travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Travel {
    /// In Geneve tunnels.
    Tunnel,
    /// As they are.
    AsTheyAre,
}

/// A pod on one worker asks one on the other: they see each other's own addresses, and what passes the second one's uplink
/// is as it should be.
pub fn between_nodes(place: &Place, network: &str, travel: Travel) {
    let (from, to) = (place.pod(network, "worker1"), place.pod(network, "worker2"));
    for (own, address) in from.addresses.iter().zip(&to.addresses) {
        // The first answers may come before all nodes have learned all routes.
        wait_for(&format!("an answer of {address}"), PATIENCE, || place.asker_seen_by(&from, address));
        let tunnels = Listener::start(&place.lab, "udp port 6081");
        let plain = Listener::start(&place.lab, &format!("host {address} and tcp port {PORT}"));
        let seen = place.asker_seen_by(&from, address).expect("an answer");
        assert_eq!(seen, *own, "whom {address} took the asker for");
        let inside =
            |packets: &[String]| packets.iter().filter(|packet| packet.contains(address.as_str())).count();
        let (tunnels, plain) = (tunnels.packets(&place.lab), plain.packets(&place.lab));
        match travel {
            Travel::Tunnel => {
                assert!(inside(&tunnels) > 0, "{network}: no tunnel carried {address}: {tunnels:?}");
                assert!(plain.is_empty(), "{network}: outside of tunnels: {plain:?}");
            }
            Travel::AsTheyAre => {
                assert!(!plain.is_empty(), "{network}: nothing of {address} passed");
                assert_eq!(inside(&tunnels), 0, "{network}: in tunnels: {tunnels:?}");
            }
        }
    }
}

/// Everything that passes the second worker's uplink and fits a filter, until it is asked for.
struct Listener {
    child: Child,
    /// A file that ends it.
    stop: String,
}

impl Listener {
    fn start(lab: &LabUnderTest, filter: &str) -> Self {
        let stop =
            format!("/tmp/stop-{}", filter.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"));
        let script = format!(
            "rm -f {stop}; timeout 60 tcpdump --immediate-mode -n -l -U -i eth0 '{filter}' 2>&1 & \
             while [ ! -e {stop} ]; do sleep 0.05; done; kill -TERM $!; wait $!; true"
        );
        let mut child = lab
            .command()
            .args(["exec", "worker2", "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("running the lab's command");
        let (mut said, mut byte) = (String::new(), [0]);
        let output = child.stdout.as_mut().expect("a pipe");
        while !said.contains("listening on") && output.read(&mut byte).expect("reading") == 1 {
            said.push(char::from(byte[0]));
        }
        assert!(said.contains("listening on"), "{said}");
        Self { child, stop }
    }

    fn packets(mut self, lab: &LabUnderTest) -> Vec<String> {
        // What has passed is printed at once, but by another process than the one that saw the answer.
        std::thread::sleep(std::time::Duration::from_millis(300));
        lab.exec("worker2", &["touch", &self.stop]).ok();
        let mut text = String::new();
        self.child.stdout.as_mut().expect("a pipe").read_to_string(&mut text).expect("reading");
        let _ = self.child.wait();
        text.lines().filter(|line| line.contains(" IP")).map(str::to_owned).collect()
    }
}
