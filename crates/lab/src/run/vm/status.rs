//! How a lab in a virtual machine is: its network's own report from the machine, and the control plane beside it.

use super::client;
use crate::error::{Doing, LabError};
use crate::run::status::{LabStatus, cluster, memory, report};
use crate::state::Lab;

/// Looks at all parts of a lab in a virtual machine.
pub fn status(lab: &Lab) -> Result<LabStatus, LabError> {
    let printed = client::output(lab, &["status", "--output", "json"])?;
    if printed.is_empty() {
        return Err(LabError::refused(format!("lab {:?} is not up yet in its virtual machine", lab.name())));
    }
    let mut status: LabStatus =
        serde_json::from_slice(&printed).doing(|| "reading the report of the virtual machine".to_owned())?;
    let topology = lab.topology()?;
    if let Some(control_plane) = topology.control_plane() {
        let outside = report(lab, control_plane);
        if let Some(inside) = status.machines.iter_mut().find(|machine| machine.name == outside.name) {
            inside.role = outside.role;
            inside.ready &= outside.ready;
            inside.daemons.splice(0..0, outside.daemons);
        }
        (status.api, status.nodes) = cluster(lab, &topology);
    }
    // The emulator's memory is that of all in it.
    status.memory = memory(lab);
    Ok(status)
}
