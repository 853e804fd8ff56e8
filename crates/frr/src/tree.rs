//! FRR's configuration text as a tree: lines, and lines in the context that another line opens.
//!
//! Read from what FRR prints and from what users write. The first is indented, the second may not be: contexts are known
//! by the words that open them, and also by indentation.

use std::collections::BTreeMap;
use std::fmt;

/// Lines of one context, in the order in which they came. A line is there at most once.
#[derive(Clone, Default)]
pub struct Block {
    entries: Vec<Entry>,
    places: BTreeMap<String, usize>,
}

/// A line, and what is in the context that it opens.
#[derive(Clone)]
pub struct Entry {
    /// The line, with single spaces between words.
    pub line: String,
    /// Lines in its context.
    pub block: Block,
}

impl Block {
    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The context that a line opens, if the line is there.
    pub fn get(&self, line: &str) -> Option<&Block> {
        self.places.get(line).and_then(|place| self.entries.get(*place)).map(|entry| &entry.block)
    }

    /// Whether a line is there.
    pub fn contains(&self, line: &str) -> bool {
        self.places.contains_key(line)
    }

    /// Adds a line unless it is there.
    pub fn line(&mut self, line: impl Into<String>) {
        self.open(line);
    }

    /// The context of a line, which is added unless it is there.
    pub fn open(&mut self, line: impl Into<String>) -> &mut Block {
        let line = line.into();
        let place = if let Some(place) = self.places.get(&line) {
            *place
        } else {
            self.places.insert(line.clone(), self.entries.len());
            self.entries.push(Entry { line, block: Block::default() });
            self.entries.len() - 1
        };
        &mut self.entries[place].block
    }

    /// Adds all that another one has.
    pub fn unite(&mut self, other: &Block) {
        for entry in other.iter() {
            self.open(entry.line.clone()).unite(&entry.block);
        }
    }

    /// Keeps only lines that pass, with what is in their contexts.
    pub fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        self.entries.retain(|entry| keep(entry));
        self.places = self.entries.iter().enumerate().map(|(place, one)| (one.line.clone(), place)).collect();
    }

    /// The context at a path of lines.
    pub fn at(&self, path: &[String]) -> Option<&Block> {
        path.iter().try_fold(self, |block, line| block.get(line))
    }

    /// All lines that open nothing, each with the lines that lead to it.
    pub fn leaves(&self) -> Vec<Vec<String>> {
        let mut leaves = Vec::new();
        for entry in &self.entries {
            if entry.block.is_empty() {
                leaves.push(vec![entry.line.clone()]);
            }
            for mut path in entry.block.leaves() {
                path.insert(0, entry.line.clone());
                leaves.push(path);
            }
        }
        leaves
    }

    /// Adds a line and the lines that lead to it.
    pub fn add_path(&mut self, path: &[String]) {
        path.iter().fold(self, |block, line| block.open(line.clone()));
    }

    /// Whether a line is there, and the lines that lead to it.
    pub fn contains_path(&self, path: &[String]) -> bool {
        self.at(path).is_some()
    }

    /// The text as FRR prints it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, None, 0);
        text
    }

    fn write(&self, text: &mut String, context: Option<&str>, depth: usize) {
        for entry in &self.entries {
            text.push_str(&" ".repeat(depth));
            text.push_str(&entry.line);
            text.push('\n');
            entry.block.write(text, Some(&entry.line), depth + 1);
            if opens(context, &entry.line) {
                text.push_str(&" ".repeat(depth));
                text.push_str(exit(&entry.line));
                text.push('\n');
            }
        }
    }
}

/// How FRR closes the context of a line.
fn exit(line: &str) -> &'static str {
    match first(line) {
        "vrf" => "exit-vrf",
        "address-family" => "exit-address-family",
        "vni" => "exit-vni",
        _ => "exit",
    }
}

/// Order is not part of a configuration's meaning.
impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.iter().all(|entry| other.get(&entry.line).is_some_and(|block| *block == entry.block))
    }
}

impl Eq for Block {}

/// Without passwords.
impl fmt::Debug for Block {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.text().lines() {
            writeln!(formatter, "{}", redact(line))?;
        }
        Ok(())
    }
}

/// A line without the password in it, fit for logs.
pub fn redact(line: &str) -> String {
    let mut words = line.split(' ');
    let mut shown: Vec<&str> = Vec::new();
    while let Some(word) = words.next() {
        shown.push(word);
        if hides(word) && words.next().is_some() {
            shown.push("***");
            break;
        }
    }
    shown.join(" ")
}

/// Whether something follows that nobody may see. Users mistype the word too, and FRR repeats what it does not know.
fn hides(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let secret = ["pas", "pwd", "secret", "key-string", "message-digest", "authentication"];
    secret.iter().any(|one| word.starts_with(one)) && !word.starts_with("passive")
}

/// Words that open a context at the top.
const OPENERS: [&str; 9] =
    ["router", "route-map", "vrf", "interface", "line", "key", "nexthop-group", "pbr-map", "rpki"];
/// Words that are only known at the top, whatever context is open.
const TOP: [&str; 12] = [
    "access-list",
    "agentx",
    "debug",
    "domainname",
    "enable",
    "frr",
    "hostname",
    "log",
    "password",
    "service",
    "username",
    "zebra",
];
/// Second words of lines that begin with `ip` or `ipv6` and never belong to a link or VRF.
const IP_LISTS: [&str; 4] = ["access-list", "as-path", "forwarding", "prefix-list"];
/// Second words of lines at the top that begin with `bgp`.
const BGP_LISTS: [&str; 6] =
    ["as-path", "community", "community-list", "extcommunity-list", "large-community-list", "route-map"];

/// Reads a configuration. Never fails: what makes no sense is a line like any other, for FRR to refuse.
pub fn parse(text: &str) -> Block {
    let mut root = Block::default();
    let mut path: Vec<String> = Vec::new();
    let mut last: Option<(String, usize)> = None;
    for raw in text.lines() {
        let indent = raw.len() - raw.trim_start().len();
        let line = raw.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.split(' ').next().unwrap_or_default() {
            "" => continue,
            word if word.starts_with(['!', '#']) => continue,
            "end" => path.clear(),
            "exit" | "quit" | "exit-address-family" | "exit-vrf" | "exit-vni" => {
                path.pop();
            }
            _ => {
                // More indented than the line before: that one opened a context, even if we do not know its word.
                let before = last.take().filter(|(_, least)| path.is_empty() && indent > *least);
                path.extend(before.map(|(line, _)| line));
                leave(&mut path, &line, indent);
                let opens = opens(path.last().map(String::as_str), &line);
                let block = path.iter().fold(&mut root, |block, line| block.open(line.clone()));
                block.line(line.clone());
                if opens {
                    path.push(line);
                } else {
                    last = Some((line, indent));
                }
                continue;
            }
        }
        last = None;
    }
    root
}

/// Leaves the contexts that a line cannot belong to.
fn leave(path: &mut Vec<String>, line: &str, indent: usize) {
    let unknown = path.first().is_some_and(|context| !known(context));
    if (unknown && indent == 0) || (!unknown && at_top(path.last().map(String::as_str), line)) {
        path.clear();
    }
    // Siblings close each other: an address family is never in an address family, a profile never in a profile.
    if path.last().is_some_and(|context| closes(context, line)) {
        path.pop();
    }
}

fn first(line: &str) -> &str {
    positive(line).split(' ').next().unwrap_or_default()
}

/// A line without its `no`.
fn positive(line: &str) -> &str {
    line.strip_prefix("no ").unwrap_or(line)
}

/// Whether we know what a line at the top opens.
fn known(line: &str) -> bool {
    line == "bfd" || OPENERS.contains(&first(line))
}

/// Whether a line can only be at the top.
fn at_top(context: Option<&str>, line: &str) -> bool {
    let word = first(line);
    let second = positive(line).split(' ').nth(1).unwrap_or_default();
    let of_link = context.is_some_and(|context| ["vrf", "interface"].contains(&first(context)));
    match word {
        "router" | "route-map" | "vrf" | "interface" | "nexthop-group" | "pbr-map" | "rpki" => true,
        "bfd" => positive(line) == "bfd",
        "ip" | "ipv6" => !of_link || IP_LISTS.contains(&second),
        "bgp" => BGP_LISTS.contains(&second),
        word => TOP.contains(&word),
    }
}

/// Whether a line ends a context inside a context.
fn closes(context: &str, line: &str) -> bool {
    let same = |words: &[&str]| words.contains(&first(context)) && words.contains(&first(line));
    same(&["address-family"]) || same(&["vni"]) || same(&["profile", "peer"])
}

/// Whether a line opens a context.
pub(crate) fn opens(context: Option<&str>, line: &str) -> bool {
    if line.starts_with("no ") {
        return false;
    }
    match context {
        None => known(line),
        Some("bfd") => ["profile", "peer"].contains(&first(line)),
        Some(context) if context.starts_with("router bgp ") => {
            ["address-family", "segment-routing"].contains(&first(line))
        }
        Some("address-family l2vpn evpn") => first(line) == "vni",
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests;
