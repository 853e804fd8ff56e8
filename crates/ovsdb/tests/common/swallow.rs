//! Reads a stream of bytes as a session would, whatever it says. Tests and the fuzzer use it: it must not panic.

use underlay_ovsdb::replica::{Format, Replica, TableUpdates, Told};
use underlay_ovsdb::selection::Layouts;
use underlay_ovsdb::wire::{Decoder, Message};
use underlay_ovsdb::{Index, Schema, Selection};

/// Larger than any message of the recorded streams.
const LIMIT: usize = 1 << 20;

/// The columns that the recorded streams are about.
pub fn layouts() -> Layouts {
    let schema = Schema::parse(include_bytes!("../messages/schema.json")).expect("the schema is right");
    let selection =
        schema.tables.keys().fold(Selection::new(), |selection, table| selection.all_columns(table));
    let selection = selection
        .index("Logical_Switch", Index::map_key("external_ids", "owner"))
        .index("Logical_Switch_Port", Index::column("addresses"));
    selection.resolve(&schema).layouts
}

/// The messages in a stream that arrives in pieces of this size, up to where it cannot be understood.
pub fn messages(stream: &[u8], piece: usize) -> Vec<Message> {
    let mut decoder = Decoder::new(LIMIT);
    let mut found = Vec::new();
    for piece in stream.chunks(piece.max(1)) {
        decoder.space().extend_from_slice(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => match Message::parse(&frame) {
                    Ok(message) => found.push(message),
                    Err(_) => return found,
                },
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}

/// Puts everything in a message that looks like rows onto a replica, in every way a server could mean it.
pub fn digest(message: &Message, layouts: &Layouts, replica: &mut Replica) {
    let bytes = match message {
        Message::Request { params, .. } | Message::Notification { params, .. } => params,
        Message::Reply { result: Ok(bytes) | Err(bytes), .. } => bytes,
    };
    let formats = [Format::Difference, Format::OldAndNew];
    let told = formats.into_iter().filter_map(|format| Told::parse(bytes, layouts, format).ok());
    let told = told.chain(Told::parse_since(bytes, layouts).ok()).map(|told| told.updates);
    let dumps = formats.into_iter().filter_map(|format| TableUpdates::parse(bytes, layouts, format).ok());
    for updates in told.chain(dumps) {
        // What does not fit leaves a copy in pieces, never what we have.
        let mut next = replica.clone();
        if next.apply(updates.clone()).is_ok() {
            assert_eq!(next.changes_since(replica).is_empty(), replica.changes_since(&next).is_empty());
            *replica = next.clone();
        }
        if next.reload(layouts, updates).is_ok() {
            *replica = next;
        }
    }
    let _ = Schema::parse(bytes);
}
