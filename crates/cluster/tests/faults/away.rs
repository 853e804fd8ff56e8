//! The API server is away, with work just begun, and a lot is changed as soon as it is back.

use std::thread::sleep;
use std::time::Duration;

use underlay_testkit::ApiServer;

use crate::cluster::{Cluster, tenant};
use crate::common::daemon::kubectl;
use crate::witness::Witness;

/// Connections stay and nobody answers: renewals of the lease fail, and so do writes that are under way.
pub fn it_hangs() {
    goes_away("hang", Duration::from_secs(20), ApiServer::pause, ApiServer::resume);
}

/// There is nobody to connect to.
pub fn it_dies_for_a_minute() {
    goes_away("dead", Duration::from_mins(1), ApiServer::crash, ApiServer::revive);
}

fn goes_away(label: &str, away: Duration, go: fn(&ApiServer), come: fn(&ApiServer)) {
    let cluster = Cluster::new(label);
    let server = &cluster.server;
    let daemon = cluster.start_as_users_do("manager");
    cluster.roll_out(0..4);
    cluster.has_networks(4, &daemon);
    let witness = Witness::start(server);
    cluster.roll_out(4..12);
    go(server);
    sleep(away);
    come(server);
    kubectl(server, &["delete", "cudn", &tenant(0), &tenant(5), "--wait=false"]);
    kubectl(server, &["annotate", "node", "n2", "k8s.ovn.org/node-subnets-"]);
    cluster.roll_out(12..16);
    kubectl(server, &["label", "namespace", "a", &format!("team={}", tenant(7)), "--overwrite"]);
    cluster.has_networks(14, &daemon);
    witness.ends_content();
    cluster.judge(daemon).stop();
}
