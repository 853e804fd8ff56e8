//! Routes that a restarted bgpd loses for a moment.
//!
//! A bgpd that ends in any way leaves its routes in the kernel, and its peers leave theirs to it, until it is back. But
//! FRR declares itself done as soon as the peers are, before it has found out whether their next hops are reached: the
//! routes go and come again within a few ten milliseconds. Pods must not notice, so OVN keeps them for that long.

use std::path::Path;
use std::time::{Duration, Instant};

use underlay_world::local::LearnedRoute;

/// For how long after its start bgpd may lose routes that it will have again.
const SETTLING: Duration = Duration::from_secs(30);
/// For how long a lost route is kept.
const GRACE: Duration = Duration::from_secs(2);

/// The routes that BGP brought, and since when some of them are missing.
#[derive(Debug, Default)]
pub struct Grace {
    routes: Vec<LearnedRoute>,
    until: Option<Instant>,
}

impl Grace {
    /// The routes to go by: those that are there, and while bgpd `settles` those that were there just before.
    pub fn given(&mut self, there: Vec<LearnedRoute>, settles: bool, now: Instant) -> Vec<LearnedRoute> {
        let is_there = |lost: &LearnedRoute| there.iter().any(|route| place(route) == place(lost));
        let lost: Vec<LearnedRoute> = self.routes.iter().filter(|route| !is_there(route)).cloned().collect();
        self.until = match self.until {
            _ if lost.is_empty() => None,
            Some(until) => Some(until).filter(|until| now < *until),
            None => settles.then(|| now + GRACE),
        };
        self.routes = there;
        if self.until.is_some() {
            self.routes.extend(lost);
            self.routes.sort();
        }
        self.routes.clone()
    }

    /// When to look again, if nothing happens before.
    pub fn ends(&self) -> Option<Instant> {
        self.until
    }
}

fn place(route: &LearnedRoute) -> (u32, ipnet::IpNet) {
    (route.table, route.destination)
}

/// Whether the bgpd with its socket in this directory was started a short while ago.
pub fn settles(sockets: &Path) -> bool {
    let started = std::fs::metadata(sockets.join("bgpd.vty")).and_then(|socket| socket.modified());
    started.is_ok_and(|started| started.elapsed().is_ok_and(|age| age < SETTLING))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: &str) -> LearnedRoute {
        LearnedRoute { table: 254, destination: destination.parse().unwrap(), next_hops: [].into() }
    }

    #[test]
    fn lost_routes_are_kept_for_a_moment_while_bgpd_settles() {
        let (one, two) = (route("10.1.0.0/16"), route("10.2.0.0/16"));
        let both = vec![one.clone(), two.clone()];
        let (mut grace, start) = (Grace::default(), Instant::now());
        assert_eq!(grace.given(both.clone(), true, start), both);
        assert_eq!(grace.given(vec![two.clone()], true, start), both);
        let soon = start + Duration::from_millis(500);
        assert_eq!(grace.given(vec![], true, soon), both, "another one is lost");
        assert_eq!(grace.given(both.clone(), true, soon), both);
        assert_eq!(grace.ends(), None, "all is back");

        assert_eq!(grace.given(vec![two.clone()], true, soon), both);
        let end = grace.ends().unwrap();
        assert_eq!(grace.given(vec![two.clone()], true, end), vec![two.clone()], "it is not coming back");
        assert_eq!(grace.given(vec![two.clone()], true, end), vec![two]);
    }

    #[test]
    fn at_other_times_a_lost_route_is_gone() {
        let (mut grace, now) = (Grace::default(), Instant::now());
        grace.given(vec![route("10.1.0.0/16")], false, now);
        assert_eq!(grace.given(vec![], false, now), vec![]);
        assert_eq!(grace.ends(), None);
    }
}
