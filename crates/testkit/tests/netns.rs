//! Network namespaces of tests keep their interfaces to themselves and are gone with the test.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use underlay_testkit::{Netns, OutputExt, wait_for};

/// Interfaces of the network the tests run in.
fn outside() -> String {
    Command::new("ip").args(["-o", "link"]).output().expect("running ip").ok()
}

/// Names of network namespaces; tests must not add any.
fn names() -> String {
    Command::new("ip").arg("netns").output().expect("running ip").ok()
}

#[test]
fn a_veth_inside_is_not_seen_outside() {
    let before = names();
    let netns = Netns::new();
    netns.ip(&["link", "add", "tk-inside", "type", "veth", "peer", "name", "tk-peer"]);
    assert!(netns.ip(&["-o", "link"]).contains("tk-inside"));
    assert!(!outside().contains("tk-inside"), "{}", outside());
    assert_eq!(names(), before, "a name in /run/netns outlives a killed test");
}

#[test]
fn two_namespaces_talk_by_a_veth_and_one_takes_it_along() {
    let (left, right) = (Netns::new(), Netns::new());
    let path = right.path().display().to_string();
    left.ip(&["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", &path]);
    for (netns, address) in [(&left, "192.0.2.1/30"), (&right, "192.0.2.2/30")] {
        netns.ip(&["address", "add", address, "dev", "eth0"]);
        netns.ip(&["link", "set", "eth0", "up"]);
    }
    left.run(Command::new("ping").args(["-c1", "-W5", "192.0.2.2"])).ok();
    drop(left);
    // The kernel takes a namespace apart when nobody looks.
    wait_for("the veth to go with its other end", Duration::from_secs(20), || {
        let links = right.ip(&["-o", "link"]);
        if links.contains("eth0") { Err(links) } else { Ok(()) }
    });
}

#[test]
fn sockets_belong_to_the_namespace_they_were_made_in() {
    let netns = Netns::new();
    let listener = netns.enter(|| TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    netns.enter(|| TcpStream::connect(address)).unwrap();
    // This thread has not moved.
    assert!(!outside().is_empty());
    let inside = netns.enter(|| std::fs::read_link("/proc/thread-self/ns/net")).unwrap();
    assert_ne!(inside, std::fs::read_link("/proc/thread-self/ns/net").unwrap());
}

#[test]
#[should_panic(expected = "no-such-link")]
fn a_failed_command_fails_the_test() {
    Netns::new().ip(&["link", "set", "no-such-link", "up"]);
}
