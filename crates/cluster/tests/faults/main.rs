//! Faults on a real API server: whatever happens, afterwards the state is what a fresh start computes, nothing was
//! handed out twice, and nothing of users' was touched.
//!
//! Each story has a cluster of its own. Most of them wait most of the time, so that several run at once.
#![allow(clippy::unwrap_used)]

mod away;
mod cluster;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "each test program uses its part")]
mod common;
mod competitor;
mod connections;
mod edits;
mod mistakes;
mod namespaces;
mod proxy;
mod replicas;
mod state;
mod witness;

use std::thread;

use cluster::Cluster;

/// Runs stories side by side; one that fails says so under its own name.
fn side_by_side(stories: &[(&str, fn())]) {
    thread::scope(|scope| {
        let running: Vec<_> = stories
            .iter()
            .map(|(name, story)| {
                let thread = thread::Builder::new().name((*name).to_owned());
                (name, thread.spawn_scoped(scope, story).unwrap())
            })
            .collect();
        let failed: Vec<&&str> =
            running.into_iter().filter_map(|(name, thread)| thread.join().is_err().then_some(name)).collect();
        assert!(failed.is_empty(), "failed: {failed:?}");
    });
}

#[test]
fn the_api_server_goes_away() {
    side_by_side(&[("it hangs", away::it_hangs), ("it dies for a minute", away::it_dies_for_a_minute)]);
}

#[test]
fn others_interfere() {
    side_by_side(&[("replicas", replicas::take_turns), ("people and programs", people_and_programs)]);
}

/// What happens to one cluster, one thing after the other.
fn people_and_programs() {
    let cluster = Cluster::new("others");
    let daemon = cluster.start("first");
    let daemon = competitor::everything_is_written_by_others_too(&cluster, daemon);
    let daemon = connections::are_cut_in_a_rollout(&cluster, daemon);
    let daemon = edits::records_are_edited_by_hand(&cluster, daemon);
    let daemon = namespaces::go_with_their_networks(&cluster, daemon);
    let daemon = mistakes::are_told_and_others_work(&cluster, daemon);
    daemon.stop();
}
