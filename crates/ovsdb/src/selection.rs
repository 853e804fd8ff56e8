//! What we want to see of a database.
//!
//! In: tables, columns and indexes by name, and the server's schema. Out: a [`Layout`] for each table, and the names
//! that this server does not know: an older server is worked with, not refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::datum::Atom;
use crate::row::Row;
use crate::schema::{ColumnType, Name, Schema};

/// Tables and columns to replicate.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    tables: BTreeMap<Name, Wanted>,
}

#[derive(Debug, Clone, Default)]
struct Wanted {
    all: bool,
    columns: BTreeSet<Name>,
    unwanted: BTreeSet<Name>,
    indexes: BTreeSet<Index>,
}

/// What rows can be looked up by without reading all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    column: Name,
    key: Option<Arc<str>>,
}

impl Index {
    /// The value of a column, or each element of one that holds a set.
    pub fn column(column: &str) -> Self {
        Self { column: column.into(), key: None }
    }

    /// The value of one key of a map of strings, such as `external_ids`.
    pub fn map_key(column: &str, key: &str) -> Self {
        Self { column: column.into(), key: Some(key.into()) }
    }
}

impl Selection {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn wanted(&mut self, table: &str) -> &mut Wanted {
        self.tables.entry(table.into()).or_default()
    }

    /// Some columns of a table, besides those already selected.
    #[must_use]
    pub fn columns(mut self, table: &str, columns: &[&str]) -> Self {
        self.wanted(table).columns.extend(columns.iter().map(|&column| Name::from(column)));
        self
    }

    /// All columns that the server has in a table.
    #[must_use]
    pub fn all_columns(mut self, table: &str) -> Self {
        self.wanted(table).all = true;
        self
    }

    /// All columns that the server has in a table, except some: what changes often and concerns nobody here.
    #[must_use]
    pub fn all_columns_but(mut self, table: &str, unwanted: &[&str]) -> Self {
        self.wanted(table).unwanted.extend(unwanted.iter().map(|&column| Name::from(column)));
        self.all_columns(table)
    }

    /// The columns of a typed row.
    #[must_use]
    pub fn row<R: Row>(self) -> Self {
        self.columns(R::TABLE, R::COLUMNS)
    }

    /// An index on a table; its column is selected with it.
    #[must_use]
    pub fn index(mut self, table: &str, index: Index) -> Self {
        let wanted = self.wanted(table);
        wanted.columns.insert(index.column.clone());
        wanted.indexes.insert(index);
        self
    }

    /// What there is to get from a server with this schema.
    pub fn resolve(&self, schema: &Schema) -> Resolved {
        let mut resolved = Resolved::default();
        for (table, wanted) in &self.tables {
            let known = schema.tables.get(table);
            let has = |column: &Name| known.is_some_and(|known| known.columns.contains_key(column));
            let absent: BTreeSet<Name> =
                wanted.columns.iter().filter(|&column| !has(column)).cloned().collect();
            match known {
                None => resolved.absent.push(Absent { table: table.clone(), column: None }),
                Some(_) => resolved.absent.extend(
                    absent.iter().map(|column| Absent { table: table.clone(), column: Some(column.clone()) }),
                ),
            }
            let columns: Vec<(Name, ColumnType)> = known
                .into_iter()
                .flat_map(|known| &known.columns)
                .filter(|(column, _)| {
                    wanted.columns.contains(*column) || wanted.all && !wanted.unwanted.contains(*column)
                })
                .map(|(column, schema)| (column.clone(), schema.ty.clone()))
                .collect();
            let mut layout = Layout {
                table: table.clone(),
                columns,
                absent,
                indexes: Vec::new(),
                exists: known.is_some(),
            };
            layout.indexes = wanted.indexes.iter().filter_map(|index| layout.place(index)).collect();
            resolved.layouts.insert(table.clone(), Arc::new(layout));
        }
        resolved
    }
}

/// A selection as far as a server can fulfil it.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    /// By table, also for the tables the server does not have.
    pub layouts: Layouts,
    /// What the server does not have.
    pub absent: Vec<Absent>,
}

/// The layout of every selected table.
pub type Layouts = BTreeMap<Name, Arc<Layout>>;

/// A selected table or column that the server does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// Which table.
    pub table: Name,
    /// Which of its columns; none when the whole table is absent.
    pub column: Option<Name>,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.column {
            None => write!(f, "table {}", self.table),
            Some(column) => write!(f, "column {column} of table {}", self.table),
        }
    }
}

/// Which columns the records of a table have, and in what order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub(crate) table: Name,
    /// In order of their names.
    pub(crate) columns: Vec<(Name, ColumnType)>,
    /// Selected, but unknown to the server.
    pub(crate) absent: BTreeSet<Name>,
    pub(crate) indexes: Vec<PlacedIndex>,
    /// Whether the server has the table.
    pub(crate) exists: bool,
}

/// An index by the position of its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedIndex {
    pub column: usize,
    pub key: Option<Atom>,
}

impl Layout {
    /// The table.
    pub fn table(&self) -> &Name {
        &self.table
    }

    /// The columns' names, in order.
    pub fn columns(&self) -> impl Iterator<Item = &Name> {
        self.columns.iter().map(|(name, _)| name)
    }

    /// Whether there is a column of this name.
    pub fn has(&self, column: &str) -> bool {
        self.position(column).is_some()
    }

    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.columns.binary_search_by(|(name, _)| (**name).cmp(column)).ok()
    }

    fn place(&self, index: &Index) -> Option<PlacedIndex> {
        let column = self.position(&index.column)?;
        Some(PlacedIndex { column, key: index.key.clone().map(Atom::String) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::sample;

    fn columns<'a>(resolved: &'a Resolved, table: &str) -> Vec<&'a str> {
        resolved.layouts[table].columns().map(|name| &**name).collect()
    }

    #[test]
    fn leaves_out_and_reports_what_the_server_does_not_have() {
        let resolved = Selection::new()
            .columns("Logical_Switch", &["name", "copp", "ports"])
            .columns("Chassis_Template_Var", &["chassis"])
            .resolve(&sample());
        assert_eq!(columns(&resolved, "Logical_Switch"), ["name", "ports"]);
        assert!(columns(&resolved, "Chassis_Template_Var").is_empty());
        let absent: Vec<String> = resolved.absent.iter().map(ToString::to_string).collect();
        assert_eq!(absent, ["table Chassis_Template_Var", "column copp of table Logical_Switch"]);
    }

    #[test]
    fn all_columns_are_those_of_the_server() {
        let resolved = Selection::new().all_columns("Logical_Switch_Port").resolve(&sample());
        assert_eq!(columns(&resolved, "Logical_Switch_Port"), ["addresses", "name", "tag", "up"]);
        assert_eq!(resolved.absent, []);
        let unwanted = ["tag", "up", "not there"];
        let some = Selection::new().all_columns_but("Logical_Switch_Port", &unwanted).resolve(&sample());
        assert_eq!(columns(&some, "Logical_Switch_Port"), ["addresses", "name"]);
        assert_eq!(some.absent, []);
    }

    #[test]
    fn an_index_brings_its_column() {
        let resolved = Selection::new()
            .index("Logical_Switch", Index::map_key("external_ids", "owner"))
            .index("Logical_Switch", Index::column("nothing"))
            .resolve(&sample());
        assert_eq!(columns(&resolved, "Logical_Switch"), ["external_ids"]);
        assert_eq!(
            resolved.layouts["Logical_Switch"].indexes,
            [PlacedIndex { column: 0, key: Some(Atom::String("owner".into())) }]
        );
        assert_eq!(resolved.absent.len(), 1);
    }
}
