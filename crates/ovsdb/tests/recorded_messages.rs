//! What a real server said, recorded: read in pieces, read in three ways, and read when it is damaged.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "common/swallow.rs"]
mod swallow;

use proptest::prelude::*;
use swallow::{digest, layouts, messages};
use underlay_ovsdb::Replica;
use underlay_ovsdb::replica::{Format, TableUpdates, Told};
use underlay_ovsdb::wire::Message;

/// The same session in the words of `monitor_cond_since`, `monitor_cond` and `monitor`.
const STREAMS: [&[u8]; 3] = [
    include_bytes!("messages/update3.stream"),
    include_bytes!("messages/update2.stream"),
    include_bytes!("messages/update.stream"),
];

/// All rows without their UUIDs, which are others in every recording. References become their number.
fn content(replica: &Replica) -> Vec<String> {
    let mut rows = Vec::new();
    for (name, table) in replica.tables() {
        for record in table.iter() {
            let cells: Vec<String> = record
                .iter()
                .map(|(column, datum)| match &**column {
                    "ports" | "acls" => format!("{column}={}", datum.len()),
                    _ => format!("{column}={datum:?}"),
                })
                .collect();
            rows.push(format!("{name} {cells:?}"));
        }
    }
    rows.sort_unstable();
    rows
}

/// The content after every message that tells of rows.
fn states(stream: &[u8], notification: &str) -> Vec<Vec<String>> {
    let layouts = layouts();
    let mut replica = Replica::new(&layouts);
    let mut states = Vec::new();
    let format = if notification == "update" { Format::OldAndNew } else { Format::Difference };
    for message in messages(stream, stream.len()) {
        let updates = match &message {
            Message::Reply { id: Some(3), result: Ok(rows) } if notification == "update3" => {
                Told::parse_since(rows, &layouts).unwrap().updates
            }
            Message::Reply { id: Some(3), result: Ok(rows) } => {
                TableUpdates::parse(rows, &layouts, format).unwrap()
            }
            Message::Notification { params, .. } if notification == "update3" => {
                Told::parse_since(params, &layouts).unwrap().updates
            }
            Message::Notification { params, .. } => Told::parse(params, &layouts, format).unwrap().updates,
            _ => continue,
        };
        replica.apply(updates).unwrap();
        states.push(content(&replica));
    }
    states
}

#[test]
fn three_ways_of_telling_lead_to_the_same() {
    let all: Vec<_> = STREAMS
        .iter()
        .zip(["update3", "update2", "update"])
        .map(|(stream, word)| states(stream, word))
        .collect();
    assert_eq!(all[0].len(), 5);
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
    assert_eq!(all[0].first(), all[0].last());
}

#[test]
fn a_recorded_stream_cut_anywhere_is_the_same() {
    for stream in STREAMS {
        let whole = messages(stream, stream.len());
        assert!(whole.len() > 10);
        for piece in 1..200 {
            assert_eq!(messages(stream, piece), whole, "in pieces of {piece}");
        }
        for at in 0..stream.len() {
            let (head, tail) = stream.split_at(at);
            let mut decoder = underlay_ovsdb::wire::Decoder::new(1 << 20);
            let mut found = 0;
            for part in [head, tail] {
                decoder.space().extend_from_slice(part);
                while decoder.next_frame().unwrap().is_some() {
                    found += 1;
                }
            }
            assert_eq!(found, whole.len(), "cut at {at}");
        }
    }
}

/// A change to the bytes of a stream.
#[derive(Debug, Clone)]
enum Damage {
    Set(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, &'static str),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let words = vec![
        "\"",
        "\\",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "-1",
        "1e999",
        "[\"set\",[]]",
        "\"modify\"",
        "\"insert\"",
        "\"delete\":null",
        "\"old\":{},",
        "[\"uuid\",\"",
        "\\ud800",
        "\u{0}",
        "99999999999999999999",
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<usize>(), 1..200_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        (any::<usize>(), 1..400_usize).prop_map(|(at, count)| Damage::Repeat(at, count)),
        (any::<usize>(), prop::sample::select(words)).prop_map(|(at, word)| Damage::Insert(at, word)),
    ]
}

fn damaged(stream: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut bytes = stream.to_vec();
    for damage in damages {
        let length = bytes.len().max(1);
        match *damage {
            Damage::Set(at, byte) => {
                if let Some(old) = bytes.get_mut(at % length) {
                    *old = byte;
                }
            }
            Damage::Remove(at, count) => {
                let at = (at % length).min(bytes.len());
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Damage::Repeat(at, count) => {
                let at = (at % length).min(bytes.len());
                let piece = bytes[at..(at + count).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            Damage::Insert(at, word) => {
                let at = (at % length).min(bytes.len());
                bytes.splice(at..at, word.bytes());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Nothing a stream can say makes us panic, and how it is cut makes no difference to what is understood.
    #[test]
    fn damaged_messages_are_survived(
        stream in prop::sample::select(STREAMS.to_vec()),
        damages in prop::collection::vec(any_damage(), 1..6),
        piece in 1..300_usize,
    ) {
        let bytes = damaged(stream, &damages);
        let found = messages(&bytes, piece);
        prop_assert_eq!(&found, &messages(&bytes, bytes.len()));
        let layouts = layouts();
        let mut replica = Replica::new(&layouts);
        for message in &found {
            digest(message, &layouts, &mut replica);
        }
    }
}
