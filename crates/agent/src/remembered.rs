//! Addresses that pods were given before the agent started, as OVN's own rows remember them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_desired::owner::ROW_MARK;
use underlay_net::names::{attached_pod_port, pod_port};
use underlay_ovsdb::{Record, Replica};
use underlay_plan::node::isolation::{LOCKED, ROLE_KEY};
use underlay_world::Key;
use underlay_world::local::Assigned;

/// Reads the ports of pods.
pub fn read(northbound: &Replica) -> BTreeMap<Key, Assigned> {
    let ports = northbound.table("Logical_Switch_Port");
    let mut pods: BTreeMap<Key, Assigned> = BTreeMap::new();
    for port in ports.into_iter().flat_map(underlay_ovsdb::Table::iter).filter_map(port) {
        let pod = pods.entry(port.pod).or_insert_with(|| Assigned {
            uid: port.uid.clone(),
            networks: BTreeMap::new(),
            locked: false,
        });
        // Two pods of one name have ports at the same time for a moment at most, and never in the same network.
        if pod.uid == port.uid {
            pod.locked |= port.locked;
            pod.networks.insert(port.network, port.addresses);
        }
    }
    pods
}

/// A pod's port.
struct Port {
    pod: Key,
    uid: String,
    network: String,
    addresses: Vec<IpAddr>,
    locked: bool,
}

fn port(port: &Record) -> Option<Port> {
    let ids: BTreeMap<String, String> = port.read("external_ids").ok()?;
    let options: BTreeMap<String, String> = port.read("options").ok()?;
    ids.get("pod").filter(|pod| *pod == "true" && ids.contains_key(ROW_MARK))?;
    let namespace = ids.get("namespace")?;
    let name: String = port.read("name").ok()?;
    let attachment = ids.get("k8s.ovn.org/nad");
    let before_pod = match attachment {
        None => pod_port(namespace, ""),
        Some(attachment) => attached_pod_port(attachment, namespace, ""),
    };
    let addresses: BTreeSet<String> = port.read("addresses").ok()?;
    // `<mac> <address> <address>`
    let addresses = addresses.first()?.split_whitespace().skip(1).filter_map(|text| text.parse().ok());
    Some(Port {
        pod: Key::new(namespace, name.strip_prefix(&before_pod)?),
        uid: options.get("iface-id-ver")?.clone(),
        network: attachment.cloned().unwrap_or_else(|| DEFAULT_NETWORK.to_owned()),
        addresses: addresses.collect(),
        locked: ids.get(ROLE_KEY).is_some_and(|role| role == LOCKED),
    })
}
