//! Transactions and changes of others on a real server, checked with OVN's own client.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use common::{
    LogicalSwitch, LogicalSwitchPort, bare, config, loaded, switch, switch_names, synced, update_where,
    within,
};
use underlay_ovsdb::{
    Client, Condition, Datum, DbErrorKind, Mutation, Outcome, Record, Row, RowRef, Selection, TransactError,
    Transaction, Until, Uuid, columns, string_map,
};
use underlay_testkit::{OutputExt, OvsdbServer, Schema};

mod common;

async fn server_and_client() -> (OvsdbServer, Client) {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let client = loaded(config(&server.remote())).await;
    (server, client)
}

fn column(server: &OvsdbServer, table: &str, record: &str, column: &str) -> String {
    server.ctl(&["--bare", "get", table, record, column]).ok().trim().to_owned()
}

async fn add_switch(client: &Client, name: &str) -> Uuid {
    let mut txn = Transaction::new();
    let row = txn.insert_row(&LogicalSwitch { name: name.to_owned(), ..LogicalSwitch::default() });
    within("the switch", client.transact(txn)).await.unwrap().uuid(&row).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_come_change_and_go() {
    let (server, client) = server_and_client().await;
    let blue = add_switch(&client, "blue").await;
    assert_eq!(server.ctl(&["ls-list"]).ok().trim(), format!("{blue} (blue)"));

    let mut txn = Transaction::new();
    let mutations = [
        Mutation::insert("external_ids", string_map([("owner", "us"), ("a", "1"), ("b", "2")])),
        Mutation::delete("external_ids", Datum::set(["a".into()])),
    ];
    txn.mutate("Logical_Switch", [Condition::uuid(blue)], mutations);
    txn.update("Logical_Switch", [Condition::equal("name", "blue")], columns([("name", "green".into())]));
    let committed = within("the change", client.transact(txn)).await.unwrap();
    assert_eq!(committed.outcomes, [Outcome::Count(1), Outcome::Count(1)]);
    assert_eq!(column(&server, "Logical_Switch", "green", "external_ids"), r#"{b="2", owner=us}"#);

    // The replica had the changes before the confirmation came.
    let replica = client.replica();
    let table = replica.table("Logical_Switch").unwrap();
    assert_eq!(table.find_key("external_ids", "owner", "us").next().map(Record::uuid), Some(blue));
    assert_eq!(table.find("name", "blue").count(), 0);
    assert_eq!(client.publication().generation(), committed.generation);

    let mut txn = Transaction::new();
    txn.delete("Logical_Switch", [Condition::includes("external_ids", string_map([("owner", "us")]))]);
    assert_eq!(client.transact(txn).await.unwrap().outcomes, [Outcome::Count(1)]);
    assert_eq!(server.ctl(&["ls-list"]).ok(), "");
    assert_eq!(client.replica().row_count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn named_rows_refer_to_each_other() {
    let (server, client) = server_and_client().await;
    let mut txn = Transaction::new();
    let port = |name: &str| LogicalSwitchPort {
        name: name.to_owned(),
        addresses: BTreeSet::from(["0a:58:0a:00:00:05 10.0.0.5".to_owned(), "unknown".to_owned()]),
        tag: Some(7),
        enabled: Some(false),
        ..LogicalSwitchPort::default()
    };
    let names = [txn.insert_row(&port("p1")), txn.insert_row(&port("p2"))];
    let blue = LogicalSwitch {
        name: "blue".to_owned(),
        ports: names.iter().cloned().map(RowRef::from).collect(),
        external_ids: BTreeMap::from([("owner".to_owned(), "us".to_owned())]),
    };
    let row = txn.insert_row(&blue);
    let committed = within("switch and ports", client.transact(txn)).await.unwrap();

    let uuids: BTreeSet<RowRef> = names.iter().map(|name| committed.uuid(name).unwrap().into()).collect();
    let replica = client.replica();
    let record = replica.table("Logical_Switch").unwrap().get(committed.uuid(&row).unwrap()).unwrap();
    let read = LogicalSwitch::from_record(record).unwrap();
    assert_eq!(read, LogicalSwitch { ports: uuids, ..blue });
    let ports: Vec<LogicalSwitchPort> = replica.rows().map(|row| row.unwrap().1).collect();
    assert_eq!(ports.len(), 2);
    assert!(ports.contains(&port("p1")) && ports.contains(&port("p2")));
    let listed = server.ctl(&["lsp-list", "blue"]).ok();
    assert!(listed.contains("(p1)") && listed.contains("(p2)"), "{listed}");
    assert_eq!(column(&server, "Logical_Switch_Port", "p1", "tag"), "7");
    assert_eq!(column(&server, "Logical_Switch_Port", "p1", "enabled"), "false");

    // A typed row is brought to another state by what differs, and nothing is sent when nothing does.
    let record = replica.table("Logical_Switch_Port").unwrap().find("name", "p1").next().unwrap().clone();
    let wanted = LogicalSwitchPort { tag: None, kind: "localnet".to_owned(), ..port("p1") };
    assert_eq!(wanted.changed_columns(&record).into_keys().collect::<Vec<_>>(), ["tag", "type"]);
    let mut txn = Transaction::new();
    assert!(txn.update_row(&record, &wanted));
    client.transact(txn).await.unwrap();
    assert_eq!(column(&server, "Logical_Switch_Port", "p1", "type"), "localnet");
    assert_eq!(column(&server, "Logical_Switch_Port", "p1", "tag"), "[]");
    let replica = client.replica();
    let record = replica.table("Logical_Switch_Port").unwrap().get(record.uuid()).unwrap();
    assert!(!Transaction::new().update_row(record, &wanted));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_guards_a_write() {
    let (server, client) = server_and_client().await;
    add_switch(&client, "blue").await;
    let seen = client.replica().table("Logical_Switch").unwrap().find("name", "blue").next().unwrap().clone();
    let guarded = |name: &str| {
        let mut txn = Transaction::new();
        txn.wait_unchanged(&seen, &["name", "external_ids"]);
        txn.update("Logical_Switch", [Condition::uuid(seen.uuid())], columns([("name", name.into())]));
        txn
    };
    within("a wait that holds", client.transact(guarded("green"))).await.unwrap();
    let error = within("a wait that fails", client.transact(guarded("red"))).await.unwrap_err();
    assert!(matches!(error, TransactError::Operation { number: 1, kind: "wait", .. }), "{error:?}");
    assert_eq!(error.kind(), Some(DbErrorKind::TimedOut));
    assert_eq!(server.ctl(&["ls-list"]).ok().trim(), format!("{} (green)", seen.uuid()));

    // So is the absence of a row.
    let if_absent = || {
        let mut txn = Transaction::new();
        txn.wait("Logical_Switch", [Condition::equal("name", "once")], Until::Equal, [], Duration::ZERO);
        txn.insert_row(&LogicalSwitch { name: "once".to_owned(), ..LogicalSwitch::default() });
        txn
    };
    within("the first", client.transact(if_absent())).await.unwrap();
    let error = within("the second", client.transact(if_absent())).await.unwrap_err();
    assert_eq!(error.kind(), Some(DbErrorKind::TimedOut));

    // A wait with time is held back until somebody makes it true.
    let mut txn = Transaction::new();
    let rows = [columns([("name", "yellow".into())])];
    txn.wait(
        "Logical_Switch",
        [Condition::equal("name", "yellow")],
        Until::Equal,
        rows,
        Duration::from_secs(30),
    );
    txn.insert_row(&LogicalSwitch { name: "after-yellow".to_owned(), ..LogicalSwitch::default() });
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.transact(txn).await }
    });
    server.ctl(&["ls-add", "yellow"]).ok();
    within("the held back transaction", waiting).await.unwrap().unwrap();
    assert_eq!(switch_names(&client.replica()), ["after-yellow", "green", "once", "yellow"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_nobody_waits_for_does_not_keep_its_place() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let mut config = config(&server.remote());
    config.tuning.in_flight = 1;
    let client = loaded(config).await;
    let mut held = Transaction::new();
    let rows = [columns([("name", "never".into())])];
    held.wait(
        "Logical_Switch",
        [Condition::equal("name", "never")],
        Until::Equal,
        rows,
        Duration::from_mins(10),
    );
    let given_up = tokio::time::timeout(Duration::from_millis(300), client.transact(held)).await;
    assert!(given_up.is_err());
    within("the place", add_switch(&client, "blue")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_schema_forbids_is_told_with_its_operation() {
    let (server, client) = server_and_client().await;
    add_switch(&client, "blue").await;

    let mut range = Transaction::new();
    range.comment("first");
    range.insert("Logical_Switch_Port", columns([("name", "p".into()), ("tag", Datum::from(5000))]));
    range.comment("never done");
    let error = client.transact(range).await.unwrap_err();
    assert_eq!(error.to_string(), "operation 2 (insert in Logical_Switch_Port)");
    assert_eq!(error.kind(), Some(DbErrorKind::Constraint));

    let mut twice = Transaction::new();
    let ports: Vec<RowRef> =
        (0..2).map(|_| twice.insert("Logical_Switch_Port", columns([("name", "p".into())])).into()).collect();
    let ports = ports.into_iter().collect::<BTreeSet<RowRef>>();
    twice.mutate("Logical_Switch", [Condition::equal("name", "blue")], [Mutation::insert("ports", ports)]);
    let error = client.transact(twice).await.unwrap_err();
    assert!(matches!(error, TransactError::Commit(_)), "{error:?}");
    assert_eq!(error.kind(), Some(DbErrorKind::Constraint));
    assert!(error.db_error().unwrap().details.as_ref().unwrap().contains("identical values"));

    let mut dangling = Transaction::new();
    let nobody = Uuid::from_bytes([7; 16]);
    dangling.mutate("Logical_Switch", [], [Mutation::insert("ports", BTreeSet::from([nobody]))]);
    assert_eq!(client.transact(dangling).await.unwrap_err().kind(), Some(DbErrorKind::Reference));

    let mut unknown = Transaction::new();
    unknown.insert("Logical_Switch", columns([("colour", "blue".into())]));
    assert_eq!(client.transact(unknown).await.unwrap_err().kind(), Some(DbErrorKind::Syntax));

    let mut trial = Transaction::new();
    trial.insert("Logical_Switch", columns([("name", "trial".into())]));
    trial.abort();
    let error = client.transact(trial).await.unwrap_err();
    assert!(matches!(error, TransactError::Operation { number: 2, kind: "abort", .. }), "{error:?}");

    let mut locked = Transaction::new();
    locked.assert("lock");
    assert_eq!(client.transact(locked).await.unwrap_err().kind(), Some(DbErrorKind::NotOwner));

    assert_eq!(bare(&server.ctl(&["--bare", "--columns=name", "list", "Logical_Switch"]).ok()), ["blue"]);
    assert_eq!(server.ctl(&["--bare", "list", "Logical_Switch_Port"]).ok(), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_others_arrive_with_what_they_changed() {
    let (server, client) = server_and_client().await;
    let mut updates = client.subscribe();
    let first = within("the first state", updates.next()).await.unwrap();
    assert!(first.changes.is_empty());
    server.ctl(&["ls-add", "blue", "--", "lsp-add", "blue", "p1", "--", "lsp-add", "blue", "p2"]).ok();
    let update = update_where(&mut updates, "the switch", |replica| replica.row_count() == 3).await;
    assert_eq!(update.changes.len(), 3);
    let blue = switch(&update.replica, "blue");

    server.ctl(&["set", "Logical_Switch", "blue", "external_ids:owner=them", "external_ids:x=y"]).ok();
    server.ctl(&["lsp-del", "p1"]).ok();
    let update = update_where(&mut updates, "one port less", |replica| {
        replica.table("Logical_Switch_Port").unwrap().len() == 1
    })
    .await;
    let record = update.replica.table("Logical_Switch").unwrap().get(blue).unwrap();
    assert_eq!(record.get("external_ids"), Some(&string_map([("owner", "them"), ("x", "y")])));
    let ports: BTreeSet<Uuid> = record.read("ports").unwrap();
    let left = update.replica.table("Logical_Switch_Port").unwrap().find("name", "p2").next().unwrap().uuid();
    assert_eq!(ports, BTreeSet::from([left]));

    server.ctl(&["remove", "Logical_Switch", "blue", "external_ids", "owner"]).ok();
    server.ctl(&["ls-del", "blue"]).ok();
    update_where(&mut updates, "nothing", |replica| replica.row_count() == 0).await;
    // The first state is still what it was.
    assert_eq!(record.read::<String>("name").unwrap(), "blue");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_does_not_have_is_left_out_and_reported() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let mut config = config(&server.remote());
    config.selection =
        Selection::new().columns("Logical_Switch", &["name", "colour"]).columns("Logical_Cloud", &["name"]);
    let client = loaded(config).await;
    let status = synced(&client, 1).await;
    let absent: Vec<String> = status.absent.iter().map(ToString::to_string).collect();
    assert_eq!(absent, ["table Logical_Cloud", "column colour of table Logical_Switch"]);
    assert_eq!(status.monitor, Some("monitor_cond_since"));
    let blue = add_switch(&client, "blue").await;
    let replica = client.replica();
    let record = replica.table("Logical_Switch").unwrap().get(blue).unwrap();
    assert_eq!(record.read::<String>("colour").unwrap(), "");
    assert!(record.read::<String>("external_ids").is_err());
    assert!(replica.table("Logical_Cloud").unwrap().is_empty());
    assert!(replica.table("Logical_Router").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_all_happen() {
    let (server, client) = server_and_client().await;
    let tasks: Vec<_> = (0..300)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(async move { add_switch(&client, &format!("s{number:03}")).await })
        })
        .collect();
    let mut uuids = BTreeSet::new();
    for task in tasks {
        uuids.insert(within("a transaction", task).await.unwrap());
    }
    assert_eq!(uuids.len(), 300);
    let listed = bare(&server.ctl(&["--bare", "--columns=name", "list", "Logical_Switch"]).ok());
    assert_eq!(listed, switch_names(&client.replica()));
    assert_eq!(listed.len(), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_ends_with_its_last_handle() {
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let (client, session) = underlay_ovsdb::open(config(&server.remote()));
    let task = tokio::spawn(session.run());
    within("the load", client.loaded()).await.unwrap();
    let mut updates = client.subscribe();
    within("the first state", updates.next()).await.unwrap();
    drop(client);
    assert!(!task.is_finished());
    drop(updates);
    within("the end", task).await.unwrap();
}
