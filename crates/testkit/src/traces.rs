//! What a lab leaves on the machine that it ran on: nothing, and here is how to see it.
//!
//! In: a look at the machine before the lab, and the processes the lab had. Out: everything of the lab that is still
//! there, in words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::lab::LabUnderTest;
use crate::output::OutputExt;
use crate::owner::Owner;
use crate::wait::wait_for;

/// Where a lab mounts outside its own directory, in namespaces of its own. Elsewhere others may mount as they like.
const LAB_MOUNTS: [&str; 6] = ["/", "/dev", "/proc", "/run", "/sys", "/tmp"];

/// How the machine looks where labs could show: names of network namespaces, interfaces, mounts, control groups of
/// containers.
#[derive(Debug, Clone)]
pub struct HostLook {
    seen: BTreeSet<String>,
}

impl HostLook {
    /// Looks now.
    ///
    /// # Panics
    ///
    /// When `ip` or `/proc` do not answer.
    #[track_caller]
    pub fn take() -> Self {
        let mut seen = BTreeSet::new();
        seen.extend(ip(&["netns"]).lines().map(|line| format!("network namespace {line}")));
        let links = ip(&["-o", "link"]);
        seen.extend(
            links.lines().filter_map(|line| line.split(": ").nth(1)).map(|name| format!("interface {name}")),
        );
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("reading mounts");
        let over_host = |line: &&str| line.split(' ').nth(4).is_some_and(|point| LAB_MOUNTS.contains(&point));
        seen.extend(mounts.lines().filter(over_host).map(|line| format!("mount {line}")));
        seen.extend(container_groups().iter().map(|path| format!("control group {}", path.display())));
        Self { seen }
    }
}

#[track_caller]
fn ip(arguments: &[&str]) -> String {
    Command::new("ip").args(arguments).output().expect("running ip").ok()
}

impl LabUnderTest {
    /// All processes of the lab, by their numbers on this machine. Whoever is started in a lab is below its first
    /// process, because orphans come to the first processes of their machines.
    pub fn processes(&self) -> Vec<Owner> {
        let Some(first) = self.paths().first_process() else { return vec![] };
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pid in pids() {
            if let Some(parent) = parent(pid) {
                children.entry(parent).or_default().push(pid);
            }
        }
        let mut all = vec![first.as_raw().unsigned_abs()];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            all.extend(children.remove(pid).unwrap_or_default());
            next += 1;
        }
        all.into_iter().filter_map(Owner::of).collect()
    }

    /// Sees to it that nothing is left of a lab that is down.
    ///
    /// # Panics
    ///
    /// When something is.
    #[track_caller]
    pub fn assert_no_trace(&self, before: &HostLook, processes: &[Owner]) {
        // Others use the machine too: what is theirs goes by itself, what is ours would stay.
        wait_for(&format!("all traces of lab {} to go", self.name()), Duration::from_secs(10), || {
            let traces = self.traces(before, processes);
            if traces.is_empty() { Ok(()) } else { Err(format!("\n{}", traces.join("\n"))) }
        });
    }

    fn traces(&self, before: &HostLook, processes: &[Owner]) -> Vec<String> {
        let directory = self.paths().directory().display().to_string();
        let mut traces: Vec<String> = HostLook::take().seen.difference(&before.seen).cloned().collect();
        let alive = processes.iter().filter(|process| !process.is_gone());
        traces.extend(
            alive.map(|process| format!("process {}: {}", process.pid(), command_line(process.pid()))),
        );
        for pid in pids() {
            let line = command_line(pid);
            if line.contains(&directory) {
                traces.push(format!("process {pid}: {line}"));
            }
            let mounts = fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
            traces.extend(
                mounts
                    .lines()
                    .filter(|line| line.contains(&directory))
                    .map(|line| format!("mount of {pid}: {line}")),
            );
        }
        traces.extend(
            groups_named_after(self.name()).iter().map(|path| format!("control group {}", path.display())),
        );
        if Path::new(&directory).exists() {
            traces.push(directory);
        }
        traces
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which is in parentheses: state, then parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn command_line(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Roots of the hierarchies of control groups: one, or one for every controller.
fn hierarchies() -> Vec<PathBuf> {
    let root = PathBuf::from("/sys/fs/cgroup");
    let mut all = below(&root);
    all.push(root);
    all
}

/// Control groups with the lab's name in theirs.
fn groups_named_after(lab: &str) -> Vec<PathBuf> {
    let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains(lab));
    hierarchies().iter().flat_map(|root| below(root)).filter(named).collect()
}

/// Groups that containers have when nobody gave them a place: they do not tell whose they are.
fn container_groups() -> Vec<PathBuf> {
    let places =
        hierarchies().into_iter().flat_map(|root| ["k8s.io", "kubepods"].map(|name| root.join(name)));
    places.flat_map(|place| below(&place)).filter(|path| path.is_dir()).collect()
}

fn below(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
