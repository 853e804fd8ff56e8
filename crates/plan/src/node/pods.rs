//! Ports of the node's pods.

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::names::pod_port;
use underlay_world::Key;

use super::addresses::{Placed, PlacedPod};
use super::site::Site;
use super::topology::joined;

/// Adds a port for every pod that has addresses.
pub fn plan(site: &Site<'_>, placed: &Placed, rows: &mut Rows) {
    let switch = RowId::new(Table::LogicalSwitch, site.names.node_switch(site.name()));
    for (key, pod) in &placed.pods {
        let port = rows.add(port(site, key, pod));
        rows.refer(&switch, "ports", port);
    }
}

fn port(site: &Site<'_>, key: &Key, pod: &PlacedPod) -> Row {
    let name = pod_port(&key.namespace, &key.name);
    let addresses = joined(pod.network.mac, pod.network.addresses.iter().map(|net| net.addr().to_string()));
    Row::new(Table::LogicalSwitchPort, &name, &pod.why)
        .text("name", &name)
        .texts("addresses", [addresses.clone()])
        .texts("port_security", [addresses])
        .entry("options", "requested-chassis", &site.local.chassis)
        .entry("options", "iface-id-ver", &pod.uid)
        .entry("external_ids", "namespace", &key.namespace)
        .entry("external_ids", "pod", "true")
}
