//! Who lacks root or the artifacts reads what to run.
//!
//! Each test runs a second copy of itself in the poorer circumstances and reads its failure.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use underlay_testkit::{Netns, OvsdbServer, Schema, Scratch};

/// Tells the second copy that it is the one.
const POOR: &str = "UNDERLAY_TESTKIT_POOR";

fn is_poor() -> bool {
    std::env::var_os(POOR).is_some()
}

/// Runs one test of this program and returns what it printed; it must have failed.
fn failure(command: &mut Command, name: &str) -> String {
    let output =
        command.args(["--exact", name, "--nocapture"]).env(POOR, "1").output().expect("running this test");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it did without: {text}");
    text.into_owned()
}

#[test]
fn missing_artifacts_name_the_command() {
    if is_poor() {
        OvsdbServer::start(Schema::OvnNorthbound);
        return;
    }
    let me = std::env::current_exe().unwrap();
    let text =
        failure(Command::new(me).env("UNDERLAY_CACHE", "/nowhere"), "missing_artifacts_name_the_command");
    assert!(text.contains("/nowhere") && text.contains("run `make setup`"), "{text}");
}

#[test]
fn missing_root_names_the_command() {
    if is_poor() {
        Netns::new();
        return;
    }
    // Nobody may not read what is in our target directory, perhaps.
    let scratch = Scratch::new("poor");
    let everybody = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    let copy = scratch.join("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    everybody(scratch.path());
    everybody(&copy);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    let text = failure(&mut command, "missing_root_names_the_command");
    assert!(text.contains("sudo make test"), "{text}");
}
