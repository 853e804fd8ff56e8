//! `kubectl underlay`: the admin's desk.

mod bgp;
mod cluster;
mod explain;
mod lab;
mod names;
mod output;
mod plan;
mod problem;
mod progress;
mod routes;
mod status;
mod tables;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use underlay_runtime::fault::text_with_sources;

/// The exit code of a verb that could not find out what it was asked.
const NO_ANSWER: u8 = 2;

/// Kubernetes pods and virtual machines on the routed network.
#[derive(Debug, Parser)]
#[command(name = "kubectl-underlay", version, about, long_about = None)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// How the cluster's network fares: nodes, advertisements, sessions. Exits with 1 if anything is not well.
    Status(status::StatusArguments),
    /// Follow a pod or a prefix through all layers and name the first broken link. Exits with 1 if there is one.
    Explain(explain::ExplainArguments),
    /// What each node tells its BGP peers, what they brought, and what became of it. Exits with 1 if somebody could not
    /// be told or asked.
    Routes(routes::RoutesArguments),
    /// How BGP fares.
    Bgp(bgp::BgpArguments),
    /// What manifests would bring about on every node and in the API. Writes nothing. Exits with 1 if anything is
    /// refused.
    Plan(Box<plan::PlanArguments>),
    /// A cluster of namespaces on this machine: real Kubernetes, OVN, Open vSwitch and FRR.
    Lab(lab::LabArguments),
}

fn main() -> ExitCode {
    let (result, failure) = match Arguments::parse().verb {
        Verb::Status(arguments) => (status::run(&arguments), ExitCode::from(NO_ANSWER)),
        Verb::Explain(arguments) => (explain::run(&arguments), ExitCode::from(NO_ANSWER)),
        Verb::Routes(arguments) => (routes::run(&arguments), ExitCode::from(NO_ANSWER)),
        Verb::Bgp(arguments) => (bgp::run(&arguments), ExitCode::from(NO_ANSWER)),
        Verb::Plan(arguments) => (plan::run(&arguments), ExitCode::from(NO_ANSWER)),
        Verb::Lab(arguments) => (lab::run(arguments), ExitCode::FAILURE),
    };
    result.unwrap_or_else(|error| {
        anstream::eprintln!("{} {}", tables::bad("error:"), text_with_sources(error.as_ref()));
        failure
    })
}
