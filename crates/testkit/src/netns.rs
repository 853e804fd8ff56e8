//! Network namespaces of tests. They have no name: an open file holds each, so that it goes with the test's process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::OutputExt;
use crate::require::require_root;

/// A network namespace with its loopback up. It goes when dropped, with every interface in it.
#[derive(Debug)]
pub struct Netns {
    file: File,
}

impl Netns {
    /// Makes a namespace.
    ///
    /// # Panics
    ///
    /// Without root, or when the kernel refuses.
    #[track_caller]
    pub fn new() -> Self {
        require_root();
        // A thread may leave the network of its process; the namespace it makes stays when the thread ends, because of
        // the open file.
        let made = thread::spawn(|| -> io::Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        });
        let this = match made.join() {
            Ok(Ok(file)) => Self { file },
            Ok(Err(error)) => panic!("making a network namespace: {error}"),
            Err(panic) => std::panic::resume_unwind(panic),
        };
        this.ip(&["link", "set", "lo", "up"]);
        this
    }

    /// A namespace that is there already, such as a pod's. It stays when this is dropped.
    ///
    /// # Panics
    ///
    /// Without root, or when it is not there.
    #[track_caller]
    pub fn at(path: &Path) -> Self {
        require_root();
        match File::open(path) {
            Ok(file) => Self { file },
            Err(error) => panic!("the network namespace {}: {error}", path.display()),
        }
    }

    /// A path by which other programs find it while we live, as in `ip link set eth0 netns PATH`.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()))
    }

    /// Runs a function inside: sockets it opens and programs it starts belong to the namespace.
    ///
    /// # Panics
    ///
    /// When the function does, or when the namespace cannot be entered.
    #[track_caller]
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let result = thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.file, CloneFlags::CLONE_NEWNET)
                    .unwrap_or_else(|error| panic!("entering a network namespace: {error}"));
                work()
            });
            inside.join()
        });
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Runs a program inside and returns what it said.
    ///
    /// # Panics
    ///
    /// When it cannot be run at all.
    #[track_caller]
    pub fn run(&self, command: &mut Command) -> Output {
        let program = command.get_program().to_owned();
        let output = self.enter(|| command.stdin(Stdio::null()).output());
        output.unwrap_or_else(|error| panic!("running {}: {error}", program.display()))
    }

    /// Runs `ip` inside and returns what it printed.
    ///
    /// # Panics
    ///
    /// When it fails.
    #[track_caller]
    pub fn ip(&self, arguments: &[&str]) -> String {
        self.run(Command::new("ip").args(arguments)).ok()
    }
}

impl Default for Netns {
    fn default() -> Self {
        Self::new()
    }
}
