//! `kubectl underlay`: the admin's desk.

mod lab;
mod progress;
mod tables;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Kubernetes pods and virtual machines on the routed network.
#[derive(Debug, Parser)]
#[command(name = "kubectl-underlay", version, about, long_about = None)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// A cluster of namespaces on this machine: real Kubernetes, OVN, Open vSwitch and FRR.
    Lab(lab::LabArguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().verb {
        Verb::Lab(arguments) => lab::run(arguments),
    };
    result.unwrap_or_else(|error| {
        anstream::eprintln!("{} {error:#}", tables::bad("error:"));
        ExitCode::FAILURE
    })
}
