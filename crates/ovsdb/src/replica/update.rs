//! What the server tells about rows, from its JSON.
//!
//! In: the text of a monitor's reply or of a notification, and the layouts. Out: [`TableUpdates`]. Tables and columns
//! outside the layouts are skipped.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::datum::{Datum, DatumSeed};
use crate::schema::Name;
use crate::selection::{Layout, Layouts};
use crate::uuid::Uuid;

/// In which words the server tells about a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 7047's `update`: old and new values of the row.
    OldAndNew,
    /// `update2` and `update3`: defaults are left out, and of changed columns only the difference is told.
    Difference,
}

/// Cells by position of their column in the layout.
type Cells = Vec<(usize, Datum)>;

/// What the server tells about one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowUpdate {
    /// It is there, with these values where they are not the defaults.
    Insert(Cells),
    /// Some of its columns have other values; these are the differences.
    Modify(Cells),
    /// It has these values now.
    Replace(Cells),
    /// It is gone.
    Delete,
}

/// What the server tells about rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableUpdates {
    pub(super) tables: Vec<(Name, Vec<(Uuid, RowUpdate)>)>,
}

impl TableUpdates {
    /// How many rows are told about.
    pub fn len(&self) -> usize {
        self.tables.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// Whether no row is told about.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the tables with their rows: the reply to `monitor` and `monitor_cond`.
    pub fn parse(json: &[u8], layouts: &Layouts, format: Format) -> Result<Self, serde_json::Error> {
        whole(json, TablesSeed { layouts, format })
    }
}

/// An array of something, maybe a transaction's id, and tables with their rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The first element: a notification's monitor, or whether `monitor_cond_since` knew the transaction asked for.
    pub head: Value,
    /// The last transaction that is told, where transactions have ids.
    pub transaction: Option<Uuid>,
    /// The rest.
    pub updates: TableUpdates,
}

impl Told {
    /// Reads the parameters of `update` and `update2`.
    pub fn parse(json: &[u8], layouts: &Layouts, format: Format) -> Result<Self, serde_json::Error> {
        whole(json, ToldSeed { tables: TablesSeed { layouts, format }, with_transaction: false })
    }

    /// Reads the parameters of `update3`, or the reply to `monitor_cond_since`.
    pub fn parse_since(json: &[u8], layouts: &Layouts) -> Result<Self, serde_json::Error> {
        let tables = TablesSeed { layouts, format: Format::Difference };
        whole(json, ToldSeed { tables, with_transaction: true })
    }
}

fn whole<'de, S: DeserializeSeed<'de>>(json: &'de [u8], seed: S) -> Result<S::Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

struct ToldSeed<'a> {
    tables: TablesSeed<'a>,
    with_transaction: bool,
}

impl<'de> DeserializeSeed<'de> for ToldSeed<'_> {
    type Value = Told;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Told, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ToldSeed<'_> {
    type Value = Told;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array that ends with tables")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Told, A::Error> {
        let missing = || A::Error::custom("an array is too short");
        let head = seq.next_element()?.ok_or_else(missing)?;
        let mut transaction = None;
        if self.with_transaction {
            let text: String = seq.next_element()?.ok_or_else(missing)?;
            transaction = Some(text.parse().map_err(A::Error::custom)?);
        }
        let updates = seq.next_element_seed(self.tables)?.ok_or_else(missing)?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Told { head, transaction, updates })
    }
}

#[derive(Clone, Copy)]
struct TablesSeed<'a> {
    layouts: &'a Layouts,
    format: Format,
}

impl<'de> DeserializeSeed<'de> for TablesSeed<'_> {
    type Value = TableUpdates;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TableUpdates, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TablesSeed<'_> {
    type Value = TableUpdates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tables with their rows")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TableUpdates, A::Error> {
        let mut tables = Vec::new();
        while let Some(table) = map.next_key::<String>()? {
            match self.layouts.get_key_value(table.as_str()) {
                Some((name, layout)) => {
                    let rows = map.next_value_seed(RowsSeed { layout, format: self.format })?;
                    tables.push((name.clone(), rows));
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(TableUpdates { tables })
    }
}

#[derive(Clone, Copy)]
struct RowsSeed<'a> {
    layout: &'a Arc<Layout>,
    format: Format,
}

impl<'de> DeserializeSeed<'de> for RowsSeed<'_> {
    type Value = Vec<(Uuid, RowUpdate)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowsSeed<'_> {
    type Value = Vec<(Uuid, RowUpdate)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows by UUID")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut rows = Vec::new();
        while let Some(uuid) = map.next_key::<String>()? {
            let uuid = uuid.parse().map_err(A::Error::custom)?;
            rows.push((uuid, map.next_value_seed(RowSeed(self))?));
        }
        Ok(rows)
    }
}

struct RowSeed<'a>(RowsSeed<'a>);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = RowUpdate;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RowUpdate, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = RowUpdate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0.format {
            Format::OldAndNew => "an object with old or new",
            Format::Difference => "an object with one of initial, insert, modify and delete",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RowUpdate, A::Error> {
        let cells = CellsSeed(self.0.layout);
        let (mut old, mut new, mut update) = (false, None, None);
        while let Some(word) = map.next_key::<String>()? {
            match (self.0.format, word.as_str()) {
                (Format::Difference, "initial" | "insert") => {
                    update = Some(RowUpdate::Insert(map.next_value_seed(cells)?));
                }
                (Format::Difference, "modify") => {
                    update = Some(RowUpdate::Modify(map.next_value_seed(cells)?));
                }
                (Format::Difference, "delete") => {
                    map.next_value::<IgnoredAny>()?;
                    update = Some(RowUpdate::Delete);
                }
                (Format::OldAndNew, "new") => new = Some(map.next_value_seed(cells)?),
                (Format::OldAndNew, "old") => {
                    map.next_value::<IgnoredAny>()?;
                    old = true;
                }
                (_, other) => {
                    return Err(A::Error::custom(format!("a row is told with the unknown word {other:?}")));
                }
            }
        }
        let update = update.or(match (old, new) {
            (true, Some(cells)) => Some(RowUpdate::Replace(cells)),
            (false, Some(cells)) => Some(RowUpdate::Insert(cells)),
            (true, None) => Some(RowUpdate::Delete),
            (false, None) => None,
        });
        update.ok_or_else(|| A::Error::custom("a row is told without a word about it"))
    }
}

#[derive(Clone, Copy)]
struct CellsSeed<'a>(&'a Layout);

impl<'de> DeserializeSeed<'de> for CellsSeed<'_> {
    type Value = Cells;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cells, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CellsSeed<'_> {
    type Value = Cells;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns with their values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells, A::Error> {
        let mut cells = Vec::new();
        while let Some(column) = map.next_key::<String>()? {
            match self.0.position(&column) {
                Some(at) => {
                    let datum = map.next_value_seed(DatumSeed(&self.0.columns[at].1)).map_err(|error| {
                        A::Error::custom(format!("column {column} of table {}: {error}", self.0.table))
                    })?;
                    cells.push((at, datum));
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(cells)
    }
}
