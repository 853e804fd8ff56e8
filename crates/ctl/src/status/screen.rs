//! An overview for people.

use std::fmt::Write;

use owo_colors::OwoColorize;

use super::judge::{AdvertisementRow, NodeRow, Overview};
use super::networks::NetworkRow;
use crate::tables::{bad, good, table, verdict};

/// Longest text of a column; the rest is among the problems.
const COLUMN: usize = 60;

/// How many problems one likes to read.
const SHOWN: usize = 20;

/// An overview as tables and a list of problems.
pub fn text(overview: &Overview) -> String {
    let mut text = format!("{}\n\n", headline(overview));
    if let Some(row) = &overview.default_network {
        let _ = writeln!(text, "default network: {}, {}\n", row.transport, verdict(row.well, &row.state));
    }
    let mut nodes = table(&["NODE", "READY", "ID", "SUBNETS", "AGENT", "ADVERTISED", "SESSIONS"]);
    for node in &overview.nodes {
        nodes.add_row(node_row(node));
    }
    let _ = writeln!(text, "{nodes}\n");
    if !overview.networks.is_empty() {
        let header = ["NETWORK", "TOPOLOGY", "ROLE", "SUBNETS", "ID", "NAMESPACES", "NODES", "STATE"];
        let mut networks = table(&header);
        for row in &overview.networks {
            networks.add_row(network_row(row));
        }
        let _ = writeln!(text, "{networks}\n");
    }
    if !overview.advertisements.is_empty() {
        let mut advertisements = table(&["ADVERTISEMENT", "STATUS", "READY"]);
        for row in &overview.advertisements {
            advertisements.add_row(advertisement_row(row));
        }
        let _ = writeln!(text, "{advertisements}\n");
    }
    for problem in overview.problems.iter().take(SHOWN) {
        let _ = writeln!(text, "{}: {}\n    {}", bad(&problem.about), problem.what, problem.hint.dimmed());
    }
    if let Some(more @ 1..) = overview.problems.len().checked_sub(SHOWN) {
        let _ = writeln!(text, "and {more} more: --output json shows them all");
    }
    text
}

fn headline(overview: &Overview) -> String {
    let ready = overview.nodes.iter().filter(|node| node.ready).count();
    let nodes = format!("{} of {} nodes ready", ready, overview.nodes.len());
    let judgement = match overview.problems.len() {
        0 => good("all is well"),
        1 => bad("1 problem"),
        many => bad(&format!("{many} problems")),
    };
    format!("{judgement}   {nodes}")
}

fn node_row(node: &NodeRow) -> [String; 7] {
    let sessions = format!("{}/{}", node.sessions_up, node.sessions);
    [
        node.name.clone(),
        verdict(node.ready, if node.ready { "True" } else { "False" }),
        node.id.map(|id| id.to_string()).unwrap_or_default(),
        node.subnets.join(", "),
        verdict(node.agent == "ready", &short(&node.agent)),
        node.advertised.map(|yes| if yes { "yes" } else { "no" }).unwrap_or_default().to_owned(),
        if node.sessions == 0 {
            "-".to_owned()
        } else {
            verdict(node.sessions_up == node.sessions, &sessions)
        },
    ]
}

fn network_row(row: &NetworkRow) -> [String; 8] {
    let nodes = format!("{}/{}", row.nodes_ready, row.nodes);
    [
        row.name.clone(),
        row.topology.clone(),
        row.role.clone(),
        row.subnets.join(", "),
        row.id.map(|id| id.to_string()).unwrap_or_default(),
        row.namespaces.to_string(),
        if row.nodes == 0 { "-".to_owned() } else { nodes },
        verdict(row.well, &row.state),
    ]
}

fn advertisement_row(row: &AdvertisementRow) -> [String; 3] {
    [row.name.clone(), verdict(row.status == "Accepted", &short(&row.status)), row.ready.clone()]
}

fn short(text: &str) -> String {
    match text.char_indices().nth(COLUMN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
