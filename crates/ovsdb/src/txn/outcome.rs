//! The reply to a transaction.
//!
//! In: what was asked, and the server's JSON. Out: the outcome of every operation, or the error with the operation it
//! belongs to. An error that stands after the last operation is of the commit itself, such as a broken reference.

use std::fmt;

use serde::Deserialize;

use crate::datum::UuidName;
use crate::uuid::Uuid;

/// An operation, as far as its result depends on it.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub kind: &'static str,
    pub table: Option<String>,
    pub name: Option<UuidName>,
}

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It made this row.
    Inserted(Uuid),
    /// It found this many rows.
    Count(u64),
    /// It has no result.
    Done,
}

/// A transaction that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// What each operation did.
    pub outcomes: Vec<Outcome>,
    /// The first published state that has the transaction's changes in it.
    pub generation: u64,
    names: Vec<(UuidName, Uuid)>,
}

impl Committed {
    pub(crate) fn new(expected: &[Expected], outcomes: Vec<Outcome>, generation: u64) -> Self {
        let of_insert = |(expected, outcome): (&Expected, &Outcome)| match outcome {
            Outcome::Inserted(uuid) => Some((expected.name.clone()?, *uuid)),
            _ => None,
        };
        let names = expected.iter().zip(&outcomes).filter_map(of_insert).collect();
        Self { outcomes, generation, names }
    }

    /// The UUID of an inserted row.
    pub fn uuid(&self, name: &UuidName) -> Option<Uuid> {
        self.names.iter().find(|(have, _)| have == name).map(|(_, uuid)| *uuid)
    }
}

/// Why a transaction did not happen, or why that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransactError {
    /// An operation failed.
    #[error("operation {number} ({kind}{})", table.as_ref().map(|table| format!(" in {table}")).unwrap_or_default())]
    Operation {
        /// Which, counted from one.
        number: usize,
        /// What it was to do.
        kind: &'static str,
        /// In which table.
        table: Option<String>,
        /// Why it failed.
        #[source]
        error: DbError,
    },
    /// All operations were fine, but not their sum.
    #[error("committing")]
    Commit(#[source] DbError),
    /// The server did not take the request.
    #[error("the server refuses the transaction")]
    Refused(#[source] DbError),
    /// The server's reply makes no sense.
    #[error("the server's reply to the transaction: {0}")]
    Malformed(String),
    /// There is no connection with a complete replica. Nothing was sent.
    #[error("not connected; the transaction was not sent")]
    NotConnected,
    /// The connection ended before the reply came.
    #[error("the connection ended before the reply; whether the transaction happened is not known")]
    OutcomeUnknown,
    /// The session's task has ended. Nothing was sent.
    #[error("the session has ended; the transaction was not sent")]
    Ended,
}

impl TransactError {
    /// The server's own error, where it is one.
    pub fn db_error(&self) -> Option<&DbError> {
        match self {
            Self::Operation { error, .. } | Self::Commit(error) | Self::Refused(error) => Some(error),
            _ => None,
        }
    }

    /// The kind of the server's own error, where it is one.
    pub fn kind(&self) -> Option<DbErrorKind> {
        self.db_error().map(DbError::kind)
    }
}

/// An error as the server tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DbError {
    /// Its name.
    pub error: String,
    /// More about it.
    pub details: Option<String>,
}

/// Errors a program can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DbErrorKind {
    /// A value or the number of rows is not allowed, or an index is no longer unique.
    Constraint,
    /// A row referred to is not there, or a row that is referred to was deleted.
    Reference,
    /// A `wait` did not come true in time.
    TimedOut,
    /// By request.
    Aborted,
    /// A lock that was asserted is not ours.
    NotOwner,
    /// The server does not allow us to do this.
    Permission,
    /// The server does not have the database.
    UnknownDatabase,
    /// The server does not have the method.
    UnknownMethod,
    /// A table or column that the server does not have, or an operation it cannot read.
    Syntax,
    /// The server has no memory, disk or other means left.
    Resources,
    /// Any other.
    Other,
}

impl DbError {
    /// What kind of error this is.
    pub fn kind(&self) -> DbErrorKind {
        match self.error.as_str() {
            "constraint violation" => DbErrorKind::Constraint,
            "referential integrity violation" => DbErrorKind::Reference,
            "timed out" => DbErrorKind::TimedOut,
            "aborted" => DbErrorKind::Aborted,
            "not owner" => DbErrorKind::NotOwner,
            "permission error" | "not allowed" => DbErrorKind::Permission,
            "unknown database" => DbErrorKind::UnknownDatabase,
            "unknown method" => DbErrorKind::UnknownMethod,
            "syntax error" | "unknown column" | "unknown table" => DbErrorKind::Syntax,
            "resources exhausted" | "I/O error" => DbErrorKind::Resources,
            _ => DbErrorKind::Other,
        }
    }

    /// Reads the `error` of a reply: an object, or only a name.
    pub(crate) fn parse(json: &[u8]) -> Self {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum ErrorJson {
            Name(String),
            Object { error: String, details: Option<String> },
        }
        match serde_json::from_slice(json) {
            Ok(ErrorJson::Name(error)) => Self { error, details: None },
            Ok(ErrorJson::Object { error, details }) => Self { error, details },
            Err(_) => Self { error: String::from_utf8_lossy(json).into_owned(), details: None },
        }
    }
}

impl fmt::Display for DbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.details {
            None => f.write_str(&self.error),
            Some(details) => write!(f, "{}: {details}", self.error),
        }
    }
}

impl std::error::Error for DbError {}

/// One element of the reply.
#[derive(Deserialize)]
struct ElementJson {
    uuid: Option<(String, String)>,
    count: Option<u64>,
    error: Option<String>,
    details: Option<String>,
}

/// Reads the `result` of a reply. It has an element for each operation: an error for the one that failed, and null for
/// those after it. One element more is the commit's error.
pub(crate) fn outcomes(expected: &[Expected], json: &[u8]) -> Result<Vec<Outcome>, TransactError> {
    let malformed = |text: String| TransactError::Malformed(text);
    let elements: Vec<Option<ElementJson>> =
        serde_json::from_slice(json).map_err(|error| malformed(error.to_string()))?;
    let mut outcomes = Vec::with_capacity(expected.len());
    for (at, element) in elements.into_iter().enumerate() {
        let element = element.ok_or_else(|| malformed(format!("no result for operation {}", at + 1)))?;
        let operation = expected.get(at);
        if let Some(error) = element.error {
            let error = DbError { error, details: element.details };
            return Err(match operation {
                None => TransactError::Commit(error),
                Some(Expected { kind, table, .. }) => {
                    TransactError::Operation { number: at + 1, kind, table: table.clone(), error }
                }
            });
        }
        let operation = operation.ok_or_else(|| malformed("more results than operations".to_owned()))?;
        outcomes.push(
            outcome(operation, &element)
                .map_err(|text| malformed(format!("operation {}: {text}", at + 1)))?,
        );
    }
    if outcomes.len() < expected.len() {
        return Err(malformed(format!("{} results for {} operations", outcomes.len(), expected.len())));
    }
    Ok(outcomes)
}

fn outcome(expected: &Expected, element: &ElementJson) -> Result<Outcome, String> {
    match expected.kind {
        "insert" => match &element.uuid {
            Some((tag, uuid)) if tag == "uuid" => {
                uuid.parse().map(Outcome::Inserted).map_err(|error| format!("{error}"))
            }
            _ => Err("an insert without a UUID".to_owned()),
        },
        "update" | "mutate" | "delete" => {
            element.count.map(Outcome::Count).ok_or_else(|| "no count".to_owned())
        }
        _ => Ok(Outcome::Done),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::txn::{Columns, Transaction};

    fn two_operations() -> (Vec<Expected>, UuidName) {
        let mut txn = Transaction::new();
        let name = txn.insert("Port", Columns::new());
        txn.delete("Switch", []);
        (txn.expected(), name)
    }

    fn read(reply: &serde_json::Value) -> Result<Vec<Outcome>, TransactError> {
        outcomes(&two_operations().0, reply.to_string().as_bytes())
    }

    const UUID: &str = "7932ce18-669b-425e-83cd-436cf7abbf11";

    #[test]
    fn every_operation_has_its_outcome() {
        let outcomes = read(&json!([{"uuid": ["uuid", UUID]}, {"count": 3}])).unwrap();
        let uuid = UUID.parse().unwrap();
        assert_eq!(outcomes, [Outcome::Inserted(uuid), Outcome::Count(3)]);
        let (expected, name) = two_operations();
        assert_eq!(Committed::new(&expected, outcomes, 1).uuid(&name), Some(uuid));
    }

    #[test]
    fn an_error_belongs_to_its_operation() {
        let error =
            read(&json!([{"uuid": ["uuid", UUID]}, {"error": "timed out", "details": "why"}])).unwrap_err();
        assert_eq!(error.to_string(), "operation 2 (delete in Switch)");
        assert_eq!(error.kind(), Some(DbErrorKind::TimedOut));
        assert_eq!(error.db_error().unwrap().to_string(), "timed out: why");
        let error = read(&json!([{"error": "constraint violation"}, null])).unwrap_err();
        assert!(matches!(error, TransactError::Operation { number: 1, .. }));
    }

    #[test]
    fn an_error_after_the_last_operation_is_the_commits() {
        let error = json!({"error": "referential integrity violation", "details": "d"});
        let error = read(&json!([{"uuid": ["uuid", UUID]}, {"count": 0}, error])).unwrap_err();
        assert!(matches!(error, TransactError::Commit(_)));
        assert_eq!(error.kind(), Some(DbErrorKind::Reference));
    }

    #[test]
    fn a_reply_that_does_not_fit_is_refused() {
        for reply in [
            json!([]),
            json!({}),
            json!([{"uuid": ["uuid", UUID]}]),
            json!([{"count": 1}, {"count": 1}]),
            json!([{"uuid": ["uuid", "x"]}, {"count": 1}]),
            json!([null, null]),
            json!([{"uuid": ["uuid", UUID]}, {}]),
            json!([{"uuid": ["uuid", UUID]}, {"count": 1}, {"count": 1}]),
        ] {
            assert!(matches!(read(&reply), Err(TransactError::Malformed(_))), "{reply}");
        }
    }

    #[test]
    fn errors_are_objects_or_names() {
        assert_eq!(DbError::parse(br#""unknown method""#).kind(), DbErrorKind::UnknownMethod);
        let object = DbError::parse(br#"{"error": "unknown database", "details": "d", "syntax": "s"}"#);
        assert_eq!((object.kind(), object.details.as_deref()), (DbErrorKind::UnknownDatabase, Some("d")));
        assert_eq!(DbError::parse(b"7").error, "7");
    }
}
