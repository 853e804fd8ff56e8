//! OpenFlow on bridges that others use too.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::why::Why;

/// Flows that should be on a bridge.
pub type Flows = BTreeMap<Flow, Why>;

/// A flow, in the words of `ovs-ofctl`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Flow {
    /// Table of the pipeline.
    pub table: u8,
    /// Among flows that match, the highest wins.
    pub priority: u16,
    /// What it matches, like `in_port=LOCAL,ip`; empty matches all.
    pub matches: String,
    /// What becomes of the packet, like `output:1`.
    pub actions: String,
}
