//! Our copy of the selected tables.
//!
//! In: what the server told, as [`TableUpdates`]. Out: records by table and UUID, lookups by index, and what changed.
//! A copy of a replica shares all that did not change since, so that every state can be handed out as it was: readers
//! never wait and never see half a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::row::{Row, RowError};
use crate::schema::Name;
use crate::selection::{Layout, Layouts};
use crate::uuid::Uuid;

mod change;
mod record;
mod table;
mod update;

pub use change::{Change, ChangeSet};
pub use record::Record;
pub use table::Table;
pub use update::{Format, RowUpdate, TableUpdates, Told};

/// The selected tables at one moment.
#[derive(Debug, Clone, Default)]
pub struct Replica {
    tables: BTreeMap<Name, Arc<Table>>,
}

/// The server told of a change that cannot follow from what it told before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server told to {change} row {uuid} of table {table}, which {}", if *.known { "is already there" } else { "is not there" })]
pub struct Inconsistent {
    /// In which table.
    pub table: Name,
    /// Which row.
    pub uuid: Uuid,
    /// What was to be done with it.
    pub change: &'static str,
    /// Whether we have the row.
    pub known: bool,
}

impl Replica {
    /// Tables without rows.
    pub fn new(layouts: &Layouts) -> Self {
        let empty = |layout: &Arc<Layout>| Arc::new(Table::new(Arc::clone(layout)));
        Self { tables: layouts.iter().map(|(name, layout)| (name.clone(), empty(layout))).collect() }
    }

    /// A table; none when it was not selected. One that the server does not have is empty.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name).map(|table| &**table)
    }

    /// All tables, in order of their names.
    pub fn tables(&self) -> impl Iterator<Item = (&Name, &Table)> {
        self.tables.iter().map(|(name, table)| (name, &**table))
    }

    /// How many rows there are in all tables.
    pub fn row_count(&self) -> usize {
        self.tables.values().map(|table| table.len()).sum()
    }

    /// The rows of a typed table, in order of their UUIDs.
    pub fn rows<R: Row>(&self) -> impl Iterator<Item = Result<(Uuid, R), RowError>> {
        let table = self.table(R::TABLE);
        table.into_iter().flat_map(Table::iter).map(|record| Ok((record.uuid(), R::from_record(record)?)))
    }

    /// Whether the records here have these layouts.
    pub fn has_layouts(&self, layouts: &Layouts) -> bool {
        self.tables.len() == layouts.len()
            && self
                .tables
                .iter()
                .all(|(name, table)| layouts.get(name).is_some_and(|other| **other == **table.layout()))
    }

    /// Brings this replica up to date with a change that the server told. After an error it is neither old nor new
    /// and must not be used.
    pub fn apply(&mut self, updates: TableUpdates) -> Result<ChangeSet, Inconsistent> {
        let mut changes = ChangeSet::default();
        for (name, rows) in updates.tables {
            let Some(table) = self.tables.get_mut(&name) else { continue };
            let table = Arc::make_mut(table);
            for (uuid, update) in rows {
                let after = table.updated(uuid, update, table.neighbour(uuid))?;
                let before = match &after {
                    Some(record) => table.put(record),
                    None => table.remove(uuid),
                };
                changes.add(&name, uuid, Change { before, after });
            }
        }
        Ok(changes)
    }

    /// Replaces the content by a full dump. Records that did not change stay the same ones, so that only the others
    /// count as changes.
    pub fn reload(&mut self, layouts: &Layouts, dump: TableUpdates) -> Result<ChangeSet, Inconsistent> {
        let mut told: BTreeMap<Name, _> = dump.tables.into_iter().collect();
        let mut fresh = Self::default();
        let mut changes = ChangeSet::default();
        for (name, layout) in layouts {
            let old = self.tables.get(name).filter(|old| old.layout() == layout);
            // Equal layouts become one, which makes records quick to compare.
            let layout = Arc::clone(old.map_or(layout, |old| old.layout()));
            let mut table = Table::load(layout, told.remove(name).unwrap_or_default())?;
            table.changes_since(self.table(name), &mut changes);
            let table = match old {
                Some(old) if !old.is_empty() => patched(old, changes.table(name)),
                _ => {
                    table.index();
                    Arc::new(table)
                }
            };
            fresh.tables.insert(name.clone(), table);
        }
        for (name, old) in self.tables.iter().filter(|(name, _)| !layouts.contains_key(*name)) {
            Table::new(Arc::clone(old.layout())).changes_since(self.table(name), &mut changes);
        }
        *self = fresh;
        Ok(changes)
    }

    /// What is different from an older replica.
    pub fn changes_since(&self, older: &Self) -> ChangeSet {
        let mut changes = ChangeSet::default();
        for (name, table) in &self.tables {
            match older.tables.get(name) {
                Some(old) if Arc::ptr_eq(old, table) => {}
                old => table.changes_since(old.map(|old| &**old), &mut changes),
            }
        }
        for (name, old) in &older.tables {
            if !self.tables.contains_key(name) {
                Table::new(Arc::clone(old.layout())).changes_since(Some(old), &mut changes);
            }
        }
        changes
    }
}

/// A table with changes put onto it.
fn patched<'a>(table: &Arc<Table>, changes: impl Iterator<Item = (&'a Uuid, &'a Change)>) -> Arc<Table> {
    let mut table = Arc::clone(table);
    for (uuid, change) in changes {
        let table = Arc::make_mut(&mut table);
        match &change.after {
            Some(record) => table.put(record),
            None => table.remove(*uuid),
        };
    }
    table
}

#[cfg(test)]
mod tests;
