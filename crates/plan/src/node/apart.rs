//! Advertised networks are kept apart, although everybody outside has a route to their pods.
//!
//! In: the networks of a node. Out: rules on their switches. A pod sends nothing to an address of another network that is
//! advertised. That is decided where the packet starts, whatever it will look like later: what would leave with the
//! node's address, and come back through the router outside as if it came from there, is stopped too. Where isolation is
//! loose, the network outside decides.

use std::collections::BTreeSet;

use underlay_desired::ovn::{Row, RowId, Rows, Table};
use underlay_net::Family;
use underlay_net::hash::hashed_name;
use underlay_world::settings::Isolation;

use super::networks::Others;
use super::site::Site;

/// Kind of owner of everything here, as other programs of the family know it.
const OWNER: &str = "AdvertisedNetwork";
/// Id of the group of the switches' ports to their routers.
const GROUP: &str = "default-network-controller:AdvertisedNetwork:isolation";

const DENY: i64 = 1050;
const PASS: i64 = 1100;

/// Adds the rules, given the default network's site, the others, and those whose rows are left out.
pub fn plan(site: &Site<'_>, others: &Others<'_>, without: &BTreeSet<String>, rows: &mut Rows) {
    if site.settings.isolation == Isolation::Loose {
        return;
    }
    let sites = || std::iter::once(site).chain(others.sites.values());
    let exposed: Vec<&Site<'_>> = sites().filter(|site| is_exposed(site)).collect();
    let families = Family::ALL.into_iter().filter_map(|family| addresses(site, &exposed, family, rows));
    let matches: Vec<String> = families.collect();
    if matches.is_empty() {
        return;
    }
    let wanted: Vec<&Site<'_>> = sites().filter(|site| !without.contains(&site.network.name)).collect();
    let deny = rows.add(rule(site, "deny", DENY, "drop", matches.join(" || ")));
    let ports = wanted.iter().map(|site| {
        let (_, port) = site.names.router_to_switch(site.name());
        RowId::new(Table::LogicalSwitchPort, port)
    });
    rows.add(
        owned(Row::new(Table::PortGroup, GROUP, &site.why))
            .text("name", hashed_name(GROUP))
            .rows("ports", ports)
            .rows("acls", [deny])
            .entry("external_ids", "k8s.ovn.org/id", GROUP),
    );
    for site in wanted {
        let switch = RowId::new(Table::LogicalSwitch, site.names.node_switch(site.name()));
        let pass = rows.add(site.mark(rule(site, &site.network.name, PASS, "pass", own(site))));
        rows.refer(&switch, "acls", pass);
    }
}

/// Whether pods of a network have addresses that others have routes to, or are about to.
fn is_exposed(site: &Site<'_>) -> bool {
    let asked = site.network.advertisers.as_ref().is_some_and(|advertisers| !advertisers.is_empty());
    asked || site.network.is_routed() || site.advertised()
}

/// Adds the set of the addresses of a family; returns what is sent to them.
fn addresses(site: &Site<'_>, exposed: &[&Site<'_>], family: Family, rows: &mut Rows) -> Option<String> {
    let nets = exposed.iter().flat_map(|site| site.network.nets(family)).map(|net| net.to_string());
    let nets: BTreeSet<String> = nets.collect();
    if nets.is_empty() {
        return None;
    }
    let id = format!("default-network-controller:{OWNER}:advertised-network-subnets:{family}");
    let name = hashed_name(&id);
    rows.add(
        owned(Row::new(Table::AddressSet, &id, &site.why))
            .text("name", &name)
            .texts("addresses", nets)
            .entry("external_ids", "k8s.ovn.org/id", &id)
            .entry("external_ids", "k8s.ovn.org/name", "advertised-network-subnets")
            .entry("external_ids", "ip-family", family.to_string()),
    );
    Some(format!("{}.dst == ${name}", family.ovn()))
}

/// What a network's pods send to each other.
fn own(site: &Site<'_>) -> String {
    let of_family = |family: Family| {
        let nets: Vec<String> = site.network.nets(family).map(|net| net.to_string()).collect();
        (!nets.is_empty()).then(|| format!("{}.dst == {{{}}}", family.ovn(), nets.join(", ")))
    };
    Family::ALL.into_iter().filter_map(of_family).collect::<Vec<_>>().join(" || ")
}

fn rule(site: &Site<'_>, name: &str, priority: i64, action: &str, matches: String) -> Row {
    owned(Row::new(Table::Acl, format!("{OWNER}/{name}"), &site.why))
        .text("direction", "from-lport")
        .entry("options", "apply-after-lb", "true")
        .integer("priority", priority)
        .text("match", matches)
        .text("action", action)
        .entry("external_ids", "k8s.ovn.org/name", name)
}

fn owned(row: Row) -> Row {
    row.entry("external_ids", "k8s.ovn.org/owner-controller", "default-network-controller").entry(
        "external_ids",
        "k8s.ovn.org/owner-type",
        OWNER,
    )
}
