//! Open vSwitch: ports that should be, and flows of a bridge.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use underlay_net::Mac;

use crate::why::Item;

/// The switch's state that is ours.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// Ports by name.
    pub ports: BTreeMap<String, Item<Port>>,
    /// Flows of each bridge, all with our cookie.
    pub flows: BTreeMap<String, BTreeSet<Item<Flow>>>,
}

/// A port of a bridge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Port {
    /// The bridge.
    pub bridge: String,
    /// Made by the switch itself, not a device that exists.
    pub internal: bool,
    /// Its MAC address, for internal ports.
    pub mac: Option<Mac>,
    /// Its MTU, for internal ports.
    pub mtu: Option<u32>,
    /// Keys of the interface's `external_ids`.
    pub external_ids: BTreeMap<String, String>,
}

/// A flow: what `ovs-ofctl` calls the match with table and priority, and the actions. The cookie is added by the edge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Flow {
    /// Table number.
    pub table: u8,
    /// Higher wins.
    pub priority: u16,
    /// Fields, as `ovs-ofctl` writes them; ports by name.
    pub matching: String,
    /// Actions, as `ovs-ofctl` writes them.
    pub actions: String,
}
