//! Servers that die, come back, forget us or change their schema, checked with OVN's own client.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use common::server::{HardyServer, Storage};
use common::{
    LogicalSwitch, bare, config, loaded, start, status_where, switch_names, synced, update_where, within,
};
use underlay_ovsdb::{Client, Committed, Phase, TransactError, Transaction, Uuid};
use underlay_testkit::{OutputExt, require_artifacts};

mod common;

async fn add_switch(client: &Client, name: &str) -> Result<Committed, TransactError> {
    let mut txn = Transaction::new();
    txn.insert_row(&LogicalSwitch { name: name.to_owned(), ..LogicalSwitch::default() });
    within("an answer to the transaction", client.transact(txn)).await
}

fn listed(server: &HardyServer) -> Vec<String> {
    bare(&server.ctl(&["--bare", "--columns=name", "list", "Logical_Switch"]).ok())
}

/// UUIDs with names, in order: rows that stayed are the same rows.
fn rows(client: &Client) -> Vec<(Uuid, String)> {
    client
        .replica()
        .rows::<LogicalSwitch>()
        .map(|row| row.map(|(uuid, row)| (uuid, row.name)).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_mid_transaction_comes_back() {
    let mut server = HardyServer::start(Storage::Standalone, &[]);
    let client = loaded(config(&server.remote())).await;
    add_switch(&client, "before").await.unwrap();
    let before = rows(&client);
    let mut updates = client.subscribe();
    within("the first state", updates.next()).await.unwrap();

    // Frozen, the server takes the request and does not answer it: the transaction is under way when the server dies.
    server.freeze();
    let outstanding = tokio::spawn({
        let client = client.clone();
        async move { add_switch(&client, "outstanding").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!outstanding.is_finished());
    server.crash();
    assert_eq!(outstanding.await.unwrap(), Err(TransactError::OutcomeUnknown));

    // While it is away nothing is sent, and what we have stays readable.
    status_where(&client, "a wait", |status| status.phase == Phase::Waiting).await;
    assert_eq!(add_switch(&client, "away").await, Err(TransactError::NotConnected));
    assert_eq!(rows(&client), before);

    server.restart();
    server.ctl(&["ls-add", "by-another"]).ok();
    synced(&client, 2).await;
    let update = update_where(&mut updates, "the new switch", |replica| replica.row_count() == 2).await;
    // The reload is told by its differences.
    assert_eq!(update.changes.len(), 1);
    assert_eq!(switch_names(&update.replica), ["before", "by-another"]);
    assert!(before.iter().all(|row| rows(&client).contains(row)));
    add_switch(&client, "after").await.unwrap();
    assert_eq!(listed(&server), ["after", "before", "by-another"]);
    assert_eq!(listed(&server), switch_names(&client.replica()));
}

#[tokio::test(flavor = "multi_thread")]
async fn under_fire_what_was_confirmed_is_there_once() {
    let mut server = HardyServer::start(Storage::Standalone, &[]);
    let client = loaded(config(&server.remote())).await;
    let (mut confirmed, mut unknown, mut unsent) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for round in 0..3 {
        synced(&client, round + 1).await;
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let (client, name) = (client.clone(), format!("r{round}n{number:03}"));
                tokio::spawn(async move { (add_switch(&client, &name).await, name) })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(4 * (round + 1))).await;
        server.crash();
        for task in tasks {
            match within("an answer", task).await.unwrap() {
                (Ok(_), name) => confirmed.insert(name),
                (Err(TransactError::OutcomeUnknown), name) => unknown.insert(name),
                (Err(TransactError::NotConnected), name) => unsent.insert(name),
                (Err(error), name) => panic!("{name}: {error}"),
            };
        }
        server.restart();
    }
    synced(&client, 4).await;
    println!("{} confirmed, {} unknown, {} unsent", confirmed.len(), unknown.len(), unsent.len());
    let listed = listed(&server);
    let once: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(listed.len(), once.len(), "a switch is there twice");
    assert!(confirmed.is_subset(&once), "a confirmed switch is missing");
    assert!(unsent.is_disjoint(&once), "a switch that was not sent is there");
    assert!(once.difference(&confirmed).all(|name| unknown.contains(name)));
    assert_eq!(listed, switch_names(&client.replica()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_remembers_tells_only_what_we_missed() {
    let mut server = HardyServer::start(Storage::Cluster, &[]);
    let client = loaded(config(&server.remote())).await;
    add_switch(&client, "one").await.unwrap();
    add_switch(&client, "two").await.unwrap();
    assert_eq!(synced(&client, 1).await.resumptions, 0);

    server.appctl(&["ovsdb-server/reconnect"]);
    assert_eq!(synced(&client, 2).await.resumptions, 1);
    assert_eq!(switch_names(&client.replica()), ["one", "two"]);

    server.crash();
    status_where(&client, "a wait", |status| status.phase == Phase::Waiting).await;
    server.restart();
    server
        .ctl(&[
            "ls-del",
            "one",
            "--",
            "ls-add",
            "three",
            "--",
            "set",
            "Logical_Switch",
            "two",
            "external_ids:a=b",
        ])
        .ok();
    let status = synced(&client, 3).await;
    let mut updates = client.subscribe();
    update_where(&mut updates, "what happened", |replica| switch_names(replica) == ["three", "two"]).await;
    assert_eq!(status.resumptions, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_forgotten_us_tells_everything() {
    let mut server = HardyServer::start(Storage::Cluster, &[]);
    // A door of our own, which can be shut while others come and go.
    let door = server.join("door");
    symlink(server.join("sock"), &door).unwrap();
    let client = loaded(config(&format!("unix:{}", door.display()))).await;
    add_switch(&client, "stays").await.unwrap();
    add_switch(&client, "goes").await.unwrap();
    let mut updates = client.subscribe();
    within("the first state", updates.next()).await.unwrap();

    fs::remove_file(&door).unwrap();
    server.crash();
    server.restart();
    server.ctl(&["ls-del", "goes", "--", "ls-add", "comes"]).ok();
    server.forget_history();
    server.crash();
    server.restart();
    symlink(server.join("sock"), &door).unwrap();
    assert_eq!(synced(&client, 2).await.resumptions, 0);
    let update = within("what changed", updates.next()).await.unwrap();
    assert_eq!(update.changes.len(), 2);
    assert_eq!(switch_names(&update.replica), ["comes", "stays"]);
    assert_eq!(switch_names(&update.replica), listed(&server));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_yet_is_waited_for() {
    let mut server = HardyServer::start(Storage::Standalone, &[]);
    server.crash();
    let client = start(config(&server.remote()));
    let status = status_where(&client, "a wait", |status| status.phase == Phase::Waiting).await;
    let error = status.last_error.unwrap();
    assert!(error.contains(&format!("connecting to {}", server.remote())), "{error}");
    assert!(client.replica().table("Logical_Switch").is_none());
    assert_eq!(client.publication().generation(), 0);
    server.restart();
    within("the load", client.loaded()).await.unwrap();
    add_switch(&client, "blue").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_remotes_the_next_is_tried() {
    let server = HardyServer::start(Storage::Standalone, &[]);
    let mut config = config("unix:/nowhere/sock");
    config.remotes.push(server.remote().parse().unwrap());
    let client = loaded(config).await;
    assert_eq!(synced(&client, 1).await.remote, Some(server.remote().parse().unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_is_told_and_tried_again() {
    let server = HardyServer::start(Storage::Standalone, &[]);
    let mut config = config(&server.remote());
    config.database = "OVN_Westbound".to_owned();
    let client = start(config);
    let status = status_where(&client, "a refusal", |status| status.last_error.is_some()).await;
    assert!(status.last_error.unwrap().starts_with("the server refuses get_schema: unknown database"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_converted_database_is_read_with_its_new_columns() {
    let full = require_artifacts().node_image().join("usr/share/ovn/ovn-nb.ovsschema");
    let mut schema: serde_json::Value = serde_json::from_slice(&fs::read(&full).unwrap()).unwrap();
    schema["tables"]["Logical_Switch"]["columns"].as_object_mut().unwrap().remove("copp").unwrap();
    schema["version"] = "7.0.0".into();
    schema.as_object_mut().unwrap().remove("cksum");
    let old = tempfile::NamedTempFile::new().unwrap();
    fs::write(old.path(), schema.to_string()).unwrap();
    let server = HardyServer::start_with(Storage::Standalone, &old.path().display().to_string(), &[]);
    let mut config = config(&server.remote());
    config.selection = config.selection.columns("Logical_Switch", &["copp"]);
    let client = loaded(config).await;
    add_switch(&client, "blue").await.unwrap();
    let status = client.status().borrow().clone();
    assert_eq!(status.absent.len(), 1);
    assert_eq!(status.schema_version.as_deref(), Some("7.0.0"));

    server.convert(&full.display().to_string());
    let status = status_where(&client, "the new schema", |status| {
        status.phase == Phase::Synced && status.absent.is_empty() && status.connections > 1
    })
    .await;
    assert_ne!(status.schema_version.as_deref(), Some("7.0.0"));
    let replica = client.replica();
    let record = replica.table("Logical_Switch").unwrap().find("name", "blue").next().unwrap();
    assert!(record.get("copp").unwrap().is_empty());
}
