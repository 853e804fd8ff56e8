//! Traffic while other things happen: TCP streams between a pod and the host outside, or between two pods.

use underlay_testkit::{LabUnderTest, wait_for};

use crate::cluster::{self, OUTSIDE};
use crate::node::RECOVERY;
use crate::place::{Place, Pod};
use crate::traffic::{Background, Gap, Stream, gap_of, network_of};

/// A switch in user space drops a packet now and then when the machine is busy. A route that was missing for 50 ms would
/// cost five pings on each way.
const NOISE: usize = 2;

/// Several streams, and pings with them.
pub struct Flows {
    streams: Vec<Stream>,
    pings: Vec<(String, Background)>,
}

impl Flows {
    /// Between the outside and the pods of these networks on worker1, both ways; returns when all of it flows.
    pub fn with_outside(place: &Place, networks: &[&str]) -> Self {
        let mut flows = Self { streams: vec![], pings: vec![] };
        for network in networks {
            let pod = place.pod(network, "worker1");
            let inside = inside(&place.lab, &pod);
            let (outside, pods) =
                (place.lab.network("outside", None), place.lab.network("worker1", Some(&inside)));
            let address = pod.addresses[0].parse().expect("an address");
            flows.streams.push(Stream::start(&format!("TCP outside -> {network}"), outside, &pods, address));
            let (outside, pods) =
                (place.lab.network("outside", None), place.lab.network("worker1", Some(&inside)));
            let address = OUTSIDE[0].parse().expect("an address");
            flows.streams.push(Stream::start(&format!("TCP {network} -> outside"), pods, &outside, address));
            let ping = format!("ping -n -D -i 0.01 {}", pod.addresses[0]);
            let ping = Background::start(&place.lab, "outside", &ping);
            flows.pings.push((format!("ping outside -> {network}"), ping));
        }
        flows.wait_until_flowing();
        flows
    }

    /// The same, and streams between the pods of these networks on the two workers.
    #[must_use]
    pub fn and_between_pods(mut self, place: &Place, networks: &[&str]) -> Self {
        for network in networks {
            let (one, two) = (place.pod(network, "worker1"), place.pod(network, "worker2"));
            let (from, to) = (inside(&place.lab, &one), inside(&place.lab, &two));
            let (from, to) =
                (place.lab.network("worker1", Some(&from)), place.lab.network("worker2", Some(&to)));
            let address = two.addresses[0].parse().expect("an address");
            self.streams.push(Stream::start(&format!("TCP {network} -> {network}"), from, &to, address));
        }
        self.wait_until_flowing();
        self
    }

    /// Waits until everything flows.
    pub fn wait_until_flowing(&self) {
        for stream in &self.streams {
            wait_for("a stream", RECOVERY, || stream.flows());
        }
        for (_, ping) in &self.pings {
            ping.wait_for("icmp_seq=");
        }
    }

    /// Ends it: no stream may have broken. Prints the gaps, and returns how many pings were lost.
    pub fn stop(self, lab: &LabUnderTest) -> usize {
        self.wait_until_flowing();
        let streams: Vec<Gap> = self.streams.into_iter().map(Stream::stop).collect();
        let pings: Vec<Gap> =
            self.pings.into_iter().map(|(way, ping)| gap_of(way, &ping.stop(lab))).collect();
        for gap in streams.iter().chain(&pings) {
            println!("      {gap}");
        }
        assert!(streams.iter().all(|gap| gap.lost == 0), "a stream broke");
        pings.iter().map(|gap| gap.lost).sum()
    }

    /// Ends it: nothing may have been lost.
    pub fn stop_without_loss(self, lab: &LabUnderTest) {
        let lost = self.stop(lab);
        assert!(lost <= NOISE, "{lost} pings were lost");
    }
}

/// Name of a pod's network namespace on its node.
pub fn inside(lab: &LabUnderTest, pod: &Pod) -> String {
    let addresses = pod.addresses.clone();
    let name = network_of(lab, &cluster::Pod { name: pod.name.clone(), node: pod.name.clone(), addresses });
    assert!(!name.is_empty(), "the network of {pod:?}");
    name
}
