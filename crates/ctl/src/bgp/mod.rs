//! `kubectl underlay bgp peers`: every BGP session of every node, and why one does not stand.
//!
//! In: what FRR says, through the agents; where it cannot be asked, what was published; and what is configured. Out: a row
//! for each neighbour. No password is in any of these.

mod peers;
mod screen;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use underlay_runtime::report::Question;

use crate::cluster::{Access, agents, read};
use crate::output::Output;
use crate::routes::the_nodes;
use peers::PeerRow;

#[derive(Debug, Args)]
pub struct BgpArguments {
    #[command(subcommand)]
    verb: BgpVerb,
}

#[derive(Debug, Subcommand)]
enum BgpVerb {
    /// Neighbours of each node, and how the sessions with them fare. Exits with 1 if one is not established.
    Peers(PeersArguments),
}

#[derive(Debug, Args)]
struct PeersArguments {
    /// Only this node.
    #[arg(long)]
    node: Option<String>,
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// Shows sessions. Exits with 0 if all that are configured stand, else with 1.
pub fn run(arguments: &BgpArguments) -> Result<ExitCode> {
    let BgpVerb::Peers(arguments) = &arguments.verb;
    let overview = arguments.access.run(async |client| {
        let mut facts = read(&client).await?;
        let nodes = the_nodes(&facts, arguments.node.as_deref())?;
        let question = Question { peers: true, ..Question::default() };
        facts.agents = agents::ask(&client, nodes, &question).await;
        Ok(peers::overview(&facts))
    })?;
    match arguments.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&overview)?),
        Output::Table => anstream::print!("{}", screen::text(&overview)),
    }
    let well = overview.problems.is_empty() && overview.peers.iter().all(PeerRow::is_up);
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
