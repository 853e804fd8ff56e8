//! The cluster manager before many nodes and networks: how soon it has done what is asked, and what that costs.
//!
//! In: how many nodes and networks. Out: for each of five phases the time until the last object is as it should be, the
//! manager's CPU time and memory as the kernel tells them, and its writes as the API server's audit counts them. There
//! are no kubelets and no agents: nodes are objects.

mod audit;
pub mod objects;
mod phases;
mod stage;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Bench;
use crate::figures::Figures;
use audit::Writes;
use phases::Took;
use stage::Stage;

/// The size that the aims are for: nodes and networks.
const AIMED: (usize, usize) = (200, 20);
/// The phases of advertising, by name.
const ADVERTISED: &str = "advertised everywhere";
const PEERS: &str = "peer change everywhere";
/// Seconds after the last request, of the phases that have such an aim.
const AIMS: [(&str, f64); 4] = [("nodes", 1.0), ("networks", 2.0), (ADVERTISED, 0.5), (PEERS, 0.5)];
/// Writes for nodes and networks, and for these with advertisement and a change of peers.
const WRITES: [f64; 2] = [700.0, 1100.0];
/// Seconds of CPU, all phases.
const CPU: f64 = 1.0;
/// Most memory ever, in MiB.
const MEMORY: f64 = 40.0;

/// Measures everything.
pub fn run(bench: &Bench) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
    let figures = runtime.block_on(measure(bench))?;
    Ok(serde_json::to_value(figures)?)
}

async fn measure(bench: &Bench) -> Result<Figures> {
    let Bench { nodes, networks, .. } = *bench;
    let mut run = Run { bench, stage: Stage::set().await?, figures: Figures::default(), cpu: 0.0 };
    run.calm().await?;
    let client = run.stage.client.clone();
    run.figures.tell("nodes", count(nodes), "");
    run.figures.tell("networks", count(networks), "");
    let mut writes = Writes::default();
    writes.add(&run.phase("nodes", phases::nodes(&client, nodes)).await?);
    writes.add(&run.phase("networks", phases::networks(&client, nodes, networks)).await?);
    run.tell("writes for nodes and networks", count(writes.count()), "", WRITES[0]);
    writes.add(&run.phase(ADVERTISED, phases::advertise(&client, nodes, networks)).await?);
    writes.add(&run.phase(PEERS, phases::change_peers(&client, nodes)).await?);
    run.tell("writes with advertisement and change of peers", count(writes.count()), "", WRITES[1]);
    let told = phases::generated_configurations(&client).await?;
    writes.add(&run.phase("delete networks", phases::delete(&client, nodes)).await?);
    run.figures.tell("writes, all", count(writes.count()), "");
    run.figures.tell("writes of the lease, all", count(writes.leases), "");
    run.tell("CPU, all", run.cpu, "s", CPU);
    let memory = run.stage.manager.peak_memory()?;
    run.tell("peak memory", memory, "MiB", MEMORY);
    run.stage.end_manager().await?;
    let (created, replaced) = phases::write_copies(&client, told).await?;
    run.figures.tell("API server alone: as many configurations created", created.as_secs_f64(), "s");
    run.figures.tell("API server alone: as many replaced", replaced.as_secs_f64(), "s");
    Ok(run.figures)
}

/// A run through the phases.
struct Run<'a> {
    bench: &'a Bench,
    stage: Stage,
    figures: Figures,
    /// Seconds that the manager used until the last time somebody asked.
    cpu: f64,
}

impl Run<'_> {
    /// Waits until the manager has started and done what it does in an empty cluster.
    async fn calm(&mut self) -> Result<()> {
        self.stage.calm().await?;
        let cpu = self.used()?;
        self.figures.tell("start: CPU", cpu, "s");
        self.figures.tell("start: memory", self.stage.manager.memory()?, "MiB");
        Ok(())
    }

    /// A figure that has an aim, if the cluster is of the size that it is for.
    fn tell(&mut self, name: &str, value: f64, unit: &'static str, aim: f64) {
        let aim = ((self.bench.nodes, self.bench.networks) == AIMED).then_some(aim);
        self.figures.tell_perhaps_aimed(name, value, unit, aim);
    }

    /// CPU time of the manager since the last time.
    fn used(&mut self) -> Result<f64> {
        let now = self.stage.manager.cpu()?.as_secs_f64();
        let used = now - self.cpu;
        self.cpu = now;
        Ok(used)
    }

    /// One phase with its figures; returns the manager's writes in it.
    async fn phase(&mut self, name: &str, phase: impl Future<Output = Result<Took>>) -> Result<Writes> {
        self.bench.interrupt.check()?;
        let took = phase.await.with_context(|| name.to_owned())?;
        let writes = self.stage.calm().await?;
        let after = format!("{name}: done after the last request");
        self.figures.tell(format!("{name}: requests took"), took.asking.as_secs_f64(), "s");
        match AIMS.iter().find(|(aimed, _)| *aimed == name) {
            Some((_, aim)) => self.tell(&after, took.after.as_secs_f64(), "s", *aim),
            None => self.figures.tell(after, took.after.as_secs_f64(), "s"),
        }
        let cpu = self.used()?;
        self.figures.tell(format!("{name}: CPU"), cpu, "s");
        self.figures.tell(format!("{name}: peak memory"), self.stage.manager.peak_memory()?, "MiB");
        for (kind, number) in &writes.by_kind {
            self.figures.tell(format!("{name}: {kind}"), count(*number), "");
        }
        Ok(writes)
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
