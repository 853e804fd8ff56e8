//! An OVSDB client: a replica of the tables we ask for, and transactions on them.
//!
//! ```text
//! bytes --wire--> Message --replica--> Replica + ChangeSet --session--> Client, Subscription
//! struct --row--> Columns --txn--> Transaction --session--> bytes
//! ```
//!
//! `datum`, `schema`, `selection`, `row`, `txn`, `replica`, `publication` and `wire` are pure. `session` does IO: one
//! task owns the connection, brings the replica up to date message by message and hands out every state of it. States
//! share what did not change, so a state costs what the change costs, not what the database costs.
//!
//! The protocol is RFC 7047 with what Open vSwitch added to it: `monitor_cond`, `monitor_cond_since`.
//!
//! ```no_run
//! use underlay_ovsdb::{Condition, Config, Index, Mutation, Selection, Transaction, columns, open};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let selection = Selection::new()
//!     .columns("Logical_Switch", &["name", "ports", "external_ids"])
//!     .index("Logical_Switch", Index::column("name"));
//! let (client, session) = open(Config::new("unix:/run/ovn/ovnnb_db.sock".parse()?, "OVN_Northbound", selection));
//! tokio::spawn(session.run());
//! let replica = client.loaded().await?;
//! if let Some(switch) = replica.table("Logical_Switch").and_then(|table| table.find("name", "blue").next()) {
//!     let mut txn = Transaction::new();
//!     let port = txn.insert("Logical_Switch_Port", columns([("name", "web".into())]));
//!     txn.mutate("Logical_Switch", [Condition::uuid(switch.uuid())], [Mutation::insert("ports", port.clone())]);
//!     let committed = client.transact(txn).await?;
//!     println!("the port is {:?}", committed.uuid(&port));
//! }
//! # Ok(())
//! # }
//! ```

pub mod datum;
pub mod publication;
pub mod replica;
pub mod row;
pub mod schema;
pub mod selection;
pub mod session;
mod shared_map;
pub mod txn;
pub mod uuid;
pub mod wire;

pub use datum::{Atom, Datum, Real, UuidName};
pub use publication::Publication;
pub use replica::{Change, ChangeSet, Record, Replica, Table};
pub use row::{AtomValue, ColumnValue, Field, Row, RowError, RowRef};
pub use schema::Schema;
pub use selection::{Absent, Index, Selection};
pub use session::{
    Client, Config, NameCheck, Phase, Remote, Session, SessionError, Status, Subscription, Tls, Tuning,
    Update, open,
};
pub use txn::{
    Columns, Committed, Condition, DbError, DbErrorKind, Mutation, Outcome, TransactError, Transaction,
    Until, columns, string_map,
};
pub use uuid::Uuid;
