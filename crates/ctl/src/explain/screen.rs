//! A chain for people and for programs.

use std::fmt::Write;

use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::chain::{Chain, Link, Verdict};
use crate::tables::{bad, good};

/// A chain as lines of text.
pub fn text(chain: &Chain) -> String {
    let mut text = format!("{}\n", chain.subject.bold());
    let width = chain.links.iter().map(|link| link.what.len()).max().unwrap_or_default();
    for link in &chain.links {
        let _ = writeln!(text, "  {}  {:width$}  {}", word(link), link.what, link.detail);
        if let Some(hint) = &link.hint {
            let _ = writeln!(text, "  {:7}  {:width$}  {}", "", "", hint.dimmed());
        }
    }
    let broken = chain.first_broken().is_some();
    let conclusion = if broken { bad(&chain.conclusion) } else { chain.conclusion.clone() };
    let _ = writeln!(text, "\n{conclusion}");
    text
}

fn word(link: &Link) -> String {
    // Padded before it is coloured: colours have no width.
    match link.verdict {
        Verdict::Good => good("ok     "),
        Verdict::Broken => bad("BROKEN "),
        Verdict::Unknown => "unknown".yellow().to_string(),
        Verdict::Note => "-      ".to_owned(),
    }
}

/// A chain as JSON.
pub fn json(chain: &Chain) -> Value {
    let broken = chain.first_broken().map(|link| link.what.as_str());
    json!({
        "subject": chain.subject, "links": chain.links, "conclusion": chain.conclusion, "firstBroken": broken,
    })
}
