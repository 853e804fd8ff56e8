//! Pods and routes: what the whole system takes to give pods their network and to tell a router of it.
//!
//! In: nothing. Out: figures of the default lab, and of the same lab with the reference bridge plugin to compare with.
//! The API is used as any client would; times are taken where the effect is: in the API's watch, in the kernel of the
//! top-of-rack router, in its BGP daemon, in the agent's own log.

mod agent;
mod bridge;
mod burst;
mod routes;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::Bench;
use crate::figures::Figures;
use crate::rig::Rig;

/// Measures everything.
pub fn run(bench: &Bench) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
    let mut figures = Figures::default();
    runtime.block_on(ours(bench, &mut figures))?;
    let ours = figures.get("100 pods Running p50");
    runtime.block_on(bridge::measure(bench, &mut figures)).context("with the bridge plugin")?;
    if let (Some(ours), Some(theirs)) = (ours, figures.get("bridge: 100 pods Running p50")) {
        figures.tell("100 pods Running, times the bridge plugin's", ours / theirs, "");
    }
    Ok(serde_json::to_value(figures)?)
}

async fn ours(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let rig = Rig::up(bench, None).await?;
    burst::measure(&rig, figures).await.context("a burst of pods")?;
    routes::measure(&rig, figures).await.context("advertised routes")?;
    agent::measure(&rig, figures).await.context("restarts of the agent")?;
    rig.down()
}
