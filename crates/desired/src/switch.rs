//! Ports and settings of the node's Open vSwitch that are ours.

use std::collections::BTreeMap;

use serde::Serialize;
use underlay_net::Mac;

use crate::why::Why;

/// What should be in the switch's database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Switch {
    /// Ports by name.
    pub ports: BTreeMap<String, Port>,
    /// `external_ids` of the switch itself, by key: only these keys are ours.
    pub settings: BTreeMap<String, Setting>,
}

/// A port with one internal interface: a device of the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Port {
    /// The bridge it is on.
    pub bridge: String,
    /// Its MAC address.
    pub mac: Mac,
    /// Largest packet.
    pub mtu: u32,
    /// `external_ids` of its interface, besides our mark.
    pub external_ids: BTreeMap<String, String>,
    /// Its reason.
    pub why: Why,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its value.
    pub value: String,
    /// Its reason.
    pub why: Why,
}
