//! How long one more prefix takes where there are a hundred. Printed, not judged.

use std::time::{Duration, Instant};

use underlay_desired::frr::Config;
use underlay_frr::diff::{Daemon, Running, difference};
use underlay_frr::render::render;
use underlay_frr::tree::Block;
use underlay_testkit::FrrHost;

use crate::configs::{config, neighbor, session};
use crate::{TOR, edge, sync, until_established};

fn prefixes(count: usize) -> Config {
    let prefixes: Vec<String> = (0..count).map(|number| format!("10.200.{number}.0/24")).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    config(64512, &prefixes, vec![neighbor("10.0.1.2", session(64513), &prefixes)])
}

#[test]
fn a_hundred_neighbours_with_a_hundred_prefixes() {
    let prefixes: Vec<String> = (0..100).map(|number| format!("10.200.{number}.0/24")).collect();
    let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
    let peers = (0..100).map(|number| neighbor(&format!("10.0.1.{number}"), session(64513), &prefixes));
    let big = config(64512, &prefixes, peers.collect());
    let began = Instant::now();
    let want = render(&big).ours;
    println!("rendering: {:?}", began.elapsed());
    let began = Instant::now();
    let all = difference(&want, &Running::default(), &Block::default());
    println!("difference from nothing: {:?}, {} commands", began.elapsed(), all.len());
    let running = Running::from(Daemon::ALL.map(|daemon| (daemon, want.clone())));
    let began = Instant::now();
    assert_eq!(difference(&want, &running, &Block::default()), []);
    println!("difference from itself: {:?}", began.elapsed());
}

#[tokio::test]
async fn one_more_prefix_where_there_are_a_hundred() {
    let (node, tor) = (FrrHost::start("node", ""), FrrHost::start("tor", TOR));
    node.connect(&tor);
    let frr = edge(&node);
    let began = Instant::now();
    sync(&frr, &prefixes(100)).await.expect("a hundred");
    println!("a hundred prefixes: {:?}", began.elapsed());
    until_established(&node, 1).await;
    tor.wait_until_shows("show bgp ipv4 unicast", "10.200.99.0/24");
    let mut reader = underlay_frr::vty::Vty::connect(&tor.path("/run/frr/bgpd.vty")).await.expect("bgpd");
    for count in 101..106 {
        let (config, last) = (prefixes(count), count - 1);
        let began = Instant::now();
        let synced = async {
            let report = sync(&frr, &config).await.expect("one more");
            (report, began.elapsed())
        };
        let heard = async {
            let question = format!("show bgp ipv4 unicast 10.200.{last}.0/24 json");
            while !reader.ask(&question).await.expect("an answer").text.contains("\"valid\":true") {
                assert!(began.elapsed() < Duration::from_secs(10), "10.200.{last}.0/24 never came");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            began.elapsed()
        };
        let ((report, synced), heard) = tokio::join!(synced, heard);
        println!("prefix {count}: applied in {synced:?}, at the router after {heard:?}, {report:?}");
    }
    let began = Instant::now();
    sync(&frr, &prefixes(105)).await.expect("nothing new");
    println!("nothing new: {:?}", began.elapsed());
    let began = Instant::now();
    frr.running().await.expect("what daemons run with");
    println!("asking the daemons: {:?}", began.elapsed());
    let began = Instant::now();
    frr.running_config().await.expect("what FRR runs with");
    println!("all of it as one text: {:?}", began.elapsed());
    let began = Instant::now();
    render(&prefixes(105));
    println!("rendering: {:?}", began.elapsed());
}
