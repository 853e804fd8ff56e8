//! The three ways to be told of changes, and what to do with what is told.
//!
//! In: the text of a monitor's reply or a notification. Out: the replica brought up to date, with what changed. Nothing
//! here does IO.

use std::collections::BTreeMap;

use serde_json::Value;

use super::SessionError;
use crate::replica::{ChangeSet, Format, Replica, TableUpdates, Told};
use crate::selection::Layouts;
use crate::uuid::Uuid;

/// How the server is asked to tell of changes, the best way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Differences, and after a reconnect only what we missed.
    CondSince,
    /// Differences.
    Cond,
    /// As in RFC 7047.
    Plain,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::CondSince => "monitor_cond_since",
            Self::Cond => "monitor_cond",
            Self::Plain => "monitor",
        }
    }

    /// The notification that tells of changes.
    pub fn notification(self) -> &'static str {
        match self {
            Self::CondSince => "update3",
            Self::Cond => "update2",
            Self::Plain => "update",
        }
    }

    fn format(self) -> Format {
        match self {
            Self::CondSince | Self::Cond => Format::Difference,
            Self::Plain => Format::OldAndNew,
        }
    }

    /// What to ask a server that does not know this way.
    pub fn fallback(self) -> Option<Self> {
        match self {
            Self::CondSince => Some(Self::Cond),
            Self::Cond => Some(Self::Plain),
            Self::Plain => None,
        }
    }

    /// The parameters of the request. `since` is the last transaction we know of.
    pub fn params(self, database: &str, layouts: &Layouts, since: Uuid) -> Value {
        let existing = layouts.iter().filter(|(_, layout)| layout.exists);
        let tables: BTreeMap<&str, Value> = existing
            .map(|(name, layout)| {
                let columns: Vec<&str> = layout.columns().map(|name| &**name).collect();
                (&**name, serde_json::json!([{ "columns": columns }]))
            })
            .collect();
        let mut params = vec![Value::from(database), monitor_id(), serde_json::json!(tables)];
        if self == Self::CondSince {
            params.push(since.to_string().into());
        }
        params.into()
    }
}

/// The name of our monitor. There is one on a connection.
fn monitor_id() -> Value {
    Value::from("replica")
}

/// What the server told, put onto a replica.
#[derive(Debug)]
pub(super) struct Digested {
    pub replica: Replica,
    pub changes: ChangeSet,
    /// The last transaction in it, where the server tells.
    pub transaction: Option<Uuid>,
    /// Whether only what we missed was told.
    pub resumed: bool,
}

/// Puts the reply to a monitor request onto the replica we have.
pub(super) fn digest_reply(
    mut replica: Replica,
    layouts: &Layouts,
    method: Method,
    json: &[u8],
) -> Result<Digested, SessionError> {
    let (known, transaction, updates) = match method {
        Method::CondSince => {
            let Told { head, transaction, updates } = Told::parse_since(json, layouts)?;
            (head == Value::Bool(true), transaction, updates)
        }
        Method::Cond | Method::Plain => (false, None, TableUpdates::parse(json, layouts, method.format())?),
    };
    let changes = if known { replica.apply(updates)? } else { replica.reload(layouts, updates)? };
    Ok(Digested { replica, changes, transaction, resumed: known })
}

/// Puts a notification onto the replica we have.
pub(super) fn digest_notification(
    mut replica: Replica,
    layouts: &Layouts,
    method: Method,
    json: &[u8],
) -> Result<Digested, SessionError> {
    let Told { head, transaction, updates } = match method {
        Method::CondSince => Told::parse_since(json, layouts)?,
        Method::Cond | Method::Plain => Told::parse(json, layouts, method.format())?,
    };
    if head != monitor_id() {
        return Err(SessionError::Unexpected(format!("an update for monitor {head}")));
    }
    let changes = replica.apply(updates)?;
    Ok(Digested { replica, changes, transaction, resumed: true })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::tests::sample;
    use crate::selection::Selection;

    fn layouts() -> Layouts {
        let selection =
            Selection::new().columns("Logical_Switch", &["name", "new"]).columns("Newer", &["name"]);
        selection.resolve(&sample()).layouts
    }

    #[test]
    fn only_what_the_server_has_is_asked_for() {
        let tables = json!({"Logical_Switch": [{"columns": ["name"]}]});
        let zero = "00000000-0000-0000-0000-000000000000";
        assert_eq!(
            Method::CondSince.params("DB", &layouts(), Uuid::ZERO),
            json!(["DB", "replica", tables, zero])
        );
        assert_eq!(Method::Plain.params("DB", &layouts(), Uuid::ZERO), json!(["DB", "replica", tables]));
    }

    #[test]
    fn what_we_missed_is_put_onto_what_we_have() {
        const ROW: &str = "00000000-0000-0000-0000-00000000000a";
        let digest = |replica: Replica, json: Value| {
            digest_reply(replica, &layouts(), Method::CondSince, json.to_string().as_bytes())
        };
        let rows = |kind: &str| json!({"Logical_Switch": {ROW: {kind: {"name": "a"}}}});
        let first = digest(Replica::default(), json!([false, ROW, rows("initial")])).unwrap();
        assert!(!first.resumed);
        assert_eq!((first.replica.row_count(), first.transaction), (1, Some(ROW.parse().unwrap())));
        let second = digest(first.replica.clone(), json!([true, ROW, {}])).unwrap();
        assert!(second.resumed && second.changes.is_empty());
        assert_eq!(second.replica.row_count(), 1);
        let third = digest(second.replica, json!([false, ROW, {}])).unwrap();
        assert!(!third.resumed);
        assert_eq!((third.replica.row_count(), third.changes.len()), (0, 1));
        // A row that we do not have cannot be modified: what we have is of no use.
        assert!(digest(third.replica, json!([true, ROW, rows("modify")])).is_err());
    }

    #[test]
    fn an_update_for_another_monitor_is_refused() {
        let digest =
            |json: &[u8]| digest_notification(Replica::new(&layouts()), &layouts(), Method::Cond, json);
        assert!(digest(br#"["replica",{}]"#).is_ok());
        assert!(matches!(digest(br#"["other",{}]"#), Err(SessionError::Unexpected(_))));
    }
}
