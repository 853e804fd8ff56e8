//! From a [`Topology`] to what every machine does at start: pure, so that a lab can be read before it runs.
//!
//! In: the topology, the certificates, a few facts of the place. Out: a [`LabPlan`]: the wires as one `ip -batch` text,
//! and per machine the files, commands and daemons in order.

mod control_plane;
mod dns;
mod frr;
mod network;
mod ovn;
pub(crate) mod underlay;
mod worker;

pub use control_plane::{API_PORT, RBAC, kubeconfig_path};
pub use worker::cgroup_of;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pki::Pki;
use crate::topology::{Machine, Role, RouterConfig, Topology};

/// Where the datapath of Open vSwitch runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Datapath {
    /// In `ovs-vswitchd`: needs nothing of the kernel.
    Userspace,
    /// In the kernel's openvswitch module.
    Kernel,
}

/// Facts of the place the lab runs in.
#[derive(Debug, Clone)]
pub struct Place {
    /// Name of the lab.
    pub lab: String,
    /// Where the OVS datapath runs.
    pub datapath: Datapath,
    /// Image of a pod's sandbox, present on every node.
    pub sandbox_image: String,
    /// Image of cluster DNS, present on every node.
    pub dns_image: String,
    /// Factor on every patience below: an emulated machine is slower.
    pub slowness: u32,
}

/// All there is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LabPlan {
    /// Names of network namespaces: one per machine, and one for the bridges.
    pub namespaces: Vec<String>,
    /// Input of `ip -batch -` in the namespace of the bridges: bridges and cables.
    pub wires: String,
    /// What each machine does.
    pub machines: Vec<MachinePlan>,
}

/// What one machine does when it starts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MachinePlan {
    /// Host name.
    pub name: String,
    /// Whether it has the directories of a Kubernetes node.
    pub node: bool,
    /// Whether a daemon that dies is started again.
    pub restart: bool,
    /// In order.
    pub steps: Vec<Step>,
}

/// One thing a machine does while it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Writes a file, making its directory.
    Write {
        /// Absolute path in the machine.
        path: String,
        /// Permissions.
        mode: u32,
        /// What is in it.
        content: String,
    },
    /// Runs a command that must succeed.
    Run(Vec<String>),
    /// Runs a command with this text on its standard input; it must succeed.
    Feed {
        /// The command.
        argv: Vec<String>,
        /// Its input.
        input: String,
    },
    /// Starts a daemon and waits until it is ready.
    Start(Daemon),
    /// Waits for something outside the machine's own steps.
    Wait(Probe),
    /// Runs sequences side by side; done when all are.
    Together(Vec<Vec<Step>>),
}

/// A program that is kept running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Daemon {
    /// Name in `status` and `logs`.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// When it counts as up.
    pub ready: Probe,
    /// Commands that follow every start, once it is ready: what the world lost when it died.
    pub after: Vec<Vec<String>>,
}

/// How to see that something is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// What is waited for, in words.
    pub what: String,
    /// How it is seen.
    pub how: ProbeHow,
    /// After how long to give up.
    pub patience: Duration,
}

/// How a [`Probe`] looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeHow {
    /// A Unix socket accepts.
    Socket(String),
    /// A TCP port accepts.
    Tcp(String),
    /// A command succeeds.
    Command(Vec<String>),
}

/// Name of the namespace that holds the bridges; not a legal machine name.
pub const WIRES_NAMESPACE: &str = "wires.";

/// Plans the whole lab.
pub fn plan(topology: &Topology, pki: &Pki, place: &Place) -> LabPlan {
    let mut namespaces = vec![WIRES_NAMESPACE.to_owned()];
    namespaces.extend(topology.machines.iter().map(|machine| machine.name.clone()));
    let machines = topology
        .machines
        .iter()
        .map(|machine| MachinePlan {
            name: machine.name.clone(),
            node: matches!(machine.role, Role::Node { .. }),
            restart: topology.restart,
            steps: with_patience(machine_steps(topology, machine, pki, place), place.slowness),
        })
        .collect();
    LabPlan { namespaces, wires: network::wires(topology), machines }
}

/// Plans the control plane alone, for a lab whose network is in a virtual machine.
pub fn plan_control_plane(topology: &Topology, pki: &Pki, place: &Place) -> LabPlan {
    let machines = topology.control_plane().map(|machine| {
        let mut steps = network::base(machine);
        steps.extend(control_plane::steps(topology, machine, pki, place));
        MachinePlan {
            name: machine.name.clone(),
            node: true,
            restart: topology.restart,
            steps: with_patience(steps, place.slowness),
        }
    });
    LabPlan { namespaces: vec![], wires: String::new(), machines: machines.into_iter().collect() }
}

fn machine_steps(topology: &Topology, machine: &Machine, pki: &Pki, place: &Place) -> Vec<Step> {
    let mut steps = network::base(machine);
    match &machine.role {
        Role::Host => steps.extend(network::kernel_addresses(machine)),
        Role::Router(config) => {
            steps.extend(network::kernel_addresses(machine));
            match config {
                RouterConfig::Whole(text) => steps.extend(frr::steps(text)),
                RouterConfig::Bgp(bgp) => steps.extend(frr::steps(&frr::config(machine, bgp))),
                RouterConfig::Plain => {}
            }
        }
        Role::Node { bgp, control_plane, .. } => {
            // With Underlay on the node, the node's FRR waits to be told by it.
            let told = bgp.as_ref().filter(|_| !topology.kubernetes.runs_underlay());
            let config = told.map_or_else(|| frr::silent(machine), |bgp| frr::config(machine, bgp));
            let mut network = ovn::switch(machine, place);
            network.push(Step::Together(vec![ovn::zone(), frr::steps(&config)]));
            let mut chains = vec![network];
            if *control_plane {
                chains.push(control_plane::steps(topology, machine, pki, place));
            }
            if topology.kubernetes.kubelets {
                chains.push(worker::runtime(place));
            }
            steps.push(Step::Together(chains));
            if topology.kubernetes.kubelets {
                steps.extend(worker::kubelet(topology, machine, *control_plane, pki, place));
            }
            if *control_plane {
                steps.extend(control_plane::final_steps(topology, machine));
            }
        }
    }
    steps
}

/// Stretches every wait, for machines that are emulated.
fn with_patience(mut steps: Vec<Step>, slowness: u32) -> Vec<Step> {
    for step in &mut steps {
        match step {
            Step::Start(daemon) => daemon.ready.patience *= slowness,
            Step::Wait(probe) => probe.patience *= slowness,
            Step::Together(chains) => {
                for chain in chains {
                    *chain = with_patience(std::mem::take(chain), slowness);
                }
            }
            Step::Write { .. } | Step::Run(_) | Step::Feed { .. } => {}
        }
    }
    steps
}

impl LabPlan {
    /// How many daemons will run, all machines together.
    pub fn daemons(&self) -> usize {
        self.machines.iter().map(|machine| count_daemons(&machine.steps)).sum()
    }
}

fn count_daemons(steps: &[Step]) -> usize {
    let count = |step: &Step| match step {
        Step::Start(_) => 1,
        Step::Together(chains) => chains.iter().map(|chain| count_daemons(chain)).sum(),
        _ => 0,
    };
    steps.iter().map(count).sum()
}

impl Probe {
    fn new(what: impl Into<String>, how: ProbeHow) -> Self {
        Self { what: what.into(), how, patience: Duration::from_mins(1) }
    }

    fn socket(path: &str) -> Self {
        Self::new(format!("{path} to accept"), ProbeHow::Socket(path.to_owned()))
    }

    fn tcp(address: &str) -> Self {
        Self::new(format!("{address} to accept"), ProbeHow::Tcp(address.to_owned()))
    }

    fn command(what: &str, argv: Vec<String>) -> Self {
        Self::new(what, ProbeHow::Command(argv))
    }
}

/// Splits a command line at blanks; for commands whose words hold none.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn run(line: &str) -> Step {
    Step::Run(words(line))
}

fn write(path: &str, content: impl Into<String>) -> Step {
    Step::Write { path: path.to_owned(), mode: 0o644, content: content.into() }
}

fn write_secret(path: &str, content: impl Into<String>) -> Step {
    Step::Write { path: path.to_owned(), mode: 0o600, content: content.into() }
}
