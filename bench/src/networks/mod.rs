//! Networks of tenants on three nodes: how soon one works, what many cost, and how soon they are gone.
//!
//! In: nothing. Out: figures of the default lab. A tenant is a namespace, a primary Layer3 network and two pods on
//! different nodes, all asked for at once; it works when one pod's ping is answered by the other. Pods do nothing:
//! pings are sent from within their network namespaces, every 20 ms.

mod cost;
mod northbound;
pub mod reach;
mod removal;
mod tenants;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Bench;
use crate::figures::Figures;
use crate::rig::Rig;
use northbound::Northbound;
use tenants::Tenant;

/// The nodes of the lab.
const NODES: [&str; 3] = ["control", "worker1", "worker2"];
/// How often one network is made, and ten.
const TRIES: (usize, usize) = (10, 5);
/// Networks at which costs are looked at.
const LEVELS: [usize; 4] = [1, 10, 20, 50];
/// Networks that are deleted at once, and that are there when one more comes.
const MANY: usize = 20;
/// What still goes on after something was done is not its effect on what comes next.
const SETTLING: Duration = Duration::from_secs(5);
/// Aims: milliseconds until one network works and until ten do; MiB, and flows, with twenty; milliseconds until they
/// are gone.
const ONE: f64 = 1300.0;
const TEN: f64 = 4000.0;
const MEMORY: f64 = 50.0;
const FLOWS: f64 = 33_200.0;
const GONE: f64 = 3000.0;

/// Measures everything.
pub fn run(bench: &Bench) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
    let figures = runtime.block_on(measure(bench))?;
    Ok(serde_json::to_value(figures)?)
}

async fn measure(bench: &Bench) -> Result<Figures> {
    let mut run = Run { rig: Rig::up(bench, None).await?, figures: Figures::default(), made: 0 };
    let (ones, tens) = TRIES;
    run.first_pings("one network: asked for -> ping", 1, ones, ONE).await?;
    run.first_pings("ten networks: asked for -> ping in all", 10, tens, TEN).await?;
    let mut there = Vec::new();
    for level in LEVELS {
        run.grow(&mut there, level).await.with_context(|| format!("{level} networks"))?;
        if level == MANY {
            run.one_more(&mut there).await.context("one network more")?;
        }
    }
    let rest = there.split_off(MANY);
    removal::delete(&run.rig, &rest).await?;
    run.rig.pause(SETTLING)?;
    let removed = removal::measure(&run.rig, &there).await.context("deleting networks")?;
    run.figures.tell("20 networks: deleted -> pods gone", removed.pods, "ms");
    run.figures.tell_aimed("20 networks: pods gone -> no northbound row", removed.rows, "ms", GONE);
    run.figures.tell("20 networks: pods gone -> definitions gone", removed.definitions, "ms");
    run.rig.down()?;
    Ok(run.figures)
}

/// A run through everything.
struct Run<'a> {
    rig: Rig<'a>,
    figures: Figures,
    /// Tenants that were made: no two have the same name.
    made: usize,
}

impl Run<'_> {
    fn tenants(&mut self, count: usize) -> Vec<Tenant> {
        let first = self.made;
        self.made += count;
        (first..self.made).map(Tenant::new).collect()
    }

    /// Makes networks, several times, and takes the time until all of them work.
    async fn first_pings(&mut self, name: &str, count: usize, tries: usize, aim: f64) -> Result<()> {
        let mut times = Vec::new();
        for _ in 0..tries {
            self.rig.pause(SETTLING)?;
            let tenants = self.tenants(count);
            times.push(self.work(&tenants).await.context("networks that work")?);
            removal::delete(&self.rig, &tenants).await?;
        }
        self.figures.tell_times_aimed(name, &times, aim);
        Ok(())
    }

    /// Makes tenants; returns how long it took until all of them worked.
    async fn work(&self, tenants: &[Tenant]) -> Result<Duration> {
        let began = Instant::now();
        let created = tenants::create(&self.rig.client, tenants);
        let ((), worked) = tokio::try_join!(created, reach::all(&self.rig, tenants))?;
        Ok(worked.duration_since(began))
    }

    /// Makes more tenants, and looks at what all of them cost.
    async fn grow(&mut self, there: &mut Vec<Tenant>, level: usize) -> Result<()> {
        // A rollout, not a burst: one more at a time is what a node has to bear for long.
        while there.len() < level {
            let more = self.tenants((level - there.len()).min(10));
            self.work(&more).await?;
            there.extend(more);
        }
        self.rig.pause(SETTLING)?;
        reach::all(&self.rig, there).await.context("a ping in each network")?;
        let cost = cost::look(&self.rig)?;
        let name = |what: &str| format!("{level} networks: {what}");
        let aimed = level == MANY;
        self.figures.tell_perhaps_aimed(name("agent RSS"), cost.memory, "MiB", aimed.then_some(MEMORY));
        self.figures.tell_perhaps_aimed(name("flows on br-int"), cost.flows, "", aimed.then_some(FLOWS));
        self.figures.tell(name("northbound rows"), cost.rows, "");
        self.figures.tell(name("turn of the agent, mean"), cost.turn, "ms");
        self.figures.tell(name("northbound pass, mean"), cost.pass, "ms");
        self.figures.tell(name("northbound transactions so far"), cost.transactions, "");
        Ok(())
    }

    /// One network more: what that writes to rows of others.
    async fn one_more(&mut self, there: &mut Vec<Tenant>) -> Result<()> {
        let before = NODES.map(|node| Northbound::look(&self.rig, node));
        let counted = cost::look(&self.rig)?;
        let more = self.tenants(1);
        self.work(&more).await?;
        self.rig.pause(SETTLING)?;
        let transactions = cost::look(&self.rig)?.transactions - counted.transactions;
        self.figures.tell("one network more: northbound transactions", transactions, "");
        let (mut others, mut own, mut shared) = (0, 0, Vec::new());
        for (node, before) in NODES.iter().zip(before) {
            let changes = before?.until(&Northbound::look(&self.rig, node)?, &more[0].name, there);
            others += changes.others.len();
            own += changes.own;
            shared.extend(changes.shared.into_iter().map(|row| format!("{node}: {row}")));
            for row in changes.others {
                println!("  of another network, {node}: {row}");
            }
        }
        for row in &shared {
            println!("  shared, {row}");
        }
        self.figures.tell("one network more: rows of its own, all nodes", count(own), "");
        self.figures.tell("one network more: shared rows that changed", count(shared.len()), "");
        self.figures.tell_aimed("one network more: rows of others that changed", count(others), "", 0.0);
        ensure!(own > 0, "the new network has no rows");
        there.extend(more);
        Ok(())
    }
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
