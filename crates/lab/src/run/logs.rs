//! What a daemon printed.

use std::fs::File;
use std::io;

use crate::error::{Doing, LabError};
use crate::state::Lab;

/// Copies a daemon's log to a writer. Beside the daemons there are `steps` (commands of the machine's start) and
/// `machine` (its first process).
pub fn copy(lab: &Lab, machine: &str, daemon: &str, to: &mut impl io::Write) -> Result<(), LabError> {
    let topology = lab.topology()?;
    if topology.machine(machine).is_none() {
        let known: Vec<_> = topology.machines.iter().map(|machine| machine.name.as_str()).collect();
        return Err(LabError::refused(format!(
            "there is no machine {machine:?}: use one of {}",
            known.join(", ")
        )));
    }
    let path = lab.log(machine, daemon);
    let Ok(mut file) = File::open(&path) else {
        let directory = lab.shared_directory(machine).join("log");
        let entries = std::fs::read_dir(&directory).doing(|| format!("reading {}", directory.display()))?;
        let mut known: Vec<String> = entries
            .flatten()
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".log")?.to_owned()))
            .collect();
        known.sort();
        let text = format!("{machine:?} has no log of {daemon:?}: use one of {}", known.join(", "));
        return Err(LabError::refused(text));
    };
    io::copy(&mut file, to).map(drop).doing(|| format!("reading {}", path.display()))
}
