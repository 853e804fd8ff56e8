//! The rows of one table, and its indexes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Change, ChangeSet, Inconsistent, Record, RowUpdate};
use crate::datum::{Atom, Datum};
use crate::selection::{Layout, PlacedIndex};
use crate::shared_map::SharedMap;
use crate::uuid::Uuid;

/// The rows of one table.
#[derive(Debug, Clone)]
pub struct Table {
    layout: Arc<Layout>,
    rows: SharedMap<Uuid, Record>,
    /// One for each index of the layout: value and row. Rows with one value stand together, and a value that very many
    /// rows have costs no more to change than one that is unique.
    indexes: Vec<SharedMap<(Atom, Uuid), ()>>,
}

impl Table {
    pub(crate) fn new(layout: Arc<Layout>) -> Self {
        let indexes = layout.indexes.iter().map(|_| SharedMap::new()).collect();
        Self { layout, rows: SharedMap::new(), indexes }
    }

    /// The rows of a dump, without indexes.
    pub(super) fn load(layout: Arc<Layout>, rows: Vec<(Uuid, RowUpdate)>) -> Result<Self, Inconsistent> {
        let mut table = Self::new(layout);
        let mut records: Vec<(Uuid, Record)> = Vec::with_capacity(rows.len());
        for (uuid, update) in rows {
            let like = records.last().map(|(_, record)| record);
            if let Some(record) = table.updated(uuid, update, like)? {
                records.push((uuid, record));
            }
        }
        records.sort_unstable_by_key(|(uuid, _)| *uuid);
        if let Some(twice) = records.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (table, uuid) = (table.layout.table.clone(), twice[0].0);
            return Err(Inconsistent { table, uuid, change: "insert", known: true });
        }
        table.rows = SharedMap::from_sorted(records);
        Ok(table)
    }

    /// Makes the indexes of rows that were loaded without.
    pub(super) fn index(&mut self) {
        for (index, entries) in self.layout.indexes.iter().zip(&mut self.indexes) {
            let mut all = Vec::new();
            for (uuid, record) in &self.rows {
                all.extend(index.values(record).iter().map(|value| ((value.clone(), *uuid), ())));
            }
            all.sort_unstable();
            *entries = SharedMap::from_sorted(all);
        }
    }

    /// Which columns the records have.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row.
    pub fn get(&self, uuid: Uuid) -> Option<&Record> {
        self.rows.get(&uuid)
    }

    /// All rows, in order of their UUIDs.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.rows.iter().map(|(_, record)| record)
    }

    /// The rows whose column holds this value, or a set with it. Without an index all rows are read.
    pub fn find(&self, column: &str, value: impl Into<Atom>) -> Box<dyn Iterator<Item = &Record> + '_> {
        self.find_in(column, None, value.into())
    }

    /// The rows whose map of strings has this value under this key. Without an index all rows are read.
    pub fn find_key(&self, column: &str, key: &str, value: &str) -> Box<dyn Iterator<Item = &Record> + '_> {
        self.find_in(column, Some(key.into()), value.into())
    }

    /// The rows whose map of strings has this key. Without an index all rows are read.
    pub fn with_key(&self, column: &str, key: &str) -> Box<dyn Iterator<Item = &Record> + '_> {
        let Some(column) = self.layout.position(column) else { return Box::new(std::iter::empty()) };
        let wanted = PlacedIndex { column, key: Some(key.into()) };
        match self.layout.indexes.iter().position(|index| *index == wanted) {
            Some(index) => Box::new(self.indexes[index].iter().filter_map(|((_, uuid), ())| self.get(*uuid))),
            None => Box::new(self.iter().filter(move |record| !wanted.values(record).is_empty())),
        }
    }

    fn find_in(
        &self,
        column: &str,
        key: Option<Atom>,
        value: Atom,
    ) -> Box<dyn Iterator<Item = &Record> + '_> {
        let Some(column) = self.layout.position(column) else { return Box::new(std::iter::empty()) };
        let wanted = PlacedIndex { column, key };
        match self.layout.indexes.iter().position(|index| *index == wanted) {
            Some(index) => {
                let from = self.indexes[index].iter_from(&(value.clone(), Uuid::ZERO));
                let hits = from.map(|(entry, ())| entry).take_while(move |(have, _)| *have == value);
                Box::new(hits.filter_map(|(_, uuid)| self.get(*uuid)))
            }
            None => Box::new(self.iter().filter(move |record| wanted.values(record).contains(&value))),
        }
    }

    /// Any row that a new one may be like: those of a table often have much in common.
    pub(super) fn neighbour(&self, uuid: Uuid) -> Option<&Record> {
        self.rows.iter_from(&uuid).next().map(|(_, record)| record)
    }

    /// What a row becomes by an update; none when it goes. What a new one has in common with the one that it may be
    /// `like` is there once.
    pub(super) fn updated(
        &self,
        uuid: Uuid,
        update: RowUpdate,
        like: Option<&Record>,
    ) -> Result<Option<Record>, Inconsistent> {
        let known = self.rows.get(&uuid);
        let new = |cells| Record::new(uuid, Arc::clone(&self.layout), cells, like);
        let wrong =
            |change| Inconsistent { table: self.layout.table.clone(), uuid, change, known: known.is_some() };
        match (update, known) {
            (RowUpdate::Insert(cells), None) | (RowUpdate::Replace(cells), Some(_)) => Ok(Some(new(cells))),
            (RowUpdate::Modify(cells), Some(record)) => Ok(Some(record.modified(&cells))),
            (RowUpdate::Delete, Some(_)) => Ok(None),
            (RowUpdate::Insert(_), Some(_)) => Err(wrong("insert")),
            (RowUpdate::Replace(_) | RowUpdate::Modify(_), None) => Err(wrong("modify")),
            (RowUpdate::Delete, None) => Err(wrong("delete")),
        }
    }

    /// Puts a row, and gives back the one it replaces.
    pub(super) fn put(&mut self, record: &Record) -> Option<Record> {
        let replaced = self.rows.insert(record.uuid(), record.clone());
        self.reindex(replaced.as_ref(), Some(record));
        replaced
    }

    /// Takes a row out.
    pub(super) fn remove(&mut self, uuid: Uuid) -> Option<Record> {
        let removed = self.rows.remove(&uuid);
        self.reindex(removed.as_ref(), None);
        removed
    }

    fn reindex(&mut self, before: Option<&Record>, after: Option<&Record>) {
        for (index, entries) in self.layout.indexes.iter().zip(&mut self.indexes) {
            let old = before.map_or(&[][..], |record| index.values(record));
            let new = after.map_or(&[][..], |record| index.values(record));
            if old == new {
                continue;
            }
            let Some(uuid) = before.or(after).map(Record::uuid) else { continue };
            for gone in old.iter().filter(|value| new.binary_search(value).is_err()) {
                entries.remove(&(gone.clone(), uuid));
            }
            for come in new.iter().filter(|value| old.binary_search(value).is_err()) {
                entries.insert((come.clone(), uuid), ());
            }
        }
    }

    /// Adds what is different from an older state of this table.
    pub(super) fn changes_since(&self, older: Option<&Self>, changes: &mut ChangeSet) {
        let nothing = SharedMap::new();
        let mut old = older.map_or(&nothing, |older| &older.rows).iter().peekable();
        let mut new = self.rows.iter().peekable();
        loop {
            let side = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old, _)), Some((new, _))) => old.cmp(new),
            };
            let before = if side.is_le() { old.next().map(|(_, record)| record) } else { None };
            let after = if side.is_ge() { new.next().map(|(_, record)| record) } else { None };
            if let (true, Some(uuid)) = (before != after, before.or(after).map(Record::uuid)) {
                let change = Change { before: before.cloned(), after: after.cloned() };
                changes.add(&self.layout.table, uuid, change);
            }
        }
    }
}

impl PlacedIndex {
    /// The values of a row that this index finds it by, in order.
    fn values<'a>(&self, record: &'a Record) -> &'a [Atom] {
        match (record.at(self.column), &self.key) {
            (Some(Datum::Set(set)), None) => set.as_slice(),
            (Some(Datum::Map(map)), Some(key)) => map.get(key).map_or(&[], std::slice::from_ref),
            _ => &[],
        }
    }
}
