//! The JSON of a schema, which lets short forms stand for long ones, to the one form we work with.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeSeed;
use serde_json::Value;

use super::{
    AtomicType, BaseType, ColumnSchema, ColumnType, Limits, Name, Reference, Schema, SchemaError, TableSchema,
};
use crate::datum::{Atom, Datum, DatumSeed, Real};

#[derive(Deserialize)]
struct SchemaJson {
    name: String,
    version: String,
    tables: BTreeMap<String, TableJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TableJson {
    columns: BTreeMap<String, ColumnJson>,
    max_rows: Option<usize>,
    #[serde(default)]
    is_root: bool,
    #[serde(default)]
    indexes: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct ColumnJson {
    #[serde(rename = "type")]
    ty: TypeJson,
    #[serde(default)]
    ephemeral: bool,
    #[serde(default = "yes")]
    mutable: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TypeJson {
    Short(AtomicType),
    Long { key: BaseJson, value: Option<BaseJson>, min: Option<usize>, max: Option<MaxJson> },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MaxJson {
    Number(usize),
    Word(Unlimited),
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unlimited {
    Unlimited,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BaseJson {
    Short(AtomicType),
    Long(Box<LongBaseJson>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LongBaseJson {
    #[serde(rename = "type")]
    kind: AtomicType,
    #[serde(rename = "enum")]
    allowed: Option<Value>,
    min_integer: Option<i64>,
    max_integer: Option<i64>,
    min_real: Option<f64>,
    max_real: Option<f64>,
    min_length: Option<i64>,
    max_length: Option<i64>,
    ref_table: Option<String>,
    ref_type: Option<RefTypeJson>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum RefTypeJson {
    Strong,
    Weak,
}

impl Schema {
    /// Reads a schema file, or the answer to `get_schema`.
    pub fn parse(json: &[u8]) -> Result<Self, SchemaError> {
        let SchemaJson { name, version, tables } = serde_json::from_slice(json)?;
        let mut read = BTreeMap::new();
        for (table, json) in tables {
            let table = Name::from(table);
            read.insert(table.clone(), read_table(&table, json)?);
        }
        Ok(Self { name, version, tables: read })
    }
}

fn read_table(table: &Name, json: TableJson) -> Result<TableSchema, SchemaError> {
    let mut columns = BTreeMap::new();
    for (column, ColumnJson { ty, ephemeral, mutable }) in json.columns {
        let column = Name::from(column);
        let fault = |fault| SchemaError::Column { table: table.clone(), column: column.clone(), fault };
        let ty = read_type(ty).map_err(fault)?;
        columns.insert(column, ColumnSchema { ty, ephemeral, mutable });
    }
    let indexes = json.indexes.into_iter().map(|index| index.into_iter().map(Name::from).collect()).collect();
    Ok(TableSchema { columns, max_rows: json.max_rows, is_root: json.is_root, indexes })
}

fn read_type(json: TypeJson) -> Result<ColumnType, String> {
    let (key, value, min, max) = match json {
        TypeJson::Short(kind) => (kind.into(), None, 1, Some(1)),
        TypeJson::Long { key, value, min, max } => {
            let max = match max {
                None => Some(1),
                Some(MaxJson::Number(max)) => Some(max),
                Some(MaxJson::Word(Unlimited::Unlimited)) => None,
            };
            (read_base(key)?, value.map(read_base).transpose()?, min.unwrap_or(1), max)
        }
    };
    if max.is_some_and(|max| max == 0 || max < min) {
        return Err(format!("a maximum of {max:?} elements with a minimum of {min}"));
    }
    Ok(ColumnType { key, value, min, max })
}

fn read_base(json: BaseJson) -> Result<BaseType, String> {
    let long = match json {
        BaseJson::Short(kind) => return Ok(kind.into()),
        BaseJson::Long(long) => *long,
    };
    let limits = match long.allowed {
        Some(allowed) => read_enumeration(long.kind, &allowed)?,
        None => read_range(&long),
    };
    let strong = long.ref_type != Some(RefTypeJson::Weak);
    let reference = long.ref_table.map(|table| Reference { table: table.into(), strong });
    Ok(BaseType { kind: long.kind, limits, reference })
}

fn read_enumeration(kind: AtomicType, allowed: &Value) -> Result<Limits, String> {
    let set = ColumnType { key: kind.into(), value: None, min: 1, max: None };
    match DatumSeed(&set).deserialize(allowed) {
        Ok(Datum::Set(allowed)) => Ok(Limits::Enumeration(allowed)),
        Ok(Datum::Map(_)) => Err("an enumeration is a set".to_owned()),
        Err(error) => Err(format!("enumeration: {error}")),
    }
}

fn read_range(json: &LongBaseJson) -> Limits {
    let real = |number: Option<f64>| number.and_then(Real::new).map(Atom::Real);
    let (min, max) = match json.kind {
        AtomicType::Integer => (json.min_integer.map(Atom::Integer), json.max_integer.map(Atom::Integer)),
        AtomicType::Real => (real(json.min_real), real(json.max_real)),
        AtomicType::String => (json.min_length.map(Atom::Integer), json.max_length.map(Atom::Integer)),
        AtomicType::Boolean | AtomicType::Uuid => (None, None),
    };
    if min.is_none() && max.is_none() { Limits::None } else { Limits::Range(min, max) }
}
