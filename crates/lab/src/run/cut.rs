//! Cuts wires and heals them while the lab is up.
//!
//! A cut port of the bridge passes nothing, but the machine keeps its carrier: as if a switch on the way had died.

use super::enter;
use crate::error::LabError;
use crate::state::Lab;
use crate::topology::Topology;

/// What a port does with frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiring {
    /// Passes nothing.
    Cut,
    /// Passes all.
    Healed,
}

/// Cuts or heals a wire, or one machine's end of it (`wire/machine`).
pub fn set(lab: &Lab, target: &str, wiring: Wiring) -> Result<(), LabError> {
    let ports = ports(&lab.topology()?, target)?;
    let state = match wiring {
        Wiring::Cut => "disabled",
        Wiring::Healed => "forwarding",
    };
    // `bridge` wants the state's number.
    let number = if state == "disabled" { "0" } else { "3" };
    for port in ports {
        let output = enter::in_wires(lab, &["bridge", "link", "set", "dev", &port, "state", number])?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(LabError::failed(format!("setting {port} to {state}"), text));
        }
    }
    Ok(())
}

fn ports(topology: &Topology, target: &str) -> Result<Vec<String>, LabError> {
    let (name, machine) =
        target.split_once('/').map_or((target, None), |(wire, machine)| (wire, Some(machine)));
    let Some(wire) = topology.wires.iter().find(|wire| wire.name == name) else {
        let known: Vec<_> = topology.wires.iter().map(|wire| wire.name.as_str()).collect();
        return Err(LabError::refused(format!(
            "there is no link or segment {name:?}: use one of {}",
            known.join(", ")
        )));
    };
    let chosen = wire.ports.iter().filter(|(owner, _)| machine.is_none_or(|machine| machine == owner));
    let ports: Vec<String> = chosen.map(|(_, port)| port.clone()).collect();
    if ports.is_empty() {
        let known: Vec<_> = wire.ports.iter().map(|(owner, _)| format!("{name}/{owner}")).collect();
        return Err(LabError::refused(format!(
            "{target:?} is no end of {name:?}: use one of {}",
            known.join(", ")
        )));
    }
    Ok(ports)
}
