//! Brings the lab up inside the virtual machine and tells the host how it goes: an event a line.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::{Doing, LabError};
use crate::run::events::Event;
use crate::run::up::{Kernel, Options, up};
use crate::state::Lab;
use crate::topology::{Role, Topology};

/// Brings up the network of the lab whose directory on the host is this one; we read it through the host's file system.
pub fn run(outside: &Path) -> Result<(), LabError> {
    let outer = Lab::at(outside)?;
    let topology = outer.topology()?;
    let lab = Lab::named(outer.name())?;
    let program = std::env::current_exe().doing(|| "finding this program".to_owned())?;
    let options = Options {
        program: &program,
        kernel: Kernel::Guest { door: topology.control_plane().map(|machine| machine.name.clone()) },
        // It ends with the virtual machine, and until then it can be looked at.
        keep_failed: true,
        interrupted: &AtomicBool::new(false),
    };
    up(&lab, &network_part(topology), &options, tell)
}

/// The lab without its control plane.
pub fn network_part(mut topology: Topology) -> Topology {
    topology.kubernetes.kubelets = false;
    for machine in &mut topology.machines {
        if let Role::Node { control_plane, .. } = &mut machine.role {
            *control_plane = false;
        }
    }
    topology
}

fn tell(event: &Event) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    // If nobody listens, the host is gone and soon so are we.
    let _ = io::stdout().write_all(&line);
}
