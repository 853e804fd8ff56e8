//! Labs of tests: brought up by the real command line, taken down when dropped.
//!
//! In: a label and the arguments of `lab up`. Out: a lab with a name of its own. The name tells the process it belongs
//! to, so that the next run takes down what a killed one left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use serde_json::Value;
use underlay_lab::state::{Lab, all_labs};

use crate::OutputExt;
use crate::netns::Netns;
use crate::owner::Owner;
use crate::require::{require_artifacts, require_root};
use crate::scratch::Scratch;

/// What the names of all labs of tests begin with.
const PREFIX: &str = "t-";
/// The command line under test.
const PROGRAM: &str = "kubectl-underlay";

/// Waits for the turn of a test that brings labs up: more than one such test at once only makes all of them late.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed in its turn does not keep the others from theirs.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lab with a name of its own, taken down when dropped.
#[derive(Debug)]
pub struct LabUnderTest {
    lab: Lab,
    kubectl: PathBuf,
    scratch: Scratch,
}

impl LabUnderTest {
    /// Picks a name that begins with this label (at most 8 characters). Nothing is started yet.
    ///
    /// # Panics
    ///
    /// Without root, artifacts or the program, and when the label is too long.
    #[track_caller]
    pub fn named(label: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        static LEFTOVERS: Once = Once::new();
        require_root();
        let artifacts = require_artifacts();
        LEFTOVERS.call_once(Self::take_down_leftovers);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{label}{number}-{}", Owner::me());
        match Lab::named(&name) {
            Ok(lab) => Self { lab, kubectl: artifacts.program("kubectl"), scratch: Scratch::new("lab") },
            Err(error) => panic!("{error}"),
        }
    }

    /// Takes down the labs of test processes that were killed. The first lab of every test process does so.
    ///
    /// # Panics
    ///
    /// When the program was not built.
    #[track_caller]
    pub fn take_down_leftovers() {
        for name in all_labs().iter().filter(|name| is_leftover(name)) {
            eprintln!("taking down {name}, left by a killed test");
            let output = Command::new(program()).args(["lab", "--name", name, "down"]).output();
            if let Err(error) = output.map_err(|error| error.to_string()).and_then(OutputExt::result) {
                eprintln!("taking down {name}: {error}");
            }
        }
    }

    /// Brings a lab up with these arguments of `lab up`; none for the default lab.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[track_caller]
    pub fn up(label: &str, arguments: &[&str]) -> Self {
        let this = Self::named(label);
        this.try_up(arguments).ok();
        this
    }

    /// Brings a lab up from the text of a lab file.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[track_caller]
    pub fn up_from(label: &str, text: &str) -> Self {
        let this = Self::named(label);
        let file = this.file("lab.yaml", text);
        this.try_up(&["--file", &file.to_string_lossy()]).ok();
        this
    }

    /// Runs `lab up` with these arguments.
    ///
    /// # Panics
    ///
    /// When the program cannot be run at all.
    #[track_caller]
    pub fn try_up(&self, arguments: &[&str]) -> Output {
        self.cli(&[&["up"], arguments].concat())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.lab.name()
    }

    /// Its paths.
    pub fn paths(&self) -> &Lab {
        &self.lab
    }

    /// Writes a file beside the lab, gone with it, and returns its path.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    #[track_caller]
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.scratch.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
        path
    }

    /// Path of `kubectl-underlay`.
    ///
    /// # Panics
    ///
    /// When it was not built.
    #[track_caller]
    pub fn program() -> PathBuf {
        program()
    }

    /// `kubectl-underlay lab` for this lab, to be given a verb.
    ///
    /// # Panics
    ///
    /// When the program was not built.
    #[track_caller]
    pub fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.args(["lab", "--name", self.name()]).stdin(Stdio::null());
        command
    }

    /// Runs a verb of `kubectl-underlay lab`.
    ///
    /// # Panics
    ///
    /// When the program cannot be run at all.
    #[track_caller]
    pub fn cli(&self, arguments: &[&str]) -> Output {
        run(self.command().args(arguments))
    }

    /// Runs a command in a machine.
    ///
    /// # Panics
    ///
    /// When the program cannot be run at all.
    #[track_caller]
    pub fn exec(&self, machine: &str, command: &[&str]) -> Output {
        self.cli(&[&["exec", machine, "--"], command].concat())
    }

    /// The network of a machine, or one that the machine has a name for, such as a pod's.
    ///
    /// # Panics
    ///
    /// When it is not there.
    #[track_caller]
    pub fn network(&self, machine: &str, name: Option<&str>) -> Netns {
        let number = fs::read_to_string(self.lab.machine_directory(machine).join("pid"));
        let process = match (self.lab.inner_proc(), number) {
            (Ok(proc), Ok(number)) => proc.join(number.trim()),
            other => panic!("finding machine {machine}: {other:?}"),
        };
        match name {
            Some(name) => Netns::at(&process.join("root/run/netns").join(name)),
            None => Netns::at(&process.join("ns/net")),
        }
    }

    /// Runs kubectl as the admin, from outside the lab.
    ///
    /// # Panics
    ///
    /// When kubectl cannot be run at all, or the lab has no kubeconfig.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> Output {
        self.kubectl_as("admin", arguments)
    }

    /// Runs kubectl with the kubeconfig of an actor: `admin`, `cluster`, `agent-NODE` or `kubelet-NODE`.
    ///
    /// # Panics
    ///
    /// When kubectl cannot be run at all, or the actor has no kubeconfig.
    #[track_caller]
    pub fn kubectl_as(&self, actor: &str, arguments: &[&str]) -> Output {
        let kubeconfig = self.cli(&["kubeconfig", "--actor", actor]).ok();
        let mut command = Command::new(&self.kubectl);
        command.args(["--kubeconfig", kubeconfig.trim_end()]).args(arguments).stdin(Stdio::null());
        // Its cache of the API's shape must not outlive the API.
        run(command.env("KUBECACHEDIR", self.scratch.join("kubectl-cache")))
    }

    /// What `lab status` tells, whether all is well or not.
    ///
    /// # Panics
    ///
    /// When it tells nothing.
    #[track_caller]
    pub fn status(&self) -> Value {
        let output = self.cli(&["status", "--output", "json"]);
        match serde_json::from_slice(&output.stdout) {
            Ok(status) => status,
            Err(error) => panic!("lab status: {error}: {:?}", output.result()),
        }
    }

    /// Takes it down now.
    ///
    /// # Panics
    ///
    /// When that fails.
    #[track_caller]
    pub fn down(&self) {
        self.cli(&["down"]).ok();
    }
}

impl Drop for LabUnderTest {
    fn drop(&mut self) {
        if thread::panicking() {
            // What the lab looked like when the test failed; it is gone when somebody reads about it.
            let output = self.command().arg("status").output();
            eprintln!("lab status: {:?}", output.map(OutputExt::result));
            let _ = self.command().arg("down").output();
        } else {
            self.down();
        }
    }
}

#[track_caller]
fn run(command: &mut Command) -> Output {
    let program = command.get_program().to_owned();
    command.output().unwrap_or_else(|error| panic!("running {}: {error}", program.display()))
}

/// The program that was built together with the running test: test executables lie in `deps`, one level below it.
#[track_caller]
fn program() -> PathBuf {
    let me = std::env::current_exe().unwrap_or_else(|error| panic!("finding this test's path: {error}"));
    let path = me.parent().and_then(Path::parent).unwrap_or(Path::new("/")).join(PROGRAM);
    assert!(
        path.is_file(),
        "{} is not there: run the tests with `make test`, or build it with `cargo build --workspace` first",
        path.display()
    );
    path
}

/// Whether a lab was made by a test whose process is gone.
fn is_leftover(name: &str) -> bool {
    let Some((_, mark)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    mark.parse::<Owner>().is_ok_and(Owner::is_gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labs_of_ended_tests_are_leftovers() {
        let gone = "t-lab1-4194305-7";
        assert!(is_leftover(gone), "no process has a number that high");
        assert!(!is_leftover(&format!("t-lab1-{}", Owner::me())));
        for name in ["lab", "demo", "t-lab1", "t-", "t-lab1-x-y", "my-lab1-4194305-7"] {
            assert!(!is_leftover(name), "{name}");
        }
    }
}
