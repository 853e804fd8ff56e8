//! What a user's text brought into FRR, kept in a file beside FRR's own.
//!
//! Nothing in FRR says where a line came from, and FRR prints many lines otherwise than a user wrote them, or not at all.
//! So it is written down: which lines are there because of a text, and what FRR made of those it changed. Without the
//! file nothing breaks: lines of a text that is gone stay, and lines that FRR changed are said once more.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::file;
use crate::tree::Block;

/// A line, and the lines that lead to it.
type Paths = BTreeSet<Vec<String>>;

/// What is known of users' texts.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Ledger {
    /// Lines that texts brought.
    brought: Paths,
    /// Lines of texts that FRR took and does not print.
    changed: Paths,
    /// What FRR prints instead.
    became: Paths,
}

impl Ledger {
    /// Reads it. A file that makes no sense is as good as none.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = file::read(path)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Writes it; an empty one is no file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if *self == Self::default() {
            return file::remove(path);
        }
        // Texts may hold passwords.
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        file::replace(path, &text, 0o600)
    }

    /// Whether FRR has taken all lines of a text before.
    pub fn knows(&self, text: &Block) -> bool {
        text.leaves().iter().all(|path| self.brought.contains(path))
    }

    /// All lines that are there because of texts.
    pub fn lent(&self) -> Block {
        block(self.brought.union(&self.became))
    }

    /// A text as FRR will print it, as far as that is known.
    pub fn printed(&self, raw: &Block) -> Block {
        let lines = raw.leaves();
        if !self.changed.iter().all(|path| raw.contains_path(path)) {
            return raw.clone();
        }
        // In the order of the text: lines build on those before them.
        block(lines.iter().filter(|path| !self.changed.contains(*path)).chain(&self.became))
    }

    /// What FRR prints instead of lines of a text, as far as that is known.
    pub fn became(&self, raw: &Block) -> Paths {
        let lines: Paths = raw.leaves().into_iter().collect();
        if self.changed.is_subset(&lines) { self.became.clone() } else { Paths::new() }
    }

    /// Before a text is applied: its lines may be there from now on.
    pub fn expecting(&self, raw: &Block) -> Self {
        let mut this = self.clone();
        this.brought.extend(raw.leaves());
        this
    }

    /// After a text was applied: what FRR does not print of it, and what FRR prints instead.
    pub fn settled(raw: &Block, changed: Paths, became: Paths) -> Self {
        Self { brought: raw.leaves().into_iter().collect(), changed, became }
    }
}

fn block<'a>(paths: impl Iterator<Item = &'a Vec<String>>) -> Block {
    let mut block = Block::default();
    paths.for_each(|path| block.add_path(path));
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse;

    #[test]
    fn what_frr_made_of_a_text_holds_as_long_as_the_lines_do() {
        let raw = parse("router bgp 1\n neighbor 10.0.0.2 ebgp-multihop 255\n bgp cluster-id 1.1.1.1\n");
        let path = |line: &str| vec!["router bgp 1".to_owned(), line.to_owned()];
        let changed = Paths::from([path("neighbor 10.0.0.2 ebgp-multihop 255")]);
        let became = Paths::from([path("neighbor 10.0.0.2 ebgp-multihop")]);
        let ledger = Ledger::settled(&raw, changed, became);
        let printed = parse("router bgp 1\n neighbor 10.0.0.2 ebgp-multihop\n bgp cluster-id 1.1.1.1\n");
        assert_eq!(ledger.printed(&raw), printed);
        let other = parse("router bgp 1\n bgp cluster-id 1.1.1.1\n");
        assert_eq!(ledger.printed(&other), other);
        let ordered =
            parse("router bgp 1\n neighbor x peer-group\n bgp listen range 10.0.0.0/8 peer-group x\n");
        assert_eq!(Ledger::default().printed(&ordered).leaves(), ordered.leaves());
    }
}
