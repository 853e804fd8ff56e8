//! What real servers do not do any more, or never should, played by a scripted peer.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use common::peer::{ScriptedPeer, Talk};
use common::{LogicalSwitch, NB, config, start, status_where, switch_names, synced, update_where, within};
use serde_json::{Value, json};
use underlay_ovsdb::{Client, Config, DbErrorKind, Phase, Selection, TransactError, Transaction, string_map};

mod common;

const ROW: &str = "00000000-0000-0000-0000-00000000000a";
const TXN: &str = "00000000-0000-0000-0000-0000000000f1";
const ZERO: &str = "00000000-0000-0000-0000-000000000000";

fn small(peer: &ScriptedPeer) -> Config {
    let selection = Selection::new().columns("Logical_Switch", &["name", "external_ids"]);
    Config { selection, ..config(&peer.remote()) }
}

fn switches(rows: &Value) -> Value {
    json!({ "Logical_Switch": rows })
}

/// Answers up to the rows with the newest method.
async fn serve_since(peer: &ScriptedPeer, since: &str, reply: &Value) -> Talk {
    let mut talk = peer.accept_and_tell_schema().await;
    let (id, params) = talk.request("monitor_cond_since").await;
    assert_eq!(params[3], since);
    talk.reply(&id, reply).await;
    talk
}

async fn name_is(client: &Client, name: &str) {
    let mut updates = client.subscribe();
    update_where(&mut updates, name, |replica| switch_names(replica) == [name]).await;
}

#[tokio::test]
async fn scripted_peer_without_monitor_cond_since() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    let mut talk = peer.accept_and_tell_schema().await;
    let (id, _) = talk.request("monitor_cond_since").await;
    talk.refuse(&id, &json!("unknown method")).await;
    let (id, params) = talk.request("monitor_cond").await;
    assert_eq!(params, json!([NB, "replica", {"Logical_Switch": [{"columns": ["external_ids", "name"]}]}]));
    talk.reply(
        &id,
        &switches(&json!({ROW: {"initial": {"name": "a", "external_ids": ["map", [["k", "v"]]]}}})),
    )
    .await;
    name_is(&client, "a").await;
    assert_eq!(synced(&client, 1).await.monitor, Some("monitor_cond"));
    let change =
        switches(&json!({ROW: {"modify": {"name": "b", "external_ids": ["map", [["k", "v"], ["n", "m"]]]}}}));
    talk.say(&json!({"id": null, "method": "update2", "params": ["replica", change]})).await;
    name_is(&client, "b").await;
    let record = client.replica().table("Logical_Switch").unwrap().iter().next().unwrap().clone();
    assert_eq!(record.get("external_ids"), Some(&string_map([("n", "m")])));
}

#[tokio::test]
async fn scripted_peer_with_nothing_but_the_rfc() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    let mut talk = peer.accept_and_tell_schema().await;
    // Newer servers put the error into an object.
    for (method, error) in [
        ("monitor_cond_since", json!("unknown method")),
        ("monitor_cond", json!({"error": "unknown method", "details": "d"})),
    ] {
        let (id, _) = talk.request(method).await;
        talk.refuse(&id, &error).await;
    }
    let row = |name: &str| json!({"name": name, "external_ids": ["map", [["k", name]]]});
    let (id, params) = talk.request("monitor").await;
    assert_eq!(params.as_array().unwrap().len(), 3);
    talk.reply(&id, &switches(&json!({ROW: {"new": row("a")}}))).await;
    name_is(&client, "a").await;
    assert_eq!(synced(&client, 1).await.monitor, Some("monitor"));
    let change = switches(&json!({ROW: {"old": {"name": "a"}, "new": row("b")}}));
    talk.say(&json!({"id": null, "method": "update", "params": ["replica", change]})).await;
    name_is(&client, "b").await;
    let gone = switches(&json!({ROW: {"old": row("b")}}));
    talk.say(&json!({"id": null, "method": "update", "params": ["replica", gone]})).await;
    let mut updates = client.subscribe();
    update_where(&mut updates, "no switch", |replica| replica.row_count() == 0).await;
}

#[tokio::test]
async fn scripted_peer_that_refuses_a_monitor_for_another_reason() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    let mut talk = peer.accept_and_tell_schema().await;
    let (id, _) = talk.request("monitor_cond_since").await;
    talk.refuse(&id, &json!({"error": "permission error", "details": "not you"})).await;
    talk.ended().await;
    let status = status_where(&client, "an error", |status| status.last_error.is_some()).await;
    let error = status.last_error.unwrap();
    assert_eq!(error, "the server refuses monitor_cond_since: permission error: not you");
}

#[tokio::test]
async fn scripted_peer_knows_our_last_transaction_or_not() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    let rows = |kind: &str, name: &str| switches(&json!({ROW: {kind: {"name": name}}}));
    let mut talk = serve_since(&peer, ZERO, &json!([false, ZERO, rows("initial", "a")])).await;
    talk.say(&json!({"id": null, "method": "update3", "params": ["replica", TXN, rows("modify", "b")]}))
        .await;
    name_is(&client, "b").await;
    drop(talk);
    // It knows: it tells what we missed.
    let talk = serve_since(&peer, TXN, &json!([true, TXN, rows("modify", "c")])).await;
    name_is(&client, "c").await;
    let status = synced(&client, 2).await;
    assert_eq!((status.connections, status.resumptions), (2, 1));
    let generation = client.publication().generation();
    drop(talk);
    // It does not: it tells all, which is what we have. No news for anybody.
    let talk = serve_since(&peer, TXN, &json!([false, ZERO, rows("initial", "c")])).await;
    assert_eq!(synced(&client, 3).await.resumptions, 1);
    assert_eq!(client.publication().generation(), generation);
    drop(talk);
    let _talk = serve_since(&peer, ZERO, &json!([false, ZERO, {}])).await;
    let mut updates = client.subscribe();
    let update = update_where(&mut updates, "no switch", |replica| replica.row_count() == 0).await;
    assert_eq!(update.generation, generation + 1);
}

#[tokio::test]
async fn scripted_peer_that_contradicts_itself_is_asked_for_everything() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    let rows = switches(&json!({ROW: {"initial": {"name": "a"}}}));
    for nonsense in [
        // A row that is already there, one that is not there, a value of another type, a monitor of somebody else.
        json!({"id": null, "method": "update3", "params": ["replica", TXN, switches(&json!({ROW: {"insert": {}}}))]}),
        json!({"id": null, "method": "update3", "params": ["replica", TXN, switches(&json!({TXN: {"delete": null}}))]}),
        json!({"id": null, "method": "update3", "params": ["replica", TXN, switches(&json!({ROW: {"modify": {"name": 1}}}))]}),
    ] {
        let mut talk = serve_since(&peer, ZERO, &json!([false, TXN, rows])).await;
        talk.say(&nonsense).await;
        talk.ended().await;
    }
    // Half an update was put onto a copy, never onto what others see.
    let _talk = serve_since(&peer, ZERO, &json!([false, TXN, rows])).await;
    name_is(&client, "a").await;
    synced(&client, 4).await;
    assert_eq!(client.publication().generation(), 1);
}

#[tokio::test]
async fn scripted_peer_that_says_what_nobody_asked_for() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    for (said, told) in [
        (
            json!({"id": null, "method": "update2", "params": ["replica", {}]}),
            "update2 that no monitor asked for",
        ),
        (json!({"id": null, "method": "update3", "params": ["other", ZERO, {}]}), "an update for monitor"),
        (
            json!({"id": null, "method": "monitor_canceled", "params": ["replica"]}),
            "the server ended the monitor",
        ),
        (json!({"id": "odd", "result": [], "error": null}), "a reply to nothing"),
    ] {
        let mut talk = serve_since(&peer, ZERO, &json!([false, ZERO, {}])).await;
        talk.say(&said).await;
        talk.ended().await;
        let has = |status: &underlay_ovsdb::Status| {
            status.last_error.as_ref().is_some_and(|error| error.contains(told))
        };
        status_where(&client, told, has).await;
    }
    // What is merely unknown is let pass, and requests we do not know are refused.
    let mut talk = serve_since(&peer, ZERO, &json!([false, ZERO, {}])).await;
    talk.say(&json!({"id": null, "method": "locked", "params": ["l"]})).await;
    talk.say(&json!({"id": 99, "result": [], "error": null})).await;
    talk.say(&json!({"id": "q", "method": "steal", "params": []})).await;
    let answer = talk.next().await.unwrap();
    assert_eq!(answer, json!({"id": "q", "result": null, "error": "unknown method"}));
    talk.say(&json!({"id": "e", "method": "echo", "params": ["x", 1]})).await;
    assert_eq!(talk.next().await.unwrap(), json!({"id": "e", "result": ["x", 1], "error": null}));
}

#[tokio::test]
async fn scripted_peer_that_is_not_an_ovsdb_server() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    for said in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"{]}", b"{\"id\":1,\"result\":{\"name\":1}}"] {
        let mut talk = peer.accept().await;
        talk.write(said).await;
        talk.ended().await;
    }
    let status = status_where(&client, "an error", |status| status.phase == Phase::Waiting).await;
    assert_eq!(status.connections, 0);
    assert_eq!(client.publication().generation(), 0);
}

#[tokio::test]
async fn scripted_peer_whose_message_is_too_large() {
    let peer = ScriptedPeer::listen();
    let mut config = small(&peer);
    config.tuning.max_message = 4096;
    let client = start(config);
    let mut talk = peer.accept_and_tell_schema().await;
    let (id, _) = talk.request("monitor_cond_since").await;
    let long = switches(&json!({ROW: {"initial": {"name": "x".repeat(10_000)}}}));
    talk.reply(&id, &json!([false, ZERO, long])).await;
    talk.ended().await;
    let status = status_where(&client, "an error", |status| status.last_error.is_some()).await;
    let error = status.last_error.unwrap();
    assert_eq!(error, "the server's words: a message is larger than the 4096 bytes allowed");
}

#[tokio::test]
async fn scripted_peer_that_falls_silent() {
    let peer = ScriptedPeer::listen();
    let mut config = small(&peer);
    config.tuning.probe = Some(Duration::from_millis(100));
    let client = start(config);
    let mut talk = serve_since(&peer, ZERO, &json!([false, ZERO, {}])).await;
    // Asked and answering, it is kept.
    for _ in 0..3 {
        let (id, params) = talk.request("echo").await;
        talk.reply(&id, &params).await;
    }
    assert_eq!(synced(&client, 1).await.connections, 1);
    talk.request("echo").await;
    assert_eq!(talk.next().await, None);
    status_where(&client, "a wait", |status| status.phase == Phase::Waiting).await;
}

#[tokio::test]
async fn scripted_peer_that_answers_transactions_oddly() {
    let peer = ScriptedPeer::listen();
    let client = start(small(&peer));
    let mut talk = serve_since(&peer, ZERO, &json!([false, ZERO, {}])).await;
    synced(&client, 1).await;
    let transact = || {
        let client = client.clone();
        let mut txn = Transaction::new();
        txn.insert_row(&LogicalSwitch { name: "a".to_owned(), ..LogicalSwitch::default() });
        tokio::spawn(async move { client.transact(txn).await })
    };
    let refused = transact();
    let (id, params) = talk.request("transact").await;
    let operation =
        json!({"op": "insert", "table": "Logical_Switch", "uuid-name": "row1", "row": {"name": "a"}});
    assert_eq!(params, json!([NB, operation]));
    talk.refuse(&id, &json!({"error": "not allowed", "details": "read only"})).await;
    assert_eq!(
        within("a refusal", refused).await.unwrap().unwrap_err().kind(),
        Some(DbErrorKind::Permission)
    );
    let malformed = transact();
    let (id, _) = talk.request("transact").await;
    talk.reply(&id, &json!([{}])).await;
    assert!(matches!(within("an answer", malformed).await.unwrap(), Err(TransactError::Malformed(_))));
    // The changes come first, the confirmation after them, in one piece: whoever is told finds them.
    let confirmed = transact();
    let (id, _) = talk.request("transact").await;
    let rows = switches(&json!({ROW: {"insert": {"name": "a"}}}));
    let update = json!({"id": null, "method": "update3", "params": ["replica", TXN, rows]});
    let reply = json!({"id": id, "result": [{"uuid": ["uuid", ROW]}], "error": null});
    talk.write(format!("{update}{reply}").as_bytes()).await;
    let committed = within("the confirmation", confirmed).await.unwrap().unwrap();
    assert_eq!(switch_names(&client.replica()), ["a"]);
    assert_eq!(committed.generation, client.publication().generation());
    // Two are under way when the connection ends.
    let lost = [transact(), transact()];
    talk.request("transact").await;
    talk.request("transact").await;
    drop(talk);
    for lost in lost {
        assert_eq!(within("an end", lost).await.unwrap(), Err(TransactError::OutcomeUnknown));
    }
}
