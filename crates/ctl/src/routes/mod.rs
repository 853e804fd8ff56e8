//! `kubectl underlay routes`: what each node tells its BGP peers, what they brought, and what became of it.
//!
//! Facts are gathered first, from the API server and from the agents; rows are made from the facts alone. A node can have
//! a hundred thousand routes: agents tell a page of them, and the next one when asked.

mod list;
mod screen;
#[cfg(test)]
mod tests;

pub use list::dammed;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use ipnet::IpNet;
use kube::Client;
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_net::cidr::host;
use underlay_runtime::report::{List, Question};

use crate::cluster::facts::Facts;
use crate::cluster::{Access, agents, read};
use crate::names::some_of;
use crate::output::Output;

/// Learned routes that are shown of a node unless all are asked for.
const SHOWN: usize = 200;
/// Learned routes that an agent is asked for at once.
const PAGE: usize = 10_000;

#[derive(Debug, Args)]
pub struct RoutesArguments {
    /// Only this node.
    #[arg(long)]
    node: Option<String>,
    /// Only this network: default, cudn/NAME or udn/NAMESPACE/NAME.
    #[arg(long)]
    network: Option<String>,
    /// Only routes on the way to this address or prefix, or to a part of it.
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    to: Option<IpNet>,
    /// Only learned routes that OVN does not use.
    #[arg(long)]
    refused: bool,
    /// All learned routes, however many there are.
    #[arg(long)]
    all: bool,
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

/// Shows routes. Exits with 0 if everything that should be told is told, and everybody could be asked, else with 1.
pub fn run(arguments: &RoutesArguments) -> Result<ExitCode> {
    let facts = arguments.access.run(async |client| ask(&client, arguments).await)?;
    let listing = list::listing(&facts, arguments.refused);
    match arguments.output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&listing)?),
        Output::Table => anstream::print!("{}", screen::text(&listing)),
    }
    Ok(if listing.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn ask(client: &Client, arguments: &RoutesArguments) -> Result<Facts> {
    let mut facts = read(client).await?;
    let network = arguments.network.as_deref().map(|word| network_name(&facts, word)).transpose()?;
    let limit = Some(if arguments.all { PAGE } else { SHOWN });
    let routes = Some(List { refused: arguments.refused, limit, after: None });
    let question = Question { to: arguments.to, network, routes, ..Question::default() };
    facts.agents = agents::ask(client, the_nodes(&facts, arguments.node.as_deref())?, &question).await;
    if arguments.all {
        agents::ask_for_the_rest(client, &mut facts.agents, &question).await;
    }
    Ok(facts)
}

/// The nodes that are meant.
pub fn the_nodes(facts: &Facts, node: Option<&str>) -> Result<Vec<String>> {
    let all: Vec<String> = facts.nodes.keys().cloned().collect();
    match node {
        None => Ok(all),
        Some(node) if facts.nodes.contains_key(node) => Ok(vec![node.to_owned()]),
        Some(node) => bail!("there is no node {node}; there are {}", some_of(&all)),
    }
}

/// The name that nodes use for the network that a word means.
fn network_name(facts: &Facts, word: &str) -> Result<String> {
    if word == DEFAULT_NETWORK {
        return Ok(word.to_owned());
    }
    Ok(facts.the_network(word)?.network_name())
}

/// Reads a prefix, or an address as the prefix that is as long as can be.
fn prefix(text: &str) -> Result<IpNet, String> {
    let address = text.parse().map(host);
    let prefix = address.or_else(|_| text.parse().map(|prefix: IpNet| prefix.trunc()));
    prefix.map_err(|_| "write an address like 203.0.113.9, or a prefix like 203.0.113.0/24".to_owned())
}
