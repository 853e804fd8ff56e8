//! Nothing stays behind of what FRR no longer does.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use underlay_desired::frr::{Config, Receive};
use underlay_testkit::{FrrHost, OutputExt, Scratch, wait_for};

use crate::configs::{config, neighbor, session};
use crate::{edge, sync, until_established};

const ROUTES: usize = 50;
/// Time for bgpd to look for the routes of a session that ended.
const BEGUN: Duration = Duration::from_millis(30);
/// More than it then waits before it takes them back.
const DUE: Duration = Duration::from_millis(150);

/// A router that tells of routes.
fn talkative() -> String {
    let networks: Vec<String> =
        (0..ROUTES).map(|number| format!("  network 10.100.{number}.0/24\n")).collect();
    let networks = networks.concat();
    format!(
        "router bgp 64513\n bgp router-id 10.0.0.2\n no bgp ebgp-requires-policy\n no bgp network import-check\n \
         neighbor 10.0.1.1 remote-as 64512\n neighbor 10.0.1.1 timers connect 1\n address-family ipv4 unicast\n\
         {networks} exit-address-family\n"
    )
}

fn until_routes(node: &FrrHost, count: usize) {
    wait_for(&format!("{count} routes"), Duration::from_secs(10), || {
        let routes = node.ip(&["route", "show", "proto", "bgp"]).lines().count();
        if routes == count { Ok(()) } else { Err(format!("{routes} routes")) }
    });
}

/// Stands before the sockets of a node, whose bgpd gets no processor just when it is told that a router goes.
fn crowd(node: &Arc<FrrHost>, directory: &Path) {
    let sockets = node.path("/run/frr");
    for daemon in ["zebra", "bfdd", "mgmtd"] {
        let name = format!("{daemon}.vty");
        symlink(sockets.join(&name), directory.join(&name)).expect("a way to a daemon");
    }
    let door = UnixListener::bind(directory.join("bgpd.vty")).expect("a socket");
    let node = Arc::clone(node);
    tokio::spawn(async move {
        while let Ok((client, _)) = door.accept().await {
            let bgpd = UnixStream::connect(sockets.join("bgpd.vty")).await.expect("bgpd");
            tokio::spawn(pass_on(Arc::clone(&node), client, bgpd));
        }
    });
}

async fn pass_on(node: Arc<FrrHost>, client: UnixStream, bgpd: UnixStream) {
    let ((mut asking, mut answered), (mut answering, mut asked)) = (client.into_split(), bgpd.into_split());
    tokio::spawn(async move { tokio::io::copy(&mut answering, &mut answered).await });
    let mut question = [0; 4096];
    while let Ok(length @ 1..) = asking.read(&mut question).await {
        let ends = question[..length].starts_with(b"no router bgp ");
        if ends {
            tokio::time::sleep(BEGUN).await;
            node.run("sh", &["-c", "kill -STOP $(cat /run/frr/bgpd.pid)"]).ok();
        }
        asked.write_all(&question[..length]).await.expect("telling bgpd");
        if ends {
            tokio::time::sleep(DUE).await;
            node.run("sh", &["-c", "kill -CONT $(cat /run/frr/bgpd.pid)"]).ok();
        }
    }
}

/// bgpd takes routes back a while after a session ended, and never does if their router goes in between.
#[tokio::test]
async fn no_route_stays_of_a_router_that_goes() {
    let (node, tor) = (Arc::new(FrrHost::start("node", "")), FrrHost::start("tor", &talkative()));
    node.connect(&tor);
    let directory = Scratch::new("sockets");
    crowd(&node, directory.path());
    let mut frr = edge(&node);
    frr.sockets = directory.path().to_owned();
    let mut taking = neighbor("10.0.1.2", session(64513), &[]);
    taking.1.receive = Receive::All;
    sync(&frr, &config(64512, &[], vec![taking])).await.expect("a session");
    until_established(&node, 1).await;
    until_routes(&node, ROUTES);
    sync(&frr, &Config::default()).await.expect("nothing at all");
    assert!(!fs::read_to_string(&frr.file).expect("FRR's file").contains("router bgp"));
    until_routes(&node, 0);
}
