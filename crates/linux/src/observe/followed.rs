//! The routes that BGP brought, followed change by change.
//!
//! In: one look at all of them, then every change that the kernel tells. Out: the best route to each place, as another
//! look would show it. There may be very many, so they are kept small.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use underlay_net::Family;

use super::change::BgpChange;
use super::route::{BgpRoute, NextHop};

/// Gateways of a route. Many routes share them.
pub type Ways = Arc<[NextHop]>;

/// A change that does not say what there is now: look at the whole again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change of a route does not tell what is there now")]
pub struct Unclear;

/// All routes that BGP brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BgpTable {
    /// By table, destination and priority.
    routes: BTreeMap<(u32, IpNet, u32), Ways>,
    /// The gateways that routes share.
    ways: BTreeSet<Ways>,
}

impl BgpTable {
    /// What one look has shown.
    pub fn new(routes: impl IntoIterator<Item = BgpRoute>) -> Self {
        let mut table = Self::default();
        for route in routes {
            table.put(route);
        }
        table
    }

    fn put(&mut self, route: BgpRoute) {
        let ways: Ways = route.next_hops.into();
        let ways = if let Some(known) = self.ways.get(&ways) {
            known.clone()
        } else {
            self.ways.insert(ways.clone());
            ways
        };
        self.routes.insert((route.table, route.destination, route.priority), ways);
    }

    /// Takes a change in. `links` names links by number.
    pub fn apply(&mut self, change: &BgpChange, links: &BTreeMap<u32, &str>) -> Result<(), Unclear> {
        let place = (change.table, change.destination, change.priority);
        let there = self.routes.get(&place);
        // The kernel tells the gateways of an IPv6 route one by one, unless it replaces the whole.
        let by_parts = Family::of_net(&change.destination) == Family::V6 && there.is_some();
        let route = change.route(links).ok_or(Unclear)?;
        if change.gone {
            if by_parts && there.is_some_and(|there| **there != route.next_hops[..]) {
                return Err(Unclear);
            }
            self.routes.remove(&place);
        } else if route.next_hops.is_empty() {
            self.routes.remove(&place);
        } else if by_parts && !change.replaces {
            return Err(Unclear);
        } else {
            self.put(route);
        }
        Ok(())
    }

    /// Tables and destinations to which the best route is not the same as in another look.
    pub fn differences(&self, other: &Self) -> Vec<(u32, IpNet)> {
        let mut places: BTreeSet<(u32, IpNet)> = BTreeSet::new();
        for (one, two) in [(self, other), (other, self)] {
            let different = one.routes.iter().filter(|(place, ways)| two.routes.get(place) != Some(ways));
            places.extend(different.map(|((table, destination, _), _)| (*table, *destination)));
        }
        let differs = |(table, destination): &(u32, IpNet)| {
            self.best(*table, *destination) != other.best(*table, *destination)
        };
        places.into_iter().filter(differs).collect()
    }

    /// The best route to a place.
    pub fn best(&self, table: u32, destination: IpNet) -> Option<&Ways> {
        let all = (table, destination, 0)..=(table, destination, u32::MAX);
        self.routes.range(all).next().map(|(_, ways)| ways)
    }

    /// The best route to each place of a table.
    pub fn of_table(&self, table: u32) -> impl Iterator<Item = (IpNet, &Ways)> {
        let first = |(number, _, _): &(u32, IpNet, u32)| *number;
        let from = (table, Family::V4.everything(), 0);
        let all = self.routes.range(from..).take_while(move |(place, _)| first(place) == table);
        let mut last = None;
        all.filter_map(move |((_, destination, _), ways)| {
            let better = last.replace(*destination) == Some(*destination);
            (!better).then_some((*destination, ways))
        })
    }

    /// All tables that have routes.
    pub fn tables(&self) -> BTreeSet<u32> {
        let (mut tables, mut next) = (BTreeSet::new(), 0);
        while let Some(((table, _, _), _)) = self.routes.range((next, Family::V4.everything(), 0)..).next() {
            tables.insert(*table);
            match table.checked_add(1) {
                Some(after) => next = after,
                None => break,
            }
        }
        tables
    }

    /// How many routes there are.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: [(u32, &str); 1] = [(2, "br-ex")];

    fn change(destination: &str, ways: &[&str], gone: bool, replaces: bool) -> BgpChange {
        BgpChange {
            table: 254,
            destination: destination.parse().unwrap(),
            priority: 20,
            ways: ways.iter().map(|way| (way.parse().unwrap(), 2)).collect(),
            gone,
            replaces,
        }
    }

    fn shown(table: &BgpTable) -> Vec<String> {
        let ways = |ways: &Ways| ways.iter().map(|way| way.gateway.to_string()).collect::<Vec<_>>().join(" ");
        table.of_table(254).map(|(to, all)| format!("{to} {}", ways(all))).collect()
    }

    #[test]
    fn changes_add_up_to_what_a_look_would_show() {
        let (mut table, links) = (BgpTable::default(), BTreeMap::from(LINKS));
        let mut apply = |change: BgpChange| table.apply(&change, &links).map(|()| shown(&table));
        assert_eq!(
            apply(change("10.1.0.0/16", &["192.0.2.1"], false, false)).unwrap(),
            ["10.1.0.0/16 192.0.2.1"]
        );
        let both = ["192.0.2.2", "192.0.2.1"];
        assert_eq!(
            apply(change("10.1.0.0/16", &both, false, true)).unwrap(),
            ["10.1.0.0/16 192.0.2.1 192.0.2.2"]
        );
        assert_eq!(apply(change("10.1.0.0/16", &both, true, false)).unwrap(), [] as [&str; 0]);
        assert_eq!(apply(change("fd00::/64", &["fe80::1"], false, false)).unwrap(), ["fd00::/64 fe80::1"]);
        let one_more = apply(change("fd00::/64", &["fe80::2"], false, false));
        assert_eq!(one_more, Err(Unclear), "whether it replaces or joins, it does not say");
    }

    #[test]
    fn a_link_that_is_not_known_makes_a_change_unclear() {
        let mut strange = change("10.1.0.0/16", &["192.0.2.1"], false, false);
        strange.ways[0].1 = 7;
        let applied = BgpTable::default().apply(&strange, &BTreeMap::from(LINKS));
        assert_eq!(applied, Err(Unclear));
    }

    #[test]
    fn of_several_routes_to_one_place_the_best_counts() {
        let (mut table, links) = (BgpTable::default(), BTreeMap::from(LINKS));
        let better = BgpChange { priority: 10, ..change("10.1.0.0/16", &["192.0.2.9"], false, false) };
        for change in [change("10.1.0.0/16", &["192.0.2.1"], false, false), better] {
            table.apply(&change, &links).unwrap();
        }
        assert_eq!(shown(&table), ["10.1.0.0/16 192.0.2.9"]);
        assert_eq!(table.tables(), [254].into());
    }
}
