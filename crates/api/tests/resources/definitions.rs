//! The files in `deploy/crds` are what the types say.

use std::fs;
use std::path::Path;

use serde_json::Value;
use underlay_api::crds;

#[test]
fn the_files_are_up_to_date() {
    for definition in crds::all() {
        let name = crds::file_name(&definition);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds").join(&name);
        let text = fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("deploy/crds/{name}: {error}: run `make crds`"));
        // Through the type, so that numbers compare as numbers.
        let written: Value = serde_saphyr::from_str(&text).unwrap();
        let written = serde_json::from_value(written).unwrap();
        assert_eq!(definition, written, "deploy/crds/{name} is out of date: run `make crds` and commit it");
    }
}

#[test]
fn every_field_is_explained() {
    let mut silent = vec![];
    for definition in crds::all() {
        let kind = &definition.spec.names.kind;
        find_silent(crate::meaning::schema_of(kind), kind, &mut silent);
    }
    assert!(silent.is_empty(), "without a description: {silent:?}");
}

fn find_silent(schema: &Value, path: &str, silent: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        if field.get("description").is_none() {
            silent.push(path.clone());
        }
        find_silent(field, &path, silent);
    }
    if let Some(items) = schema.get("items") {
        find_silent(items, path, silent);
    }
}
