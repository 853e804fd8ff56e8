//! What is not well is shown with its last words, and a lab that does not come up says why.

use std::fs;
use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;

use underlay_testkit::{HostLook, LabUnderTest, OutputExt, Scratch, require_artifacts, turn, wait_for};

use super::{CLUSTER, NETWORK, PATIENCE, daemon, pid_of};

#[test]
fn without_restart_a_killed_daemon_stays_down() {
    let _turn = turn();
    let lab = LabUnderTest::up_from("still", &format!("restart: false\n{NETWORK}"));
    lab.cli(&["status"]).ok();
    lab.exec("tor", &["kill", "-9", &pid_of(&lab, "tor", "bgpd")]).ok();
    wait_for("bgpd to be down", PATIENCE, || {
        let status = lab.status();
        let bgpd = daemon(&status, "tor", "bgpd");
        if bgpd["state"] == "down" { Ok(()) } else { Err(bgpd.to_string()) }
    });
    // Ten times as long as a daemon waits before it is started again.
    thread::sleep(Duration::from_secs(1));
    let output = lab.cli(&["status", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let status = serde_json::from_slice(&output.stdout).expect("JSON of a lab that is not well");
    let bgpd = daemon(&status, "tor", "bgpd");
    assert_eq!((&bgpd["state"], &bgpd["restarts"]), (&"down".into(), &0.into()), "{bgpd}");
    assert_eq!((&bgpd["lastExit"], &bgpd["pid"]), (&"SIGKILL".into(), &serde_json::Value::Null), "{bgpd}");
    assert!(bgpd["log"].as_array().is_some_and(|log| !log.is_empty()), "{bgpd}");
    assert_eq!(daemon(&status, "tor", "zebra")["state"], "up");
    let output = lab.cli(&["status"]);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("not everything is up"), "{table}");
    assert!(table.contains("tor bgpd: last SIGKILL\n    "), "{table}");
}

#[test]
fn a_daemon_that_does_not_start_is_named_with_its_last_words() {
    let _turn = turn();
    let before = HostLook::take();
    let lab = LabUnderTest::named("failing");
    // The lab file may say so, but the API server wants room for more services.
    let services = "  serviceSubnets: [10.96.0.0/30]";
    let text = format!("kubernetes:\n  kubelets: false\n{services}\n{CLUSTER}");
    let file = lab.file("lab.yaml", &text);
    let error = lab.try_up(&["--file", &file.to_string_lossy()]).refused();
    for part in ["control: kube-apiserver", "exit code 1", "must be at least 8 IP addresses"] {
        assert!(error.contains(part), "{part:?} is not in {error}");
    }
    lab.assert_no_trace(&before, &[]);

    // Unless told to keep it.
    lab.try_up(&["--keep", "--file", &file.to_string_lossy()]).refused();
    assert!(lab.cli(&["logs", "control", "kube-apiserver"]).ok().contains("must be at least 8"));
    lab.exec("control", &["test", "-s", "/etc/kubernetes/admin.kubeconfig"]).ok();
    let processes = lab.processes();
    lab.down();
    lab.assert_no_trace(&before, &processes);
}

#[test]
fn a_machine_that_cannot_be_made_is_named() {
    let _turn = turn();
    let before = HostLook::take();
    let lab = LabUnderTest::named("broken");
    // A set of artifacts without the machines' file system.
    let set = require_artifacts().bin().parent().expect("the set").to_owned();
    let cache = Scratch::new("cache");
    let poor = cache.join("sets").join(set.file_name().expect("its name"));
    fs::create_dir_all(&poor).expect("making a directory");
    for part in ["bin", "images", "containerd-seed"] {
        symlink(set.join(part), poor.join(part)).expect("linking a part");
    }
    let file = lab.file("lab.yaml", NETWORK);
    let mut command = lab.command();
    command.args(["up", "--file"]).arg(&file).env("UNDERLAY_CACHE", cache.path());
    let error = command.output().expect("running kubectl-underlay").refused();
    assert!(error.contains("tor: ") && error.contains("overlay"), "{error}");
    lab.assert_no_trace(&before, &[]);
}
