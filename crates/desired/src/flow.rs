//! OpenFlow on bridges that others use too.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde::Serialize;
use underlay_net::Mac;

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

/// An address that neighbours are told of when it comes to a bridge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Announcement {
    /// The bridge.
    pub bridge: String,
    /// The port by which neighbours are reached.
    pub port: u32,
    /// The MAC address at which it is.
    pub mac: Mac,
    /// The address.
    pub address: Ipv6Addr,
}
