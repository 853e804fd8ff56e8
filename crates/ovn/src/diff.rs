//! The difference between the rows that should be and those that are, as one transaction. Pure.

use std::collections::{BTreeMap, BTreeSet};

use underlay_desired::ovn::{Column, Row, RowId, Rows, Table};
use underlay_desired::owner::ROW_MARK;
use underlay_ovsdb::{Atom, Condition, Datum, Mutation, Record, Replica, RowRef, Transaction, Uuid, columns};

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
    let mut differ =
        Differ { want, have, places: existing(want, have), ours: ours(have), result: Difference::default() };
    for row in want.iter() {
        differ.make(row);
    }
    differ.remove_surplus();
    differ.result
}

/// Rows that should be and are: found by mark, or by natural key where a table has no room for a mark.
fn existing(want: &Rows, have: &Replica) -> BTreeMap<RowId, RowRef> {
    let find = |row: &Row| -> Option<Uuid> {
        let table = have.table(row.id.table.name())?;
        match row.id.table.natural_key() {
            None => table.find_key("external_ids", ROW_MARK, &row.id.id).next().map(Record::uuid),
            Some(key) => {
                let matches = |record: &&Record| {
                    key.iter().all(|column| {
                        let wanted = row.columns.get(column).and_then(plain_datum);
                        wanted.is_some() && record.get(column) == wanted.as_ref()
                    })
                };
                table.iter().find(matches).map(Record::uuid)
            }
        }
    };
    want.iter().filter_map(|row| Some((row.id.clone(), RowRef::from(find(row)?)))).collect()
}

/// Every row that carries our mark, with its id. The first of two rows with one id is the one that counts.
fn ours(have: &Replica) -> BTreeMap<Uuid, RowId> {
    let mut ours = BTreeMap::new();
    let tables = Table::NORTHBOUND.into_iter().chain(Table::SOUTHBOUND);
    for table in tables.filter(|table| table.natural_key().is_none()) {
        for record in marked_records(have, table) {
            if let Some(id) = mark(record) {
                ours.insert(record.uuid(), RowId::new(table, id));
            }
        }
    }
    ours.extend(bindings_of_our_ports(have));
    ours
}

/// A MAC binding has no room for a mark: it is ours when its port is. (Rows that something else must refer to, like the
/// end of a tunnel, go with whatever refers to them.)
fn bindings_of_our_ports(have: &Replica) -> BTreeMap<Uuid, RowId> {
    let ports: BTreeSet<&Datum> =
        marked_records(have, Table::LogicalRouterPort).filter_map(|record| record.get("name")).collect();
    records(have, Table::StaticMacBinding)
        .filter(|record| record.get("logical_port").is_some_and(|port| ports.contains(port)))
        .map(|record| (record.uuid(), RowId::new(Table::StaticMacBinding, record.uuid().to_string())))
        .collect()
}

fn records(have: &Replica, table: Table) -> impl Iterator<Item = &Record> {
    have.table(table.name()).into_iter().flat_map(underlay_ovsdb::Table::iter)
}

/// Rows that carry our mark. There may be very many others.
fn marked_records(have: &Replica, table: Table) -> impl Iterator<Item = &Record> {
    have.table(table.name()).into_iter().flat_map(|table| table.with_key("external_ids", ROW_MARK))
}

fn mark(record: &Record) -> Option<String> {
    let ids: BTreeMap<String, String> = record.read("external_ids").ok()?;
    ids.get(ROW_MARK).cloned()
}

struct Differ<'a> {
    want: &'a Rows,
    have: &'a Replica,
    /// Where each wanted row is: in the database, or made by this transaction.
    places: BTreeMap<RowId, RowRef>,
    ours: BTreeMap<Uuid, RowId>,
    result: Difference,
}

impl Differ<'_> {
    /// Makes sure that a row is there and right.
    fn make(&mut self, row: &Row) {
        match self.places.get(&row.id) {
            Some(RowRef::Uuid(uuid)) => self.update(row, *uuid),
            Some(RowRef::Named(_)) => {}
            None => self.insert(row),
        }
    }

    /// Inserts a row after those it refers to.
    fn insert(&mut self, row: &Row) {
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
            values.push(("external_ids", marked(&row.id.id, &BTreeMap::new())));
        }
        let name = self.result.transaction.insert(row.id.table.name(), columns(values));
        self.places.insert(row.id.clone(), RowRef::from(name));
        self.result.inserted += 1;
    }

    /// Changes the columns that differ. Sets of rows are changed member by member, so that others' members stay.
    fn update(&mut self, row: &Row, uuid: Uuid) {
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
            let wanted = self.datum(row, column, value);
            if record.get(column) != Some(&wanted) {
                values.push((*column, wanted));
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
    fn member_changes(&mut self, record: &Record, column: &str, ids: &BTreeSet<RowId>) -> Vec<Mutation> {
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
        for (uuid, id) in &self.ours {
            if !kept.contains(uuid) {
                self.result.transaction.delete(id.table.name(), [Condition::uuid(*uuid)]);
                self.result.deleted += 1;
            }
        }
    }

    /// Whether the database has a column; an older OVN may not.
    fn has(&mut self, table: Table, column: &str) -> bool {
        let layout = self.have.table(table.name()).map(underlay_ovsdb::Table::layout);
        let there = layout.is_some_and(|layout| layout.columns().any(|name| **name == *column));
        if !there {
            self.result.absent.insert(format!("{}.{column}", table.name()));
        }
        there
    }

    fn datum(&self, row: &Row, column: &str, value: &Column) -> Datum {
        match value {
            Column::Map(map) if column == "external_ids" && row.id.table.natural_key().is_none() => {
                marked(&row.id.id, map)
            }
            Column::Rows(ids) => Datum::set(ids.iter().filter_map(|id| self.places.get(id)).map(atom)),
            other => plain_datum(other).unwrap_or_else(Datum::empty_set),
        }
    }
}

/// The map with our mark in it.
fn marked(id: &str, map: &BTreeMap<String, String>) -> Datum {
    let pairs = map.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Datum::map(pairs.chain([(ROW_MARK, id)]).map(|(key, value)| (key.into(), value.into())))
}

fn atom(place: &RowRef) -> Atom {
    match place {
        RowRef::Uuid(uuid) => Atom::Uuid(*uuid),
        RowRef::Named(name) => Atom::NamedUuid(name.clone()),
    }
}

/// A column without references.
fn plain_datum(column: &Column) -> Option<Datum> {
    Some(match column {
        Column::Bool(value) => Datum::one(Atom::Boolean(*value)),
        Column::Integer(number) => Datum::one(Atom::Integer(*number)),
        Column::Text(text) => Datum::one(text.as_str().into()),
        Column::Texts(texts) => Datum::set(texts.iter().map(|text| text.as_str().into())),
        Column::Integers(numbers) => Datum::set(numbers.iter().map(|number| Atom::Integer(*number))),
        Column::Map(map) => {
            Datum::map(map.iter().map(|(key, value)| (key.as_str().into(), value.as_str().into())))
        }
        Column::Numbers(map) => {
            Datum::map(map.iter().map(|(key, number)| (key.as_str().into(), Atom::Integer(*number))))
        }
        Column::Rows(_) => return None,
    })
}
