//! Chores of the project that need more than a line of shell. `make` calls them.

mod conformance;
mod crds;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use owo_colors::OwoColorize;

/// Chores of the project.
#[derive(Debug, Parser)]
#[command(name = "xtask", about, long_about = None)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Run Kubernetes' own end-to-end tests against a lab.
    Conformance(conformance::Options),
    /// Write the definitions of our resources to deploy/crds.
    Crds(crds::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Conformance(options) => conformance::run(&options),
        Chore::Crds(options) => crds::run(&options),
    };
    result.unwrap_or_else(|error| {
        anstream::eprintln!("{} {error:#}", "error:".red().bold());
        ExitCode::FAILURE
    })
}
