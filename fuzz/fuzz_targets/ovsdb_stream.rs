//! A server's bytes: must not panic, and mean the same however they are cut.
#![no_main]

#[path = "../../crates/ovsdb/tests/common/swallow.rs"]
mod swallow;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use underlay_ovsdb::Replica;
use underlay_ovsdb::selection::Layouts;

static LAYOUTS: LazyLock<Layouts> = LazyLock::new(swallow::layouts);

fuzz_target!(|stream: &[u8]| {
    let found = swallow::messages(stream, stream.len());
    assert_eq!(found, swallow::messages(stream, 7));
    let mut replica = Replica::new(&LAYOUTS);
    for message in &found {
        swallow::digest(message, &LAYOUTS, &mut replica);
    }
});
