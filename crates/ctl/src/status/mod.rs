//! `kubectl underlay status`: the cluster's network on one screen, and what is wrong with it.

mod default;
mod judge;
mod networks;
mod screen;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use underlay_runtime::report::Question;

use crate::cluster::{Access, agents, read};
use crate::output::Output;

#[derive(Debug, Args)]
pub struct StatusArguments {
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// Shows how the cluster fares. Exits with 0 if all is well, else with 1.
pub fn run(arguments: &StatusArguments) -> Result<ExitCode> {
    let facts = arguments.access.run(async |client| {
        let mut facts = read(&client).await?;
        let nodes: Vec<String> = facts.nodes.keys().cloned().collect();
        facts.agents = agents::ask(&client, nodes, &Question::default()).await;
        Ok(facts)
    })?;
    let overview = judge::judge(&facts);
    match arguments.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&overview)?),
        Output::Table => anstream::print!("{}", screen::text(&overview)),
    }
    Ok(if overview.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
