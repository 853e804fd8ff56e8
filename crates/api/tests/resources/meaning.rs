//! When two manifests mean the same.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The schema of the resource with this kind.
pub fn schema_of(kind: &str) -> &'static Value {
    static SCHEMAS: OnceLock<BTreeMap<String, Value>> = OnceLock::new();
    let schemas = SCHEMAS.get_or_init(|| {
        let schema = |definition: CustomResourceDefinition| {
            let schema = serde_json::to_value(&definition.spec.versions[0].schema).unwrap();
            (definition.spec.names.kind, schema["openAPIV3Schema"].clone())
        };
        underlay_api::crds::all().into_iter().map(schema).collect()
    });
    schemas.get(kind).unwrap_or_else(|| panic!("no definition of {kind}"))
}

/// A manifest without what goes without saying: values that the schema fills in, and empty ones. To Go programs an
/// absent value and an empty one are the same.
pub fn meaning(manifest: &Value) -> Value {
    let kind = manifest["kind"].as_str().expect("a manifest has a kind");
    let mut spec = manifest["spec"].clone();
    drop_silent(&mut spec, &schema_of(kind)["properties"]["spec"]);
    spec
}

fn drop_silent(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                drop_silent(field, &schema["properties"][name]);
            }
            fields.retain(|name, field| !is_silent(field, &schema["properties"][name]));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_silent(item, &schema["items"])),
        _ => {}
    }
}

fn is_silent(value: &Value, schema: &Value) -> bool {
    schema.get("default") == Some(value)
        || match value {
            Value::Null | Value::Bool(false) => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        }
}
