//! What changed between two states of a replica.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::Record;
use crate::schema::Name;
use crate::uuid::Uuid;

/// What happened to a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The row before; none when it is new.
    pub before: Option<Record>,
    /// The row after; none when it is gone.
    pub after: Option<Record>,
}

impl Change {
    fn is_nothing(&self) -> bool {
        self.before == self.after
    }

    /// How many values the row has, before and after.
    fn values(&self) -> usize {
        let of = |record: &Option<Record>| {
            record.as_ref().map_or(0, |record| record.iter().map(|(_, datum)| datum.len()).sum::<usize>())
        };
        of(&self.before) + of(&self.after)
    }
}

/// The rows that changed, each with the sum of what happened to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChangeSet {
    tables: BTreeMap<Name, BTreeMap<Uuid, Change>>,
    len: usize,
}

impl ChangeSet {
    /// How many rows changed.
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many values these rows have, before and after.
    pub(crate) fn values(&self) -> usize {
        self.tables.values().flat_map(BTreeMap::values).map(Change::values).sum()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a row of this table changed.
    pub fn touches(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// The changes in a table, in order of the rows' UUIDs.
    pub fn table(&self, table: &str) -> impl Iterator<Item = (&Uuid, &Change)> {
        self.tables.get(table).into_iter().flatten()
    }

    /// All changes: table, row, what happened.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Uuid, &Change)> {
        self.tables
            .iter()
            .flat_map(|(name, rows)| rows.iter().map(move |(uuid, change)| (name, uuid, change)))
    }

    /// Adds what happened to a row later.
    pub(super) fn add(&mut self, table: &Name, uuid: Uuid, later: Change) {
        let rows = self.tables.entry(table.clone()).or_default();
        match rows.entry(uuid) {
            Entry::Vacant(vacant) if !later.is_nothing() => {
                vacant.insert(later);
                self.len += 1;
            }
            Entry::Vacant(_) => {}
            Entry::Occupied(mut known) => {
                known.get_mut().after = later.after;
                if known.get().is_nothing() {
                    known.remove();
                    self.len -= 1;
                }
            }
        }
        if rows.is_empty() {
            self.tables.remove(table);
        }
    }

    /// Adds what changed later.
    pub fn merge(&mut self, later: Self) {
        for (table, rows) in later.tables {
            for (uuid, change) in rows {
                self.add(&table, uuid, change);
            }
        }
    }
}
