//! The node's packet filter: one table, all ours.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::why::Why;

/// Chains that should be in our table, by name. Without any there is no table at all.
pub type Ruleset = BTreeMap<String, Chain>;

/// A chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Where packets enter it; none for a chain that others jump to.
    pub hook: Option<Hook>,
    /// In order.
    pub rules: Vec<Rule>,
}

/// Where packets enter a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hook {
    /// `filter`, `nat` or `route`.
    pub kind: String,
    /// The point on a packet's way, like `postrouting`.
    pub point: String,
    /// The lower, the sooner.
    pub priority: i32,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// In nft's words, without a comment: that is where our mark goes.
    pub text: String,
    /// Its reason.
    pub why: Why,
}
