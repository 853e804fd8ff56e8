//! `underlay-cluster`: gives nodes their place and turns advertisements into configurations of their speakers.

use anyhow::Result;
use clap::Parser;
use underlay_cluster::args::Args;
use underlay_runtime::logging;

fn main() -> Result<()> {
    let args = Args::parse();
    logging::start(args.log_format);
    // One thread is enough for a program that waits for the API server most of the time, and needs less memory.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(underlay_cluster::run(args))
}
