//! Brings a container image to every node.

use std::fs;
use std::path::Path;

use super::enter;
use super::vm::VmRecord;
use crate::error::{Doing, LabError};
use crate::state::Lab;

/// Imports an image archive on every node; calls back before each.
pub fn load(lab: &Lab, archive: &Path, mut progress: impl FnMut(&str)) -> Result<(), LabError> {
    let topology = lab.topology()?;
    if !topology.kubernetes.kubelets {
        let why = match VmRecord::of(lab)? {
            Some(_) => "it is in a virtual machine",
            None => "its file says `kubelets: false`",
        };
        return Err(LabError::refused(format!("lab {:?} runs no containers: {why}", lab.name())));
    }
    for node in topology.nodes() {
        progress(&node.name);
        // The directory shared with the machine is the way in.
        let inside = lab.shared_directory(&node.name).join("image.tar");
        fs::copy(archive, &inside).doing(|| format!("reading {}", archive.display()))?;
        let result =
            enter::output(lab, &node.name, &["ctr", "-n", "k8s.io", "images", "import", "/lab/image.tar"]);
        fs::remove_file(&inside).doing(|| format!("removing {}", inside.display()))?;
        let output = result?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(LabError::failed(format!("importing {} on {}", archive.display(), node.name), text));
        }
    }
    Ok(())
}
