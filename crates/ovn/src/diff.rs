//! The difference between the rows that should be and those that are, as one transaction. Pure.

use std::collections::{BTreeMap, BTreeSet};

use underlay_desired::ovn::{Column, Row, RowId, Rows, Table};
use underlay_desired::owner::ROW_MARK;
use underlay_ovsdb::{Atom, Condition, Datum, Mutation, Record, Replica, RowRef, Transaction, Uuid, columns};

use crate::value;

/// What is to be done, and how much of it.
#[derive(Debug, Default)]
pub struct Difference {
    /// The deed; empty when nothing is to be done.
    pub transaction: Transaction,
    /// Rows that are made.
    pub inserted: usize,
    /// Rows of which columns change.
    pub updated: usize,
    /// Rows that go.
    pub deleted: usize,
    /// Columns that should be but that this database does not have, as `Table.column`.
    pub absent: BTreeSet<String>,
}

impl Difference {
    /// Whether all is as it should be.
    pub fn is_empty(&self) -> bool {
        self.transaction.is_empty()
    }
}

/// Compares. Rows that refer to each other are made in one transaction, so the database is never half-way.
pub fn difference(want: &Rows, have: &Replica) -> Difference {
    let mut ours = BTreeMap::new();
    let mut differ =
        Differ { want, have, places: BTreeMap::new(), ours: BTreeMap::new(), result: Difference::default() };
    for (id, record) in marked(have) {
        ours.entry(id).or_insert(record.uuid());
        differ.ours.insert(record.uuid(), id.0);
    }
    differ.ours.extend(bindings_of_our_ports(have));
    let place = |row: &Row| match row.id.table.natural_key() {
        None => ours.get(&(row.id.table, row.id.id.as_str())).copied(),
        Some(key) => by_natural_key(row, key, have),
    };
    differ.places = want.iter().filter_map(|row| Some((&row.id, RowRef::from(place(row)?)))).collect();
    for row in want.iter() {
        differ.make(row);
    }
    differ.remove_surplus();
    differ.result
}

/// Every row that carries our mark, with its id. The first of two rows with one id is the one that counts.
fn marked(have: &Replica) -> impl Iterator<Item = ((Table, &str), &Record)> {
    let tables = Table::NORTHBOUND.into_iter().chain(Table::SOUTHBOUND);
    tables.filter(|table| table.natural_key().is_none()).flat_map(move |table| {
        marked_records(have, table).filter_map(move |record| Some(((table, value::mark(record)?), record)))
    })
}

/// A row that has no room for a mark.
fn by_natural_key(row: &Row, key: &[&str], have: &Replica) -> Option<Uuid> {
    let says = |record: &Record, column: &str| {
        let wanted = row.columns.get(column).zip(record.get(column));
        wanted.is_some_and(|(wanted, found)| value::holds(row, column, wanted, found))
    };
    let Some(Column::Text(first)) = row.columns.get(key.first()?) else { return None };
    let mut alike = have.table(row.id.table.name())?.find(key.first()?, first.as_str());
    alike.find(|record| key.iter().all(|column| says(record, column))).map(Record::uuid)
}

/// A MAC binding has no room for a mark: it is ours when its port is. (Rows that something else must refer to, like the
/// end of a tunnel, go with whatever refers to them.)
fn bindings_of_our_ports(have: &Replica) -> impl Iterator<Item = (Uuid, Table)> {
    let ports: BTreeSet<&Datum> =
        marked_records(have, Table::LogicalRouterPort).filter_map(|record| record.get("name")).collect();
    records(have, Table::StaticMacBinding)
        .filter(move |record| record.get("logical_port").is_some_and(|port| ports.contains(port)))
        .map(|record| (record.uuid(), Table::StaticMacBinding))
}

fn records(have: &Replica, table: Table) -> impl Iterator<Item = &Record> {
    have.table(table.name()).into_iter().flat_map(underlay_ovsdb::Table::iter)
}

/// Rows that carry our mark. There may be very many others.
fn marked_records(have: &Replica, table: Table) -> impl Iterator<Item = &Record> {
    have.table(table.name()).into_iter().flat_map(|table| table.with_key("external_ids", ROW_MARK))
}

struct Differ<'a> {
    want: &'a Rows,
    have: &'a Replica,
    /// Where each wanted row is: in the database, or made by this transaction.
    places: BTreeMap<&'a RowId, RowRef>,
    /// Rows in the database that are ours, with their tables.
    ours: BTreeMap<Uuid, Table>,
    result: Difference,
}

impl<'a> Differ<'a> {
    /// Makes sure that a row is there and right.
    fn make(&mut self, row: &'a Row) {
        match self.places.get(&row.id) {
            Some(RowRef::Uuid(uuid)) => self.update(row, *uuid),
            Some(RowRef::Named(_)) => {}
            None => self.insert(row),
        }
    }

    /// Inserts a row after those it refers to.
    fn insert(&mut self, row: &'a Row) {
        let mut values = Vec::new();
        for (column, value) in &row.columns {
            if let Column::Rows(ids) = value {
                for id in ids {
                    let missing = !self.places.contains_key(id);
                    if let Some(target) = self.want.get(id).filter(|_| missing) {
                        self.insert(target);
                    }
                }
            }
            if self.has(row.id.table, column) {
                values.push((*column, self.datum(row, column, value)));
            }
        }
        if row.id.table.natural_key().is_none() && !row.columns.contains_key("external_ids") {
            values.push(("external_ids", value::marked(&row.id.id, &BTreeMap::new())));
        }
        let name = self.result.transaction.insert(row.id.table.name(), columns(values));
        self.places.insert(&row.id, RowRef::from(name));
        self.result.inserted += 1;
    }

    /// Changes the columns that differ. Sets of rows are changed member by member, so that others' members stay.
    fn update(&mut self, row: &'a Row, uuid: Uuid) {
        let Some(record) = self.have.table(row.id.table.name()).and_then(|table| table.get(uuid)).cloned()
        else {
            return;
        };
        let mut values = Vec::new();
        let mut mutations = Vec::new();
        for (column, value) in &row.columns {
            if !self.has(row.id.table, column) {
                continue;
            }
            if let Column::Rows(ids) = value {
                mutations.extend(self.member_changes(&record, column, ids));
                continue;
            }
            if !record.get(column).is_some_and(|found| value::holds(row, column, value, found)) {
                values.push((*column, self.datum(row, column, value)));
            }
        }
        let table = row.id.table.name();
        self.result.updated += usize::from(!values.is_empty() || !mutations.is_empty());
        if !values.is_empty() {
            self.result.transaction.update(table, [Condition::uuid(uuid)], columns(values));
        }
        if !mutations.is_empty() {
            self.result.transaction.mutate(table, [Condition::uuid(uuid)], mutations);
        }
    }

    /// Members of ours that must join or leave a set of references.
    fn member_changes(&mut self, record: &Record, column: &str, ids: &'a BTreeSet<RowId>) -> Vec<Mutation> {
        for id in ids {
            let missing = !self.places.contains_key(id);
            if let Some(target) = self.want.get(id).filter(|_| missing) {
                self.insert(target);
            }
        }
        let wanted: BTreeSet<Atom> = ids.iter().filter_map(|id| self.places.get(id)).map(atom).collect();
        // In order, and maybe very many.
        let members: &[Atom] = match record.get(column) {
            Some(Datum::Set(set)) => set.as_slice(),
            _ => &[],
        };
        let is_ours = |atom: &Atom| matches!(atom, Atom::Uuid(uuid) if self.ours.contains_key(uuid));
        let joining = wanted.iter().filter(|atom| members.binary_search(atom).is_err());
        let joining: Vec<Atom> = joining.cloned().collect();
        let leaving = members.iter().filter(|atom| is_ours(atom) && !wanted.contains(atom));
        let leaving: Vec<Atom> = leaving.cloned().collect();
        let mut mutations = Vec::new();
        if !leaving.is_empty() {
            mutations.push(Mutation::delete(column, Datum::set(leaving)));
        }
        if !joining.is_empty() {
            mutations.push(Mutation::insert(column, Datum::set(joining)));
        }
        mutations
    }

    /// Deletes rows with our mark that should not be, and doubles of those that should.
    fn remove_surplus(&mut self) {
        let kept: BTreeSet<Uuid> = self
            .places
            .values()
            .filter_map(|place| if let RowRef::Uuid(uuid) = place { Some(*uuid) } else { None })
            .collect();
        for (uuid, table) in &self.ours {
            if !kept.contains(uuid) {
                self.result.transaction.delete(table.name(), [Condition::uuid(*uuid)]);
                self.result.deleted += 1;
            }
        }
    }

    /// Whether the database has a column; an older OVN may not.
    fn has(&mut self, table: Table, column: &str) -> bool {
        let layout = self.have.table(table.name()).map(underlay_ovsdb::Table::layout);
        let there = layout.is_some_and(|layout| layout.has(column));
        if !there {
            self.result.absent.insert(format!("{}.{column}", table.name()));
        }
        there
    }

    fn datum(&self, row: &Row, column: &str, value: &Column) -> Datum {
        match value {
            Column::Rows(ids) => Datum::set(ids.iter().filter_map(|id| self.places.get(id)).map(atom)),
            plain => value::datum(row, column, plain),
        }
    }
}

fn atom(place: &RowRef) -> Atom {
    match place {
        RowRef::Uuid(uuid) => Atom::Uuid(*uuid),
        RowRef::Named(name) => Atom::NamedUuid(name.clone()),
    }
}
