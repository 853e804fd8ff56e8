//! One value, as each type a column can have: what was read is read again, the same, from what we write.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeSeed;
use underlay_ovsdb::Datum;
use underlay_ovsdb::datum::DatumSeed;
use underlay_ovsdb::schema::{AtomicType, ColumnType};

const KINDS: [AtomicType; 5] =
    [AtomicType::Integer, AtomicType::Real, AtomicType::Boolean, AtomicType::String, AtomicType::Uuid];

fn read(ty: &ColumnType, json: &[u8]) -> Option<Datum> {
    DatumSeed(ty).deserialize(&mut serde_json::Deserializer::from_slice(json)).ok()
}

fuzz_target!(|json: &[u8]| {
    for key in KINDS {
        for value in KINDS.map(Some).into_iter().chain([None]) {
            let ty = ColumnType { key: key.into(), value: value.map(Into::into), min: 0, max: None };
            if let Some(datum) = read(&ty, json) {
                let written = serde_json::to_vec(&datum).expect("a value can be written");
                assert_eq!(read(&ty, &written).as_ref(), Some(&datum));
                assert!(datum.difference(&datum, true).is_empty());
            }
        }
    }
});
