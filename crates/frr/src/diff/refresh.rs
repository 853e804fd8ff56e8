//! Routes that passed a filter before it changed, or did not. FRR looks at them again by itself, but only after some
//! seconds; asked, it does so at once, and no session is reset.

use std::collections::BTreeSet;

use super::words::{self, Kind};
use super::{BGPD, Command};
use crate::tree::Block;

/// Asks FRR to look again at what passes the filters that these commands change.
pub(super) fn add(want: &Block, have: &Block, commands: &mut Vec<Command>) {
    let networks = new_networks(commands);
    let touched: BTreeSet<&str> = commands
        .iter()
        .filter(|command| !comes_with_its_network(command, &networks))
        .filter_map(|command| words::filter_name(command.context.first().unwrap_or(&command.line)))
        .collect();
    if touched.is_empty() {
        return;
    }
    let mut refreshes = Vec::new();
    for router in want.iter().filter(|entry| Kind::of(&entry.line) == Kind::Router) {
        let vrf = words::vrf(&router.line).unwrap_or("default");
        for family in router.block.iter().filter(|entry| entry.line.starts_with("address-family ")) {
            let path = [router.line.clone(), family.line.clone()];
            let known = have.at(&path);
            let kept =
                family.block.iter().filter(|entry| known.is_some_and(|known| known.contains(&entry.line)));
            for (peer, map, direction) in kept.filter_map(|entry| use_of_map(&entry.line)) {
                if uses(want, map, &touched) || uses(have, map, &touched) {
                    let family = family.line.trim_start_matches("address-family ");
                    refreshes.push(format!("do clear bgp vrf {vrf} {family} {peer} soft {direction}"));
                }
            }
        }
    }
    let optional = |line| Command { optional: true, ..Command::new(BGPD, &[], line) };
    commands.extend(refreshes.into_iter().map(optional));
}

/// Networks that routers originate from now on, by VRF.
fn new_networks(commands: &[Command]) -> BTreeSet<(&str, &str)> {
    fn network(command: &Command) -> Option<(&str, &str)> {
        let prefix = command.line.strip_prefix("network ")?;
        let router = command.context.first()?;
        Some((words::vrf(router).unwrap_or("default"), prefix))
    }
    commands.iter().filter_map(network).collect()
}

/// Whether a command puts a prefix on a list of what goes out, and the router originates that prefix only now. Filters
/// come first: the new route passes them as they are then, and nothing that was there before is concerned. Looking at all
/// routes again would tell all of them again, and late.
fn comes_with_its_network(command: &Command, networks: &BTreeSet<(&str, &str)>) -> bool {
    let [_, "prefix-list", name, "seq", _, "permit", prefix] =
        command.line.split(' ').collect::<Vec<_>>()[..]
    else {
        return false;
    };
    let mut steps = name.split('/').skip(1);
    let (vrf, direction) = (steps.next().unwrap_or_default(), steps.nth(1));
    direction == Some("out") && words::is_ours(&command.line) && networks.contains(&(vrf, prefix))
}

/// Peer, route map and direction.
fn use_of_map(line: &str) -> Option<(&str, &str, &str)> {
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["neighbor", peer, "route-map", map, direction] => Some((peer, map, direction)),
        _ => None,
    }
}

/// Whether a route map, or a list that it looks into, was touched.
fn uses(block: &Block, map: &str, touched: &BTreeSet<&str>) -> bool {
    let entries = block.iter().filter(|entry| {
        Kind::of(&entry.line) == Kind::RouteMap && words::filter_name(&entry.line) == Some(map)
    });
    touched.contains(map)
        || entries.flat_map(|entry| entry.block.iter()).any(|entry| {
            entry.line.starts_with("match ") && entry.line.split(' ').any(|word| touched.contains(word))
        })
}
