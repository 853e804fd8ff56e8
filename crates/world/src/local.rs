//! What a node sees of itself: its switch and its addresses. Of the routes that BGP brought there may be very many; they
//! are not in here, and no plan is made from them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use underlay_net::Mac;

use crate::Key;

/// A node from within. Written down, it is without what is large and changes all the time: addresses of pods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Local {
    /// Name of its chassis in OVN.
    pub chassis: String,
    /// Ends of its tunnels.
    pub encap: Vec<IpAddr>,
    /// The bridge between the world, the node and OVN, if it is there.
    pub bridge: Option<Bridge>,
    /// All addresses of the node that are not of our making.
    pub addresses: BTreeSet<IpNet>,
    /// Whether its kernel has VRF devices.
    pub has_vrf: bool,
    /// Gateways of the node's default routes out of the bridge.
    pub next_hops: Vec<IpAddr>,
    /// Addresses that were given to pods and may not be recorded yet.
    #[serde(skip)]
    pub assigned: BTreeMap<Key, Assigned>,
}

/// The external bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// Its MAC address, which OVN's gateway router shares.
    pub mac: Mac,
    /// Addresses on it that are not of our making; the gateway router shares them.
    pub addresses: Vec<IpNet>,
    /// Largest packet that it carries.
    pub mtu: u32,
    /// Port number of the node's uplink.
    pub uplink: Option<u32>,
    /// Port numbers of OVN's patch ports by their names: one for each network, once it is there.
    pub patches: BTreeMap<String, u32>,
    /// Whether its datapath can compare a packet with the size of the next hop.
    pub checks_size: bool,
}

/// What a pod was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// The pod's identity.
    pub uid: String,
    /// Its addresses, by `default` or the attachment definition of the network: `<namespace>/<name>`.
    pub networks: BTreeMap<String, Vec<IpAddr>>,
    /// Whether its port in the default network is for probes only, because another network carries its traffic.
    pub locked: bool,
}
