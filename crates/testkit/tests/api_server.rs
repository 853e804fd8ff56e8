//! The real API server answers, keeps what it is given, and is shared by the tests of a binary.

use std::time::Duration;

use underlay_testkit::{ApiServer, OutputExt, wait_for};

#[test]
fn it_starts_and_is_ready() {
    let server = ApiServer::shared();
    println!("API server ready after {:.1} s", server.startup().as_secs_f64());
    // Loose on purpose: it says that somebody waits for the wrong thing, not that the machine is busy.
    assert!(server.startup() < Duration::from_secs(30), "{:?}", server.startup());
    assert_eq!(server.kubectl(&["get", "--raw", "/readyz"]).ok(), "ok");
}

#[test]
fn a_config_map_comes_back_as_it_went() {
    let server = ApiServer::shared();
    server.kubectl(&["create", "namespace", "round-trip"]).ok();
    let namespace = "--namespace=round-trip";
    server.kubectl(&[namespace, "create", "configmap", "letter", "--from-literal=dear=reader"]).ok();
    let read = [namespace, "get", "configmap", "letter", "-o", "jsonpath={.data.dear}"];
    assert_eq!(server.kubectl(&read).ok(), "reader");
    server.kubectl(&[namespace, "delete", "configmap", "letter"]).ok();
    assert!(server.kubectl(&read).refused().contains("NotFound"));
}

#[test]
fn rights_are_checked() {
    let server = ApiServer::shared();
    let ask = ["auth", "can-i", "delete", "nodes"];
    assert_eq!(server.kubectl(&ask).ok().trim(), "yes");
    let mut as_somebody = ask.to_vec();
    as_somebody.push("--as=somebody");
    let answer = wait_for("the answer no", Duration::from_secs(10), || {
        let output = server.kubectl(&as_somebody);
        // kubectl says "no" and fails.
        if output.status.success() { Err("yes".to_owned()) } else { Ok(output) }
    });
    assert!(String::from_utf8_lossy(&answer.stdout).starts_with("no"), "{answer:?}");
}

#[test]
fn a_second_server_is_another() {
    let (shared, second) = (ApiServer::shared(), ApiServer::start());
    assert_ne!(shared.url(), second.url());
    second.kubectl(&["create", "namespace", "only-in-the-second"]).ok();
    let read = ["get", "namespace", "only-in-the-second"];
    second.kubectl(&read).ok();
    assert!(shared.kubectl(&read).refused().contains("NotFound"));
    let kubeconfig = second.kubeconfig();
    drop(second);
    assert!(!kubeconfig.exists(), "{} outlived its server", kubeconfig.display());
}
