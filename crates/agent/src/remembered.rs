//! Addresses that pods were given before the agent started, as OVN's own rows remember them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use underlay_desired::owner::ROW_MARK;
use underlay_net::names::pod_port;
use underlay_ovsdb::{Record, Replica};
use underlay_world::Key;
use underlay_world::local::Assigned;

/// Reads the ports of pods.
pub fn read(northbound: &Replica) -> BTreeMap<Key, Assigned> {
    let ports = northbound.table("Logical_Switch_Port");
    ports.into_iter().flat_map(underlay_ovsdb::Table::iter).filter_map(assigned).collect()
}

fn assigned(port: &Record) -> Option<(Key, Assigned)> {
    let ids: BTreeMap<String, String> = port.read("external_ids").ok()?;
    let options: BTreeMap<String, String> = port.read("options").ok()?;
    ids.get("pod").filter(|pod| *pod == "true" && ids.contains_key(ROW_MARK))?;
    let namespace = ids.get("namespace")?;
    let name: String = port.read("name").ok()?;
    let pod = name.strip_prefix(&pod_port(namespace, ""))?;
    let addresses: BTreeSet<String> = port.read("addresses").ok()?;
    // `<mac> <address> <address>`
    let addresses: Vec<IpAddr> =
        addresses.first()?.split_whitespace().skip(1).filter_map(|text| text.parse().ok()).collect();
    Some((Key::new(namespace, pod), Assigned { uid: options.get("iface-id-ver")?.clone(), addresses }))
}
