//! What is written down about a lab in a virtual machine, so that every verb knows it is one.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Doing, LabError};
use crate::state::Lab;

/// A lab in a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmRecord {
    /// Value of `UNDERLAY_CACHE` when the lab was started, if it was set: the machine must look at the same place.
    pub cache: Option<PathBuf>,
}

impl VmRecord {
    /// The record of this lab; nothing if the lab runs on the host's own kernel.
    pub fn of(lab: &Lab) -> Result<Option<Self>, LabError> {
        let path = path(lab);
        match fs::read(&path) {
            Ok(text) => {
                serde_json::from_slice(&text).map(Some).doing(|| format!("reading {}", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(lab.denied()),
            Err(error) => Err(error).doing(|| format!("reading {}", path.display())),
        }
    }

    /// Writes it down.
    pub fn save(&self, lab: &Lab) -> Result<(), LabError> {
        let path = path(lab);
        let text = serde_json::to_vec(self).map_err(io::Error::other);
        text.and_then(|text| fs::write(&path, text)).doing(|| format!("writing {}", path.display()))
    }
}

fn path(lab: &Lab) -> PathBuf {
    lab.directory().join("vm.json")
}
