//! Rows as Rust structs.
//!
//! In: a [`Record`], or a struct's fields. Out: the struct, or the columns to write. [`row!`](crate::row!) makes a struct
//! and its [`Row`] from a list of columns.

use std::collections::{BTreeMap, BTreeSet};

use crate::datum::{Atom, AtomSet, Datum, Real, UuidName};
use crate::replica::Record;
use crate::schema::Name;
use crate::txn::Columns;
use crate::uuid::Uuid;

/// A struct that stands for the rows of a table.
pub trait Row: Sized {
    /// The table.
    const TABLE: &'static str;
    /// The columns the struct has fields for.
    const COLUMNS: &'static [&'static str];

    /// Reads a row.
    fn from_record(record: &Record) -> Result<Self, RowError>;

    /// The fields as values of their columns, in the order of [`Self::COLUMNS`].
    fn fields(&self) -> Vec<Field>;

    /// What to write to insert this row. Fields with the value that the server puts there anyway are left out, so a
    /// server that does not have their columns takes the row as well.
    fn columns(&self) -> Columns {
        let told = self.fields().into_iter().filter(|field| !field.is_default);
        told.map(|field| (field.column.to_owned(), field.datum)).collect()
    }

    /// What to write to make a row like this one.
    fn changed_columns(&self, current: &Record) -> Columns {
        let differs = |field: &Field| match current.get(field.column) {
            Some(datum) => *datum != field.datum,
            None => !field.is_default,
        };
        let told = self.fields().into_iter().filter(differs);
        told.map(|field| (field.column.to_owned(), field.datum)).collect()
    }
}

/// A field of a struct as the value of its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Which column.
    pub column: &'static str,
    /// Its value.
    pub datum: Datum,
    /// Whether a row that is inserted without it has it.
    pub is_default: bool,
}

impl Field {
    /// The field of a column.
    pub fn new(column: &'static str, value: &impl ColumnValue) -> Self {
        Self { column, datum: value.to_datum(), is_default: value.is_default() }
    }
}

/// A row does not have what the struct asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column} of row {uuid} of table {table} {fault}")]
pub struct RowError {
    table: Name,
    uuid: Uuid,
    column: String,
    fault: &'static str,
}

impl RowError {
    pub(crate) fn new(table: &Name, uuid: Uuid, column: &str, fault: &'static str) -> Self {
        Self { table: table.clone(), uuid, column: column.to_owned(), fault }
    }
}

/// A Rust type for one element of a column. Enumerations of other crates can be one.
pub trait AtomValue: Sized {
    /// From what the server has; none when it does not fit.
    fn from_atom(atom: &Atom) -> Option<Self>;
    /// For the server.
    fn to_atom(&self) -> Atom;
}

/// A Rust type for all that a column holds: one element, an `Option`, a `BTreeSet` or a `BTreeMap`.
pub trait ColumnValue: Sized + Default {
    /// From what the server has; none when it does not fit.
    fn from_datum(datum: &Datum) -> Option<Self>;
    /// For the server.
    fn to_datum(&self) -> Datum;
    /// Whether a column that nobody wrote has this value.
    fn is_default(&self) -> bool;
}

/// A reference to a row that exists, or to one that the same transaction inserts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowRef {
    /// The row.
    Uuid(Uuid),
    /// What [`insert`](crate::Transaction::insert) gave.
    Named(UuidName),
}

/// No row at all: what an unwritten column that must hold a reference has.
impl Default for RowRef {
    fn default() -> Self {
        Self::Uuid(Uuid::ZERO)
    }
}

impl From<Uuid> for RowRef {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

impl From<UuidName> for RowRef {
    fn from(name: UuidName) -> Self {
        Self::Named(name)
    }
}

macro_rules! atom_values {
    ($($ty:ty: $pattern:pat => $from:expr, $this:ident => $to:expr;)*) => {$(
        impl AtomValue for $ty {
            fn from_atom(atom: &Atom) -> Option<Self> {
                match atom {
                    $pattern => $from,
                    _ => None,
                }
            }

            fn to_atom(&self) -> Atom {
                let $this = self;
                $to
            }
        }
    )*};
}

atom_values! {
    i64: Atom::Integer(number) => Some(*number), this => Atom::Integer(*this);
    Real: Atom::Real(number) => Some(*number), this => Atom::Real(*this);
    bool: Atom::Boolean(flag) => Some(*flag), this => Atom::Boolean(*this);
    String: Atom::String(text) => Some(text.as_ref().to_owned()), this => Atom::String(this.as_str().into());
    Name: Atom::String(text) => Some(text.clone()), this => Atom::String(this.clone());
    Uuid: Atom::Uuid(uuid) => Some(*uuid), this => Atom::Uuid(*this);
}

impl AtomValue for RowRef {
    fn from_atom(atom: &Atom) -> Option<Self> {
        match atom {
            Atom::Uuid(uuid) => Some(Self::Uuid(*uuid)),
            Atom::NamedUuid(name) => Some(Self::Named(name.clone())),
            _ => None,
        }
    }

    fn to_atom(&self) -> Atom {
        match self {
            Self::Uuid(uuid) => Atom::Uuid(*uuid),
            Self::Named(name) => Atom::NamedUuid(name.clone()),
        }
    }
}

fn elements(datum: &Datum) -> Option<&AtomSet> {
    match datum {
        Datum::Set(set) => Some(set),
        Datum::Map(_) => None,
    }
}

impl<T: AtomValue + Default> ColumnValue for T {
    fn from_datum(datum: &Datum) -> Option<Self> {
        T::from_atom(elements(datum)?.single()?)
    }

    fn to_datum(&self) -> Datum {
        Datum::one(self.to_atom())
    }

    fn is_default(&self) -> bool {
        self.to_atom().is_default()
    }
}

impl<T: AtomValue> ColumnValue for Option<T> {
    fn from_datum(datum: &Datum) -> Option<Self> {
        match elements(datum)?.as_slice() {
            [] => Some(None),
            [atom] => T::from_atom(atom).map(Some),
            _ => None,
        }
    }

    fn to_datum(&self) -> Datum {
        Datum::set(self.iter().map(T::to_atom))
    }

    fn is_default(&self) -> bool {
        self.is_none()
    }
}

impl<T: AtomValue + Ord> ColumnValue for BTreeSet<T> {
    fn from_datum(datum: &Datum) -> Option<Self> {
        elements(datum)?.as_slice().iter().map(T::from_atom).collect()
    }

    fn to_datum(&self) -> Datum {
        Datum::set(self.iter().map(T::to_atom))
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}

impl<K: AtomValue + Ord, V: AtomValue> ColumnValue for BTreeMap<K, V> {
    fn from_datum(datum: &Datum) -> Option<Self> {
        let Datum::Map(map) = datum else { return None };
        map.as_slice().iter().map(|(key, value)| Some((K::from_atom(key)?, V::from_atom(value)?))).collect()
    }

    fn to_datum(&self) -> Datum {
        Datum::map(self.iter().map(|(key, value)| (key.to_atom(), value.to_atom())))
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}

impl<T: ColumnValue> From<T> for Datum {
    fn from(value: T) -> Self {
        value.to_datum()
    }
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::one(text.into())
    }
}

impl From<UuidName> for Datum {
    fn from(name: UuidName) -> Self {
        Self::one(Atom::NamedUuid(name))
    }
}

impl<T: AtomValue> From<T> for Atom {
    fn from(value: T) -> Self {
        value.to_atom()
    }
}

impl From<&str> for Atom {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

/// Makes a struct for the rows of a table, from its columns and their types.
///
/// ```
/// use std::collections::{BTreeMap, BTreeSet};
/// use underlay_ovsdb::{Row, RowRef, Transaction, row};
///
/// row! {
///     /// A switch.
///     pub struct Switch in "Logical_Switch" {
///         /// What people call it.
///         pub name: String = "name",
///         /// Its ports.
///         pub ports: BTreeSet<RowRef> = "ports",
///     }
/// }
///
/// let mut txn = Transaction::new();
/// txn.insert_row(&Switch { name: "blue".into(), ..Switch::default() });
/// assert_eq!(Switch::COLUMNS, ["name", "ports"]);
/// ```
#[macro_export]
macro_rules! row {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident in $table:literal {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $ty:ty = $column:literal),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        $visibility struct $name {
            $($(#[$field_attribute])* $field_visibility $field: $ty,)*
        }

        impl $crate::Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[$($column),*];

            fn from_record(record: &$crate::Record) -> Result<Self, $crate::RowError> {
                Ok(Self { $($field: record.read($column)?,)* })
            }

            fn fields(&self) -> Vec<$crate::Field> {
                vec![$($crate::Field::new($column, &self.$field)),*]
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::schema::tests::sample;
    use crate::selection::Selection;
    use crate::txn::string_map;

    row! {
        /// A switch, with a column that the sample server does not have.
        struct Switch in "Logical_Switch" {
            name: String = "name",
            ports: BTreeSet<RowRef> = "ports",
            external_ids: BTreeMap<String, String> = "external_ids",
            colour: Option<String> = "colour",
        }
    }

    fn record(cells: &[(&str, Datum)]) -> Record {
        let layouts = Selection::new().row::<Switch>().resolve(&sample()).layouts;
        let layout = &layouts["Logical_Switch"];
        let cells =
            cells.iter().map(|(column, datum)| (layout.position(column).unwrap(), datum.clone())).collect();
        Record::new(Uuid::from_bytes([1; 16]), Arc::clone(layout), cells, None)
    }

    #[test]
    fn a_row_is_read_into_a_struct() {
        let uuid = Uuid::from_bytes([2; 16]);
        let record = record(&[
            ("name", "blue".into()),
            ("ports", BTreeSet::from([uuid]).into()),
            ("external_ids", string_map([("a", "b")])),
        ]);
        let switch = Switch {
            name: "blue".to_owned(),
            ports: BTreeSet::from([uuid.into()]),
            external_ids: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
            colour: None,
        };
        assert_eq!(Switch::from_record(&record), Ok(switch.clone()));
        assert!(switch.changed_columns(&record).is_empty());
    }

    #[test]
    fn only_what_is_not_the_default_is_written() {
        let switch = Switch { name: "blue".to_owned(), ..Switch::default() };
        assert_eq!(switch.columns().into_keys().collect::<Vec<_>>(), ["name"]);
        let red = record(&[("name", "red".into()), ("external_ids", string_map([("a", "b")]))]);
        let changed = switch.changed_columns(&red);
        assert_eq!(changed.get("name"), Some(&"blue".into()));
        assert_eq!(changed.get("external_ids"), Some(&Datum::empty_map()));
        assert_eq!(changed.len(), 2);
        // What the server cannot take is sent only when it matters, so that the server's refusal says so.
        let coloured = Switch { colour: Some("blue".to_owned()), ..switch };
        assert!(coloured.changed_columns(&red).contains_key("colour"));
    }

    #[test]
    fn a_value_that_is_there_is_not_the_default_even_if_it_looks_empty() {
        assert!(!Some(false).is_default());
        assert!(!Some(String::new()).is_default());
        assert!(false.is_default() && 0.is_default() && String::new().is_default());
        assert!(None::<i64>.is_default() && BTreeSet::<Uuid>::new().is_default());
    }

    #[test]
    fn what_does_not_fit_the_type_is_an_error() {
        let two = Datum::set(["a".into(), "b".into()]);
        assert_eq!(String::from_datum(&two), None);
        assert_eq!(Option::<String>::from_datum(&two), None);
        assert_eq!(i64::from_datum(&"a".into()), None);
        assert_eq!(BTreeSet::<i64>::from_datum(&two), None);
        assert_eq!(BTreeMap::<String, String>::from_datum(&two), None);
        let wrong = record(&[]).read::<i64>("name").unwrap_err().to_string();
        assert!(
            wrong.starts_with("column name of row 01010101-")
                && wrong.ends_with("is not of the type asked for")
        );
    }
}
