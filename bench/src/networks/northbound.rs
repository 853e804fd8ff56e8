//! The northbound database of a node, row by row, and what differs between two looks at it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::tenants::Tenant;
use crate::rig::Rig;

/// Where a node's database is.
pub const SOCKET: &str = "unix:/run/ovn/ovnnb_db.sock";
/// Its name.
pub const DATABASE: &str = "OVN_Northbound";

/// All rows: table and identity, and everything else as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Northbound(BTreeMap<(String, String), String>);

/// What differs between two looks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Rows of the network that came.
    pub own: usize,
    /// Rows of other networks that came, went or changed.
    pub others: Vec<String>,
    /// Rows of no network that came, went or changed.
    pub shared: BTreeSet<String>,
}

/// A table as `ovsdb-client` prints it.
#[derive(Debug, Deserialize)]
struct Table {
    caption: String,
    headings: Vec<String>,
    data: Vec<Vec<Value>>,
}

impl Northbound {
    /// Looks.
    pub fn look(rig: &Rig<'_>, node: &str) -> Result<Self> {
        Self::parse(&rig.exec(node, &["ovsdb-client", "dump", "--format=json", SOCKET, DATABASE])?)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut rows = BTreeMap::new();
        for table in serde_json::Deserializer::from_str(text).into_iter::<Table>() {
            let Table { caption, headings, data } = table.context("a table of the northbound database")?;
            let identity = headings.iter().position(|heading| heading == "_uuid").context("no identities")?;
            let table = caption.trim_end_matches(" table").to_owned();
            for row in data {
                let identity = row.get(identity).map(Value::to_string).unwrap_or_default();
                rows.insert((table.clone(), identity), Value::from(row).to_string());
            }
        }
        Ok(Self(rows))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Rows that name one of these tenants.
    pub fn naming<'a>(&'a self, tenants: &'a [Tenant]) -> impl Iterator<Item = &'a String> {
        self.0.values().filter(|row| tenants.iter().any(|tenant| row.contains(&tenant.name)))
    }

    /// What differs in a later look. A row that names the network that came is its own, or shared if others are named
    /// too; one that names only others is theirs.
    pub fn until(&self, later: &Self, came: &str, others: &[Tenant]) -> Changes {
        let mut changes = Changes::default();
        for key in self.0.keys().chain(later.0.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (self.0.get(key), later.0.get(key));
            if old == new {
                continue;
            }
            let names = |name: &str| [old, new].into_iter().flatten().any(|row| row.contains(name));
            match (names(came), others.iter().any(|tenant| names(&tenant.name))) {
                (true, false) => changes.own += 1,
                (false, true) => changes.others.push(told(key, old, new)),
                _ => _ = changes.shared.insert(told(key, old, new)),
            }
        }
        changes
    }
}

/// A row that differs, for people: the table, what happened, and its mark.
fn told((table, _): &(String, String), old: Option<&String>, new: Option<&String>) -> String {
    let verb = match (old, new) {
        (None, _) => "new",
        (_, None) => "gone",
        _ => "changed",
    };
    let row = new.or(old).map_or("", String::as_str);
    let mark = row.split_once(r#"["underlay/id",""#).and_then(|(_, rest)| rest.split('"').next());
    format!("{table} {} {verb}", mark.unwrap_or("without a mark"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(rows: &[(&str, &str)]) -> Northbound {
        let data: Vec<Value> =
            rows.iter().map(|(identity, text)| serde_json::json!([["uuid", identity], text])).collect();
        let table = serde_json::json!({ "caption": "T table", "headings": ["_uuid", "name"], "data": data });
        let empty = serde_json::json!({ "caption": "U table", "headings": ["_uuid"], "data": [] });
        Northbound::parse(&format!("{table}\n{empty}\n")).unwrap()
    }

    #[test]
    fn rows_are_told_apart_by_whom_they_name() {
        let tenants = [Tenant::new(1), Tenant::new(2)];
        let before =
            look(&[("a", "tenant001"), ("b", "tenant002"), ("c", "all: 1"), ("d", "tenant001 tenant002")]);
        let after = look(&[
            ("a", "tenant001"),
            ("b", "tenant002 changed"),
            ("c", "all: 2"),
            ("d", "tenant001 tenant002 tenant003"),
            ("e", "tenant003"),
        ]);
        let changes = before.until(&after, "tenant003", &tenants);
        assert_eq!(changes.own, 1);
        assert_eq!(changes.others, ["T without a mark changed"]);
        assert_eq!(changes.shared.len(), 1, "both are in one table: {changes:?}");
        assert_eq!(before.until(&before, "tenant003", &tenants), Changes::default());
        assert_eq!((after.len(), after.naming(&tenants).count()), (5, 3));
    }
}
