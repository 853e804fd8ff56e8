//! The difference between what should be and what is, as changes in the order in which they are made. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use underlay_desired::Why;
use underlay_desired::linux::{Address, Host, Neighbor, Route, Rule, TableEnd};
use underlay_net::Mac;

use crate::observe::{HeldNeighbor, HeldRoute, Observed, default_priority};

#[cfg(test)]
mod tests;

/// One change. Links go by the kernel's number for them, with their name for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// A route of ours goes.
    DeleteRoute(OldRoute),
    /// A neighbour of ours goes.
    DeleteNeighbor(Neighbor, u32),
    /// An address of ours goes.
    DeleteAddress(Address, u32),
    /// A VRF device of ours goes.
    DeleteVrf(String, u32),
    /// A VRF device comes, with its routing table.
    AddVrf(String, u32),
    /// A setting is set.
    SetSysctl(String, String),
    /// A link changes: largest packet, MAC address, VRF device, and it is set up.
    SetLink(LinkChange),
    /// An address comes.
    AddAddress(Address, u32),
    /// An address of ours becomes deprecated, or ceases to be.
    ReplaceAddress(Address, u32),
    /// A neighbour comes.
    AddNeighbor(Neighbor, u32),
    /// A neighbour of ours, or one that the kernel learned, becomes this one.
    ReplaceNeighbor(Neighbor, u32),
    /// A route comes.
    AddRoute(Route, u32),
    /// A route of ours to the same place becomes this one, without a moment between.
    ReplaceRoute(Route, u32),
    /// A table ends from now on.
    AddTableEnd(TableEnd),
    /// A table does not end any more.
    DeleteTableEnd(TableEnd),
    /// A rule comes.
    AddRule(Rule),
    /// A rule of ours goes.
    DeleteRule(Rule),
}

/// What tells one route of ours from another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldRoute {
    /// Routing table.
    pub table: u32,
    /// Where to.
    pub destination: IpNet,
    /// The lower, the better.
    pub priority: u32,
    /// Number of its link and its gateway, if it has only one way to go.
    pub hop: Option<(u32, Option<IpAddr>)>,
}

/// How a link changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Largest packet, if it was another.
    pub mtu: Option<u32>,
    /// MAC address, if it was another.
    pub mac: Option<Mac>,
    /// The VRF device that it belongs to from now on, if it was another or none.
    pub vrf: Option<String>,
}

/// Compares. Whatever is on a link that is not there waits for it, and whatever the kernel has no setting for is left
/// out.
pub fn diff(want: &Host, have: &Observed) -> Vec<Op> {
    let mut ops = Vec::new();
    let (old_routes, new_routes) = routes(want, have);
    let (old_neighbors, new_neighbors) = neighbors(want, have);
    let (old_addresses, new_addresses) = addresses(want, have);
    let (old_rules, new_rules) = rules(want, have);
    ops.extend(old_routes);
    ops.extend(old_neighbors);
    ops.extend(old_addresses);
    let (old_vrfs, new_vrfs) = vrfs(want, have);
    ops.extend(old_vrfs);
    ops.extend(new_vrfs);
    ops.extend(sysctls(want, have));
    ops.extend(links(want, have));
    ops.extend(new_addresses);
    ops.extend(new_neighbors);
    ops.extend(new_routes);
    // A table ends before anybody is sent there, and nobody is sent there any more when it does not.
    ops.extend(missing(&want.table_ends, &have.table_ends).map(Op::AddTableEnd));
    // Two rules never collide, so the new stand before the old fall.
    ops.extend(new_rules);
    ops.extend(old_rules);
    let surplus = have.table_ends.iter().filter(|end| !want.table_ends.contains_key(*end));
    ops.extend(surplus.copied().map(Op::DeleteTableEnd));
    ops
}

fn missing<'a>(
    want: &'a BTreeMap<TableEnd, Why>,
    have: &'a BTreeSet<TableEnd>,
) -> impl Iterator<Item = TableEnd> + 'a {
    want.keys().filter(|end| !have.contains(*end)).copied()
}

/// The links that something waits for.
pub fn missing_links(want: &Host, have: &Observed) -> BTreeSet<String> {
    let of_addresses = want.addresses.keys().map(|address| &address.link);
    let of_routes = want.routes.keys().map(|route| &route.link);
    let of_neighbors = want.neighbors.keys().map(|neighbor| &neighbor.link);
    let all = want.links.keys().chain(of_addresses).chain(of_routes).chain(of_neighbors);
    let missing = all.filter(|name| !have.links.contains_key(*name) && !want.vrfs.contains_key(*name));
    missing.cloned().collect()
}

fn index(have: &Observed, link: &str) -> Option<u32> {
    have.links.get(link).map(|link| link.index)
}

fn sysctls<'a>(want: &'a Host, have: &'a Observed) -> impl Iterator<Item = Op> + 'a {
    want.sysctls.iter().filter_map(|(name, wanted)| {
        let differs = have.sysctls.get(name).is_some_and(|value| *value != wanted.value);
        differs.then(|| Op::SetSysctl(name.clone(), wanted.value.clone()))
    })
}

fn links<'a>(want: &'a Host, have: &'a Observed) -> impl Iterator<Item = Op> + 'a {
    want.links.iter().filter_map(|(name, wanted)| {
        let held = have.links.get(name)?;
        let mtu = wanted.mtu.filter(|mtu| *mtu != held.mtu);
        let mac = wanted.mac.filter(|mac| Some(*mac) != held.mac);
        let vrf = wanted.vrf.clone().filter(|vrf| held.master.is_none() || held.master != index(have, vrf));
        let differs = mtu.is_some() || mac.is_some() || vrf.is_some() || !held.up;
        differs.then(|| Op::SetLink(LinkChange { name: name.clone(), index: held.index, mtu, mac, vrf }))
    })
}

/// A device that has another table is made anew: the kernel does not change it. One of the same name that is not ours
/// stays, and the kernel says that there is one.
fn vrfs(want: &Host, have: &Observed) -> (Vec<Op>, Vec<Op>) {
    let right = |name: &String, table: u32| {
        have.links.get(name).is_some_and(|held| held.ours && held.vrf == Some(table))
    };
    let surplus = have.links.iter().filter(|(name, held)| {
        held.ours && held.vrf.is_some() && !want.vrfs.get(*name).is_some_and(|vrf| right(name, vrf.table))
    });
    let old = surplus.map(|(name, held)| Op::DeleteVrf(name.clone(), held.index)).collect();
    let missing = want.vrfs.iter().filter(|(name, vrf)| !right(name, vrf.table));
    (old, missing.map(|(name, vrf)| Op::AddVrf(name.clone(), vrf.table)).collect())
}

fn addresses(want: &Host, have: &Observed) -> (Vec<Op>, Vec<Op>) {
    let place = |address: &Address| (address.link.clone(), address.net);
    let held: BTreeMap<_, _> = have.addresses.iter().map(|held| (place(&held.address), held)).collect();
    let mut wanted = BTreeSet::new();
    let mut new = Vec::new();
    for address in want.addresses.keys() {
        wanted.insert(place(address));
        let Some(index) = index(have, &address.link) else { continue };
        let deprecated = address.deprecated && matches!(address.net, IpNet::V6(_));
        let address = Address { deprecated, ..address.clone() };
        match held.get(&place(&address)) {
            None => new.push(Op::AddAddress(address, index)),
            Some(held) if held.ours && held.address.deprecated != deprecated => {
                new.push(Op::ReplaceAddress(address, index));
            }
            Some(_) => {}
        }
    }
    let surplus = held.values().filter(|held| held.ours && !wanted.contains(&place(&held.address)));
    let old = surplus
        .filter_map(|held| Some(Op::DeleteAddress(held.address.clone(), index(have, &held.address.link)?)));
    (old.collect(), new)
}

fn neighbors(want: &Host, have: &Observed) -> (Vec<Op>, Vec<Op>) {
    let place = |neighbor: &Neighbor| (neighbor.link.clone(), neighbor.address);
    let held: BTreeMap<_, &HeldNeighbor> =
        have.neighbors.iter().map(|held| (place(&held.neighbor), held)).collect();
    let mut wanted = BTreeSet::new();
    let mut new = Vec::new();
    for neighbor in want.neighbors.keys() {
        wanted.insert(place(neighbor));
        let Some(index) = index(have, &neighbor.link) else { continue };
        match held.get(&place(neighbor)) {
            Some(held) if held.permanent && held.neighbor.mac == neighbor.mac => {}
            Some(held) if held.ours || !held.permanent => {
                new.push(Op::ReplaceNeighbor(neighbor.clone(), index));
            }
            // Where somebody else set another MAC address the kernel will refuse, and say so.
            _ => new.push(Op::AddNeighbor(neighbor.clone(), index)),
        }
    }
    let surplus = held.values().filter(|held| held.ours && !wanted.contains(&place(&held.neighbor)));
    let old = surplus.filter_map(|held| {
        Some(Op::DeleteNeighbor(held.neighbor.clone(), index(have, &held.neighbor.link)?))
    });
    (old.collect(), new)
}

fn routes(want: &Host, have: &Observed) -> (Vec<Op>, Vec<Op>) {
    let wanted: BTreeSet<Route> = want.routes.keys().map(normal).collect();
    let is_right = |held: &HeldRoute| held.as_planned().is_some_and(|route| wanted.contains(&route));
    let right: BTreeSet<Route> = have.routes.iter().filter_map(HeldRoute::as_planned).collect();
    // Our routes by place: one that is alone in its place can be replaced.
    let mut places: BTreeMap<(u32, IpNet), Vec<&HeldRoute>> = BTreeMap::new();
    for held in &have.routes {
        places.entry((held.table, held.destination)).or_default().push(held);
    }
    let mut replaced = BTreeSet::new();
    let mut new = Vec::new();
    // What is on a link comes first: gateways are reached by it.
    let (direct, behind): (Vec<&Route>, Vec<&Route>) =
        wanted.difference(&right).partition(|route| route.gateway.is_none());
    for route in direct.into_iter().chain(behind) {
        let ready =
            have.links.get(&route.link).filter(|link| link.up || want.links.contains_key(&route.link));
        let Some(link) = ready else { continue };
        let place = (route.table, route.destination);
        let replaceable = |held: &HeldRoute| {
            held.priority == default_priority(&held.destination) && !held.hops.is_empty() && !is_right(held)
        };
        match places.get(&place).map(Vec::as_slice) {
            Some([held])
                if replaceable(held) && !have.contested.contains(&place) && replaced.insert(place) =>
            {
                new.push(Op::ReplaceRoute(route.clone(), link.index));
            }
            _ => new.push(Op::AddRoute(route.clone(), link.index)),
        }
    }
    let surplus = have.routes.iter().filter(|held| !is_right(held));
    let old = surplus.filter(|held| !replaced.contains(&(held.table, held.destination)));
    (old.map(|held| Op::DeleteRoute(old_route(held, have))).collect(), new)
}

fn old_route(held: &HeldRoute, have: &Observed) -> OldRoute {
    let hop = match held.hops.as_slice() {
        [hop] => index(have, &hop.link).map(|index| (index, hop.gateway)),
        _ => None,
    };
    OldRoute { table: held.table, destination: held.destination, priority: held.priority, hop }
}

/// The route as the kernel tells it: without bits beyond the prefix.
fn normal(route: &Route) -> Route {
    Route { destination: route.destination.trunc(), ..route.clone() }
}

fn rules(want: &Host, have: &Observed) -> (Vec<Op>, Vec<Op>) {
    let normal = |rule: &Rule| Rule { to: rule.to.map(|net| net.trunc()), ..rule.clone() };
    let wanted: BTreeSet<Rule> = want.rules.keys().map(normal).collect();
    let old = have.rules.difference(&wanted).cloned().map(Op::DeleteRule).collect();
    let new = wanted.difference(&have.rules).cloned().map(Op::AddRule).collect();
    (old, new)
}

impl fmt::Display for Op {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let route = |verb: &str, route: &Route| {
            let Route { table, destination, link, gateway, .. } = route;
            let via = gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
            format!("{verb} route {destination}{via} dev {link} table {table}")
        };
        let address =
            |verb: &str, address: &Address| format!("{verb} address {} dev {}", address.net, address.link);
        let neighbor = |verb: &str, neighbor: &Neighbor| {
            format!("{verb} neighbour {} at {} dev {}", neighbor.address, neighbor.mac, neighbor.link)
        };
        let rule = |verb: &str, rule: &Rule| {
            format!("{verb} IP{} rule {} to table {}", rule.family, rule.priority, rule.table)
        };
        formatter.write_str(&match self {
            Self::DeleteRoute(old) => format!("delete route {} table {}", old.destination, old.table),
            Self::DeleteNeighbor(old, _) => neighbor("delete", old),
            Self::DeleteAddress(old, _) => address("delete", old),
            Self::DeleteVrf(name, _) => format!("delete VRF {name}"),
            Self::AddVrf(name, table) => format!("add VRF {name} with table {table}"),
            Self::SetSysctl(name, value) => format!("set {name} to {value}"),
            Self::SetLink(change) => format!("set link {}", change.name),
            Self::AddAddress(new, _) => address("add", new),
            Self::ReplaceAddress(new, _) => address("replace", new),
            Self::AddNeighbor(new, _) => neighbor("add", new),
            Self::ReplaceNeighbor(new, _) => neighbor("replace", new),
            Self::AddRoute(new, _) => route("add", new),
            Self::ReplaceRoute(new, _) => route("replace", new),
            Self::AddTableEnd(new) => format!("end IP{} table {}", new.family, new.table),
            Self::DeleteTableEnd(old) => format!("do not end IP{} table {}", old.family, old.table),
            Self::AddRule(new) => rule("add", new),
            Self::DeleteRule(old) => rule("delete", old),
        })
    }
}
