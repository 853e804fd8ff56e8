//! What the node sees of itself: read from the switch's database and from the kernel, whenever either says that
//! something changed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use ipnet::IpNet;
use tokio::sync::watch;
use tracing::warn;
use underlay_linux::{Event, Fault, Kernel, Surroundings};
use underlay_net::NetworkNames;
use underlay_net::names::is_host_interface;
use underlay_ovsdb::{Client, Record, Replica};
use underlay_plan::node::topology::PHYSICAL_NETWORK;
use underlay_runtime::pace::Pace;
use underlay_world::Local;
use underlay_world::local::Bridge;

/// What happens in the kernel comes in crowds, often of our own making. It is looked at once for all of it.
const CROWD: Duration = Duration::from_millis(5);

/// What was seen last, and how often something happened that may not show in it: edges that write there look again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The node from within.
    pub local: Local,
    /// Counts everything that happened in the kernel, except to the cables of pods.
    pub kernel: u64,
    /// Counts what happened to links.
    pub links: u64,
}

/// Watches until nobody wants to know any more. Listens first and looks then, so nothing is missed.
pub async fn watch(kernel: Kernel, switch: Client, seen: watch::Sender<Option<Seen>>) {
    let mut pace = Pace::near();
    while !seen.is_closed() {
        if let Err(error) = follow(&kernel, &switch, &seen).await {
            warn!(%error, "cannot see the node's network; trying again");
        }
        tokio::time::sleep(pace.wait()).await;
    }
}

async fn follow(kernel: &Kernel, switch: &Client, seen: &watch::Sender<Option<Seen>>) -> Result<(), Fault> {
    // Somebody else follows the routes that BGP brings.
    let mut events = Box::pin(kernel.watch_besides_bgp(is_host_interface).await?);
    let mut changes = switch.subscribe();
    let has_vrf = kernel.has_vrf().await?;
    let mut around = kernel.surroundings().await?;
    let mut replica: Option<std::sync::Arc<Replica>> = None;
    loop {
        let (mut of_kernel, mut of_links) = (0, 0);
        tokio::select! {
            event = events.next() => {
                let Some(event) = event else { return Ok(()) };
                tokio::time::sleep(CROWD).await;
                let mut all = vec![event];
                while let Some(Some(event)) = events.next().now_or_never() {
                    all.push(event);
                }
                of_kernel = 1;
                of_links = u64::from(all.iter().any(|event| matches!(event, Event::Links | Event::Overrun)));
                if all.iter().any(|event| *event != Event::Rules) {
                    around = kernel.surroundings().await?;
                }
            }
            update = changes.next() => {
                let Some(update) = update else { return Ok(()) };
                replica = Some(update.replica);
            }
            () = seen.closed() => return Ok(()),
        }
        let Some(replica) = &replica else { continue };
        let mut local = local(replica, &around);
        local.has_vrf = has_vrf;
        // Ports of pods come and go all the time, and change nothing here.
        seen.send_if_modified(|seen| {
            let (kernel, links) = seen.as_ref().map_or((0, 0), |seen| (seen.kernel, seen.links));
            let next = Some(Seen { local, kernel: kernel + of_kernel, links: links + of_links });
            let news = *seen != next;
            *seen = next;
            news
        });
    }
}

/// Puts together what switch and kernel tell.
fn local(switch: &Replica, around: &Surroundings) -> Local {
    let ids = settings(switch);
    let encap = ids.get("ovn-encap-ip").map_or("", String::as_str);
    let name = ids.get("ovn-bridge-mappings").and_then(|mappings| mapped_bridge(mappings));
    let bridge = name.and_then(|name| bridge(&name, switch, around));
    let out_of = bridge.as_ref().map_or("", |bridge| bridge.name.as_str());
    let gateways = around.default_gateways.iter().filter(|(_, link)| link == out_of);
    Local {
        chassis: ids.get("system-id").cloned().unwrap_or_default(),
        encap: encap.split(',').filter_map(|text| text.trim().parse().ok()).collect(),
        addresses: addresses(around).map(|(_, net)| net).collect(),
        next_hops: gateways.map(|(gateway, _)| *gateway).collect(),
        assigned: BTreeMap::new(),
        has_vrf: false,
        bridge,
    }
}

fn settings(switch: &Replica) -> BTreeMap<String, String> {
    let rows = switch.table("Open_vSwitch");
    let row = rows.and_then(|table| table.iter().next());
    row.and_then(|row| row.read("external_ids").ok()).unwrap_or_default()
}

/// The bridge of the physical network, in `physnet:br-ex,other:br-other`.
fn mapped_bridge(mappings: &str) -> Option<String> {
    let mut pairs = mappings.split(',').filter_map(|pair| pair.trim().split_once(':'));
    pairs.find(|(network, _)| *network == PHYSICAL_NETWORK).map(|(_, bridge)| bridge.to_owned())
}

fn bridge(name: &str, switch: &Replica, around: &Surroundings) -> Option<Bridge> {
    let link = around.links.get(name)?;
    let own: Vec<IpNet> = addresses(around).filter(|(link, _)| *link == name).map(|(_, net)| net).collect();
    let row = switch.table("Bridge")?.iter().find(|row| is_named(row, name))?;
    let datapath: String = row.read("datapath_type").unwrap_or_default();
    Some(Bridge {
        name: name.to_owned(),
        mac: link.mac?,
        addresses: own,
        mtu: link.mtu,
        uplink: uplink(switch, row, around).and_then(|uplink| underlay_ovs::ofport(switch, &uplink)),
        patches: patches(switch, name),
        // The userspace datapath hands on packets larger than any link takes, and cuts them later.
        checks_size: datapath != "netdev",
    })
}

/// OVN's ways in and out: patch ports of a bridge, by name. Each network has one.
fn patches(switch: &Replica, bridge: &str) -> BTreeMap<String, u32> {
    let begin = NetworkNames::default_network().patch_port(bridge, "");
    let begin = begin.trim_end_matches("-to-br-int");
    let names = switch
        .table("Interface")
        .into_iter()
        .flat_map(underlay_ovsdb::Table::iter)
        .filter(|row| row.read::<String>("type").is_ok_and(|kind| kind == "patch"));
    let names =
        names.filter_map(|row| row.read::<String>("name").ok()).filter(|name| name.starts_with(begin));
    names.filter_map(|name| Some((name.clone(), underlay_ovs::ofport(switch, &name)?))).collect()
}

/// The port that is a device of the node: neither made by the switch nor a way into OVN.
fn uplink(switch: &Replica, bridge: &Record, around: &Surroundings) -> Option<String> {
    let ports: BTreeSet<underlay_ovsdb::Uuid> = bridge.read("ports").ok()?;
    let (all_ports, interfaces) = (switch.table("Port")?, switch.table("Interface")?);
    let mut names: Vec<String> = Vec::new();
    for port in ports.iter().filter_map(|uuid| all_ports.get(*uuid)) {
        let members: BTreeSet<underlay_ovsdb::Uuid> = port.read("interfaces").unwrap_or_default();
        for interface in members.iter().filter_map(|uuid| interfaces.get(*uuid)) {
            let kind: String = interface.read("type").unwrap_or_default();
            let name: String = interface.read("name").unwrap_or_default();
            if (kind.is_empty() || kind == "system") && around.links.contains_key(&name) {
                names.push(name);
            }
        }
    }
    names.sort();
    names.into_iter().next()
}

fn is_named(row: &Record, name: &str) -> bool {
    row.read::<String>("name").is_ok_and(|own| own == name)
}

/// The node's addresses by link, without ours and those that mean nothing elsewhere.
fn addresses(around: &Surroundings) -> impl Iterator<Item = (&str, IpNet)> {
    let means_something = |address: IpAddr| match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_link_local(),
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    };
    let foreign = around.addresses.iter().filter(|held| !held.ours);
    let all = foreign.map(|held| (held.address.link.as_str(), held.address.net));
    all.filter(move |(_, net)| means_something(net.addr()))
}
