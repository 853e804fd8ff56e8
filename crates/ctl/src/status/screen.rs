//! An overview for people.

use std::fmt::Write;

use super::judge::{AdvertisementRow, NodeRow, Overview};
use super::networks::{NetworkRow, Routes};
use crate::problem;
use crate::tables::{bad, good, table, verdict};

/// Longest text of a column; the rest is among the problems.
const COLUMN: usize = 60;

/// An overview as tables and a list of problems.
pub fn text(overview: &Overview) -> String {
    let mut text = format!("{}\n\n", headline(overview));
    if let Some(row) = &overview.default_network {
        let told = some_of_nodes(row.nodes_advertised, overview.nodes.len());
        let state = verdict(row.well, &row.state);
        let _ = writeln!(
            text,
            "default network: {}, {state}; advertised: {told}; routes: {}\n",
            row.transport,
            imported(row.routes)
        );
    }
    let mut nodes = table(&["NODE", "READY", "ID", "SUBNETS", "AGENT", "ADVERTISED", "SESSIONS"]);
    for node in &overview.nodes {
        nodes.add_row(node_row(node));
    }
    let _ = writeln!(text, "{nodes}\n");
    if !overview.networks.is_empty() {
        let mut networks = table(&[
            "NETWORK",
            "TOPOLOGY",
            "ROLE",
            "TRANSPORT",
            "SUBNETS",
            "ID",
            "NAMESPACES",
            "NODES",
            "ADVERTISED",
            "ROUTES",
            "STATE",
        ]);
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
    text + &problem::text(&overview.problems)
}

fn headline(overview: &Overview) -> String {
    let ready = overview.nodes.iter().filter(|node| node.ready).count();
    let nodes = format!("{} of {} nodes ready", ready, overview.nodes.len());
    let judgement = match overview.problems.len() {
        0 => good("all is well"),
        1 => bad("1 problem"),
        many => bad(&format!("{many} problems")),
    };
    let (up, all) =
        overview.nodes.iter().fold((0, 0), |(up, all), node| (up + node.sessions_up, all + node.sessions));
    let sessions = format!("{up} of {all} BGP sessions established");
    if all == 0 { format!("{judgement}   {nodes}") } else { format!("{judgement}   {nodes}   {sessions}") }
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

fn network_row(row: &NetworkRow) -> [String; 11] {
    let nodes = format!("{}/{}", row.nodes_ready, row.nodes);
    [
        row.name.clone(),
        row.topology.clone(),
        row.role.clone(),
        row.transport.clone(),
        row.subnets.join(", "),
        row.id.map(|id| id.to_string()).unwrap_or_default(),
        row.namespaces.to_string(),
        if row.nodes == 0 { "-".to_owned() } else { nodes },
        some_of_nodes(row.nodes_advertised, row.nodes),
        imported(row.routes),
        verdict(row.well, &row.state),
    ]
}

/// Whether nodes do something.
fn some_of_nodes(these: usize, all: usize) -> String {
    match these {
        0 => "no".to_owned(),
        these if these == all => "yes".to_owned(),
        these => bad(&format!("on {these}/{all}")),
    }
}

/// Learned routes that are in OVN.
fn imported(routes: Routes) -> String {
    let Routes { learned, imported, dammed } = routes;
    let taken = format!("{imported}/{learned}");
    if dammed == 0 { taken } else { bad(&format!("{taken}, {dammed} dammed")) }
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
