//! Which learned routes each network takes, kept up to date one route at a time. Pure.
//!
//! In: the routes that the kernel has from BGP, and the networks' policies. Out: the gateways that a router should have
//! to a place, and the places where that may have changed since somebody last asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;
use underlay_linux::{BgpTable, NextHop};
use underlay_net::Family;
use underlay_ovn::imports::{Place, Wanted};
use underlay_plan::node::imports::{Policy, Refusal};

/// For how long a route is kept that bgpd lost while it was starting: FRR declares itself done as soon as its peers are,
/// before it has found out whether their next hops are reached. The routes go and come again within a few ten
/// milliseconds, and pods must not notice.
const GRACE: Duration = Duration::from_secs(2);

type Gateways = Arc<[IpAddr]>;
type Ways = Arc<[NextHop]>;
/// The widest destinations come first.
type Width = (u8, IpNet);

/// All networks' shares of the routes that BGP brought.
#[derive(Debug, Default)]
pub struct Shares {
    routes: BgpTable,
    /// Routes that were lost, and until when they count nevertheless.
    kept: BTreeMap<(u32, IpNet), (Ways, Instant)>,
    /// By router.
    by_router: BTreeMap<String, Share>,
    /// Gateways that routes share.
    gateways: BTreeSet<Gateways>,
    changed: BTreeSet<Place>,
}

/// A learned route, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// Where to.
    pub destination: IpNet,
    /// Through whom: gateway and link.
    pub next_hops: Vec<(IpAddr, String)>,
    /// Why OVN does not use it; nothing if it does.
    pub refused: Option<Refusal>,
    /// Whether bgpd lost it while it was starting, and it counts for a moment nevertheless.
    pub kept: bool,
}

/// How many routes a network has heard of, and how many it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Heard of.
    pub learned: usize,
    /// Taken.
    pub imported: usize,
    /// Refused because there were too many.
    pub dammed: usize,
}

#[derive(Debug)]
struct Share {
    policy: Policy,
    learned: BTreeSet<IpNet>,
    /// As many as the network takes.
    inside: BTreeMap<Width, Gateways>,
    /// Those for which there was no room: the narrowest.
    outside: BTreeMap<Width, Gateways>,
}

impl Shares {
    /// Takes in new policies. Where one changed, every route is judged again.
    pub fn set_policies(&mut self, policies: &[Policy]) {
        let routers: BTreeSet<&str> = policies.iter().map(|policy| policy.router.as_str()).collect();
        let gone = self.by_router.extract_if(.., |router, _| !routers.contains(router.as_str()));
        let gone: Vec<Share> = gone.map(|(_, share)| share).collect();
        for share in &gone {
            self.touch_all_of(share);
        }
        for policy in policies {
            match self.by_router.get_mut(&policy.router) {
                Some(share) if share.policy == *policy => continue,
                Some(share) if share.policy.leads_like(policy) => share.policy = policy.clone(),
                _ => {
                    if let Some(old) =
                        self.by_router.insert(policy.router.clone(), Share::new(policy.clone()))
                    {
                        self.touch_all_of(&old);
                    }
                }
            }
            self.judge_all_of(&policy.router);
        }
    }

    /// Judges all routes that one network hears of.
    fn judge_all_of(&mut self, router: &str) {
        let Self { routes, kept, by_router, gateways, changed } = self;
        let Some(share) = by_router.get_mut(router) else { return };
        let Some(table) = share.policy.table else { return };
        let lost = kept.range((table, Family::V4.everything())..).take_while(|((of, _), _)| *of == table);
        let lost = lost.map(|((_, destination), (ways, _))| (*destination, ways));
        let there = routes.of_table(table);
        for (destination, ways) in lost.filter(|(to, _)| routes.best(table, *to).is_none()).chain(there) {
            for destination in share.judge(destination, Some(ways), gateways) {
                changed.insert(Place { router: router.to_owned(), destination });
            }
        }
    }

    /// Takes in what a look has shown. Lost routes are kept for a moment while bgpd `settles`.
    pub fn look(&mut self, routes: BgpTable, settles: bool, now: Instant) {
        let different = self.routes.differences(&routes);
        let before = std::mem::replace(&mut self.routes, routes);
        for (table, destination) in different {
            self.moved(table, destination, before.best(table, destination).cloned(), settles.then_some(now));
        }
    }

    /// Changes the routes; returns what the change returns. `places` are those that it is about.
    pub fn change<T>(
        &mut self,
        places: impl IntoIterator<Item = (u32, IpNet)>,
        settles: bool,
        now: Instant,
        change: impl FnOnce(&mut BgpTable) -> T,
    ) -> T {
        let places: BTreeSet<(u32, IpNet)> = places.into_iter().collect();
        let before = places.into_iter().map(|(table, to)| (table, to, self.routes.best(table, to).cloned()));
        let before: Vec<_> = before.collect();
        let result = change(&mut self.routes);
        for (table, destination, ways) in before {
            self.moved(table, destination, ways, settles.then_some(now));
        }
        result
    }

    /// The best route to a place may be another one than before.
    fn moved(&mut self, table: u32, destination: IpNet, before: Option<Ways>, settles: Option<Instant>) {
        let place = (table, destination);
        match (self.routes.best(table, destination), before, settles) {
            (Some(_), _, _) => drop(self.kept.remove(&place)),
            (None, Some(ways), Some(now)) => _ = self.kept.entry(place).or_insert((ways, now + GRACE)),
            (None, _, _) => {}
        }
        self.judge(table, destination);
    }

    /// Gives up routes that did not come back in time.
    pub fn give_up(&mut self, now: Instant) {
        let late = self.kept.extract_if(.., |_, (_, until)| *until <= now);
        let late: Vec<(u32, IpNet)> = late.map(|(place, _)| place).collect();
        for (table, destination) in late {
            self.judge(table, destination);
        }
    }

    /// When to give up next.
    pub fn deadline(&self) -> Option<Instant> {
        self.kept.values().map(|(_, until)| *until).min()
    }

    fn judge(&mut self, table: u32, destination: IpNet) {
        let kept = self.kept.get(&(table, destination)).map(|(ways, _)| ways);
        let ways = self.routes.best(table, destination).or(kept);
        let concerned = self.by_router.iter_mut().filter(|(_, share)| share.policy.table == Some(table));
        for (router, share) in concerned {
            for destination in share.judge(destination, ways, &mut self.gateways) {
                self.changed.insert(Place { router: router.clone(), destination });
            }
        }
    }

    fn touch_all_of(&mut self, share: &Share) {
        let place = |(_, destination): &Width| Place {
            router: share.policy.router.clone(),
            destination: *destination,
        };
        self.changed.extend(share.inside.keys().map(place));
    }

    /// Says that places have to be looked at again, whatever the reason.
    pub fn touch(&mut self, places: impl IntoIterator<Item = Place>) {
        self.changed.extend(places);
    }

    /// The same for all places of a router.
    pub fn touch_router(&mut self, router: &str) {
        let Some(share) = self.by_router.remove(router) else { return };
        self.touch_all_of(&share);
        self.by_router.insert(router.to_owned(), share);
    }

    /// Some of the places that have to be looked at, with what they should have. They count as done.
    pub fn take(&mut self, most: usize) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        while let Some(place) = (wanted.len() < most).then(|| self.changed.pop_first()).flatten() {
            let share = self.by_router.get(&place.router);
            let gateways = share.and_then(|share| share.inside.get(&width(place.destination)));
            let policy = share.map(|share| &share.policy);
            let new =
                |gateway: &&IpAddr| policy.is_some_and(|policy| !policy.has(place.destination, **gateway));
            let gateways = gateways.iter().flat_map(|all| all.iter()).filter(new).copied().collect();
            let port = policy.map(|policy| policy.port.clone()).unwrap_or_default();
            wanted.push(Wanted { place, port, gateways });
        }
        wanted
    }

    /// How many routes each network has, by name.
    pub fn counts(&self) -> BTreeMap<&str, Count> {
        let count = |share: &Share| Count {
            learned: share.learned.len(),
            imported: share.inside.len(),
            dammed: share.outside.len(),
        };
        self.by_router.values().map(|share| (share.policy.network.as_str(), count(share))).collect()
    }

    /// The routes that a network has heard of and that the caller asks for, in order.
    pub fn learned(&self, network: &str, asks: impl Fn(&IpNet) -> bool) -> impl Iterator<Item = Learned> {
        let share = self.by_router.values().find(|share| share.policy.network == network);
        let heard = share.into_iter().flat_map(|share| share.learned.iter().map(move |to| (share, *to)));
        heard.filter(move |(_, to)| asks(to)).filter_map(|(share, to)| self.about(share, to))
    }

    /// A route that a network has heard of, and what became of it.
    fn about(&self, share: &Share, destination: IpNet) -> Option<Learned> {
        let table = share.policy.table?;
        let kept = self.kept.get(&(table, destination)).map(|(ways, _)| ways);
        let best = self.routes.best(table, destination);
        let ways = best.or(kept)?;
        let dammed = share.outside.contains_key(&width(destination));
        let refused = share.policy.judge(&destination, hops(ways)).err();
        Some(Learned {
            destination,
            next_hops: ways.iter().map(|way| (way.gateway, way.link.clone())).collect(),
            refused: refused.or_else(|| dammed.then_some(Refusal::Flood(share.policy.limit))),
            kept: best.is_none(),
        })
    }
}

impl Share {
    fn new(policy: Policy) -> Self {
        Self { policy, learned: BTreeSet::new(), inside: BTreeMap::new(), outside: BTreeMap::new() }
    }

    /// Takes in how a route is now, and returns the destinations that are in or out by that.
    fn judge(
        &mut self,
        destination: IpNet,
        ways: Option<&Ways>,
        known: &mut BTreeSet<Gateways>,
    ) -> Vec<IpNet> {
        let taken = ways.and_then(|ways| self.policy.judge(&destination, hops(ways)).ok());
        self.heard(destination, ways.is_some());
        self.put(destination, taken.map(|gateways| shared(known, gateways)))
    }

    fn heard(&mut self, destination: IpNet, there: bool) {
        if there {
            self.learned.insert(destination);
        } else {
            self.learned.remove(&destination);
        }
    }

    /// Puts what is to be taken to a destination, and returns the destinations that are in or out by that.
    fn put(&mut self, destination: IpNet, taken: Option<Gateways>) -> Vec<IpNet> {
        let place = width(destination);
        self.outside.remove(&place);
        let before = self.inside.remove(&place);
        let unchanged = before.is_some() && before == taken;
        let mut changed: Vec<IpNet> = (!unchanged && (before.is_some() || taken.is_some()))
            .then_some(destination)
            .into_iter()
            .collect();
        if let Some(gateways) = taken {
            self.inside.insert(place, gateways);
        }
        while self.inside.len() > self.policy.limit {
            let Some((narrow, gateways)) = self.inside.pop_last() else { break };
            changed.push(narrow.1);
            self.outside.insert(narrow, gateways);
        }
        while self.inside.len() < self.policy.limit {
            let Some((wide, gateways)) = self.outside.pop_first() else { break };
            changed.push(wide.1);
            self.inside.insert(wide, gateways);
        }
        changed
    }
}

fn width(destination: IpNet) -> Width {
    (destination.prefix_len(), destination)
}

fn hops(ways: &[NextHop]) -> impl Iterator<Item = (IpAddr, &str)> {
    ways.iter().map(|way| (way.gateway, way.link.as_str()))
}

fn shared(known: &mut BTreeSet<Gateways>, gateways: Vec<IpAddr>) -> Gateways {
    let gateways: Gateways = gateways.into();
    if let Some(known) = known.get(&gateways) {
        return known.clone();
    }
    known.insert(gateways.clone());
    gateways
}

#[cfg(test)]
mod tests;
