//! Takes a lab down: one process is killed, the kernel does the rest, and what has a name on disk is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{Doing, LabError};
use crate::plan::cgroup_of;
use crate::state::Lab;

/// How long the kernel may take to end all processes of a lab.
const PATIENCE: Duration = Duration::from_secs(30);

/// Takes the lab down, whatever state it is in. Returns whether there was anything.
pub fn down(lab: &Lab) -> Result<bool, LabError> {
    let mut found = lab.exists();
    // A process in the middle of its start has no arguments for an instant: look again before believing there is none.
    while let Some(first) = lab.first_process().or_else(|| {
        thread::sleep(Duration::from_millis(if lab.exists() { 30 } else { 0 }));
        lab.first_process()
    }) {
        found = true;
        end(first)?;
    }
    for group in control_groups(lab.name()) {
        remove_group(&group)?;
    }
    if lab.exists() {
        remove_directory(lab.directory())?;
    }
    Ok(found)
}

/// Kills the first process of a PID namespace and waits until the kernel has ended all others in it.
fn end(first: Pid) -> Result<(), LabError> {
    match kill(first, Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => return Err(error).doing(|| format!("ending process {first}")),
    }
    wait_until(PATIENCE, || is_gone(first))
        .then_some(())
        .ok_or_else(|| LabError::failed(format!("process {first} did not end within {PATIENCE:?}"), ""))
}

/// Gone, or dead and only waiting for its parent to notice: then its whole namespace is gone already.
fn is_gone(pid: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The state follows the name, which is in parentheses and may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    // The first thread may be dead while another still waits for the namespace to be empty.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    matches!(state, None | Some('Z' | 'X')) && threads <= 1
}

/// The lab's control groups, in whichever hierarchies there are.
pub fn control_groups(lab: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let candidates =
        std::iter::once(root.to_owned()).chain(hierarchies).map(|root| root.join(cgroup_of(lab)));
    candidates.filter(|path| path.is_dir()).collect()
}

/// Removes a control group with all below it. Groups are busy for a moment after their last process ended.
fn remove_group(group: &Path) -> Result<(), LabError> {
    for child in fs::read_dir(group).into_iter().flatten().flatten() {
        if child.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&child.path())?;
        }
    }
    let mut last = None;
    let removed = wait_until(Duration::from_secs(5), || match fs::remove_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            last = Some(error);
            false
        }
        _ => true,
    });
    match last {
        Some(error) if !removed => Err(error).doing(|| format!("removing {}", group.display())),
        _ => Ok(()),
    }
}

/// Removes the lab's directory; mounts below it live in namespaces that may take a moment to go.
fn remove_directory(directory: &Path) -> Result<(), LabError> {
    let mut last = None;
    let removed = wait_until(Duration::from_secs(5), || match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            last = Some(error);
            false
        }
        _ => true,
    });
    match last {
        Some(error) if !removed => Err(error).doing(|| format!("removing {}", directory.display())),
        _ => Ok(()),
    }
}

fn wait_until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    loop {
        if done() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(Duration::from_millis(10));
    }
}
