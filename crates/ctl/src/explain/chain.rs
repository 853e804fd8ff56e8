//! A chain of links from an object to the wire, each of them judged.

use serde::Serialize;
use underlay_runtime::report::{AgentReport, EdgeReport};

use crate::cluster::facts::{Agent, Facts};

/// How a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Not as it should be.
    Broken,
    /// It could not be looked at.
    Unknown,
    /// So it is, and nothing is wrong with that.
    Note,
}

/// One link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// What it is.
    pub what: String,
    /// How it is.
    pub verdict: Verdict,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Link {
    /// A link that holds.
    pub fn good(what: &str, detail: impl Into<String>) -> Self {
        Self { what: what.to_owned(), verdict: Verdict::Good, detail: detail.into(), hint: None }
    }

    /// A link that does not, and what to do.
    pub fn broken(what: &str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { verdict: Verdict::Broken, ..Self::good(what, detail) }.advise(hint)
    }

    /// A link that could not be looked at.
    pub fn unknown(what: &str, detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Unknown, ..Self::good(what, detail) }
    }

    /// Something worth knowing.
    pub fn note(what: &str, detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, ..Self::good(what, detail) }
    }

    /// With advice.
    pub fn advise(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All links, in the order in which they depend on each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// What is explained.
    pub subject: String,
    /// The links.
    pub links: Vec<Link>,
    /// What follows from them.
    pub conclusion: String,
}

impl Chain {
    /// A chain whose conclusion counts if no link is broken.
    pub fn new(subject: impl Into<String>, links: Vec<Link>, conclusion: impl Into<String>) -> Self {
        let mut chain = Self { subject: subject.into(), links, conclusion: conclusion.into() };
        if let Some(link) = chain.first_broken() {
            chain.conclusion = format!("the first broken link is {}: {}", link.what, link.detail);
            return chain;
        }
        let unseen = match chain.links.iter().filter(|link| link.verdict == Verdict::Unknown).count() {
            0 => return chain,
            1 => "one link".to_owned(),
            many => format!("{many} links"),
        };
        chain.conclusion = format!("{}; {unseen} could not be looked at", chain.conclusion);
        chain
    }

    /// The first link that does not hold.
    pub fn first_broken(&self) -> Option<&Link> {
        self.links.iter().find(|link| link.verdict == Verdict::Broken)
    }
}

/// Whether a node's agent works.
pub fn agent(facts: &Facts, node: &str) -> Link {
    const WHAT: &str = "Agent";
    match facts.agents.get(node) {
        None => Link::unknown(WHAT, format!("the agent of {node} was not asked")),
        Some(Agent::Forbidden) => Link::unknown(WHAT, "you may not ask agents")
            .advise("ask for the right to get nodes/proxy, to see what is behind this link"),
        Some(Agent::Silent(why)) => {
            let hint = format!("is underlay-agent running on {node}, with port 9411 open to the API server?");
            Link::broken(WHAT, format!("the agent of {node} cannot be reached: {why}"), hint)
        }
        Some(Agent::Told(report)) => match &report.waiting {
            Some(what) => {
                let hint = format!("the log of underlay-agent on {node} tells more");
                Link::broken(WHAT, format!("the agent of {node} waits for {what}"), hint)
            }
            None => Link::good(WHAT, format!("ready on {node}, version {}", report.version)),
        },
    }
}

/// Whether some edges of a node have done all that was planned.
pub fn edges(what: &str, report: &AgentReport, names: &[&str], detail: &str) -> Link {
    for name in names {
        match report.edges.get(*name) {
            None => {
                return Link::unknown(what, format!("the agent of {} does not tell of {name}", report.node));
            }
            Some(EdgeReport { error: Some(error), .. }) => {
                let hint = format!("the agent tries again by itself; its log on {} tells more", report.node);
                return Link::broken(what, format!("{name} on {} failed: {error}", report.node), hint);
            }
            Some(EdgeReport { begun, applied, .. }) if *applied == 0 || begun > applied => {
                let hint = "ask again in a second; if it stays so, the agent's log tells more";
                return Link::broken(what, format!("{name} on {} is not done yet", report.node), hint);
            }
            Some(_) => {}
        }
    }
    Link::good(what, detail)
}
