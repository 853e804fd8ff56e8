//! Pods whose traffic another network carries: in the default network they hear their node, and nobody else.

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::Family;
use underlay_net::hash::hashed_name;
use underlay_net::names::pod_port;

use super::addresses::Placed;
use super::site::Site;

/// Id of the group of their ports.
const GROUP: &str = "default-network-controller:UDNIsolation:SecondaryPods";
/// Key by which their ports are known again after the agent was restarted.
pub const ROLE_KEY: &str = "k8s.ovn.org/role";
/// Its value.
pub const LOCKED: &str = "infrastructure-locked";

const DENY: i64 = 1000;
const ALLOW: i64 = 1001;

/// Says of a port that it is one of them.
pub fn mark(port: Row) -> Row {
    port.entry("external_ids", ROLE_KEY, LOCKED)
}

/// Adds the group of their ports with its rules, if there are any such pods. Given the default network's site.
pub fn plan(site: &Site<'_>, placed: &Placed, rows: &mut Rows) {
    let mut locked = placed.pods.iter().filter(|(_, pod)| pod.locked()).peekable();
    if locked.peek().is_none() {
        return;
    }
    let name = hashed_name(GROUP);
    let mut group = Row::new(Table::PortGroup, GROUP, &site.why)
        .text("name", &name)
        .entry("external_ids", "k8s.ovn.org/id", GROUP)
        .entry("external_ids", "k8s.ovn.org/owner-controller", "default-network-controller")
        .entry("external_ids", "k8s.ovn.org/owner-type", "UDNIsolation")
        .entry("external_ids", "k8s.ovn.org/name", "SecondaryPods");
    for (key, _) in locked {
        let port = pod_port(&key.namespace, &key.name);
        group = group.row("ports", RowId::new(Table::LogicalSwitchPort, port));
    }
    for rule in rules(site, &name) {
        group = group.row("acls", rows.add(rule));
    }
    rows.add(group);
}

fn rules(site: &Site<'_>, group: &str) -> [Row; 5] {
    let (from, to) = (format!("inport == @{group}"), format!("outport == @{group}"));
    let (asked, asks) = (neighbors(site, "arp.tpa"), neighbors(site, "arp.spa"));
    let sent: Vec<String> = site
        .families
        .iter()
        .map(|side| format!("{}.src == {}", side.family.ovn(), side.management))
        .collect();
    let sent = format!("{to} && ({})", sent.join(" || "));
    let rule = |name: &str, direction: &str, priority: i64, matches: String, action: &str| {
        Row::new(Table::Acl, format!("{GROUP}/{name}/{direction}"), &site.why)
            .texts("name", [name])
            .text("direction", direction)
            .integer("priority", priority)
            .text("match", matches)
            .text("action", action)
            .entry("external_ids", "k8s.ovn.org/owner-type", "UDNIsolation")
            .entry("external_ids", "k8s.ovn.org/name", name)
    };
    [
        rule("DenyPrimaryUDN", "from-lport", DENY, from.clone(), "drop"),
        rule("DenyPrimaryUDN", "to-lport", DENY, to.clone(), "drop"),
        rule("AllowHostARPPrimaryUDN", "from-lport", ALLOW, format!("{from} && ({asked})"), "allow"),
        rule("AllowHostARPPrimaryUDN", "to-lport", ALLOW, format!("{to} && ({asks})"), "allow"),
        rule("AllowHostPrimaryUDN", "to-lport", ALLOW, sent, "allow-related"),
    ]
}

/// Questions for the node's addresses, or the node's own.
fn neighbors(site: &Site<'_>, arp: &str) -> String {
    let of_side = |side: &super::site::Side| match side.family {
        Family::V4 => format!("({arp} == {})", side.management),
        Family::V6 => format!("(nd && nd.target == {})", side.management),
    };
    site.families.iter().map(of_side).collect::<Vec<_>>().join(" || ")
}
