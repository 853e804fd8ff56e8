//! What plugin and agent say to each other: one JSON document each way, ended by closing that direction.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::Failure;

/// Longest document that is read. A runtime's configuration is a few hundred bytes; a list of all attachments of a large
/// node a few ten thousand.
pub const DOCUMENT_MAX: u64 = 4 << 20;

/// What the runtime told the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The variables whose names begin with `CNI_`.
    pub environment: BTreeMap<String, String>,
    /// Standard input as it was.
    pub config: String,
}

/// What the plugin is to say to the runtime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// This on standard output, and success. Empty for verbs that say nothing.
    Done(String),
    /// This failure.
    Failed(Failure),
}
