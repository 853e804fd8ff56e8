//! What cannot be done is refused before anything is started, with what to do instead.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use underlay_testkit::{LabUnderTest, OutputExt, Scratch, turn};

use super::NETWORK;

/// A lab that is not there, and must not be after anything in this file.
fn no_lab() -> LabUnderTest {
    LabUnderTest::named("none")
}

#[test]
fn a_wrong_file_starts_nothing() {
    let lab = no_lab();
    let file = lab.file("wrong.yaml", &NETWORK.replace("machine: outside", "machine: outsied"));
    let path = file.to_string_lossy().into_owned();
    let error = lab.try_up(&["--file", &path]).refused();
    assert!(error.contains(&format!("{path}:11: ")), "{error}");
    assert!(error.contains("use one of tor, outside, or define it"), "{error}");
    assert!(!lab.paths().exists());

    let error = lab.try_up(&["--file", "/nowhere.yaml"]).refused();
    assert!(error.contains("/nowhere.yaml: cannot be read"), "{error}");
    assert!(!lab.paths().exists());
}

#[test]
fn verbs_of_a_lab_that_is_not_there_say_how_to_start_it() {
    let lab = no_lab();
    let command = format!("`kubectl-underlay lab up --name {}`", lab.name());
    for arguments in [
        &["status"][..],
        &["exec", "tor", "--", "true"],
        &["logs", "tor", "bgpd"],
        &["cut", "uplink"],
        &["heal", "uplink"],
        &["kubeconfig"],
        &["load-image", "/nowhere.tar"],
    ] {
        let output = lab.cli(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = output.refused();
        assert!(error.contains(&command), "{arguments:?}: {error}");
    }
    // Nothing to take down is no failure: the wish is fulfilled.
    lab.cli(&["down"]).ok();
}

#[test]
fn a_name_that_is_no_name_is_refused() {
    for name in ["", "Lab", "../lab", "-lab", &"x".repeat(33)] {
        let mut command = Command::new(LabUnderTest::program());
        let error =
            command.args(["lab", &format!("--name={name}"), "up"]).output().expect("running it").refused();
        assert!(error.contains("use up to 32 lower-case letters, digits and dashes"), "{name:?}: {error}");
    }
}

#[test]
fn the_example_is_a_lab_file() {
    let text = no_lab().cli(&["example"]).ok();
    assert_eq!(text, underlay_lab::file::DEFAULT);
}

#[test]
fn a_cluster_without_kubelets_takes_no_images() {
    let _turn = turn();
    let lab = LabUnderTest::up_from("bare", &format!("kubernetes: {{ kubelets: false }}\n{NETWORK}"));
    let error = lab.cli(&["load-image", "/nowhere.tar"]).refused();
    assert!(error.contains("`kubelets: false`"), "{error}");
}

/// The program as nobody runs it. A copy, because nobody may not be allowed to read the target directory.
fn as_nobody(scratch: &Scratch) -> Command {
    let everybody = |path: &Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("opening it for everybody");
    };
    let copy = scratch.join("kubectl-underlay");
    fs::copy(LabUnderTest::program(), &copy).expect("copying the program");
    everybody(scratch.path());
    everybody(&copy);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
    command
}

#[test]
fn whoever_is_not_root_is_told_to_be() {
    let _turn = turn();
    let scratch = Scratch::new("nobody");
    let lab = no_lab();
    for verb in ["up", "down"] {
        let output = as_nobody(&scratch).args(["lab", "--name", lab.name(), verb]).output();
        let error = output.expect("running it as nobody").refused();
        assert!(error.contains("sudo"), "{verb}: {error}");
    }
    assert!(!lab.paths().exists());
    let theirs = LabUnderTest::up_from("theirs", NETWORK);
    for arguments in [&["status"][..], &["exec", "tor", "--", "true"], &["kubeconfig"], &["down"]] {
        let mut command = as_nobody(&scratch);
        command.args(["lab", "--name", theirs.name()]).args(arguments);
        let error = command.output().expect("running it as nobody").refused();
        assert!(error.contains("sudo"), "{arguments:?}: {error}");
    }
}
