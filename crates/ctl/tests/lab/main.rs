//! The default lab does what it says. It is brought up once; the steps follow each other on it, each begins and ends
//! with a lab that is well.

mod daemons;
mod identities;
mod images;
mod pods;
mod wires;

use std::time::{Duration, Instant};

use serde_json::Value;
use underlay_lab::run::events::{Event, EventReader};
use underlay_testkit::{HostLook, LabUnderTest, OutputExt, turn, wait_for};

/// A busy machine may take many times what an idle one does.
const PATIENCE: Duration = Duration::from_secs(90);

type Step = (&'static str, fn(&LabUnderTest));

const STEPS: &[Step] = &[
    ("status shows every part up", everything_is_up),
    ("the lab is listed, and not brought up twice", the_name_is_taken),
    ("kubectl sees three ready nodes", pods::nodes_are_ready),
    ("a deployment runs on both workers", pods::deployment_spreads),
    ("exec and logs answer", pods::exec_and_logs),
    ("probes decide about endpoints", pods::probes_and_endpoints),
    ("pods are reached from other nodes in both families", pods::reached_across_nodes),
    ("the router answers in JSON, and pings from outside", wires::router_answers),
    ("a cut link passes nothing until healed", wires::cut_link),
    ("one machine's end is cut alone", wires::cut_one_end),
    ("every actor has its own identity and rights", identities::actors),
    ("daemons of a worker come back", daemons::worker_daemons_come_back),
    ("pods outlive their runtime", daemons::pods_outlive_their_runtime),
    ("the control plane comes back with what it knew", daemons::control_plane_comes_back),
    ("a loaded image runs on every worker", images::loaded_image_runs),
    ("what is not there is named, with what is", unknown_names),
];

#[test]
fn the_default_lab_works() {
    let _turn = turn();
    let before = HostLook::take();
    let started = Instant::now();
    let lab = LabUnderTest::up("default", &[]);
    println!("up after {:.1} s", started.elapsed().as_secs_f64());
    for (name, step) in STEPS {
        let started = Instant::now();
        println!("step: {name}");
        step(&lab);
        println!("      {:.1} s", started.elapsed().as_secs_f64());
    }
    let processes = lab.processes();
    assert!(processes.len() > 60, "three nodes with pods have more than {} processes", processes.len());
    lab.down();
    lab.assert_no_trace(&before, &processes);
}

/// Waits until `status` itself says that all is well.
fn wait_until_well(lab: &LabUnderTest) {
    wait_for("the lab to be well", PATIENCE, || lab.cli(&["status"]).result().map(drop));
}

/// The machines of a status.
fn machines(status: &Value) -> &Vec<Value> {
    status["machines"].as_array().expect("a list of machines")
}

/// One daemon of a status.
fn daemon<'a>(status: &'a Value, machine: &str, name: &str) -> &'a Value {
    let machine = machines(status).iter().find(|report| report["name"] == machine).expect("the machine");
    let daemons = machine["daemons"].as_array().expect("a list of daemons");
    daemons.iter().find(|daemon| daemon["name"] == name).expect("the daemon")
}

fn everything_is_up(lab: &LabUnderTest) {
    // Sessions take a second or two after the speakers are up.
    wait_until_well(lab);
    let status = lab.status();
    let roles: Vec<_> = machines(&status).iter().map(|m| (m["name"].as_str(), m["role"].as_str())).collect();
    let wanted = [
        ("control", "control-plane"),
        ("worker1", "node"),
        ("worker2", "node"),
        ("tor", "router"),
        ("outside", "host"),
    ];
    assert_eq!(roles, wanted.map(|(name, role)| (Some(name), Some(role))));
    let reports = |machine: &Value| machine["daemons"].as_array().cloned().unwrap_or_default();
    assert_eq!(machines(&status).iter().flat_map(reports).count(), planned_daemons(lab));
    for machine in machines(&status) {
        for daemon in reports(machine) {
            let well = daemon["state"] == "up" && daemon["restarts"] == 0 && daemon["pid"].as_i64() > Some(1);
            assert!(well, "{daemon}\n{}", complaints(lab, &machine["name"], &daemon["name"]));
        }
    }
    assert_eq!(status["api"]["ready"], true);
    let nodes = status["nodes"].as_array().expect("a list of nodes");
    assert_eq!(nodes.iter().filter(|node| node["ready"] == true).count(), 3, "{nodes:?}");
    // Every node has two sessions with the router, and the router all of them from its side.
    let sessions = status["bgp"].as_array().expect("a list of sessions");
    assert_eq!(sessions.len(), 12, "{sessions:?}");
    for session in sessions {
        assert_eq!(session["state"], "Established", "{session}");
    }
    assert!(status["memory"].as_u64().is_some_and(|memory| memory > 100 << 20), "{}", status["memory"]);
    let table = lab.cli(&["status"]).ok();
    assert!(table.contains("everything is up") && table.contains("kube-apiserver"), "{table}");
}

/// What a daemon said that is more than information, for the reader of a failure.
fn complaints(lab: &LabUnderTest, machine: &Value, daemon: &Value) -> String {
    let [machine, daemon] = [machine, daemon].map(|name| name.as_str().unwrap_or_default());
    let log = lab.cli(&["logs", machine, daemon]).result().unwrap_or_default();
    log.lines().filter(|line| !line.starts_with('I')).collect::<Vec<_>>().join("\n")
}

/// How many daemons the lab said it would start.
fn planned_daemons(lab: &LabUnderTest) -> usize {
    let events = EventReader::default().read(&lab.paths().events());
    let planned = events.iter().find_map(|event| match event {
        Event::Planned { daemons } => Some(*daemons),
        _ => None,
    });
    planned.expect("an event that tells the plan")
}

fn the_name_is_taken(lab: &LabUnderTest) {
    let names = lab.cli(&["list"]).ok();
    assert!(names.lines().any(|name| name == lab.name()), "{names}");
    let error = lab.try_up(&[]).refused();
    let command = format!("`kubectl-underlay lab down --name {}`", lab.name());
    assert!(error.contains(&command), "{error}");
    // The refused one has not taken the other's lab down.
    lab.cli(&["status"]).ok();
}

fn unknown_names(lab: &LabUnderTest) {
    let all = "control, worker1, worker2, tor, outside";
    for (arguments, says) in [
        (vec!["exec", "nowhere", "--", "true"], all),
        (vec!["logs", "nowhere", "bgpd"], all),
        (vec!["logs", "tor", "httpd"], "use one of bfdd, bgpd, machine, mgmtd, steps, zebra"),
        (vec!["cut", "nowhere"], "use one of fabric, uplink"),
        (vec!["heal", "nowhere"], "use one of fabric, uplink"),
        (vec!["cut", "uplink/worker1"], "use one of uplink/tor, uplink/outside"),
        (vec!["kubeconfig", "--actor", "nobody"], "use admin, cluster, agent-NODE or kubelet-NODE"),
        (vec!["load-image", "/nowhere.tar"], "/nowhere.tar"),
    ] {
        let error = lab.cli(&arguments).refused();
        assert!(error.contains(says), "{arguments:?}: {says:?} is not in {error}");
    }
    let output = lab.exec("outside", &["sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7), "the exit code of a command is passed on");
    assert!(lab.cli(&["logs", "tor", "bgpd"]).ok().contains("bgpd"));
}
