//! What is wrong, with what to do about it.

use std::fmt::Write;

use owo_colors::OwoColorize;
use serde::Serialize;

use crate::cluster::facts::{Agent, Facts};
use crate::tables::bad;

/// How many problems one likes to read.
const SHOWN: usize = 20;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// With what.
    pub about: String,
    /// What.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Problem {
    /// A problem.
    pub fn new(about: &str, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { about: about.to_owned(), what: what.into(), hint: hint.into() }
    }
}

/// Problems as lines, as many as one likes to read.
pub fn text(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems.iter().take(SHOWN) {
        let _ = writeln!(text, "{}: {}\n    {}", bad(&problem.about), problem.what, problem.hint.dimmed());
    }
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN) {
        let _ = writeln!(text, "and {more} more: --output json shows them all");
    }
    text
}

/// Agents that were asked and did not tell. Who may not ask one may ask none.
pub fn silent_agents(facts: &Facts) -> Vec<Problem> {
    let mut problems = vec![];
    if facts.agents.values().any(|agent| *agent == Agent::Forbidden) {
        let hint = "ask for the right to get nodes/proxy";
        problems.push(Problem::new("agents", "you may not ask them", hint));
    }
    for (node, agent) in &facts.agents {
        if let Agent::Silent(why) = agent {
            let hint = "is underlay-agent running there, with port 9411 open to the API server?";
            let what = format!("its agent cannot be reached: {why}");
            problems.push(Problem::new(&format!("node {node}"), what, hint));
        }
    }
    problems
}
