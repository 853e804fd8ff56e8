//! A lab's own directory: what is where, and how the lab's first process is found again.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;

use crate::error::{Doing, LabError};
use crate::topology::Topology;

/// Longest lab name: it becomes part of a control group's name and of messages.
const NAME_MAX: usize = 32;

/// A lab, up or not.
#[derive(Debug, Clone)]
pub struct Lab {
    name: String,
    directory: PathBuf,
}

impl Lab {
    /// The lab of that name. `UNDERLAY_STATE` moves the directory of all labs.
    pub fn named(name: &str) -> Result<Self, LabError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(plain) || name.starts_with('-') {
            return Err(LabError::refused(format!(
                "{name:?} cannot be the name of a lab: use up to {NAME_MAX} lower-case letters, digits and dashes"
            )));
        }
        Ok(Self { name: name.to_owned(), directory: labs_directory().join(name) })
    }

    /// The lab with this directory.
    pub fn at(directory: &Path) -> Result<Self, LabError> {
        let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Ok(Self { directory: directory.to_owned(), ..Self::named(name)? })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Everything it has on disk.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A machine's part.
    pub fn machine_directory(&self, machine: &str) -> PathBuf {
        self.directory.join("machines").join(machine)
    }

    /// What the machine shares with us: status and logs. Inside it is `/lab`.
    pub fn shared_directory(&self, machine: &str) -> PathBuf {
        self.machine_directory(machine).join("lab")
    }

    /// Log of a daemon.
    pub fn log(&self, machine: &str, daemon: &str) -> PathBuf {
        self.shared_directory(machine).join("log").join(format!("{daemon}.log"))
    }

    /// What happened while it came up, a JSON object a line.
    pub fn events(&self) -> PathBuf {
        self.directory.join("events.jsonl")
    }

    /// Kubeconfig of an actor, for use from outside the lab.
    pub fn kubeconfig(&self, actor: &str) -> PathBuf {
        self.directory.join("kubeconfigs").join(actor)
    }

    /// Whether anything of it is on disk.
    pub fn exists(&self) -> bool {
        self.directory.exists()
    }

    /// Takes the name: fails when it is taken.
    pub fn create(&self) -> Result<(), LabError> {
        fs::create_dir_all(labs_directory()).doing(|| format!("making {}", labs_directory().display()))?;
        match fs::create_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(LabError::refused(format!(
                "a lab named {0:?} is there already: take it down with `kubectl-underlay lab down --name {0}`, \
                 or choose another --name",
                self.name
            ))),
            result => result.doing(|| format!("making {}", self.directory.display())),
        }?;
        fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700))
            .doing(|| format!("protecting {}", self.directory.display()))
    }

    /// Writes the topology down for the other verbs.
    pub fn save_topology(&self, topology: &Topology) -> Result<(), LabError> {
        let path = self.directory.join("topology.json");
        let text = serde_json::to_string(topology).map_err(io::Error::other);
        text.and_then(|text| fs::write(&path, text)).doing(|| format!("writing {}", path.display()))
    }

    /// The topology of a lab that is up, or half-way.
    pub fn topology(&self) -> Result<Topology, LabError> {
        let path = self.directory.join("topology.json");
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => self.denied(),
            _ => self.not_up(),
        })?;
        serde_json::from_str(&text).map_err(io::Error::other).doing(|| format!("reading {}", path.display()))
    }

    /// What to say to somebody who may not look.
    pub fn denied(&self) -> LabError {
        LabError::refused(format!("lab {:?} belongs to root: run the same command with sudo", self.name))
    }

    /// What to say when there is no such lab.
    pub fn not_up(&self) -> LabError {
        LabError::refused(format!(
            "no lab named {0:?} is up: start it with `kubectl-underlay lab up --name {0}`",
            self.name
        ))
    }

    /// The lab's first process, seen from here, or the one that is about to start it. It is known by its arguments, so
    /// that it is found even if whoever started it was killed before writing anything down.
    pub fn first_process(&self) -> Option<Pid> {
        let directory = self.directory.as_os_str().as_bytes();
        let processes = fs::read_dir("/proc").ok()?;
        processes.filter_map(Result::ok).find_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            let arguments: Vec<&[u8]> = command.split(|byte| *byte == 0).skip(1).take(3).collect();
            let ours = matches!(&arguments[..], [b"lab", b"init" | b"launch", place] if *place == directory);
            ours.then(|| Pid::from_raw(pid))
        })
    }

    /// Arguments after the program name that mark the lab's first process.
    pub fn init_arguments(&self) -> Vec<String> {
        vec!["lab".to_owned(), "init".to_owned(), self.directory.display().to_string()]
    }

    /// The lab's view of its own processes: `/proc` as its first process sees it.
    pub fn inner_proc(&self) -> Result<PathBuf, LabError> {
        let first = self.first_process().ok_or_else(|| self.not_up())?;
        Ok(PathBuf::from(format!("/proc/{first}/root/proc")))
    }
}

/// Where all labs live.
pub fn labs_directory() -> PathBuf {
    std::env::var_os("UNDERLAY_STATE").map_or_else(|| "/var/lib/underlay/labs".into(), PathBuf::from)
}

/// Names of all labs that have anything on disk.
pub fn all_labs() -> Vec<String> {
    let Ok(entries) = fs::read_dir(labs_directory()) else { return vec![] };
    let mut names: Vec<String> =
        entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
