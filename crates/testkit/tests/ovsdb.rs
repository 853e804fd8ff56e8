//! The real OVSDB server keeps what it is given, and ends with the test.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, raise};
use underlay_testkit::{OutputExt, OvsdbServer, Schema, wait_for};

/// Tells a second copy of this test program that it is the one to be killed.
const VICTIM: &str = "UNDERLAY_TESTKIT_VICTIM";

#[test]
fn a_logical_switch_comes_back() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    server.ctl(&["ls-add", "blue", "--", "lsp-add", "blue", "port"]).ok();
    assert_eq!(server.ctl(&["--bare", "--columns=name", "list", "Logical_Switch"]).ok().trim(), "blue");
    assert!(server.ctl(&["lsp-list", "blue"]).ok().contains("(port)"));
    assert!(server.ctl(&["ls-add", "blue"]).refused().contains("blue"));
}

#[test]
fn other_schemas_have_their_own_clients() {
    let switch = OvsdbServer::start(Schema::OpenVswitch);
    switch.ctl(&["init", "--", "add-br", "br-test"]).ok();
    assert_eq!(switch.ctl(&["list-br"]).ok().trim(), "br-test");
    let southbound = OvsdbServer::start(Schema::OvnSouthbound);
    southbound.ctl(&["chassis-add", "node1", "geneve", "192.0.2.1"]).ok();
    assert!(southbound.ctl(&["show"]).ok().contains("node1"));
}

#[test]
fn two_servers_do_not_mix() {
    let (one, two) = (OvsdbServer::start(Schema::OvnNorthbound), OvsdbServer::start(Schema::OvnNorthbound));
    one.ctl(&["ls-add", "only-in-one"]).ok();
    assert_eq!(two.ctl(&["ls-list"]).ok(), "");
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = thread::spawn(|| OvsdbServer::start(Schema::OvnNorthbound)).join().unwrap();
    server.ctl(&["ls-list"]).ok();
}

#[test]
fn a_dropped_server_is_gone() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let socket = server.socket();
    assert_ne!(processes_with(&socket), Vec::<String>::new());
    drop(server);
    assert_eq!(processes_with(&socket), Vec::<String>::new());
    assert!(!socket.exists());
}

#[test]
fn a_killed_test_leaves_nothing() {
    if std::env::var_os(VICTIM).is_some() {
        let server = OvsdbServer::start(Schema::OvnNorthbound);
        println!("socket={}", server.socket().display());
        let _ = raise(Signal::SIGKILL);
    }
    let me = std::env::current_exe().unwrap();
    let victim = Command::new(me)
        .args(["--exact", "a_killed_test_leaves_nothing", "--nocapture"])
        .env(VICTIM, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&victim.stdout).into_owned();
    let socket = text.lines().find_map(|line| line.strip_prefix("socket=")).unwrap_or_else(|| {
        panic!("the victim told no socket: {victim:?}");
    });
    assert!(!victim.status.success());
    wait_for("the victim's server and files to be gone", Duration::from_secs(20), || {
        let home = Path::new(socket).parent().and_then(Path::parent).unwrap();
        let left = (processes_with(Path::new(socket)), home.exists(), UnixStream::connect(socket).is_ok());
        if left == (vec![], false, false) { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// Command lines of all processes with this path in them.
fn processes_with(path: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("reading /proc").flatten();
    entries
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&path.display().to_string()))
        .collect()
}
