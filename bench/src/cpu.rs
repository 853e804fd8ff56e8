//! CPU time of a lab.
//!
//! In: a lab that is up. Out: how much of one core all its processes use together.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use underlay_lab::Lab;
use xtask::interrupt::Interrupt;

/// Clock ticks a second in `/proc`; the same on all machines that a lab runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Percent of one core that the lab uses over this time.
pub fn percent(lab: &Lab, over: Duration, interrupt: &Interrupt) -> Result<f64> {
    let proc = lab.inner_proc()?;
    let (before, started) = (ticks(&proc)?, Instant::now());
    interrupt.pause(over)?;
    let used = ticks(&proc)?.saturating_sub(before);
    let used = f64::from(u32::try_from(used).unwrap_or(u32::MAX));
    Ok(used / TICKS_PER_SECOND / started.elapsed().as_secs_f64() * 100.0)
}

/// Ticks used so far by all processes that this `/proc` shows.
fn ticks(proc: &Path) -> Result<u64> {
    let entries = fs::read_dir(proc).with_context(|| format!("reading {}", proc.display()))?;
    let numbered = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok()));
    // A process that is gone by now is counted by its parent.
    Ok(numbered
        .filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok())
        .map(|stat| of(&stat))
        .sum())
}

/// Ticks of one process and of the children it has waited for. With these the sum over a lab loses nothing when a
/// process ends: its time moves to its parent, at last to the first process of a machine.
fn of(stat: &str) -> u64 {
    // The name is in parentheses and may hold anything. Behind it, the 12th to 15th fields are times.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_and_that_of_children_count() {
        let stat = "12 (a ) 9 (b) S 1 12 12 0 -1 4194560 100 200 0 0 1000 200 30 4 20 0 5 0 77 88 99";
        assert_eq!(of(stat), 1234);
        assert_eq!(of(""), 0);
    }

    #[test]
    fn all_numbered_entries_count() {
        let proc = tempfile::tempdir().unwrap();
        for name in ["1", "23", "self"] {
            fs::create_dir(proc.path().join(name)).unwrap();
            fs::write(proc.path().join(name).join("stat"), "1 (a) S 0 1 1 0 -1 0 0 0 0 0 5 1 0 0 20")
                .unwrap();
        }
        assert_eq!(ticks(proc.path()).unwrap(), 12);
    }
}
