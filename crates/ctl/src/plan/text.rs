//! What would happen as a diff: a line for every item, one before its name for what it says.

use std::fmt::Write;

use owo_colors::OwoColorize;
use serde_json::{Map, Value};

use super::compare::{Action, Change};
use super::outlook::Outlook;

/// All changes, the API first and then node by node.
pub fn diff(outlook: &Outlook) -> String {
    let mut text = String::new();
    section(&mut text, "the Kubernetes API", &outlook.api);
    for node in &outlook.nodes {
        let mut rest = node.changes.as_slice();
        while let Some(first) = rest.first() {
            let end = rest.iter().position(|change| change.layer != first.layer).unwrap_or(rest.len());
            section(&mut text, &format!("node {}: {}", node.node, first.layer), &rest[..end]);
            rest = &rest[end..];
        }
        if let Some(waiting) = &node.waiting {
            let _ = writeln!(text, "{}", format!("@@ node {} waits for {waiting} @@", node.node).cyan());
        }
    }
    text
}

fn section(text: &mut String, title: &str, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(text, "{}", format!("@@ {title} @@").cyan());
    for change in changes {
        item(text, change);
    }
}

fn item(text: &mut String, change: &Change) {
    let why = if change.why.is_empty() { String::new() } else { format!("  # {}", change.why.join(", ")) };
    match change.action {
        Action::Add => added(text, &format!("+ {}", change.name), &why),
        Action::Remove => removed(text, &format!("- {}", change.name), &why),
        Action::Change => {
            let _ = writeln!(text, "  {}{}", change.name, why.dimmed());
        }
    }
    fields(text, &change.before, removed, '-');
    fields(text, &change.after, added, '+');
}

fn fields(text: &mut String, fields: &Map<String, Value>, line: fn(&mut String, &str, &str), sign: char) {
    for (name, value) in fields {
        line(text, &format!("{sign}     {name}: {}", shown(value)), "");
    }
}

fn added(text: &mut String, line: &str, why: &str) {
    let _ = writeln!(text, "{}{}", line.green(), why.dimmed());
}

fn removed(text: &mut String, line: &str, why: &str) {
    let _ = writeln!(text, "{}{}", line.red(), why.dimmed());
}

/// A value on one line, texts without quotes.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
