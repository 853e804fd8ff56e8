//! Tells neighbours of addresses that the node has come to hold, a few times: a single frame may get lost, and the switch
//! may not be ready to answer when the first one is sent.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tracing::debug;
use underlay_desired::flow::Announcement;
use underlay_ovs::announce::announce;

/// How long to wait before each time.
const TIMES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(3)];

/// Announces whatever is new, until nobody has anything to announce any more.
pub async fn run(mut wanted: watch::Receiver<BTreeSet<Announcement>>) {
    let mut known = BTreeSet::new();
    while wanted.changed().await.is_ok() {
        let now = wanted.borrow_and_update().clone();
        for one in now.difference(&known) {
            tokio::spawn(repeat(one.clone(), wanted.clone()));
        }
        known = now;
    }
}

/// Announces one, for as long as it is wanted.
async fn repeat(what: Announcement, wanted: watch::Receiver<BTreeSet<Announcement>>) {
    for time in TIMES {
        sleep(time).await;
        if !wanted.borrow().contains(&what) {
            return;
        }
        if let Err(error) = announce(&what).await {
            debug!(%error, address = %what.address, "an address was not announced");
        }
    }
}
