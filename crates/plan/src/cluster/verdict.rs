//! What is said of a RouteAdvertisements. The words are those that users and programs of the ecosystem know.

use serde::Serialize;
use underlay_api::conditions::{self, Outcome};
use underlay_api::route_advertisements::ACCEPTED;

/// Nodes that a message names before it only counts them.
const NAMED: usize = 10;

/// What is said of a RouteAdvertisements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It is valid and all it asks for was generated.
    Accepted {
        /// Selected nodes that no FRRConfiguration is for: nothing is advertised from them.
        uncovered: Vec<String>,
    },
    /// It cannot be as written. What was generated before stays.
    Error(String),
    /// It waits for something that others have to bring.
    Pending(String),
    /// What was generated could not be written.
    Internal(String),
}

impl Verdict {
    /// Why, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Accepted { .. } => "Accepted",
            Self::Error(_) => "ConfigurationError",
            Self::Pending(_) => "ConfigurationPending",
            Self::Internal(_) => "InternalError",
        }
    }

    /// Why, for people.
    pub fn message(&self, name: &str) -> String {
        match self {
            Self::Accepted { uncovered } => accepted(uncovered),
            Self::Error(text) => format!("configuration error: {text}"),
            Self::Pending(text) => format!("configuration pending: {text}"),
            Self::Internal(text) => format!("failed to reconcile RouteAdvertisements {name:?}: {text}"),
        }
    }

    /// In short, for a column.
    pub fn summary(&self, name: &str) -> String {
        match self {
            Self::Accepted { .. } => "Accepted".to_owned(),
            _ => format!("Not Accepted: {}", self.message(name)),
        }
    }

    /// As a condition of the object of this name and generation.
    pub fn outcome(&self, name: &str, generation: Option<i64>) -> Outcome {
        let verdict = match self {
            Self::Accepted { .. } => conditions::Verdict::True,
            _ => conditions::Verdict::False,
        };
        Outcome {
            type_: ACCEPTED.to_owned(),
            verdict,
            reason: self.reason().to_owned(),
            message: self.message(name),
            observed_generation: generation,
        }
    }
}

fn accepted(uncovered: &[String]) -> String {
    let mut message = "ovn-kubernetes cluster-manager validated the resource and requested the necessary \
                       configuration changes"
        .to_owned();
    if !uncovered.is_empty() {
        message.push_str("; no selected FRRConfiguration is for ");
        message.push_str(&nodes(uncovered));
    }
    message
}

/// Names of nodes, as many as one likes to read.
pub(super) fn nodes(names: &[String]) -> String {
    let word = if names.len() == 1 { "node" } else { "nodes" };
    format!("{word} {}", listed(names))
}

/// Names, as many as one likes to read.
pub(super) fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_nodes_are_counted() {
        let names: Vec<String> = (10..22).map(|number| format!("n{number}")).collect();
        assert_eq!(nodes(&names[..1]), "node n10");
        assert_eq!(nodes(&names[..2]), "nodes n10, n11");
        assert!(nodes(&names).ends_with(", n19 and 2 more"));
    }

    #[test]
    fn every_verdict_has_the_known_words() {
        let accepted = Verdict::Accepted { uncovered: vec![] };
        assert_eq!(accepted.summary("ra"), "Accepted");
        let outcome = accepted.outcome("ra", Some(3));
        assert_eq!((outcome.verdict, outcome.reason.as_str()), (conditions::Verdict::True, "Accepted"));
        assert_eq!(outcome.observed_generation, Some(3));
        for (verdict, reason, message) in [
            (Verdict::Error("x".into()), "ConfigurationError", "configuration error: x"),
            (Verdict::Pending("x".into()), "ConfigurationPending", "configuration pending: x"),
            (
                Verdict::Internal("x".into()),
                "InternalError",
                "failed to reconcile RouteAdvertisements \"ra\": x",
            ),
        ] {
            let outcome = verdict.outcome("ra", None);
            assert_eq!((outcome.reason.as_str(), outcome.message.as_str()), (reason, message));
            assert_eq!(verdict.summary("ra"), format!("Not Accepted: {message}"));
        }
    }
}
