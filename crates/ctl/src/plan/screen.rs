//! What would happen on one screen: objects and verdicts, what changes in the API, and how much on each node.

use std::collections::BTreeMap;
use std::fmt::Write;

use owo_colors::OwoColorize;

use super::compare::{Action, Change, Counts};
use super::node::{LAYERS, NodeDifference};
use super::outlook::{Fate, Judged, Outlook};
use super::text::shown;
use crate::names::count;
use crate::tables::{bad, good, table};

/// How many rows of a table one likes to read.
const ROWS: usize = 20;
/// How many changes of nodes one likes to read.
const DETAILS: usize = 30;
/// Longest text of a column.
const COLUMN: usize = 60;
/// Fields that take much room, or are the same for all.
const MUCH: [&str; 4] = ["config", "labels", "spec", "k8s.ovn.org/tunnel-keys"];
/// Kinds that have no verdict and that there may be many of.
const PLAIN: [&str; 5] = ["Node", "Namespace", "Pod", "Service", "EndpointSlice"];

/// An outlook as tables.
pub fn text(outlook: &Outlook) -> String {
    let mut text = format!("{}\n", headline(outlook));
    for note in &outlook.notes {
        let _ = writeln!(text, "{}", format!("note: {note}").dimmed());
    }
    objects(&mut text, &outlook.objects, &outlook.others);
    api(&mut text, &outlook.api);
    nodes(&mut text, &outlook.nodes);
    details(&mut text, &outlook.nodes);
    text
}

fn headline(outlook: &Outlook) -> String {
    let refused = outlook.objects.iter().chain(&outlook.others).filter(|judged| judged.refused).count();
    let judgement = match refused {
        0 => good("nothing is refused"),
        1 => bad("1 object is refused"),
        many => bad(&format!("{many} objects are refused")),
    };
    let changes = match (outlook.api.len(), outlook.on_nodes()) {
        (0, 0) => "nothing would change".to_owned(),
        (api, 0) => format!("{} of the API would change", count(api, "object")),
        (api, items) => {
            let (api, items) = (count(api, "object"), count(items, "item"));
            format!("{api} of the API and {items} on {} would change", count(outlook.nodes.len(), "node"))
        }
    };
    format!("{judgement}   {changes}")
}

fn objects(text: &mut String, own: &[Judged], others: &[Judged]) {
    let plain = |judged: &&Judged| PLAIN.contains(&judged.object.kind.as_str()) && judged.said.is_empty();
    let mut rows = table(&["OBJECT", "IN THE FILES", "VERDICT"]);
    let mut shown = 0;
    for judged in own.iter().chain(others).filter(|judged| !plain(judged)) {
        shown += 1;
        if shown <= ROWS {
            rows.add_row([judged.object.to_string(), fate(judged.fate).to_owned(), verdict(judged)]);
        }
    }
    if shown > 0 {
        let _ = writeln!(text, "\n{rows}");
    }
    more(text, shown, ROWS);
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for judged in own.iter().filter(plain) {
        *counts.entry((judged.object.kind.as_str(), fate(judged.fate))).or_default() += 1;
    }
    if !counts.is_empty() {
        let counts: Vec<String> =
            counts.iter().map(|((kind, fate), count)| format!("{kind}: {count} {fate}")).collect();
        let _ = writeln!(text, "\n {}", counts.join(", "));
    }
}

fn fate(fate: Option<Fate>) -> &'static str {
    match fate {
        None => "-",
        Some(Fate::New) => "new",
        Some(Fate::Changed) => "changed",
        Some(Fate::Unchanged) => "unchanged",
        Some(Fate::Deleted) => "deleted",
        Some(Fate::Absent) => "not there",
    }
}

fn verdict(judged: &Judged) -> String {
    let said = judged.said.join("\n");
    match (judged.refused, said.is_empty()) {
        (true, _) => bad(&said),
        (false, true) => good("ok"),
        (false, false) => said,
    }
}

fn api(text: &mut String, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    let mut rows = table(&["", "IN THE API", "WHAT", "BECAUSE OF"]);
    for change in changes.iter().take(ROWS) {
        let why: Vec<&str> =
            change.why.iter().map(String::as_str).filter(|why| *why != change.name).collect();
        rows.add_row([sign(change), change.name.clone(), what(change), why.join("\n")]);
    }
    let _ = writeln!(text, "\n{rows}");
    more(text, changes.len(), ROWS);
}

fn sign(change: &Change) -> String {
    let sign = change.action.sign().to_string();
    match change.action {
        Action::Add => sign.green().to_string(),
        Action::Change => sign.yellow().to_string(),
        Action::Remove => sign.red().to_string(),
    }
}

/// What of an object changes, a short line each. Of an object that comes or goes, not what is the same for all.
fn what(change: &Change) -> String {
    let fields = if change.after.is_empty() { &change.before } else { &change.after };
    let whole = change.action != Action::Change;
    let lines: Vec<String> = fields
        .iter()
        .filter(|(name, _)| !whole || !MUCH.contains(&name.as_str()))
        .map(|(name, value)| {
            let value = shown(value);
            match value.char_indices().nth(COLUMN) {
                // Conditions say why in brackets; the rest is for --output diff.
                _ if value.starts_with("True (") => format!("{name}: True"),
                Some((end, _)) => format!("{name}: {}...", &value[..end]),
                None => format!("{name}: {value}"),
            }
        })
        .collect();
    lines.join("\n")
}

fn nodes(text: &mut String, nodes: &[NodeDifference]) {
    if nodes.is_empty() {
        return;
    }
    let used: Vec<&str> =
        LAYERS.into_iter().filter(|layer| nodes.iter().any(|node| node.counts.contains_key(layer))).collect();
    let waits = nodes.iter().any(|node| node.waiting.is_some());
    let mut header: Vec<String> =
        std::iter::once("node").chain(used.iter().copied()).map(str::to_uppercase).collect();
    if waits {
        header.push("WAITS FOR".to_owned());
    }
    let mut rows = table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for node in nodes.iter().take(ROWS) {
        let mut row = vec![node.node.clone()];
        row.extend(
            used.iter().map(|layer| node.counts.get(layer).copied().map(Counts::short).unwrap_or_default()),
        );
        if waits {
            row.push(node.waiting.clone().unwrap_or_default());
        }
        rows.add_row(row);
    }
    let _ = writeln!(text, "\n{rows}");
    more(text, nodes.len(), ROWS);
}

/// Every change, where there are few; else where to see them.
fn details(text: &mut String, nodes: &[NodeDifference]) {
    let total: usize = nodes.iter().map(NodeDifference::total).sum();
    if total == 0 {
        return;
    }
    if total > DETAILS {
        let _ = writeln!(text, "\n{}", "--output diff shows every item and its reason".dimmed());
        return;
    }
    let mut rows = table(&["", "NODE", "LAYER", "ITEM", "BECAUSE OF"]);
    for node in nodes {
        for change in &node.changes {
            let item = match what(change) {
                what if what.is_empty() => change.name.clone(),
                what => format!("{}\n  {}", change.name, what.replace('\n', "\n  ")),
            };
            rows.add_row([
                sign(change),
                node.node.clone(),
                change.layer.to_owned(),
                item,
                change.why.join("\n"),
            ]);
        }
    }
    let _ = writeln!(text, "\n{rows}");
}

fn more(text: &mut String, all: usize, shown: usize) {
    if let Some(more @ 1..) = all.checked_sub(shown) {
        let _ = writeln!(text, " and {more} more: --output json shows them all");
    }
}
