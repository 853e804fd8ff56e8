//! The cluster manager: node numbers and subnets, networks of tenants, advertisements, statuses.
//!
//! In: nodes, definitions of networks and the namespaces they are for, pods and endpoint slices there,
//! RouteAdvertisements and FRRConfigurations. Out: annotations of nodes, attachment definitions, endpoint slices of
//! networks, generated FRRConfigurations and RouteAdvertisements, statuses and events.
//!
//! Several replicas may run; one of them leads, and only that one watches and writes. A new leader lists everything
//! anew, so it knows all that its predecessor wrote. What a predecessor still had under way is refused: it sends nothing
//! once its lease may be over, and what it sent before names the version that it was decided upon.

pub mod args;
mod egress;
mod fabric;
mod leader;
mod metrics;
mod networks;
mod news;
mod reach;
mod slices;
mod standing;
mod view;
mod writes;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_desired::owner;
use underlay_runtime::events::Events;
use underlay_runtime::lease::{Candidate, Elector};
use underlay_runtime::objects::Writer;
use underlay_runtime::{admin, client, config};
use underlay_world::Key;

use args::Args;
use leader::{Leader, Tools};
use metrics::Metrics;
use reach::Probes;
use view::View;

/// Runs until a signal asks to stop.
pub async fn run(args: Args) -> Result<()> {
    let config = config::load(&args.settings)?;
    if !config.unknown.is_empty() {
        warn!(keys = config.unknown.join(", "), "keys of the configuration file that are not used here");
    }
    config.unused.iter().for_each(|note| warn!("{note}"));
    let client = client::connect(args.kubeconfig.as_deref()).await?;
    let mut registry = Registry::default();
    let view = View::default();
    let mut elector = Elector::new(client.clone(), candidate(&args));
    let writer = Writer::register(owner::CLUSTER_MANAGER, &mut registry);
    let tools = Tools {
        client: client.clone(),
        settings: config.settings,
        default_network: Key::new(&config.config_namespace, DEFAULT_NETWORK),
        lease: Key::new(&args.leader_elect_namespace, owner::CLUSTER_MANAGER),
        writer: if args.leader_elect { writer.behind(elector.fence()) } else { writer },
        events: Events::new(client, owner::CLUSTER_MANAGER),
        metrics: Metrics::register(&mut registry),
        view: view.clone(),
        probes: Probes { port: args.egress_ip_health_port, patience: args.egress_ip_reachability_timeout },
    };
    admin::start(&args.metrics_bind_address, view.admin(registry)).await?;

    let mut stop = std::pin::pin!(stopped()?);
    if !args.leader_elect {
        tokio::select! {
            () = lead(&tools) => {}
            () = &mut stop => {}
        }
        return Ok(());
    }
    loop {
        view.stand_by();
        tokio::select! {
            () = elector.acquire() => {}
            () = &mut stop => return Ok(()),
        }
        tokio::select! {
            // Whatever the leader is about to write is given up with the lease.
            () = elector.hold() => tools.metrics.leads(false),
            () = lead(&tools) => {}
            () = &mut stop => {
                elector.release().await;
                return Ok(());
            }
        }
    }
}

async fn lead(tools: &Tools) {
    tools.metrics.leads(true);
    Leader::new(tools.clone()).run().await;
}

fn candidate(args: &Args) -> Candidate {
    let lasts = args.lease_lasts();
    let candidate = Candidate::new(&args.leader_elect_namespace, owner::CLUSTER_MANAGER, identity());
    Candidate { lasts, deadline: lasts * 2 / 3, renews: lasts / 5, ..candidate }
}

/// A name that no other replica has, nor this one after a restart.
fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("{}_{}_{started:x}", host.trim(), std::process::id())
}

/// Waits for somebody to ask us to stop.
fn stopped() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("stopping");
    })
}
