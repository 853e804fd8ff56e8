//! A real OVSDB server that a test can kill, stop, start again, and reach in more ways than by its socket.
//!
//! The test kit's own server is for tests that need none of this.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use underlay_testkit::{OutputExt, Scratch, require_artifacts, wait_for};

/// What the database is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// One file.
    Standalone,
    /// A cluster of one server: it remembers its last transactions.
    Cluster,
}

pub struct HardyServer {
    image: PathBuf,
    scratch: Scratch,
    arguments: Vec<String>,
    child: Child,
}

impl HardyServer {
    /// A server of the northbound database, with more arguments than it needs.
    pub fn start(storage: Storage, arguments: &[&str]) -> Self {
        let image = require_artifacts().node_image();
        let schema = image.join("usr/share/ovn/ovn-nb.ovsschema");
        Self::start_with(storage, &schema.display().to_string(), arguments)
    }

    /// A server of a database with this schema.
    pub fn start_with(storage: Storage, schema: &str, arguments: &[&str]) -> Self {
        let image = require_artifacts().node_image();
        let scratch = Scratch::new("hardy");
        let file = scratch.join("database").display().to_string();
        let raft = format!("unix:{}", scratch.join("raft").display());
        let create = match storage {
            Storage::Standalone => vec!["create", &file, schema],
            Storage::Cluster => vec!["create-cluster", &file, schema, &raft],
        };
        program(&image, &scratch, "usr/bin/ovsdb-tool").args(create).output().unwrap().ok();
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let child = spawn(&image, &scratch, &arguments);
        let server = Self { image, scratch, arguments, child };
        server.wait_until_ready();
        server
    }

    fn wait_until_ready(&self) {
        // A cluster accepts clients before it serves them, so being connected to is not enough.
        wait_for("ovsdb-server to serve", Duration::from_secs(30), || {
            UnixStream::connect(self.scratch.join("sock")).map_err(|error| error.to_string())?;
            self.ctl(&["--timeout=5", "ls-list"]).result()
        });
    }

    /// `unix:` and the path of its socket.
    pub fn remote(&self) -> String {
        format!("unix:{}", self.scratch.join("sock").display())
    }

    /// A path in its directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Runs `ovn-nbctl`.
    pub fn ctl(&self, arguments: &[&str]) -> Output {
        let mut command = program(&self.image, &self.scratch, "usr/bin/ovn-nbctl");
        command.arg(format!("--db={}", self.remote())).args(arguments).output().unwrap()
    }

    /// Runs `ovs-appctl` on the server.
    pub fn appctl(&self, arguments: &[&str]) -> String {
        let mut command = program(&self.image, &self.scratch, "usr/bin/ovs-appctl");
        command.arg("-t").arg(self.scratch.join("ctl")).args(arguments).output().unwrap().ok()
    }

    /// Makes a cluster write down what it has and forget how it came to that. It does so in the background.
    pub fn forget_history(&self) {
        self.appctl(&["ovsdb-server/compact"]);
        wait_for("an empty log", Duration::from_secs(30), || {
            let status = self.appctl(&["cluster/status", super::NB]);
            let log = status
                .lines()
                .find_map(|line| line.strip_prefix("Log: [")?.strip_suffix(']'))
                .unwrap_or_default();
            match log.split_once(", ") {
                Some((first, last)) if first == last => Ok(()),
                _ => Err(status.clone()),
            }
        });
    }

    /// Gives the database another schema while it is served.
    pub fn convert(&self, schema: &str) {
        let mut command = program(&self.image, &self.scratch, "usr/bin/ovsdb-client");
        command.args(["convert", &self.remote(), schema]).output().unwrap().ok();
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Makes it neither read nor answer.
    pub fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Makes it go on.
    pub fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it, as `kill -9` does. Its files stay.
    pub fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on its files.
    pub fn restart(&mut self) {
        self.child = spawn(&self.image, &self.scratch, &self.arguments);
        self.wait_until_ready();
    }

    /// The port it chose for a remote that ends with `:0:127.0.0.1`; its log tells.
    pub fn port(&self) -> u16 {
        wait_for("a port in the server's log", Duration::from_secs(30), || {
            let log = self.log();
            let told = log.lines().rev().find_map(|line| line.split_once("listening on port "));
            told.and_then(|(_, port)| port.trim().parse().ok()).ok_or(log)
        })
    }

    /// What it wrote.
    pub fn log(&self) -> String {
        fs::read_to_string(self.scratch.join("log")).unwrap_or_default()
    }
}

impl Drop for HardyServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(image: &std::path::Path, scratch: &Scratch, arguments: &[String]) -> Child {
    let served = program(image, scratch, "usr/sbin/ovsdb-server");
    // The kernel ends it with the thread of the test, should the test not get to do it.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(served.get_program()).args(served.get_args());
    for (name, value) in served.get_envs() {
        command.env(name, value.unwrap());
    }
    let log = File::options().create(true).append(true).open(scratch.join("log")).unwrap();
    command
        .arg(scratch.join("database"))
        .arg(format!("--remote=punix:{}", scratch.join("sock").display()))
        .arg(format!("--unixctl={}", scratch.join("ctl").display()))
        .args(["-vconsole:info", "-vsyslog:off", "-vfile:off"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    command.spawn().unwrap()
}

/// A program of the node image, run by the image's own loader with its own libraries.
fn program(image: &std::path::Path, scratch: &Scratch, path: &str) -> Command {
    let (loader, libraries) = match std::env::consts::ARCH {
        "aarch64" => ("usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"),
        _ => ("usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"),
    };
    let mut command = Command::new(image.join(loader));
    command.arg("--library-path").arg(image.join(libraries)).arg(image.join(path));
    for variable in ["RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR"] {
        command.env(format!("OVS_{variable}"), scratch.path()).env(format!("OVN_{variable}"), scratch.path());
    }
    command.stdin(Stdio::null());
    command
}
