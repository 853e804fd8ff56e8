//! Lists of routes: what the node tells its BGP peers, and what these brought.
//!
//! In: what is planned, and what the importer knows. Out: what of it was asked for. There may be a hundred thousand
//! routes, and the answer is put together in memory: so it has one page of them, and says how many are not on it.

use std::collections::BTreeMap;

use ipnet::IpNet;
use underlay_runtime::report::{AdvertisedReport, LearnedReport, NextHop, Question, RouteReport};

use super::Outline;
use crate::importer::{Learned, Routes};

/// Most routes of one answer.
const LARGEST: usize = 10_000;

/// What BGP peers are to be told. Whether they were, only FRR knows.
pub fn advertised(outline: &Outline, question: &Question) -> Vec<AdvertisedReport> {
    let asked = |network: Option<&str>| question.network.is_none() || question.network.as_deref() == network;
    let all = outline.originated.iter();
    let all = all.filter(|one| asked(one.network.as_deref()) && concerns(question, &one.prefix));
    let report = |one: &underlay_plan::node::advertised::Originated| AdvertisedReport {
        prefix: one.prefix,
        vrf: one.vrf.clone(),
        network: one.network.clone(),
        by: one.by.clone(),
        to: None,
    };
    all.map(report).collect()
}

/// A page of what BGP brought, by network.
pub fn learned(routes: &Routes, question: &Question) -> BTreeMap<String, LearnedReport> {
    let list = question.routes.unwrap_or_default();
    let counts = routes.counts().into_iter().map(|(network, count)| (network, count.learned));
    let asked = counts.filter(|(network, _)| question.network.as_ref().is_none_or(|one| one == network));
    let room = list.limit.unwrap_or(LARGEST).min(LARGEST);
    let mut pages = BTreeMap::new();
    for (network, most) in shares(asked.collect(), room) {
        let leads = |net: &IpNet| concerns(question, net) && list.after.is_none_or(|after| *net > after);
        let asks = |route: &Learned| !list.refused || route.refused.is_some();
        let (page, more) = routes.page(&network, most, leads, asks);
        pages.insert(network, LearnedReport { routes: page.into_iter().map(told).collect(), more });
    }
    pages
}

/// How many routes of each network have room: networks with few of them show all, the others share the rest.
fn shares(mut networks: Vec<(String, usize)>, mut room: usize) -> Vec<(String, usize)> {
    networks.sort_by_key(|(_, routes)| *routes);
    let mut left = networks.len();
    for (_, routes) in &mut networks {
        *routes = (*routes).min(room.div_ceil(left));
        room -= *routes;
        left -= 1;
    }
    networks
}

/// Whether a route is on the way to the destination that is asked for, or to a part of it.
fn concerns(question: &Question, prefix: &IpNet) -> bool {
    question.to.is_none_or(|to| prefix.contains(&to) || to.contains(prefix))
}

/// A learned route, for those who ask.
pub fn told(route: Learned) -> RouteReport {
    let hop = |(gateway, link)| NextHop { gateway, link };
    RouteReport {
        destination: route.destination,
        next_hops: route.next_hops.into_iter().map(hop).collect(),
        refused: route.refused.as_ref().map(ToString::to_string),
        from: std::collections::BTreeSet::new(),
        kept: route.kept,
    }
}

#[cfg(test)]
mod tests {
    use underlay_plan::node::advertised::Originated;

    use super::*;

    #[test]
    fn networks_with_few_routes_show_them_all() {
        let networks = |all: &[(&str, usize)]| {
            all.iter().map(|(name, routes)| ((*name).to_owned(), *routes)).collect::<Vec<_>>()
        };
        let room =
            |all: &[(&str, usize)], room| shares(networks(all), room).into_iter().collect::<BTreeMap<_, _>>();
        assert_eq!(room(&[], 200), BTreeMap::new());
        assert_eq!(room(&[("a", 100_000)], 200), networks(&[("a", 200)]).into_iter().collect());
        assert_eq!(
            room(&[("a", 100_000), ("b", 2), ("c", 0), ("d", 300)], 200),
            networks(&[("a", 99), ("b", 2), ("c", 0), ("d", 99)]).into_iter().collect()
        );
    }

    #[test]
    fn what_is_told_is_found_by_network_and_destination() {
        let originated = |prefix: &str, network: Option<&str>| Originated {
            prefix: prefix.parse().unwrap(),
            vrf: String::new(),
            network: network.map(str::to_owned),
            by: ["all".to_owned()].into(),
        };
        let all = ["10.1.0.0/24", "10.2.0.0/24"].into_iter().zip([Some("default"), Some("blue")]);
        let mut outline = Outline::default();
        outline.originated.extend(all.map(|(prefix, network)| originated(prefix, network)));
        outline.originated.push(originated("192.0.2.9/32", None));
        let found = |network: Option<&str>, to: Option<&str>| {
            let to = to.map(|to| to.parse().unwrap());
            let question = Question { network: network.map(str::to_owned), to, ..Question::default() };
            advertised(&outline, &question).iter().map(|one| one.prefix.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found(None, None), ["10.1.0.0/24", "10.2.0.0/24", "192.0.2.9/32"]);
        assert_eq!(found(Some("blue"), None), ["10.2.0.0/24"]);
        assert_eq!(found(None, Some("10.1.0.7/32")), ["10.1.0.0/24"]);
        assert_eq!(found(None, Some("10.0.0.0/8")), ["10.1.0.0/24", "10.2.0.0/24"]);
    }
}
