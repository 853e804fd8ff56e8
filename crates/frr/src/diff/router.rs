//! BGP routers.
//!
//! A new neighbour is shut down until all is said about it: every line about a neighbour that is already trying to
//! connect makes it begin again, and wait longer each time. One that goes is shut down first: so it is told that we end
//! the session for good. Of a neighbour that is only deleted FRR takes no leave, and one that knows of graceful restart
//! keeps our routes for minutes.

use std::collections::BTreeSet;

use super::words::{self, Kind};
use super::{BGPD, Command, remove_lines};
use crate::tree::Block;

/// Makes all routers what they should be.
pub(super) fn amend_all(want: &Block, have: &Block, commands: &mut Vec<Command>) {
    let mut have = have.clone();
    have.retain(|entry| Kind::of(&entry.line) == Kind::Router);
    for line in routers_that_go(want, &have) {
        if let Some(block) = have.get(&line) {
            for peer in peers(block) {
                take_leave(&line, block, peer, commands);
            }
        }
        commands.push(Command::new(BGPD, &[], words::negated(&line)));
        have.retain(|entry| entry.line != line);
    }
    let empty = Block::default();
    for entry in want.iter().filter(|entry| Kind::of(&entry.line) == Kind::Router) {
        let there = have.get(&entry.line);
        if there.is_none() && entry.block.is_empty() {
            commands.push(Command::new(BGPD, &[], entry.line.clone()));
        }
        amend(&entry.line, &entry.block, there.unwrap_or(&empty), commands);
    }
}

/// Routers that should not be, or not with this number. FRR lets the router of the default VRF go only after all
/// others, so it takes them with it and they come back.
fn routers_that_go(want: &Block, have: &Block) -> Vec<String> {
    let is_default = |line: &str| words::vrf(line).is_none();
    let default_goes = have.iter().any(|entry| is_default(&entry.line) && !want.contains(&entry.line));
    let mut gone: Vec<String> = have
        .iter()
        .map(|entry| entry.line.clone())
        .filter(|line| default_goes || !want.contains(line))
        .collect();
    gone.sort_by_key(|line| is_default(line));
    gone
}

fn amend(router: &str, want: &Block, have: &Block, commands: &mut Vec<Command>) {
    let context = [router.to_owned()];
    let (wanted, known) = (peers(want), peers(have));
    let gone: BTreeSet<&str> = known.difference(&wanted).copied().collect();
    let stays = |line: &str| words::peer(line).is_none_or(|peer| !gone.contains(peer));
    for peer in &gone {
        take_leave(router, have, peer, commands);
        commands.push(Command::new(BGPD, &context, goodbye(have, peer)));
    }
    let flat = |block: &Block| {
        let mut block = block.clone();
        block.retain(|entry| !is_family(&entry.line) && stays(&entry.line));
        block
    };
    let (flat_want, flat_have) = (flat(want), flat(have));
    remove_lines(BGPD, &context, &flat_want, &flat_have, |_| true, commands);
    let newcomers: Vec<&str> = wanted.difference(&known).copied().filter(|peer| starts(want, peer)).collect();
    for entry in flat_want.iter().filter(|entry| !flat_have.contains(&entry.line)) {
        commands.push(Command::new(BGPD, &context, entry.line.clone()));
        if let Some(peer) = newcomers.iter().find(|peer| defines(&entry.line, peer)) {
            commands.push(Command::new(BGPD, &context, format!("neighbor {peer} shutdown")));
        }
    }
    amend_families(router, want, have, stays, commands);
    for peer in newcomers {
        commands.push(Command::new(BGPD, &context, format!("no neighbor {peer} shutdown")));
    }
}

/// Address families come and go with their lines.
fn amend_families(
    router: &str,
    want: &Block,
    have: &Block,
    stays: impl Fn(&str) -> bool,
    commands: &mut Vec<Command>,
) {
    let names: BTreeSet<&str> = want
        .iter()
        .chain(have.iter())
        .map(|entry| entry.line.as_str())
        .filter(|line| is_family(line))
        .collect();
    for name in names {
        let context = [router.to_owned(), name.to_owned()];
        let wanted = want.get(name).cloned().unwrap_or_default();
        let mut there = have.get(name).cloned().unwrap_or_default();
        there.retain(|entry| stays(&entry.line));
        remove_lines(BGPD, &context, &wanted, &there, |_| true, commands);
        for path in wanted.leaves().into_iter().filter(|path| !there.contains_path(path)) {
            if let Some((line, inner)) = path.split_last() {
                let context: Vec<String> = context.iter().chain(inner).cloned().collect();
                commands.push(Command::new(BGPD, &context, line.clone()));
            }
        }
    }
}

fn is_family(line: &str) -> bool {
    line.starts_with("address-family ")
}

fn peers(block: &Block) -> BTreeSet<&str> {
    block.iter().filter_map(|entry| words::peer(&entry.line)).collect()
}

/// Whether a line makes FRR know a neighbour.
fn defines(line: &str, peer: &str) -> bool {
    line.strip_prefix("neighbor ").and_then(|rest| rest.strip_prefix(peer)).is_some_and(|rest| {
        rest.starts_with(" remote-as ") || rest.starts_with(" interface ") || rest.starts_with(" peer-group")
    })
}

/// Whether FRR starts to talk with a neighbour as soon as it knows it.
fn starts(block: &Block, peer: &str) -> bool {
    let group = format!("neighbor {peer} peer-group");
    let shut = format!("neighbor {peer} shutdown");
    !block.contains(&group) && !block.contains(&shut) && block.iter().any(|entry| defines(&entry.line, peer))
}

/// Ends the session with a neighbour that is about to go.
fn take_leave(router: &str, have: &Block, peer: &str, commands: &mut Vec<Command>) {
    if starts(have, peer) {
        commands.push(Command::new(BGPD, &[router.to_owned()], format!("neighbor {peer} shutdown")));
    }
}

/// The line after which FRR knows nothing of a neighbour.
fn goodbye(have: &Block, peer: &str) -> String {
    let named = have.iter().find(|entry| {
        let rest = entry.line.strip_prefix("neighbor ").and_then(|rest| rest.strip_prefix(peer));
        rest.is_some_and(|rest| rest.starts_with(" interface ") || rest == " peer-group")
    });
    named.map_or_else(|| format!("no neighbor {peer}"), |entry| words::negated(&entry.line))
}
