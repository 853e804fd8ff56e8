//! What the tests of this crate share: typed rows of two northbound tables, sessions, and servers that can be hurt.

// Every test program takes what it needs of this. Helpers of tests are tests.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use underlay_ovsdb::{
    Client, Config, Index, Phase, Record, Remote, Replica, RowRef, Selection, Status, Subscription, Tuning,
    Update, Uuid, open, row,
};

pub mod peer;
pub mod server;

/// How long anything may take. Generous, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_mins(1);

pub const NB: &str = "OVN_Northbound";

row! {
    /// A switch.
    pub struct LogicalSwitch in "Logical_Switch" {
        /// What people call it.
        pub name: String = "name",
        /// Its ports.
        pub ports: BTreeSet<RowRef> = "ports",
        /// Whose it is.
        pub external_ids: BTreeMap<String, String> = "external_ids",
    }
}

row! {
    /// A port of a switch.
    pub struct LogicalSwitchPort in "Logical_Switch_Port" {
        /// What people call it.
        pub name: String = "name",
        /// Router, localnet, or nothing for a machine.
        pub kind: String = "type",
        /// MAC and IP addresses.
        pub addresses: BTreeSet<String> = "addresses",
        /// VLAN.
        pub tag: Option<i64> = "tag",
        /// Whether it may be used.
        pub enabled: Option<bool> = "enabled",
        /// Anything.
        pub options: BTreeMap<String, String> = "options",
    }
}

pub fn selection() -> Selection {
    Selection::new()
        .row::<LogicalSwitch>()
        .row::<LogicalSwitchPort>()
        .index("Logical_Switch", Index::column("name"))
        .index("Logical_Switch", Index::map_key("external_ids", "owner"))
        .index("Logical_Switch_Port", Index::column("name"))
}

/// Quick to come back.
pub fn tuning() -> Tuning {
    Tuning { backoff: (Duration::from_millis(20), Duration::from_millis(200)), ..Tuning::default() }
}

pub fn config(remote: &str) -> Config {
    Config { tuning: tuning(), ..Config::new(remote.parse::<Remote>().unwrap(), NB, selection()) }
}

/// Starts a session.
pub fn start(config: Config) -> Client {
    let (client, session) = open(config);
    tokio::spawn(session.run());
    client
}

/// Starts a session and waits until it has the database.
pub async fn loaded(config: Config) -> Client {
    let client = start(config);
    let first = tokio::time::timeout(PATIENCE, client.loaded()).await;
    assert!(first.is_ok(), "waited {PATIENCE:?} for the first load: {:?}", client.status().borrow());
    client
}

/// Waits, but not for ever.
pub async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited {PATIENCE:?} for {what}"))
}

/// Waits until the session's status is as wanted.
pub async fn status_where(client: &Client, what: &str, wanted: impl FnMut(&Status) -> bool) -> Status {
    let mut status = client.status();
    let found = within(what, status.wait_for(wanted)).await.unwrap();
    found.clone()
}

/// Waits until the session has made this many complete connections and follows the last one.
pub async fn synced(client: &Client, connections: u64) -> Status {
    let wanted = move |status: &Status| status.phase == Phase::Synced && status.connections >= connections;
    status_where(client, "a complete connection", wanted).await
}

/// Waits for an update whose replica is as wanted; gives it with the sum of changes up to it.
pub async fn update_where(
    updates: &mut Subscription,
    what: &str,
    wanted: impl Fn(&Replica) -> bool,
) -> Update {
    within(what, async {
        loop {
            let update = updates.next().await.expect("the session goes on");
            if wanted(&update.replica) {
                return update;
            }
        }
    })
    .await
}

/// Names of all switches, in order.
pub fn switch_names(replica: &Replica) -> Vec<String> {
    let table = replica.table("Logical_Switch").unwrap();
    let mut names: Vec<String> = table.iter().map(|record| record.read("name").unwrap()).collect();
    names.sort_unstable();
    names
}

/// The one switch of this name.
pub fn switch(replica: &Replica, name: &str) -> Uuid {
    let found: Vec<Uuid> =
        replica.table("Logical_Switch").unwrap().find("name", name).map(Record::uuid).collect();
    assert_eq!(found.len(), 1, "switches named {name}");
    found[0]
}

/// What `ovn-nbctl --bare` printed: the values, in order.
pub fn bare(output: &str) -> Vec<String> {
    let mut values: Vec<String> = output.split_whitespace().map(str::to_owned).collect();
    values.sort_unstable();
    values
}
