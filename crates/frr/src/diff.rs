//! The difference between the configuration that should be and the one that FRR runs with, as commands. Pure.
//!
//! Order matters: what others refer to comes before them and goes after them, so that a filter never lets through what
//! it should not, and no session is touched that a change is not about. Ours are all BGP routers, BFD profiles, lists
//! and route maps with our prefix, and lines that are lent: those that a user's text brought.

mod refresh;
mod router;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::tree::{Block, Entry, redact};
use words::Kind;
pub(crate) use words::{key, peer, vrf};

/// A daemon of FRR that keeps configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Daemon {
    /// BGP, with all lists and route maps that matter to it.
    Bgpd,
    /// BFD.
    Bfdd,
    /// The front of those that FRR has moved there.
    Mgmtd,
    /// Static routes.
    Staticd,
    /// The kernel's routes.
    Zebra,
}

impl Daemon {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Mgmtd, Self::Zebra, Self::Staticd, Self::Bgpd, Self::Bfdd];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bgpd => "bgpd",
            Self::Bfdd => "bfdd",
            Self::Mgmtd => "mgmtd",
            Self::Staticd => "staticd",
            Self::Zebra => "zebra",
        }
    }
}

/// What each daemon runs with.
pub type Running = BTreeMap<Daemon, Block>;

/// One line of configuration in its context.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    /// Who is to take it.
    pub target: Target,
    /// Lines that open the context.
    pub context: Vec<String>,
    /// The line.
    pub line: String,
    /// Whether its failure matters.
    pub optional: bool,
}

/// Who is to take a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// This daemon.
    One(Daemon),
    /// Every daemon that knows the line, at least one.
    Any,
}

impl Command {
    fn new(target: Target, context: &[String], line: impl Into<String>) -> Self {
        Self { target, context: context.to_vec(), line: line.into(), optional: false }
    }
}

/// Without passwords.
impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.context {
            write!(formatter, "{line} / ")?;
        }
        formatter.write_str(&redact(&self.line))
    }
}

const BGPD: Target = Target::One(Daemon::Bgpd);
const BFDD: Target = Target::One(Daemon::Bfdd);

/// Compares. `lent` are lines that are ours although nothing about them says so.
pub fn difference(want: &Block, running: &Running, lent: &Block) -> Vec<Command> {
    let empty = Block::default();
    let bgpd = running.get(&Daemon::Bgpd).unwrap_or(&empty);
    let bfdd = running.get(&Daemon::Bfdd).unwrap_or(&empty);
    let mut commands = Vec::new();
    add_others(want, running, &mut commands);
    if let Some(bfd) = want.get("bfd") {
        let have = bfdd.get("bfd").unwrap_or(&empty);
        amend_profiles(bfd, have, &mut commands);
    }
    for kind in [Kind::List, Kind::RouteMap] {
        add_filters(kind, want, bgpd, &mut commands);
    }
    router::amend_all(want, bgpd, &mut commands);
    remove_filters(want, running, lent, &mut commands);
    remove_lent(want, running, lent, &mut commands);
    remove_profiles(want, bfdd, &mut commands);
    refresh::add(want, bgpd, &mut commands);
    commands
}

/// Lines of users that are about neither BGP nor BFD. Whoever knows them has them.
fn add_others(want: &Block, running: &Running, commands: &mut Vec<Command>) {
    for entry in want.iter().filter(|entry| Kind::of(&entry.line) == Kind::Other) {
        let mut wanted = Block::default();
        wanted.open(entry.line.clone()).unite(&entry.block);
        for path in wanted.leaves() {
            if let Some((line, context)) = path.split_last()
                && !running.values().any(|block| block.contains_path(&path))
            {
                commands.push(Command::new(Target::Any, context, line.clone()));
            }
        }
    }
}

/// Entries of lists and route maps that are missing, or say something else.
fn add_filters(kind: Kind, want: &Block, have: &Block, commands: &mut Vec<Command>) {
    let empty = Block::default();
    for entry in want.iter().filter(|entry| Kind::of(&entry.line) == kind) {
        let there = have.get(&entry.line);
        let context = [entry.line.clone()];
        if there.is_none() && (kind == Kind::List || entry.block.is_empty()) {
            commands.push(Command::new(BGPD, &[], entry.line.clone()));
        }
        amend_lines(BGPD, &context, &entry.block, there.unwrap_or(&empty), commands);
    }
}

/// Makes the lines of one context what they should be: first what must go, from the last to the first, then what must
/// come. What is only said differently is said anew.
fn amend_lines(target: Target, context: &[String], want: &Block, have: &Block, commands: &mut Vec<Command>) {
    remove_lines(target, context, want, have, |_| true, commands);
    for entry in want.iter().filter(|entry| !have.contains(&entry.line)) {
        commands.push(Command::new(target, context, entry.line.clone()));
    }
}

/// Takes away the lines of a context that should not be there.
fn remove_lines(
    target: Target,
    context: &[String],
    want: &Block,
    have: &Block,
    ours: impl Fn(&Entry) -> bool,
    commands: &mut Vec<Command>,
) {
    let new = want.iter().filter(|entry| !have.contains(&entry.line));
    let replaced: BTreeSet<String> = new.map(|entry| key(&entry.line)).collect();
    for entry in have.iter().rev().filter(|entry| !want.contains(&entry.line) && ours(entry)) {
        if !replaced.contains(&key(&entry.line)) {
            commands.push(Command::new(target, context, words::negated(&entry.line)));
        }
    }
}

/// Profiles that are missing, or say something else.
fn amend_profiles(want: &Block, have: &Block, commands: &mut Vec<Command>) {
    let empty = Block::default();
    let bfd = "bfd".to_owned();
    for entry in want.iter() {
        let there = have.get(&entry.line);
        if there.is_none() && entry.block.is_empty() {
            commands.push(Command::new(BFDD, std::slice::from_ref(&bfd), entry.line.clone()));
        }
        let context = [bfd.clone(), entry.line.clone()];
        amend_lines(BFDD, &context, &entry.block, there.unwrap_or(&empty), commands);
    }
}

/// Profiles that nobody asked for; peers that somebody configured by hand stay.
fn remove_profiles(want: &Block, have: &Block, commands: &mut Vec<Command>) {
    let (Some(have), empty) = (have.get("bfd"), Block::default()) else { return };
    let want = want.get("bfd").unwrap_or(&empty);
    let surplus = |entry: &&Entry| entry.line.starts_with("profile ") && !want.contains(&entry.line);
    let gone = have.iter().filter(surplus).count();
    for entry in have.iter().filter(surplus) {
        commands.push(Command::new(BFDD, &["bfd".to_owned()], words::negated(&entry.line)));
    }
    if gone > 0 && have.iter().count() == gone && want.is_empty() {
        commands.push(Command::new(BFDD, &[], "no bfd"));
    }
}

/// Filters that nobody asked for. A daemon that read the whole file at its start has lists it never uses; they go too.
fn remove_filters(want: &Block, running: &Running, lent: &Block, commands: &mut Vec<Command>) {
    for kind in [Kind::RouteMap, Kind::List] {
        for (daemon, have) in running {
            let of_kind = |block: &Block| {
                let mut block = block.clone();
                block.retain(|entry| Kind::of(&entry.line) == kind);
                block
            };
            let ours = |entry: &Entry| words::is_ours(&entry.line) || is_lent(lent, entry);
            remove_lines(Target::One(*daemon), &[], &of_kind(want), &of_kind(have), ours, commands);
        }
    }
}

/// Whether a text of a user brought a line and all that is in its context.
fn is_lent(lent: &Block, entry: &Entry) -> bool {
    lent.get(&entry.line).is_some_and(|block| entry.block.iter().all(|inner| block.contains(&inner.line)))
}

/// Lines that a text of a user brought and that are no longer in it.
fn remove_lent(want: &Block, running: &Running, lent: &Block, commands: &mut Vec<Command>) {
    for (daemon, have) in running {
        for path in lent.leaves().into_iter().rev() {
            let Some((line, context)) = path.split_last() else { continue };
            let other = path.first().is_some_and(|first| Kind::of(first) == Kind::Other);
            if other && have.contains_path(&path) && !want.contains_path(&path) {
                commands.push(Command::new(Target::One(*daemon), context, words::negated(line)));
            }
        }
    }
}

/// Lines of routers, filters and profiles of ours that run and should not.
pub fn surplus(want: &Block, running: &Running) -> BTreeSet<Vec<String>> {
    let ours = |daemon: Daemon, path: &[String]| match (daemon, path) {
        (Daemon::Bgpd, [first, ..]) => Kind::of(first) == Kind::Router || words::is_ours(first),
        (Daemon::Bfdd, [first, second, ..]) => first == "bfd" && second.starts_with("profile "),
        _ => false,
    };
    let leaves = running
        .iter()
        .flat_map(|(daemon, block)| block.leaves().into_iter().filter(move |path| ours(*daemon, path)));
    leaves.filter(|path| !want.contains_path(path)).collect()
}

#[cfg(test)]
mod tests;
