//! Watches are closed, and requests lost half way, again and again during a rollout.

use std::thread;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::common::daemon::Daemon;
use crate::proxy::Proxy;
use crate::witness::Witness;

/// Cuts, and the pauses before them in milliseconds: some in the middle of a list, some when all is written.
const PAUSES: [u64; 12] = [30, 250, 80, 10, 400, 120, 5, 60, 300, 45, 150, 500];

pub fn are_cut_in_a_rollout(cluster: &Cluster, daemon: Daemon) -> Daemon {
    daemon.stop();
    let proxy = Proxy::start(&cluster.server, &cluster.scratch);
    let lease = "--leader-elect-lease-duration=2";
    let daemon = Daemon::start_with(proxy.kubeconfig(), &cluster.scratch, "cut", &[lease]);
    let witness = Witness::start(&cluster.server);
    let cut = thread::scope(|scope| {
        let cutter = scope.spawn(|| {
            let cut = |pause: &u64| {
                thread::sleep(Duration::from_millis(*pause));
                proxy.cut()
            };
            PAUSES.iter().map(cut).sum::<usize>()
        });
        cluster.roll_out(20..40);
        cutter.join().unwrap()
    });
    println!("{cut} connections were cut");
    assert!(cut > 0);
    cluster.has_networks(40, &daemon);
    witness.ends_content();
    cluster.judge(daemon)
}
