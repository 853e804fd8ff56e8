//! How a lab is: every daemon, the API, the nodes, the BGP sessions. Seen from outside, by asking each part.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::enter;
pub use super::keeper::{DaemonState, DaemonStatus, MachineStatus};
use super::steps::tail;
use super::vm::{self, VmRecord};
use crate::artifacts::Artifacts;
use crate::error::LabError;
use crate::state::Lab;
use crate::topology::{Machine, Role, Topology};

/// Lines shown of the log of a daemon that is down or was restarted.
const LOG_LINES: usize = 5;

/// Everything `status` tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabStatus {
    /// Name of the lab.
    pub name: String,
    /// In the order of the file.
    pub machines: Vec<MachineReport>,
    /// The API server, if the lab has one.
    pub api: Option<ApiReport>,
    /// Kubernetes' view of the nodes.
    pub nodes: Vec<NodeReport>,
    /// Every session of every speaker.
    pub bgp: Vec<SessionReport>,
    /// Proportional memory of all processes, in bytes.
    pub memory: u64,
}

/// One machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineReport {
    /// Its name.
    pub name: String,
    /// `node`, `control-plane`, `router` or `host`.
    pub role: String,
    /// All its steps are done.
    pub ready: bool,
    /// In starting order.
    pub daemons: Vec<DaemonReport>,
}

/// One daemon, with its last words if it is not well.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonReport {
    /// What its keeper says.
    #[serde(flatten)]
    pub status: DaemonStatus,
    /// Last lines of its log, when it is down or was restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
}

/// The API server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiReport {
    /// Whether it says it is ready.
    pub ready: bool,
    /// What it said instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A node in the eyes of Kubernetes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Its condition Ready.
    pub ready: bool,
    /// Why not, if not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Version of its kubelet.
    pub version: String,
}

/// A BGP session.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionReport {
    /// Who speaks.
    pub machine: String,
    /// To whom.
    pub neighbor: String,
    /// The neighbour's system.
    pub remote_as: u64,
    /// FRR's word for the state.
    pub state: String,
    /// Prefixes received.
    pub received: u64,
    /// Prefixes sent.
    pub sent: u64,
}

impl LabStatus {
    /// Whether everything that should work does.
    pub fn healthy(&self) -> bool {
        let daemons = self.machines.iter().flat_map(|machine| &machine.daemons);
        self.machines.iter().all(|machine| machine.ready)
            && daemons.into_iter().all(|daemon| daemon.status.state == DaemonState::Up)
            && self.api.as_ref().is_none_or(|api| api.ready)
            && self.nodes.iter().all(|node| node.ready)
            && self.bgp.iter().all(|session| session.state == "Established")
    }
}

/// Looks at all parts of a lab.
pub fn status(lab: &Lab) -> Result<LabStatus, LabError> {
    let topology = lab.topology()?;
    lab.first_process().ok_or_else(|| half_made(lab))?;
    if VmRecord::of(lab)?.is_some() {
        return vm::status(lab);
    }
    let machines: Vec<MachineReport> = topology.machines.iter().map(|machine| report(lab, machine)).collect();
    let (api, nodes, bgp) = thread::scope(|scope| {
        let cluster = scope.spawn(|| cluster(lab, &topology));
        let speakers: Vec<_> = machines
            .iter()
            .filter(|machine| machine.daemons.iter().any(|daemon| daemon.status.name == "bgpd"))
            .map(|machine| scope.spawn(|| sessions(lab, &machine.name)))
            .collect();
        let bgp = speakers.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect();
        let (api, nodes) = cluster.join().unwrap_or_default();
        (api, nodes, bgp)
    });
    Ok(LabStatus { name: lab.name().to_owned(), machines, api, nodes, bgp, memory: memory(lab) })
}

/// What to say when a lab has ended by itself.
pub(super) fn half_made(lab: &Lab) -> LabError {
    LabError::refused(format!(
        "lab {0:?} is not running, but left files: clean up with `kubectl-underlay lab down --name {0}`",
        lab.name()
    ))
}

/// What a machine says about itself.
pub(super) fn report(lab: &Lab, machine: &Machine) -> MachineReport {
    let path = lab.shared_directory(&machine.name).join("status.json");
    let status: MachineStatus =
        fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let daemons = status.daemons.into_iter().map(|status| {
        let unwell = status.state != DaemonState::Up || status.restarts > 0;
        let log = if unwell { tail(&lab.log(&machine.name, &status.name), LOG_LINES) } else { String::new() };
        DaemonReport { status, log: log.lines().map(str::to_owned).collect() }
    });
    let role = match &machine.role {
        Role::Node { control_plane: true, .. } => "control-plane",
        Role::Node { .. } => "node",
        Role::Router(_) => "router",
        Role::Host => "host",
    };
    MachineReport {
        name: machine.name.clone(),
        role: role.to_owned(),
        ready: status.ready,
        daemons: daemons.collect(),
    }
}

/// Asks the API server, as an admin from outside would.
pub(super) fn cluster(lab: &Lab, topology: &Topology) -> (Option<ApiReport>, Vec<NodeReport>) {
    if topology.control_plane().is_none() {
        return (None, vec![]);
    }
    match kubectl(lab, &["get", "nodes", "-o", "json"]) {
        Ok(text) => {
            let list: Value = serde_json::from_str(&text).unwrap_or_default();
            let nodes = list["items"].as_array().into_iter().flatten().map(node_report).collect();
            (Some(ApiReport { ready: true, message: String::new() }), nodes)
        }
        Err(error) => (Some(ApiReport { ready: false, message: super::machine::describe(&error) }), vec![]),
    }
}

/// Runs the lab's kubectl as its admin.
pub fn kubectl(lab: &Lab, arguments: &[&str]) -> Result<String, LabError> {
    let program = Artifacts::find()?.program("kubectl");
    let output = Command::new(program)
        .arg("--kubeconfig")
        .arg(lab.kubeconfig("admin"))
        .args(["--request-timeout=5s"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| LabError::Io { what: "running kubectl".to_owned(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::failed(text.lines().last().unwrap_or("kubectl failed"), ""))
}

fn node_report(node: &Value) -> NodeReport {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let is_ready = ready.is_some_and(|condition| condition["status"] == "True");
    let message = ready.filter(|_| !is_ready).and_then(|condition| condition["message"].as_str());
    NodeReport {
        name: node["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        ready: is_ready,
        message: message.unwrap_or_default().to_owned(),
        version: node["status"]["nodeInfo"]["kubeletVersion"].as_str().unwrap_or_default().to_owned(),
    }
}

/// Asks FRR in the machine.
fn sessions(lab: &Lab, machine: &str) -> Vec<SessionReport> {
    let Ok(output) = enter::output(lab, machine, &["vtysh", "-c", "show bgp summary json"]) else {
        return vec![];
    };
    parse_sessions(machine, &output.stdout)
}

/// Sessions of all address families in the answer of `show bgp summary json`.
fn parse_sessions(machine: &str, text: &[u8]) -> Vec<SessionReport> {
    let summary: Value = serde_json::from_slice(text).unwrap_or_default();
    let families = summary.as_object().into_iter().flat_map(|families| families.values());
    let peers = families.filter_map(|family| family["peers"].as_object()).flatten();
    peers
        .map(|(neighbor, peer)| SessionReport {
            machine: machine.to_owned(),
            neighbor: neighbor.clone(),
            remote_as: peer["remoteAs"].as_u64().unwrap_or_default(),
            state: peer["state"].as_str().unwrap_or_default().to_owned(),
            received: peer["pfxRcd"].as_u64().unwrap_or_default(),
            sent: peer["pfxSnt"].as_u64().unwrap_or_default(),
        })
        .collect()
}

/// Sum of the proportional set sizes of all processes of a lab.
pub(super) fn memory(lab: &Lab) -> u64 {
    let Ok(proc) = lab.inner_proc() else { return 0 };
    let processes = fs::read_dir(proc).into_iter().flatten().flatten();
    let numbered =
        processes.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<i32>().is_ok()));
    let pss = |rollup: String| -> Option<u64> {
        let line = rollup.lines().find(|line| line.starts_with("Pss:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    numbered.filter_map(|entry| pss(fs::read_to_string(entry.path().join("smaps_rollup")).ok()?)).sum::<u64>()
        * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_both_families_are_found() {
        let text = br#"{"ipv4Unicast":{"as":64513,"peers":{"172.30.0.10":{"remoteAs":64512,"state":"Established",
            "pfxRcd":2,"pfxSnt":3}}},"ipv6Unicast":{"peers":{"fd00::1":{"remoteAs":64512,"state":"Active"}}}}"#;
        let sessions = parse_sessions("tor", text);
        assert_eq!(sessions.len(), 2);
        assert_eq!((sessions[0].neighbor.as_str(), sessions[0].received), ("172.30.0.10", 2));
        assert_eq!((sessions[1].state.as_str(), sessions[1].received), ("Active", 0));
    }

    #[test]
    fn an_empty_answer_has_no_sessions() {
        assert!(parse_sessions("tor", b"{}").is_empty());
        assert!(parse_sessions("tor", b"no bgp").is_empty());
    }
}
