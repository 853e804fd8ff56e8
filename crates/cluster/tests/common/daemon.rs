//! The program itself, and what kubectl sees of its work.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use underlay_testkit::{ApiServer, Scratch, wait_for};

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running `underlay-cluster`. It is killed when dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

/// Addresses of a cluster with IPv4.
const RANGES: [&str; 2] = ["--cluster-subnets=10.244.0.0/16/24", "--service-cidrs=10.96.0.0/16"];

impl Daemon {
    /// One whose lease is short: most tests kill and start, and do not want to wait.
    pub fn start(server: &ApiServer, scratch: &Scratch, name: &str) -> Self {
        Self::start_in(server, scratch, name, &RANGES)
    }

    /// The same in a cluster with other ranges of addresses.
    pub fn start_in(server: &ApiServer, scratch: &Scratch, name: &str, ranges: &[&str]) -> Self {
        Self::launch(&server.kubeconfig(), scratch, name, &[ranges, &["--leader-elect-lease-duration=2"]])
    }

    /// One with its own way to the API server, and more arguments.
    pub fn start_with(kubeconfig: &Path, scratch: &Scratch, name: &str, more: &[&str]) -> Self {
        Self::launch(kubeconfig, scratch, name, &[&RANGES, more])
    }

    fn launch(kubeconfig: &Path, scratch: &Scratch, name: &str, arguments: &[&[&str]]) -> Self {
        let log = scratch.join(&format!("{name}.log"));
        let child = Command::new(env!("CARGO_BIN_EXE_underlay-cluster"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--metrics-bind-address=127.0.0.1:0")
            .args(arguments.concat())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// What it serves at a path; it tells in its log where.
    pub fn look(&self, path: &str) -> Result<String, String> {
        let log = self.log();
        let address = log.split_once("address=").ok_or("it does not serve yet")?.1;
        let address = address.split_whitespace().next().ok_or("no address")?;
        let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
        Ok(answer)
    }

    /// Waits until what it serves at a path has a text in it.
    #[track_caller]
    pub fn shows(&self, path: &str, text: &str) {
        wait_for(&format!("{text:?} at {path}"), PATIENCE, || {
            let answer = self.look(path)?;
            if answer.contains(text) { Ok(()) } else { Err(format!("{answer}\n{}", self.log())) }
        });
    }

    /// The sum of a metric over all its series; nothing if it does not answer.
    pub fn count(&self, metric: &str) -> Option<u64> {
        let metrics = self.look("/metrics").ok()?;
        let line = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            let name = series.split('{').next()?;
            (name == metric).then(|| value.parse::<u64>().ok()).flatten()
        };
        Some(metrics.lines().filter_map(line).sum())
    }

    /// Sends it a signal by its name.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    pub fn leads(&self) -> bool {
        self.look("/metrics").is_ok_and(|metrics| metrics.contains("underlay_leader 1"))
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(mut self) {
        self.signal("TERM");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}\n{}", self.log());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What kubectl says, as JSON.
#[track_caller]
pub fn get(server: &ApiServer, arguments: &[&str]) -> Value {
    let output = server.kubectl(&[&["get", "-o", "json"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs kubectl; it must succeed.
#[track_caller]
pub fn kubectl(server: &ApiServer, arguments: &[&str]) {
    let output = server.kubectl(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Applies objects.
#[track_caller]
pub fn apply(server: &ApiServer, scratch: &Scratch, objects: &[Value]) {
    let path = scratch.join("objects.json");
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    fs::write(&path, list.to_string()).unwrap();
    kubectl(server, &["apply", "--server-side", "-f", path.to_str().unwrap()]);
}

/// Waits until something that kubectl gets is as it should be.
#[track_caller]
pub fn becomes<T: PartialEq + std::fmt::Debug>(
    server: &ApiServer,
    arguments: &[&str],
    read: impl Fn(&Value) -> T,
    want: &T,
) {
    wait_for(&format!("{arguments:?} to become {want:?}"), PATIENCE, || {
        let seen = read(&get(server, arguments));
        if seen == *want { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}
