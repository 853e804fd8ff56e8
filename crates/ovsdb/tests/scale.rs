//! Many rows. The times are printed (`--nocapture`) and not judged: the machine may be busy.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use common::{LogicalSwitch, LogicalSwitchPort, NB, config, loaded, selection, update_where, within};
use underlay_ovsdb::replica::{Format, TableUpdates};
use underlay_ovsdb::wire::{Decoder, Message};
use underlay_ovsdb::{
    Condition, Config, Record, Replica, RowRef, Schema as DbSchema, Transaction, Uuid, columns,
};
use underlay_testkit::{OutputExt, OvsdbServer, Schema, require_artifacts};

mod common;

/// Resident memory of this process, in MiB.
fn memory() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4 / 1024
}

fn port(number: usize) -> LogicalSwitchPort {
    let address = format!(
        "0a:58:0a:00:{:02x}:{:02x} 10.0.{}.{}",
        number >> 8 & 255,
        number & 255,
        number >> 8 & 255,
        number & 255
    );
    LogicalSwitchPort {
        name: format!("namespace-{}_pod-{number:06}", number % 97),
        addresses: BTreeSet::from([address]),
        options: BTreeMap::from([("requested-chassis".to_owned(), format!("node-{}", number % 50))]),
        ..LogicalSwitchPort::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_rows_and_one_change() {
    const SWITCHES: usize = 20;
    const PORTS: usize = 1000;
    let server = OvsdbServer::start(Schema::OvnNorthbound);
    let writer = loaded(config(&server.remote())).await;
    let begun = Instant::now();
    for number in 0..SWITCHES {
        let mut txn = Transaction::new();
        let names: Vec<RowRef> =
            (0..PORTS).map(|at| txn.insert_row(&port(number * PORTS + at)).into()).collect();
        let ports = names.into_iter().collect();
        txn.insert_row(&LogicalSwitch { name: format!("s{number}"), ports, ..LogicalSwitch::default() });
        within("a switch with its ports", writer.transact(txn)).await.unwrap();
    }
    println!("written in {SWITCHES} transactions: {:?}", begun.elapsed());
    assert_eq!(writer.replica().row_count(), SWITCHES * (PORTS + 1));

    let (begun, before) = (Instant::now(), memory());
    let reader = loaded(config(&server.remote())).await;
    println!("loaded: {:?}, {} MiB more", begun.elapsed(), memory().saturating_sub(before));
    let mut updates = reader.subscribe();
    let begun = Instant::now();
    let first = within("the first state", updates.next()).await.unwrap();
    println!("first state compared with nothing: {:?}", begun.elapsed());
    assert_eq!(first.changes.len(), SWITCHES * (PORTS + 1));

    let table = first.replica.table("Logical_Switch_Port").unwrap();
    let record = table.find("name", port(7).name.as_str()).next().unwrap().clone();
    let mut times = Vec::new();
    for tag in 1..=100_i64 {
        let mut txn = Transaction::new();
        txn.update("Logical_Switch_Port", [Condition::uuid(record.uuid())], columns([("tag", tag.into())]));
        let begun = Instant::now();
        within("the change", writer.transact(txn)).await.unwrap();
        let confirmed = begun.elapsed();
        let seen = |replica: &Replica| {
            let table = replica.table("Logical_Switch_Port").unwrap();
            table.get(record.uuid()).unwrap().read::<Option<i64>>("tag").unwrap() == Some(tag)
        };
        let update = update_where(&mut updates, "the change", seen).await;
        assert_eq!(update.changes.len(), 1);
        times.push((confirmed, begun.elapsed()));
    }
    times.sort_unstable();
    println!(
        "one change, median of 100: confirmed after {:?}, at another client after {:?}",
        times[50].0, times[50].1
    );
    let listed = server.ctl(&["--bare", "get", "Logical_Switch_Port", &port(7).name, "tag"]).ok();
    assert_eq!(listed.trim(), "100");
}

fn dump(rows: usize) -> String {
    let mut text = String::from(
        r#"{"id":2,"error":null,"result":[false,"00000000-0000-0000-0000-000000000000",{"Logical_Switch_Port":{"#,
    );
    for number in 0..rows {
        let port = port(number);
        let comma = if number == 0 { "" } else { "," };
        // Random enough in their first bytes, as a server's are.
        let uuid = Uuid::from_bytes(
            (number as u128).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835).to_be_bytes(),
        );
        write!(
            text,
            r#"{comma}"{uuid}":{{"initial":{{"name":"{}","addresses":"{}","options":["map",[["requested-chassis","{}"]]]}}}}"#,
            port.name,
            port.addresses.first().unwrap(),
            port.options["requested-chassis"]
        )
        .unwrap();
    }
    text + "}}]}"
}

fn nb_schema() -> DbSchema {
    let file = require_artifacts().node_image().join("usr/share/ovn/ovn-nb.ovsschema");
    DbSchema::parse(&fs::read(file).unwrap()).unwrap()
}

/// A first dump of fifty megabytes comes in pieces; finding its end, reading it and putting it away are timed apart.
/// Without optimisation a tenth of it will do.
#[test]
fn a_large_first_dump_in_pieces() {
    let text = dump(if cfg!(debug_assertions) { 25_000 } else { 250_000 });
    let before = memory();
    let begun = Instant::now();
    let mut decoder = Decoder::new(1 << 30);
    let mut frame = None;
    for piece in text.as_bytes().chunks(64 * 1024) {
        assert!(frame.is_none());
        decoder.space().extend_from_slice(piece);
        frame = decoder.next_frame().unwrap();
    }
    let framed = begun.elapsed();
    let Message::Reply { result: Ok(result), .. } = Message::parse(&frame.unwrap()).unwrap() else {
        panic!("a reply")
    };
    let parted = begun.elapsed();
    let layouts = selection().resolve(&nb_schema()).layouts;
    let told = underlay_ovsdb::replica::Told::parse_since(&result, &layouts).unwrap();
    let read = begun.elapsed();
    let mut replica = Replica::default();
    replica.reload(&layouts, told.updates).unwrap();
    let total = begun.elapsed();
    println!(
        "{} MB, {} rows: end found {framed:?}, parts {:?}, read {:?}, put away {:?}; {total:?} and {} MiB in all",
        text.len() / 1_000_000,
        replica.row_count(),
        parted.saturating_sub(framed),
        read.saturating_sub(parted),
        total.saturating_sub(read),
        memory().saturating_sub(before),
    );
}

/// What a state with one changed row costs among a hundred thousand, and what copying the table would.
#[test]
fn one_change_among_a_hundred_thousand_rows() {
    const ROWS: usize = 100_000;
    const CHANGES: u32 = 1000;
    let layouts = selection().resolve(&nb_schema()).layouts;
    let text = dump(ROWS);
    let (_, body) = text.split_once("\"result\":").unwrap();
    let told =
        underlay_ovsdb::replica::Told::parse_since(&body.as_bytes()[..body.len() - 1], &layouts).unwrap();
    let mut replica = Replica::default();
    replica.reload(&layouts, told.updates).unwrap();
    let uuids: Vec<Uuid> = replica.table("Logical_Switch_Port").unwrap().iter().map(Record::uuid).collect();

    let (mut states, mut spent) = (Vec::new(), Duration::ZERO);
    for number in 0..CHANGES {
        let uuid = uuids[number as usize * 97 % ROWS];
        let json =
            format!(r#"{{"Logical_Switch_Port":{{"{uuid}":{{"modify":{{"name":"changed-{number}"}}}}}}}}"#);
        let begun = Instant::now();
        let updates = TableUpdates::parse(json.as_bytes(), &layouts, Format::Difference).unwrap();
        let mut next = replica.clone();
        next.apply(updates).unwrap();
        spent += begun.elapsed();
        // All states are kept, as slow readers might: nothing is changed in place.
        states.push(std::mem::replace(&mut replica, next));
    }
    let copied: BTreeMap<Uuid, Record> = replica
        .table("Logical_Switch_Port")
        .unwrap()
        .iter()
        .map(|record| (record.uuid(), record.clone()))
        .collect();
    let begun = Instant::now();
    let copy = copied.clone();
    let copying = begun.elapsed();
    assert_eq!(copy.len(), ROWS);
    let begun = Instant::now();
    let changes = replica.changes_since(&states[0]);
    println!(
        "{ROWS} rows: {:?} for a state with one change in an indexed column; copying the table would be {copying:?}; comparing two states {:?}",
        spent / CHANGES,
        begun.elapsed()
    );
    assert_eq!(changes.len(), CHANGES as usize);
    for (number, state) in states.iter().enumerate().step_by(100) {
        let name = format!("changed-{number}");
        assert_eq!(state.table("Logical_Switch_Port").unwrap().find("name", name.as_str()).count(), 0);
        assert_eq!(replica.table("Logical_Switch_Port").unwrap().find("name", name.as_str()).count(), 1);
    }
}

/// A dump of this size is read on a thread of its own; the runtime's only thread goes on.
#[tokio::test]
async fn other_tasks_go_on_while_a_large_dump_is_read() {
    use common::peer::ScriptedPeer;
    let peer = ScriptedPeer::listen();
    let client = common::start(Config::new(peer.remote().parse().unwrap(), NB, selection()));
    let mut talk = peer.accept().await;
    let (id, _) = talk.request("get_schema").await;
    let schema = fs::read(require_artifacts().node_image().join("usr/share/ovn/ovn-nb.ovsschema")).unwrap();
    talk.reply(&id, &serde_json::from_slice(&schema).unwrap()).await;
    talk.request("monitor_cond_since").await;
    talk.write(dump(20_000).as_bytes()).await;
    let mut longest = Duration::ZERO;
    while client.publication().generation() == 0 {
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        longest = longest.max(begun.elapsed());
    }
    println!("the longest that another task was held up: {longest:?}");
    assert_eq!(client.replica().row_count(), 20_000);
}
