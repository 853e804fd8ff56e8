//! Labs come and go, in good order and in bad: whatever happens to one, `down` leaves nothing of it on the machine.

mod failures;
mod refusals;

use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use underlay_lab::run::events::{Event, EventReader};
use underlay_testkit::{HostLook, LabUnderTest, OutputExt, turn, wait_for};

/// A busy machine may take many times what an idle one does.
const PATIENCE: Duration = Duration::from_secs(90);

/// One node and its router: as small as a cluster gets.
const CLUSTER: &str = r#"
nodes:
  - name: control
    controlPlane: true
    bgp: { asn: 64512, neighbors: [{ address: 172.30.0.1, asn: 64513 }] }
routers:
  - name: tor
    bgp: { asn: 64513, neighbors: [{ address: 172.30.0.10, asn: 64512 }] }
links:
  - name: fabric
    ends:
      - { machine: tor, addresses: [172.30.0.1/24] }
      - { machine: control, addresses: [172.30.0.10/24, "fd00:30::10/64"] }
"#;

/// A router and a host, for tests that need no cluster: up in less than a second.
const NETWORK: &str = r"
routers:
  - name: tor
    bgp: { asn: 64513 }
hosts:
  - name: outside
links:
  - name: uplink
    ends:
      - { machine: tor, addresses: [203.0.113.1/24] }
      - { machine: outside, addresses: [203.0.113.10/24] }
";

/// A pod that is put on the only node, past the scheduler and the taint.
const POD: &str = r"
apiVersion: v1
kind: Pod
metadata: { name: sleeper }
spec:
  nodeName: control
  automountServiceAccountToken: false
  containers: [{ name: sleeper, image: underlay.lab/agnhost:latest, imagePullPolicy: Never, args: [pause] }]
";

/// The number, in its machine, of a daemon.
fn pid_of(lab: &LabUnderTest, machine: &str, name: &str) -> String {
    daemon(&lab.status(), machine, name)["pid"].to_string()
}

fn daemon<'a>(status: &'a Value, machine: &str, name: &str) -> &'a Value {
    let machines = status["machines"].as_array().expect("a list of machines");
    let machine = machines.iter().find(|report| report["name"] == machine).expect("the machine");
    let daemons = machine["daemons"].as_array().expect("a list of daemons");
    daemons.iter().find(|daemon| daemon["name"] == name).expect("the daemon")
}

/// Begins to bring a lab up, and does not wait.
fn begin(lab: &LabUnderTest, arguments: &[&str]) -> Child {
    let mut command = lab.command();
    command.arg("up").args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("running kubectl-underlay")
}

/// Waits until so many daemons of a lab are up.
fn wait_for_daemons(lab: &LabUnderTest, wanted: usize) {
    wait_for(&format!("{wanted} daemons to be up"), PATIENCE, || {
        let events = EventReader::default().read(&lab.paths().events());
        let up = events.iter().filter(|event| matches!(event, Event::Up { .. })).count();
        if up >= wanted { Ok(()) } else { Err(format!("{up} of them")) }
    });
}

fn send(signal: Signal, child: &Child) {
    let pid = i32::try_from(child.id()).expect("a process number");
    kill(Pid::from_raw(pid), signal).expect("sending a signal");
}

#[test]
fn two_labs_live_side_by_side_and_leave_nothing() {
    let _turn = turn();
    let before = HostLook::take();
    let (one, two) = thread::scope(|scope| {
        let one = scope.spawn(|| LabUnderTest::up_from("one", CLUSTER));
        let two = scope.spawn(|| LabUnderTest::up_from("two", CLUSTER));
        (one.join().expect("the first lab"), two.join().expect("the second lab"))
    });
    for lab in [&one, &two] {
        wait_for("the lab to be well", PATIENCE, || lab.cli(&["status"]).result());
        // Both have these addresses.
        lab.exec("control", &["ping", "-c1", "-W5", "172.30.0.1"]).ok();
    }
    one.kubectl(&["create", "namespace", "only-in-one"]).ok();
    let error = two.kubectl(&["get", "namespace", "only-in-one"]).refused();
    assert!(error.contains("NotFound"), "{error}");

    // The first one goes down with orphans: a pod whose kubelet and runtime were killed.
    let pod = one.file("pod.yaml", POD);
    one.kubectl(&["apply", "--filename", &pod.to_string_lossy()]).ok();
    one.kubectl(&["wait", "pod/sleeper", "--for=condition=Ready", "--timeout=90s"]).ok();
    let processes = one.processes();
    let numbers = [pid_of(&one, "control", "kubelet"), pid_of(&one, "control", "containerd")];
    one.exec("control", &["kill", "-9", &numbers[0], &numbers[1]]).ok();
    one.down();
    one.assert_no_trace(&before, &processes);

    // The second has not noticed.
    two.cli(&["status"]).ok();
    let processes = two.processes();
    assert!(processes.len() > 20, "a cluster has more than {} processes", processes.len());
    two.down();
    two.assert_no_trace(&before, &processes);
    assert!(two.cli(&["status"]).refused().contains("kubectl-underlay lab up"));
}

#[test]
fn a_lab_whose_up_was_killed_is_taken_down() {
    let _turn = turn();
    let before = HostLook::take();
    let lab = LabUnderTest::named("killed");
    let mut up = begin(&lab, &[]);
    wait_for_daemons(&lab, 8);
    send(Signal::SIGKILL, &up);
    up.wait().expect("the end of a killed process");
    assert!(lab.try_up(&[]).refused().contains("is there already"));
    let processes = lab.processes();
    assert!(processes.len() > 10, "a lab half-way has more than {} processes", processes.len());
    lab.down();
    lab.assert_no_trace(&before, &processes);
}

#[test]
fn a_lab_whose_up_was_killed_at_once_is_taken_down() {
    let _turn = turn();
    let before = HostLook::take();
    // Not always at the same place, on purpose: each time it is a little further.
    for pause in [0, 2, 4, 8, 16, 32, 64] {
        let lab = LabUnderTest::named("early");
        let file = lab.file("lab.yaml", NETWORK);
        let mut up = begin(&lab, &["--file", &file.to_string_lossy()]);
        wait_for("the lab to take its name", PATIENCE, || {
            if lab.paths().exists() { Ok(()) } else { Err("nothing") }.map_err(str::to_owned)
        });
        thread::sleep(Duration::from_millis(pause));
        send(Signal::SIGKILL, &up);
        up.wait().expect("the end of a killed process");
        let processes = lab.processes();
        lab.down();
        lab.assert_no_trace(&before, &processes);
    }
}

#[test]
fn an_interrupted_up_leaves_nothing() {
    let _turn = turn();
    let before = HostLook::take();
    let lab = LabUnderTest::named("stopped");
    let file = lab.file("lab.yaml", CLUSTER);
    let up = begin(&lab, &["--file", &file.to_string_lossy()]);
    wait_for_daemons(&lab, 3);
    let processes = lab.processes();
    send(Signal::SIGTERM, &up);
    let output = up.wait_with_output().expect("the end of an interrupted process");
    assert!(output.refused().contains("interrupted"));
    lab.assert_no_trace(&before, &processes);
}

#[test]
fn labs_of_killed_tests_are_taken_down_by_the_next() {
    let _turn = turn();
    let lab = LabUnderTest::up_from("mine", NETWORK);
    // No process has a number that high: whoever made this lab is gone.
    let name = "t-gone1-4194305-7";
    let file = lab.file("gone.yaml", NETWORK);
    let mut up = std::process::Command::new(LabUnderTest::program());
    up.args(["lab", "--name", name, "up", "--file"])
        .arg(&file)
        .output()
        .expect("running kubectl-underlay")
        .ok();
    LabUnderTest::take_down_leftovers();
    let names = lab.cli(&["list"]).ok();
    assert!(!names.lines().any(|listed| listed == name), "{names}");
    assert!(names.lines().any(|listed| listed == lab.name()), "a lab of a living test stays: {names}");
    lab.cli(&["status"]).ok();
}
