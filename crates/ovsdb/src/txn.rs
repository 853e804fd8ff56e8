//! Transactions.
//!
//! In: operations. Out: the parameters of a `transact` request, and from its reply the outcome of every operation. All
//! operations of a transaction happen, or none.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::datum::{Atom, Datum, UuidName};
use crate::replica::Record;
use crate::row::Row;
use crate::uuid::Uuid;

mod outcome;

pub use outcome::{Committed, DbError, DbErrorKind, Outcome, TransactError};
pub(crate) use outcome::{Expected, outcomes};

/// Values by column.
pub type Columns = BTreeMap<String, Datum>;

/// Operations that happen together.
#[derive(Debug, Clone, Default)]
pub struct Transaction {
    operations: Vec<Operation>,
    names: usize,
}

/// One operation, with the names the protocol has for its parts.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Operation {
    Insert {
        table: String,
        row: Columns,
        #[serde(rename = "uuid-name", serialize_with = "plain_name")]
        name: UuidName,
    },
    Update {
        table: String,
        #[serde(rename = "where")]
        conditions: Vec<Condition>,
        row: Columns,
    },
    Mutate {
        table: String,
        #[serde(rename = "where")]
        conditions: Vec<Condition>,
        mutations: Vec<Mutation>,
    },
    Delete {
        table: String,
        #[serde(rename = "where")]
        conditions: Vec<Condition>,
    },
    Wait {
        table: String,
        #[serde(rename = "where")]
        conditions: Vec<Condition>,
        columns: Vec<String>,
        until: Until,
        rows: Vec<Columns>,
        timeout: u64,
    },
    Comment {
        comment: String,
    },
    Assert {
        lock: String,
    },
    Abort {},
}

fn plain_name<S: Serializer>(name: &UuidName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_str())
}

/// Which rows an operation is about: those for which all of its conditions hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    column: String,
    function: &'static str,
    value: Datum,
}

impl Condition {
    fn new(column: &str, function: &'static str, value: impl Into<Datum>) -> Self {
        Self { column: column.to_owned(), function, value: value.into() }
    }

    /// The row with this UUID.
    pub fn uuid(uuid: Uuid) -> Self {
        Self::new("_uuid", "==", uuid)
    }

    /// The column has this value.
    pub fn equal(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "==", value)
    }

    /// The column has another value.
    pub fn not_equal(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "!=", value)
    }

    /// The column has at least these elements or pairs.
    pub fn includes(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "includes", value)
    }

    /// The column has none of these elements or pairs.
    pub fn excludes(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "excludes", value)
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.column, self.function, &self.value).serialize(serializer)
    }
}

/// A change to a column that depends on what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutation {
    column: String,
    mutator: &'static str,
    value: Datum,
}

impl Mutation {
    fn new(column: &str, mutator: &'static str, value: impl Into<Datum>) -> Self {
        Self { column: column.to_owned(), mutator, value: value.into() }
    }

    /// Adds elements to a set. Of pairs, adds to a map those whose key is not there.
    pub fn insert(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "insert", value)
    }

    /// Removes elements from a set. From a map it removes pairs, or, given a set, keys with whatever value.
    pub fn delete(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "delete", value)
    }

    /// Adds to each number.
    pub fn add(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "+=", value)
    }

    /// Subtracts from each number.
    pub fn subtract(column: &str, value: impl Into<Datum>) -> Self {
        Self::new(column, "-=", value)
    }
}

impl Serialize for Mutation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.column, self.mutator, &self.value).serialize(serializer)
    }
}

/// What a `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Until {
    /// The rows found are the rows given.
    #[serde(rename = "==")]
    Equal,
    /// They are not.
    #[serde(rename = "!=")]
    NotEqual,
}

impl Transaction {
    /// No operation yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Inserts a row. The name given back stands for its UUID in this transaction, in operations before and after.
    pub fn insert(&mut self, table: &str, row: Columns) -> UuidName {
        self.names += 1;
        let name = UuidName::nth(self.names);
        self.operations.push(Operation::Insert { table: table.to_owned(), row, name: name.clone() });
        name
    }

    /// Inserts a typed row.
    pub fn insert_row<R: Row>(&mut self, row: &R) -> UuidName {
        self.insert(R::TABLE, row.columns())
    }

    /// Writes columns of the rows that meet all conditions.
    pub fn update(&mut self, table: &str, conditions: impl Into<Vec<Condition>>, row: Columns) {
        self.operations.push(Operation::Update {
            table: table.to_owned(),
            conditions: conditions.into(),
            row,
        });
    }

    /// Writes the columns in which a row differs from a typed row. Says whether there is one.
    pub fn update_row<R: Row>(&mut self, current: &Record, row: &R) -> bool {
        let columns = row.changed_columns(current);
        let differs = !columns.is_empty();
        if differs {
            self.update(R::TABLE, [Condition::uuid(current.uuid())], columns);
        }
        differs
    }

    /// Changes columns of the rows that meet all conditions, depending on what is there.
    pub fn mutate(
        &mut self,
        table: &str,
        conditions: impl Into<Vec<Condition>>,
        mutations: impl Into<Vec<Mutation>>,
    ) {
        self.operations.push(Operation::Mutate {
            table: table.to_owned(),
            conditions: conditions.into(),
            mutations: mutations.into(),
        });
    }

    /// Deletes the rows that meet all conditions.
    pub fn delete(&mut self, table: &str, conditions: impl Into<Vec<Condition>>) {
        self.operations.push(Operation::Delete { table: table.to_owned(), conditions: conditions.into() });
    }

    /// Goes on only when the rows that meet all conditions have, or do not have, these values. When that does not come
    /// true in time, the transaction fails with [`DbErrorKind::TimedOut`].
    pub fn wait(
        &mut self,
        table: &str,
        conditions: impl Into<Vec<Condition>>,
        until: Until,
        rows: impl Into<Vec<Columns>>,
        timeout: Duration,
    ) {
        let rows = rows.into();
        let mut columns: Vec<String> = rows.iter().flat_map(BTreeMap::keys).cloned().collect();
        columns.sort_unstable();
        columns.dedup();
        self.operations.push(Operation::Wait {
            table: table.to_owned(),
            conditions: conditions.into(),
            columns,
            until,
            rows,
            timeout: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        });
    }

    /// Goes on only when a row is as it was seen, in these columns.
    pub fn wait_unchanged(&mut self, seen: &Record, columns: &[&str]) {
        let value = |&column: &&str| Some((column.to_owned(), seen.get(column)?.clone()));
        let row: Columns = columns.iter().filter_map(value).collect();
        let conditions = [Condition::uuid(seen.uuid())];
        self.wait(seen.table(), conditions, Until::Equal, [row], Duration::ZERO);
    }

    /// Leaves a note in the server's log of transactions.
    pub fn comment(&mut self, comment: &str) {
        self.operations.push(Operation::Comment { comment: comment.to_owned() });
    }

    /// Goes on only while this client owns a lock.
    pub fn assert(&mut self, lock: &str) {
        self.operations.push(Operation::Assert { lock: lock.to_owned() });
    }

    /// Fails, so that nothing happens: a transaction that ends with this is a trial.
    pub fn abort(&mut self) {
        self.operations.push(Operation::Abort {});
    }

    /// What of the operations has to be known to read the reply.
    pub(crate) fn expected(&self) -> Vec<Expected> {
        self.operations.iter().map(Operation::expected).collect()
    }

    /// The parameters of a `transact` request.
    pub(crate) fn params<'a>(&'a self, database: &'a str) -> impl Serialize + 'a {
        Params { database, operations: &self.operations }
    }
}

impl Operation {
    fn expected(&self) -> Expected {
        let (kind, table, name) = match self {
            Self::Insert { table, name, .. } => ("insert", Some(table), Some(name)),
            Self::Update { table, .. } => ("update", Some(table), None),
            Self::Mutate { table, .. } => ("mutate", Some(table), None),
            Self::Delete { table, .. } => ("delete", Some(table), None),
            Self::Wait { table, .. } => ("wait", Some(table), None),
            Self::Comment { .. } => ("comment", None, None),
            Self::Assert { .. } => ("assert", None, None),
            Self::Abort {} => ("abort", None, None),
        };
        Expected { kind, table: table.cloned(), name: name.cloned() }
    }
}

/// The database's name, then the operations, in one array.
struct Params<'a> {
    database: &'a str,
    operations: &'a [Operation],
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut seq = serializer.serialize_seq(Some(self.operations.len() + 1))?;
        seq.serialize_element(self.database)?;
        self.operations.iter().try_for_each(|operation| seq.serialize_element(operation))?;
        seq.end()
    }
}

/// Columns from pairs of name and value.
///
/// ```
/// use underlay_ovsdb::{Datum, columns};
///
/// let row = columns([("name", "blue".into()), ("tag", Datum::from(7))]);
/// assert_eq!(row.len(), 2);
/// ```
pub fn columns<'a>(pairs: impl IntoIterator<Item = (&'a str, Datum)>) -> Columns {
    pairs.into_iter().map(|(column, value)| (column.to_owned(), value)).collect()
}

/// A map of strings from pairs: what `external_ids` and its like are written with.
pub fn string_map<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Datum {
    Datum::map(pairs.into_iter().map(|(key, value)| (Atom::from(key), Atom::from(value))))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn json(txn: &Transaction) -> Value {
        serde_json::to_value(txn.params("DB")).unwrap()
    }

    #[test]
    fn operations_have_the_words_of_the_protocol() {
        let uuid: Uuid = "7932ce18-669b-425e-83cd-436cf7abbf11".parse().unwrap();
        let mut txn = Transaction::new();
        let port = txn.insert("Port", columns([("name", "p".into()), ("tag", Datum::from(7))]));
        txn.update("Switch", [Condition::uuid(uuid)], columns([("up", true.into())]));
        txn.mutate(
            "Switch",
            [Condition::includes("external_ids", string_map([("a", "b")]))],
            [Mutation::insert("ports", port), Mutation::delete("external_ids", "key")],
        );
        txn.delete(
            "Switch",
            [Condition::equal("name", "x"), Condition::not_equal("tag", Datum::empty_set())],
        );
        txn.wait(
            "Switch",
            [Condition::uuid(uuid)],
            Until::NotEqual,
            [columns([("name", "y".into())])],
            Duration::from_millis(1500),
        );
        txn.comment("why");
        txn.assert("lock");
        txn.abort();
        assert_eq!(
            json(&txn),
            json!([
                "DB",
                {"op": "insert", "table": "Port", "uuid-name": "row1", "row": {"name": "p", "tag": 7}},
                {"op": "update", "table": "Switch", "where": [["_uuid", "==", ["uuid", uuid.to_string()]]],
                 "row": {"up": true}},
                {"op": "mutate", "table": "Switch", "where": [["external_ids", "includes", ["map", [["a", "b"]]]]],
                 "mutations": [["ports", "insert", ["named-uuid", "row1"]], ["external_ids", "delete", "key"]]},
                {"op": "delete", "table": "Switch", "where": [["name", "==", "x"], ["tag", "!=", ["set", []]]]},
                {"op": "wait", "table": "Switch", "where": [["_uuid", "==", ["uuid", uuid.to_string()]]],
                 "columns": ["name"], "until": "!=", "rows": [{"name": "y"}], "timeout": 1500},
                {"op": "comment", "comment": "why"},
                {"op": "assert", "lock": "lock"},
                {"op": "abort"}
            ])
        );
    }

    #[test]
    fn every_insert_has_a_name_of_its_own() {
        let mut txn = Transaction::new();
        assert_ne!(txn.insert("A", Columns::new()), txn.insert("A", Columns::new()));
    }
}
