//! Brings a lab up and tells how far it is.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::down;
use super::events::{Event, EventReader};
use super::steps::tail;
use super::vm::{self, VmRecord};
use crate::artifacts::Artifacts;
use crate::error::{Doing, LabError};
use crate::plan::underlay::NAMES;
use crate::state::Lab;
use crate::topology::Topology;

/// How long a lab may take before we give up on it.
const PATIENCE: Duration = Duration::from_mins(10);

/// The kernel that a lab's machines run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// The one we run on, whatever it lacks: the switch runs in user space.
    Host,
    /// Debian's, in a virtual machine. The control plane stays outside.
    Vm,
    /// The one we run on, which is that of the virtual machine.
    Guest {
        /// The machine that stands for the API server outside.
        door: Option<String>,
    },
}

impl Kernel {
    /// Arguments of the lab's first process.
    fn arguments(&self) -> Vec<String> {
        match self {
            Self::Host => vec![],
            Self::Vm => vec!["--vm".to_owned()],
            Self::Guest { door: None } => vec!["--guest".to_owned()],
            Self::Guest { door: Some(door) } => ["--guest", "--door", door].map(str::to_owned).to_vec(),
        }
    }
}

/// How a lab is brought up.
#[derive(Debug)]
pub struct Options<'a> {
    /// The program whose hidden verbs run the lab: `kubectl-underlay`.
    pub program: &'a Path,
    /// What its machines run on.
    pub kernel: Kernel,
    /// Leave a lab that failed as it is.
    pub keep_failed: bool,
    /// Becomes true when the user wants no lab after all.
    pub interrupted: &'a AtomicBool,
}

/// Brings a lab up; calls back with every event. Takes it down again if it fails, unless told to keep it.
pub fn up(
    lab: &Lab,
    topology: &Topology,
    options: &Options<'_>,
    progress: impl FnMut(&Event),
) -> Result<(), LabError> {
    must_be_root()?;
    let artifacts = Artifacts::find()?;
    if options.kernel == Kernel::Vm {
        vm::check(&artifacts)?;
    }
    if topology.kubernetes.runs_underlay() && options.kernel != Kernel::Vm {
        must_have_programs(options.program)?;
    }
    lab.create()?;
    let result = start(lab, topology, options).and_then(|()| follow(lab, options.interrupted, progress));
    if result.is_err() && !options.keep_failed {
        down::down(lab)?;
    }
    result
}

/// Namespaces and mounts need root.
pub fn must_be_root() -> Result<(), LabError> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(LabError::refused("a lab needs root for namespaces and mounts: run the same command with sudo"))
}

/// The cluster's programs are looked for beside this one.
fn must_have_programs(program: &Path) -> Result<(), LabError> {
    let missing = NAMES.iter().find(|name| !program.with_file_name(name).is_file());
    let Some(name) = missing else { return Ok(()) };
    let path = program.with_file_name(name);
    Err(LabError::refused(format!("{} is missing: build the whole workspace (`make build`)", path.display())))
}

fn start(lab: &Lab, topology: &Topology, options: &Options<'_>) -> Result<(), LabError> {
    let program = options.program;
    let mut topology = topology.clone();
    if options.kernel == Kernel::Vm {
        // Emulated, containers take minutes to start: a lab with its own kernel is for the network.
        topology.kubernetes.kubelets = false;
        VmRecord { cache: std::env::var_os("UNDERLAY_CACHE").map(Into::into) }.save(lab)?;
    }
    lab.save_topology(&topology)?;
    let status = Command::new(program)
        .args(["lab", "launch"])
        .arg(lab.directory())
        .arg("--")
        .args(options.kernel.arguments())
        .status()
        .doing(|| format!("running {}", program.display()))?;
    if status.success() { Ok(()) } else { Err(LabError::failed("the lab's first process did not start", "")) }
}

fn follow(lab: &Lab, interrupted: &AtomicBool, mut progress: impl FnMut(&Event)) -> Result<(), LabError> {
    let mut reader = EventReader::default();
    let mut missed = 0;
    let deadline = Instant::now() + PATIENCE;
    loop {
        for event in reader.read(&lab.events()) {
            progress(&event);
            match event {
                Event::Complete => return Ok(()),
                Event::Failed { text } => {
                    let (what, detail) = text.split_once('\n').unwrap_or((&text, ""));
                    return Err(LabError::failed(what, detail));
                }
                _ => {}
            }
        }
        // A process in the middle of its start has no arguments for an instant.
        missed = if lab.first_process().is_none() { missed + 1 } else { 0 };
        if missed > 3 {
            let log = tail(&lab.directory().join("init.log"), 8);
            return Err(LabError::failed("the lab's first process ended", log));
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(LabError::refused("interrupted"));
        }
        if Instant::now() > deadline {
            return Err(LabError::failed(format!("the lab was not up after {PATIENCE:?}"), ""));
        }
        thread::sleep(Duration::from_millis(50));
    }
}
