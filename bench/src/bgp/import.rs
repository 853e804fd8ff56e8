//! Very many routes at once from a router, and one that is withdrawn from among them.
//!
//! In: nothing. Out: figures of a lab of one node, so that nothing but what belongs to that node shares the machine with
//! it: its BGP daemon, its databases, and OVN, which turns each route into flows meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{Stream, StreamExt};
use tokio::time::timeout;
use underlay_linux::{Event, Kernel};

use super::count;
use super::flood::{self, ROUTER, Rows};
use crate::Bench;
use crate::figures::{Figures, millis};
use crate::lab_file::lab_file;
use crate::process::Process;
use crate::rig::{PATIENCE, Rig};

/// Routes, and milliseconds in which they should be imported.
const FLOODS: [(u32, f64); 2] = [(10_000, 3000.0), (100_000, 30_000.0)];
/// Aims with all of them: MiB of the agent, milliseconds until a withdrawn one is gone.
const MEMORY: f64 = 250.0;
const WITHDRAWN: f64 = 50.0;
/// Routes that are withdrawn, and how far apart in the range.
const WITHDRAWALS: u32 = 20;
const STRIDE: u32 = 4999;
const NODE: &str = "control";
const SOCKET: &str = "/run/ovn/ovnnb_db.sock";
/// What still goes on after something was done is not its effect on what comes next.
const SETTLING: Duration = Duration::from_secs(5);
/// OVN is busy for long with very many routes. What it does then is not ours.
const DIGESTING: Duration = Duration::from_secs(30);

/// Imports, then withdrawals.
pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let directory = tempfile::tempdir().context("a directory")?;
    let file = directory.path().join("lab.yaml");
    fs::write(&file, lab_file(1)).context("writing a lab file")?;
    let rig = Rig::up(bench, Some(&file)).await?;
    let agent = Process::find(&rig.lab, "underlay-agent", Some(NODE))?;
    let mut rows = Rows::follow(agent.path(SOCKET)).await?;
    // A BGP daemon that has just started is forgiven routes that it loses.
    rig.rest(DIGESTING).await?;
    for (number, aim) in FLOODS {
        flood::change(&rig, "add", number).await?;
        rig.rest(SETTLING).await?;
        import(&rig, &agent, &mut rows, figures, (number, aim)).await?;
        if number < FLOODS[FLOODS.len() - 1].0 {
            withdraw_all(&rig, &mut rows, figures, number).await?;
        }
    }
    rig.rest(DIGESTING).await?;
    figures.tell_aimed("100000 routes: agent RSS", agent.memory()?, "MiB", MEMORY);
    figures.tell("100000 routes: agent RSS, at its peak", agent.peak_memory()?, "MiB");
    withdraw_some(&rig, &agent, &mut rows, figures).await.context("withdrawing routes")?;
    rig.down()
}

/// Lets the router tell, and waits until OVN has everything.
async fn import(
    rig: &Rig<'_>,
    agent: &Process,
    rows: &mut Rows,
    figures: &mut Figures,
    (number, aim): (u32, f64),
) -> Result<()> {
    let many = usize::try_from(number).unwrap_or(usize::MAX);
    let (in_kernel, in_rows, cpu) = (flood::in_kernel(agent)?, rows.count, agent.cpu()?);
    let began = Instant::now();
    flood::tell(rig, "redistribute kernel")?;
    let kernel = async {
        let first = flood::until_in_kernel(agent, |now| now > in_kernel).await?;
        anyhow::Ok((first, flood::until_in_kernel(agent, |now| now >= in_kernel + many).await?))
    };
    let ((first, all), imported) = tokio::try_join!(kernel, rows.until(|now| now >= in_rows + many))?;
    let name = |what: &str| format!("{number} routes: {what}");
    let from = |start: Instant| millis(imported.saturating_duration_since(start));
    figures.tell(name("announced -> all in the kernel"), millis(all.duration_since(began)), "ms");
    figures.tell(name("announced -> all in OVN"), from(began), "ms");
    figures.tell_aimed(name("first in the kernel -> all in OVN"), from(first), "ms", aim);
    figures.tell(name("all in the kernel -> all in OVN"), from(all), "ms");
    figures.tell(name("agent CPU"), millis(agent.cpu()?.saturating_sub(cpu)), "ms");
    Ok(())
}

async fn withdraw_all(rig: &Rig<'_>, rows: &mut Rows, figures: &mut Figures, number: u32) -> Result<()> {
    rig.rest(SETTLING).await?;
    let left = rows.count - usize::try_from(number).unwrap_or_default();
    let began = Instant::now();
    flood::tell(rig, "no redistribute kernel")?;
    let gone = rows.until(|now| now <= left).await?;
    figures.tell(
        format!("{number} routes: withdrawn -> none in OVN"),
        millis(gone.duration_since(began)),
        "ms",
    );
    flood::change(rig, "del", number).await?;
    rig.rest(SETTLING).await
}

/// Withdraws one route after another: from the kernel's word to the row's end.
async fn withdraw_some(rig: &Rig<'_>, agent: &Process, rows: &mut Rows, figures: &mut Figures) -> Result<()> {
    let kernel = Kernel::open_in(&agent.entry("ns/net")).await?;
    let mut events = Box::pin(kernel.watch().await?);
    let (mut times, mut whole, cpu) = (Vec::new(), Vec::new(), agent.cpu()?);
    for number in (0..WITHDRAWALS).map(|number| number * STRIDE) {
        rig.rest(SETTLING).await?;
        let before = rows.count;
        let destination = flood::destination(number);
        let began = Instant::now();
        let _command = rig.listen(ROUTER, &["ip", "route", "del", "blackhole", &destination])?;
        let gone = told_gone(&mut events, &destination);
        let (told, gone) = tokio::try_join!(gone, rows.until(|now| now < before))?;
        times.push(gone.saturating_duration_since(told));
        whole.push(gone.duration_since(began));
    }
    figures.tell_times_aimed("one of 100000 withdrawn: gone from kernel -> from OVN", &times, WITHDRAWN);
    figures.tell_times("one of 100000 withdrawn: asked of the ToR -> gone from OVN", &whole);
    let used = millis(agent.cpu()?.saturating_sub(cpu)) / f64::from(WITHDRAWALS);
    figures.tell("one of 100000 withdrawn: agent CPU", used, "ms");
    figures.tell("one of 100000 withdrawn: routes left in OVN", count(rows.count), "");
    Ok(())
}

/// Waits until the kernel tells that a route of BGP's is gone.
async fn told_gone(events: &mut (impl Stream<Item = Event> + Unpin), destination: &str) -> Result<Instant> {
    let hear = async {
        while let Some(event) = events.next().await {
            let Event::Bgp(changes) = event else { continue };
            if changes.iter().any(|change| change.gone && change.destination.to_string() == destination) {
                return Ok(Instant::now());
            }
        }
        bail!("the kernel tells nothing any more");
    };
    timeout(PATIENCE, hear).await.context("the kernel keeps the route")?
}
