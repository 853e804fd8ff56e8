//! One process, of a lab or beside us, as the kernel tells of it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use underlay_lab::Lab;

/// Length of a clock tick in `/proc`; the same on all machines that a lab runs on.
const TICK: Duration = Duration::from_millis(10);

/// A process.
#[derive(Debug)]
pub struct Process {
    /// Its directory in `/proc`: the lab's, or ours.
    directory: PathBuf,
}

impl Process {
    /// A process beside us, by its number.
    pub fn of(number: u32) -> Self {
        Self { directory: PathBuf::from(format!("/proc/{number}")) }
    }

    /// Finds the process of a program; of several, the one that has this word among its arguments.
    pub fn find(lab: &Lab, program: &str, argument: Option<&str>) -> Result<Self> {
        Self::look(lab, program, argument)?.with_context(|| format!("{program} does not run"))
    }

    /// As [`Self::find`], for a process that need not be there.
    pub fn look(lab: &Lab, program: &str, argument: Option<&str>) -> Result<Option<Self>> {
        let proc = lab.inner_proc()?;
        let entries = fs::read_dir(&proc).with_context(|| format!("reading {}", proc.display()))?;
        let is_it = |directory: &PathBuf| {
            let command = fs::read(directory.join("cmdline")).unwrap_or_default();
            let mut words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let first = words.next().unwrap_or_default();
            first.rsplit('/').next() == Some(program)
                && argument.is_none_or(|argument| words.any(|word| word == argument))
        };
        Ok(entries.flatten().map(|entry| entry.path()).find(is_it).map(|directory| Self { directory }))
    }

    /// Memory that is in use, in MiB.
    pub fn memory(&self) -> Result<f64> {
        self.mebibytes("VmRSS:")
    }

    /// The most memory that was ever in use, in MiB.
    pub fn peak_memory(&self) -> Result<f64> {
        self.mebibytes("VmHWM:")
    }

    fn mebibytes(&self, key: &str) -> Result<f64> {
        let text = self.read("status")?;
        let kib: f64 = field(&text, key).and_then(|value| value.parse().ok()).context("no such memory")?;
        Ok(kib / 1024.0)
    }

    /// CPU time used so far, with that of programs it ran.
    pub fn cpu(&self) -> Result<Duration> {
        Ok(cpu_in(&self.read("stat")?))
    }

    /// When it started, in time since the machine did.
    pub fn started(&self) -> Result<Duration> {
        let stat = self.read("stat")?;
        let ticks: u32 =
            times(&stat).nth(19).and_then(|field| field.parse().ok()).context("no start time")?;
        Ok(TICK * ticks)
    }

    /// Its number in its machine.
    pub fn number(&self) -> Result<String> {
        let text = self.read("status")?;
        let numbers = text.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        numbers.split_whitespace().last().map(str::to_owned).context("no number")
    }

    /// A path of its machine, seen from here.
    pub fn path(&self, path: &str) -> PathBuf {
        self.directory.join("root").join(path.trim_start_matches('/'))
    }

    /// What the kernel tells of it under this name.
    pub fn entry(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = self.entry(name);
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
    }
}

/// CPU time used so far, with that of programs it ran, as the kernel's line about a process has it.
pub fn cpu_in(stat: &str) -> Duration {
    let ticks: u32 = times(stat).skip(11).take(4).filter_map(|field| field.parse::<u32>().ok()).sum();
    TICK * ticks
}

/// The fields behind the name, which is in parentheses and may hold anything.
fn times(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, behind)| behind).split_whitespace()
}

fn field<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().next()
}

/// Time since the machine started.
pub fn uptime() -> Result<Duration> {
    let text = fs::read_to_string("/proc/uptime").context("reading /proc/uptime")?;
    let seconds: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).context("no uptime")?;
    Ok(Duration::from_secs_f64(seconds))
}
