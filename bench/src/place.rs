//! Where a benchmark ran and with what, for whoever compares results.
//!
//! In: this machine, the source tree and the artifacts. Out: plain facts.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::{Map, Value, json};
use underlay_lab::artifacts::Artifacts;

/// Programs of the set with a version of their own.
const PROGRAMS: [(&str, &str); 3] =
    [("kubernetes", "kubelet"), ("etcd", "etcd"), ("containerd", "containerd")];
/// Programs of the node image, by their path there.
const NODE_PROGRAMS: [(&str, &str); 3] = [
    ("ovn", "/usr/bin/ovn-controller"),
    ("openvswitch", "/usr/sbin/ovs-vswitchd"),
    ("frr", "/usr/lib/frr/bgpd"),
];

/// The machine.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    cores: usize,
    #[serde(rename = "memoryMiB")]
    memory_mib: u64,
    kernel: String,
    /// Average of the last minute before the benchmark: figures of a busy machine are worth less.
    load: f64,
}

/// This machine.
pub fn machine() -> Result<Machine> {
    let read = |path: &str| fs::read_to_string(path).with_context(|| format!("reading {path}"));
    Ok(Machine {
        cores: std::thread::available_parallelism().context("counting cores")?.get(),
        memory_mib: total_memory(&read("/proc/meminfo")?).context("/proc/meminfo has no MemTotal")? / 1024,
        kernel: read("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        load: read("/proc/loadavg")?.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or_default(),
    })
}

/// In KiB.
fn total_memory(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()
}

/// Versions of this project and of the real programs. One that does not tell has null.
pub fn versions() -> Result<Value> {
    let artifacts = Artifacts::find()?;
    let mut versions = Map::new();
    versions.insert("underlay".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    versions.insert("commit".to_owned(), json!(commit()));
    versions.insert("profile".to_owned(), json!(if cfg!(debug_assertions) { "debug" } else { "release" }));
    for (name, program) in PROGRAMS {
        versions.insert(name.to_owned(), json!(version_of(&mut Command::new(artifacts.program(program)))));
    }
    for (name, program) in NODE_PROGRAMS {
        let mut command = Command::new("chroot");
        command.arg(artifacts.node_image()).arg(program);
        versions.insert(name.to_owned(), json!(version_of(&mut command)));
    }
    Ok(versions.into())
}

/// The source tree's commit, marked if the tree has changes; nothing outside a repository.
fn commit() -> Option<String> {
    let mut command = Command::new("git");
    command.args(["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--dirty", "--abbrev=12"]);
    said(&mut command).map(|text| text.trim().to_owned())
}

fn version_of(command: &mut Command) -> Option<String> {
    version_in(&said(command.arg("--version"))?)
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The first word that looks like a version, without a leading v.
fn version_in(text: &str) -> Option<String> {
    let words = text.split_whitespace().map(|word| word.strip_prefix('v').unwrap_or(word));
    let digit = |first: char| first.is_ascii_digit();
    words.into_iter().find(|word| word.starts_with(digit) && word.contains('.')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let found = |text| version_in(text).unwrap_or_default();
        assert_eq!(found("Kubernetes v1.36.3\n"), "1.36.3");
        assert_eq!(found("etcd Version: 3.7.3\nGit SHA: 0\n"), "3.7.3");
        assert_eq!(found("containerd github.com/containerd/containerd/v2 2.2.9 \n"), "2.2.9");
        assert_eq!(found("ovn-controller 25.03.0\nOpen vSwitch Library 3.5.1\n"), "25.03.0");
        assert_eq!(found("ovs-vswitchd (Open vSwitch) 3.5.1\n"), "3.5.1");
        assert_eq!(found("bgpd version 10.3\n"), "10.3");
        assert_eq!(found("no version here\n"), "");
    }

    #[test]
    fn memory_is_the_total() {
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       24684128 kB\n"), Some(24_684_128));
        assert_eq!(total_memory(""), None);
    }

    #[test]
    fn this_machine_has_all_facts() {
        let machine = machine().unwrap();
        assert!(machine.cores > 0 && machine.memory_mib > 0 && !machine.kernel.is_empty());
    }
}
