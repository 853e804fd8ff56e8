//! `underlay-agent`: makes its node what the cluster asks of it.
//!
//! In: what the API server tells of the cluster, and what the node sees of itself. Out, each by an edge of its own: OVN's
//! databases, the switch, the kernel, the packet filter, FRR, and the node's and its pods' annotations. One task plans;
//! each edge applies the newest plan and nothing else. Everything is found again from the marks on what was made, so a
//! restart is nothing special.

mod agent;
mod announce;
mod args;
mod cni;
mod concern;
mod edges;
mod importer;
mod install;
mod metrics;
mod owed;
mod records;
mod refused;
mod remembered;
mod report;
mod speaker;
mod surroundings;

use std::process::ExitCode;

use clap::Parser;

use args::Args;

/// As `nice` counts: less is sooner.
const PRIORITY: i32 = -10;
/// Threads of the edges. Most of their work is waiting for others, and memory is a node's most wanted good.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    underlay_runtime::logging::start(args.log_format);
    go_before_others();
    // This thread plans. On a node with very many networks that takes a while, and so does comparing with a database;
    // neither speaker nor pods wait for it.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(agent::run(args)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Every pod of the node waits for this process before its containers may start, so the containers that already start do
/// not come first; OVN's and Open vSwitch's start scripts do the same for theirs. Threads that are made later inherit it.
fn go_before_others() {
    if let Err(error) = rustix::process::nice(PRIORITY) {
        tracing::info!(%error, "runs at the priority it was started with");
    }
}
