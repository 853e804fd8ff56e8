//! What a lab costs.
//!
//! In: nothing. Out: for several sizes, the time that the real command line takes to bring a lab up and to take it down,
//! and the memory, daemons and CPU of the idle lab between.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;
use underlay_lab::Lab;

use crate::lab_file::lab_file;
use crate::{Bench, cpu, rounded};

/// Nodes of the labs measured.
const SIZES: [usize; 3] = [1, 3, 8];
/// What is still going on right after the start is not the idle lab.
const SETTLING: Duration = Duration::from_secs(10);
/// Time over which CPU use is measured.
const IDLE: Duration = Duration::from_secs(10);

/// A row of the table.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    nodes: usize,
    daemons: usize,
    up_seconds: f64,
    down_seconds: f64,
    #[serde(rename = "memoryMiB")]
    memory_mib: u64,
    /// Percent of one core, all processes together.
    idle_cpu_percent: f64,
    /// Whether `status` found everything well after settling.
    healthy: bool,
}

/// Measures all sizes.
pub fn run(bench: &Bench) -> Result<Value> {
    println!(
        "{:>5} {:>8} {:>7} {:>7} {:>11} {:>11} {:>8}",
        "NODES", "DAEMONS", "UP s", "DOWN s", "MEMORY MiB", "IDLE CPU %", "HEALTHY"
    );
    let mut costs = Vec::new();
    for nodes in SIZES {
        let cost = measure(bench, nodes).with_context(|| format!("a lab of {nodes} nodes"))?;
        println!(
            "{:>5} {:>8} {:>7.2} {:>7.2} {:>11} {:>11.2} {:>8}",
            cost.nodes,
            cost.daemons,
            cost.up_seconds,
            cost.down_seconds,
            cost.memory_mib,
            cost.idle_cpu_percent,
            cost.healthy
        );
        costs.push(cost);
    }
    Ok(serde_json::to_value(costs)?)
}

fn measure(bench: &Bench, nodes: usize) -> Result<Cost> {
    let Bench { cli, interrupt, lab: name, .. } = bench;
    let directory = tempfile::tempdir().context("making a directory for the lab file")?;
    let file = directory.path().join("lab.yaml");
    fs::write(&file, lab_file(nodes)).with_context(|| format!("writing {}", file.display()))?;
    interrupt.check()?;
    let started = Instant::now();
    let lab = cli.up(name, Some(&file))?;
    let up = started.elapsed();
    interrupt.pause(SETTLING)?;
    let idle_cpu = cpu::percent(&Lab::named(name)?, IDLE, interrupt)?;
    // Asking costs CPU itself, so it comes last.
    let (status, healthy) = cli.status(name)?;
    let started = Instant::now();
    lab.down()?;
    Ok(Cost {
        nodes,
        daemons: daemons(&status),
        up_seconds: rounded(up.as_secs_f64()),
        down_seconds: rounded(started.elapsed().as_secs_f64()),
        memory_mib: status["memory"].as_u64().context("status tells no memory")? / (1 << 20),
        idle_cpu_percent: rounded(idle_cpu),
        healthy,
    })
}

/// Daemons of all machines in the answer of `status`.
fn daemons(status: &Value) -> usize {
    let machines = status["machines"].as_array().into_iter().flatten();
    machines.filter_map(|machine| machine["daemons"].as_array()).map(Vec::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn daemons_of_all_machines_count() {
        let status = json!({ "machines": [{ "daemons": [{}, {}] }, { "daemons": [] }, { "daemons": [{}] }] });
        assert_eq!(daemons(&status), 3);
        assert_eq!(daemons(&json!({})), 0);
    }
}
