//! What a database can hold.
//!
//! In: the JSON of an `.ovsschema` file, or the server's answer to `get_schema`. Out: [`Schema`], and an answer to "does
//! this value fit".

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::datum::{Atom, AtomSet, Datum};
use crate::uuid::Uuid;

mod parse;

/// Name of a table or a column; shared, because every row and every change carries one.
pub type Name = Arc<str>;

/// A database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Its name.
    pub name: String,
    /// Its version, three numbers with dots.
    pub version: String,
    /// Its tables.
    pub tables: BTreeMap<Name, TableSchema>,
}

/// The schema cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// It is not the JSON that a schema is made of.
    #[error("reading the schema")]
    Json(#[from] serde_json::Error),
    /// A column's type makes no sense.
    #[error("column {column} of table {table}: {fault}")]
    Column {
        /// Which table.
        table: Name,
        /// Which of its columns.
        column: Name,
        /// What is wrong with it.
        fault: String,
    },
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSchema {
    /// Its columns, without `_uuid` and `_version`, which every table has.
    pub columns: BTreeMap<Name, ColumnSchema>,
    /// How many rows it may have at most.
    pub max_rows: Option<usize>,
    /// Whether a row lives by itself. Otherwise it lives as long as a row elsewhere refers to it.
    pub is_root: bool,
    /// Sets of columns whose values together are unique among the rows.
    pub indexes: Vec<Vec<Name>>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSchema {
    /// What it can hold.
    pub ty: ColumnType,
    /// Whether its content is lost when the server restarts.
    pub ephemeral: bool,
    /// Whether it can be written after the row was inserted.
    pub mutable: bool,
}

/// What a column can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnType {
    /// Type of the elements, or of the keys of a map.
    pub key: BaseType,
    /// Type of a map's values; none for a set.
    pub value: Option<BaseType>,
    /// How many elements at least.
    pub min: usize,
    /// How many elements at most; none for no limit.
    pub max: Option<usize>,
}

/// Type of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseType {
    /// What kind of value.
    pub kind: AtomicType,
    /// Which values of that kind.
    pub limits: Limits,
    /// Which table a UUID refers to.
    pub reference: Option<Reference>,
}

/// Which values of a kind are allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Limits {
    /// All.
    None,
    /// These.
    Enumeration(AtomSet),
    /// From the one to the other, both included. For text it is the length in characters.
    Range(Option<Atom>, Option<Atom>),
}

/// A reference to a row of another table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Which table.
    pub table: Name,
    /// Whether the row referred to must exist. A weak reference vanishes with its row.
    pub strong: bool,
}

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtomicType {
    /// A whole number of 64 bits.
    Integer,
    /// A number.
    Real,
    /// Yes or no.
    Boolean,
    /// Text.
    String,
    /// A row.
    Uuid,
}

impl fmt::Display for AtomicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "integer",
            Self::Real => "real",
            Self::Boolean => "boolean",
            Self::String => "string",
            Self::Uuid => "uuid",
        })
    }
}

impl From<AtomicType> for BaseType {
    fn from(kind: AtomicType) -> Self {
        Self { kind, limits: Limits::None, reference: None }
    }
}

/// Why a value does not fit its column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// A map where a set belongs, or a set where a map belongs.
    #[error("a set is not a map")]
    Shape,
    /// Too few or too many elements.
    #[error("{0} elements are too few or too many")]
    Count(usize),
    /// Another kind of value.
    #[error("a {found} is not a {expected}")]
    Kind {
        /// What the column holds.
        expected: AtomicType,
        /// What the value is.
        found: &'static str,
    },
    /// A value that is out of range or not in the enumeration.
    #[error("{0:?} is not among the allowed values")]
    Limits(Atom),
    /// No such column.
    #[error("no column {0}")]
    Column(String),
}

impl TableSchema {
    /// Whether a column can take this value.
    pub fn check(&self, column: &str, datum: &Datum) -> Result<(), Misfit> {
        match self.columns.get(column) {
            Some(known) => known.ty.check(datum),
            None => Err(Misfit::Column(column.to_owned())),
        }
    }
}

impl ColumnType {
    /// Whether the column can hold more than one element.
    pub fn is_composite(&self) -> bool {
        self.max != Some(1)
    }

    /// What the column of a row holds that nobody wrote.
    pub fn default_datum(&self) -> Datum {
        match &self.value {
            Some(value) if self.min > 0 => {
                Datum::map([(self.key.kind.default_atom(), value.kind.default_atom())])
            }
            Some(_) => Datum::empty_map(),
            None if self.min > 0 => Datum::one(self.key.kind.default_atom()),
            None => Datum::empty_set(),
        }
    }

    /// Whether the column can hold this value.
    pub fn check(&self, datum: &Datum) -> Result<(), Misfit> {
        let count = datum.len();
        if count < self.min || self.max.is_some_and(|max| count > max) {
            return Err(Misfit::Count(count));
        }
        match (datum, &self.value) {
            (Datum::Set(set), None) => set.as_slice().iter().try_for_each(|atom| self.key.check(atom)),
            (Datum::Map(map), Some(base)) => map.as_slice().iter().try_for_each(|(key, value)| {
                self.key.check(key)?;
                base.check(value)
            }),
            _ => Err(Misfit::Shape),
        }
    }
}

impl BaseType {
    fn check(&self, atom: &Atom) -> Result<(), Misfit> {
        if !self.kind.admits(atom) {
            return Err(Misfit::Kind { expected: self.kind, found: atom.kind() });
        }
        let allowed = match &self.limits {
            Limits::None => true,
            Limits::Enumeration(allowed) => allowed.contains(atom),
            Limits::Range(min, max) => {
                let measure = match atom {
                    Atom::String(text) => {
                        Atom::Integer(i64::try_from(text.chars().count()).unwrap_or(i64::MAX))
                    }
                    other => other.clone(),
                };
                min.as_ref().is_none_or(|min| measure >= *min)
                    && max.as_ref().is_none_or(|max| measure <= *max)
            }
        };
        if allowed { Ok(()) } else { Err(Misfit::Limits(atom.clone())) }
    }
}

impl AtomicType {
    fn admits(self, atom: &Atom) -> bool {
        matches!(
            (self, atom),
            (Self::Integer, Atom::Integer(_))
                | (Self::Real, Atom::Real(_))
                | (Self::Boolean, Atom::Boolean(_))
                | (Self::String, Atom::String(_))
                | (Self::Uuid, Atom::Uuid(_) | Atom::NamedUuid(_))
        )
    }

    fn default_atom(self) -> Atom {
        match self {
            Self::Integer => Atom::Integer(0),
            Self::Real => Atom::Real(crate::datum::Real::ZERO),
            Self::Boolean => Atom::Boolean(false),
            Self::String => Atom::String("".into()),
            Self::Uuid => Atom::Uuid(Uuid::ZERO),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two tables of the northbound database, and one with the types that OVN does not use.
    pub const SAMPLE: &str = r#"{
        "name": "Sample", "version": "1.2.3", "cksum": "1 2",
        "tables": {
            "Logical_Switch": {"isRoot": true, "columns": {
                "name": {"type": "string"},
                "ports": {"type": {"key": {"type": "uuid", "refTable": "Logical_Switch_Port", "refType": "strong"},
                                   "min": 0, "max": "unlimited"}},
                "external_ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
            "Logical_Switch_Port": {"indexes": [["name"]], "columns": {
                "name": {"type": "string", "mutable": false},
                "tag": {"type": {"key": {"type": "integer", "minInteger": 1, "maxInteger": 4095}, "min": 0, "max": 1}},
                "up": {"type": {"key": "boolean", "min": 0, "max": 1}},
                "addresses": {"type": {"key": "string", "min": 0, "max": "unlimited"}}}},
            "Odd": {"maxRows": 1, "columns": {
                "ratio": {"type": {"key": {"type": "real", "minReal": 0, "maxReal": 0.5}}, "ephemeral": true},
                "colour": {"type": {"key": {"type": "string", "enum": ["set", ["red", "blue"]]}}},
                "only": {"type": {"key": {"type": "string", "enum": "one"}}},
                "short": {"type": {"key": {"type": "string", "maxLength": 3}}},
                "weak": {"type": {"key": {"type": "uuid", "refTable": "Odd", "refType": "weak"}, "min": 0, "max": 2}},
                "pair": {"type": {"key": "integer", "value": "real"}}}}}}"#;

    pub fn sample() -> Schema {
        Schema::parse(SAMPLE.as_bytes()).unwrap()
    }

    #[test]
    fn reads_tables_and_columns() {
        let schema = sample();
        assert_eq!((schema.name.as_str(), schema.version.as_str()), ("Sample", "1.2.3"));
        let ports = &schema.tables["Logical_Switch_Port"];
        assert!(!ports.is_root);
        assert_eq!(ports.indexes, [["name".into()]]);
        assert!(!ports.columns["name"].mutable);
        let switch = &schema.tables["Logical_Switch"];
        assert!(switch.is_root);
        let reference = switch.columns["ports"].ty.key.reference.clone().unwrap();
        assert_eq!((&*reference.table, reference.strong), ("Logical_Switch_Port", true));
        let odd = &schema.tables["Odd"];
        assert_eq!(odd.max_rows, Some(1));
        assert!(odd.columns["ratio"].ephemeral);
        assert_eq!(odd.columns["weak"].ty.max, Some(2));
        assert!(!odd.columns["weak"].ty.key.reference.clone().unwrap().strong);
    }

    #[test]
    fn an_unwritten_column_holds_what_the_server_puts_there() {
        let schema = sample();
        let default = |table: &str, column: &str| schema.tables[table].columns[column].ty.default_datum();
        assert_eq!(default("Logical_Switch", "name"), Datum::one(Atom::String("".into())));
        assert_eq!(default("Logical_Switch", "ports"), Datum::empty_set());
        assert_eq!(default("Logical_Switch", "external_ids"), Datum::empty_map());
        assert_eq!(default("Logical_Switch_Port", "up"), Datum::empty_set());
    }

    #[test]
    fn says_whether_a_value_fits() {
        let schema = sample();
        let string = |text: &str| Datum::one(Atom::String(text.into()));
        let real = |number| Datum::one(Atom::Real(crate::datum::Real::new(number).unwrap()));
        for (table, column, datum, expected) in [
            ("Logical_Switch_Port", "tag", Datum::one(Atom::Integer(4095)), Ok(())),
            ("Logical_Switch_Port", "tag", Datum::empty_set(), Ok(())),
            (
                "Logical_Switch_Port",
                "tag",
                Datum::one(Atom::Integer(0)),
                Err(Misfit::Limits(Atom::Integer(0))),
            ),
            (
                "Logical_Switch_Port",
                "tag",
                Datum::set([Atom::Integer(1), Atom::Integer(2)]),
                Err(Misfit::Count(2)),
            ),
            (
                "Logical_Switch_Port",
                "tag",
                string("1"),
                Err(Misfit::Kind { expected: AtomicType::Integer, found: "string" }),
            ),
            ("Logical_Switch_Port", "tagg", string("1"), Err(Misfit::Column("tagg".into()))),
            ("Logical_Switch", "external_ids", Datum::empty_set(), Err(Misfit::Shape)),
            ("Odd", "ratio", real(0.5), Ok(())),
            (
                "Odd",
                "ratio",
                real(0.6),
                Err(Misfit::Limits(Atom::Real(crate::datum::Real::new(0.6).unwrap()))),
            ),
            ("Odd", "colour", string("red"), Ok(())),
            ("Odd", "colour", string("green"), Err(Misfit::Limits(Atom::String("green".into())))),
            ("Odd", "only", string("one"), Ok(())),
            ("Odd", "short", string("äöü"), Ok(())),
            ("Odd", "short", string("long"), Err(Misfit::Limits(Atom::String("long".into())))),
        ] {
            assert_eq!(schema.tables[table].check(column, &datum), expected, "{table}.{column} {datum:?}");
        }
    }

    #[test]
    fn refuses_a_type_that_makes_no_sense() {
        let with_type = |ty: &str| {
            format!(r#"{{"name":"x","version":"1","tables":{{"T":{{"columns":{{"c":{{"type":{ty}}}}}}}}}}}"#)
        };
        for ty in [
            r#"{"key": "string", "max": "many"}"#,
            r#"{"key": "string", "max": 0}"#,
            r#"{"key": "string", "min": 3, "max": 2}"#,
            r#"{"key": {"type": "integer", "enum": ["set", ["a"]]}}"#,
            r#"{"key": "text"}"#,
            "7",
        ] {
            assert!(Schema::parse(with_type(ty).as_bytes()).is_err(), "{ty}");
        }
    }
}
