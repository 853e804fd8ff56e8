//! Runs a command in a machine of a lab that is up.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use super::keeper::command;
use crate::error::{Doing, LabError};
use crate::plan::WIRES_NAMESPACE;
use crate::state::Lab;

/// Runs a command in a machine with our own input and output.
pub fn status(lab: &Lab, machine: &str, argv: &[String]) -> Result<ExitStatus, LabError> {
    let entrance = Entrance::machine(lab, machine)?;
    entrance.run(move || {
        let mut command = command(argv);
        if let Some(terminal) = std::env::var_os("TERM") {
            command.env("TERM", terminal);
        }
        command.status().doing(|| format!("running {} in {machine}", argv.first().map_or("", String::as_str)))
    })
}

/// Runs a command in a machine and returns what it printed.
pub fn output(lab: &Lab, machine: &str, argv: &[&str]) -> Result<Output, LabError> {
    let entrance = Entrance::machine(lab, machine)?;
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    entrance.run(move || {
        let mut command = command(&argv);
        command.stdin(Stdio::null()).output().doing(|| format!("running {} in {machine}", argv.join(" ")))
    })
}

/// Runs a program of this computer in the network of the lab's bridges.
pub fn in_wires(lab: &Lab, argv: &[&str]) -> Result<Output, LabError> {
    let first = lab.first_process().ok_or_else(|| lab.not_up())?;
    let path = PathBuf::from(format!("/proc/{first}/root/run/netns/{WIRES_NAMESPACE}"));
    in_network(&path, move || {
        let (program, arguments) = argv.split_first().unwrap_or((&"true", &[]));
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .doing(|| format!("running {}", argv.join(" ")))
    })
}

/// The root of a machine, as a path from here.
pub(super) fn root_of(lab: &Lab, machine: &str) -> Result<PathBuf, LabError> {
    Ok(process_of(lab, machine)?.join("root"))
}

/// The first process of a machine, as a directory of `/proc`.
fn process_of(lab: &Lab, machine: &str) -> Result<PathBuf, LabError> {
    let path = lab.machine_directory(machine).join("pid");
    let pid = fs::read_to_string(&path).doing(|| format!("finding machine {machine}"))?;
    Ok(lab.inner_proc()?.join(pid.trim()))
}

/// Does something in a thread that has entered a network namespace: sockets and processes made there belong to it.
pub(super) fn in_network<T: Send>(
    network: &Path,
    work: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    let file = File::open(network).doing(|| format!("opening {}", network.display()))?;
    Entrance { namespaces: vec![(file, CloneFlags::CLONE_NEWNET)] }.run(work)
}

/// Open doors to a machine's namespaces.
struct Entrance {
    namespaces: Vec<(File, CloneFlags)>,
}

impl Entrance {
    fn machine(lab: &Lab, machine: &str) -> Result<Self, LabError> {
        let topology = lab.topology()?;
        if topology.machine(machine).is_none() {
            let known: Vec<_> = topology.machines.iter().map(|machine| machine.name.as_str()).collect();
            let text =
                format!("lab {:?} has no machine {machine:?}: it has {}", lab.name(), known.join(", "));
            return Err(LabError::refused(text));
        }
        let directory = process_of(lab, machine)?.join("ns");
        let kinds = [
            ("pid", CloneFlags::CLONE_NEWPID),
            ("net", CloneFlags::CLONE_NEWNET),
            ("uts", CloneFlags::CLONE_NEWUTS),
            ("ipc", CloneFlags::CLONE_NEWIPC),
            // Last: after it, paths are the machine's.
            ("mnt", CloneFlags::CLONE_NEWNS),
        ];
        let open = |(name, kind)| {
            let file = File::open(directory.join(name)).doing(|| format!("entering machine {machine}"))?;
            Ok((file, kind))
        };
        Ok(Self { namespaces: kinds.into_iter().map(open).collect::<Result<_, LabError>>()? })
    }

    /// Runs a function in a thread that has entered the namespaces; children it starts are inside.
    fn run<T: Send>(self, work: impl FnOnce() -> Result<T, LabError> + Send) -> Result<T, LabError> {
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                // Threads of a process share their root directory; this one must not.
                unshare(CloneFlags::CLONE_FS).doing(|| "entering the lab".to_owned())?;
                for (file, kind) in self.namespaces {
                    setns(file, kind).doing(|| "entering the lab".to_owned())?;
                }
                work()
            });
            inside.join().unwrap_or_else(|_| Err(LabError::failed("the thread inside the lab ended", "")))
        })
    }
}
