//! Ports of the node's pods.

use underlay_api::annotations::PodNetwork;
use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::names::{attached_pod_port, pod_port};
use underlay_world::Key;

use super::addresses::{Placed, PlacedPod};
use super::isolation;
use super::site::Site;
use super::topology::joined;

/// Adds a port for every pod of the network that has addresses.
pub fn plan(site: &Site<'_>, placed: &Placed, rows: &mut Rows) {
    let switch = RowId::new(Table::LogicalSwitch, site.names.node_switch(site.name()));
    for (key, pod) in &placed.pods {
        let row = if site.network.is_default() {
            Some(default_port(site, key, pod))
        } else {
            own_port(site, key, pod)
        };
        if let Some(row) = row {
            let port = rows.add(row);
            rows.refer(&switch, "ports", port);
        }
    }
}

/// The port in the default network, which every pod has.
fn default_port(site: &Site<'_>, key: &Key, pod: &PlacedPod) -> Row {
    let name = pod_port(&key.namespace, &key.name);
    let row = any_port(site, &name, &pod.network, key, pod);
    if pod.locked() { isolation::mark(row) } else { row }
}

/// The port in the pod's own primary network, if it is this one.
fn own_port(site: &Site<'_>, key: &Key, pod: &PlacedPod) -> Option<Row> {
    let own = pod.primary.as_ref().filter(|own| own.network == site.network.name)?;
    let name = attached_pod_port(&own.attachment, &key.namespace, &key.name);
    let row = any_port(site, &name, &own.part, key, pod);
    Some(site.mark(row).entry("external_ids", "k8s.ovn.org/nad", &own.attachment))
}

fn any_port(site: &Site<'_>, name: &str, part: &PodNetwork, key: &Key, pod: &PlacedPod) -> Row {
    let addresses = joined(part.mac, part.addresses.iter().map(|net| net.addr().to_string()));
    Row::new(Table::LogicalSwitchPort, name, &pod.why)
        .text("name", name)
        .texts("addresses", [addresses.clone()])
        .texts("port_security", [addresses])
        .entry("options", "requested-chassis", &site.local.chassis)
        .entry("options", "iface-id-ver", &pod.uid)
        .entry("external_ids", "namespace", &key.namespace)
        .entry("external_ids", "pod", "true")
}
