//! Manifests come back from our types as they went in.

use std::fs;
use std::path::Path;

use kube::core::{DeserializeGuard, ObjectList};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use underlay_api::{FRRConfiguration, FRRNodeState, NetworkAttachmentDefinition, RouteAdvertisements};

use crate::meaning::{meaning, schema_of};

const EVERYTHING: &str = include_str!("everything.yaml");

/// The example manifests, with the names of their files.
pub fn seeds() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/seeds");
    let mut seeds = vec![];
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap();
            seeds.extend(documents.into_iter().map(|document| (name.clone(), document)));
        }
    }
    assert!(seeds.len() > 10, "the examples are gone");
    seeds
}

pub fn everything() -> Value {
    serde_saphyr::from_str(EVERYTHING).unwrap()
}

/// Reads a manifest as the type of its kind and writes it again.
pub fn through_our_types(manifest: &Value) -> Value {
    fn through<K: Serialize + DeserializeOwned>(manifest: &Value) -> Value {
        serde_json::to_value(serde_json::from_value::<K>(manifest.clone()).unwrap()).unwrap()
    }
    match manifest["kind"].as_str() {
        Some("FRRConfiguration") => through::<FRRConfiguration>(manifest),
        Some("RouteAdvertisements") => through::<RouteAdvertisements>(manifest),
        kind => panic!("no type for {kind:?}"),
    }
}

#[test]
fn examples_mean_the_same_afterwards() {
    for (name, manifest) in seeds() {
        let mut again = through_our_types(&manifest);
        assert_eq!(again["metadata"], manifest["metadata"], "{name}");
        // Of two spellings we write one.
        if let Some(selectors) = again["spec"]["networkSelectors"].as_array_mut() {
            for (selector, written) in
                selectors.iter_mut().zip(manifest["spec"]["networkSelectors"].as_array().unwrap())
            {
                if written["networkSelectionType"] == "ClusterUserDefinedNetwork" {
                    assert_eq!(selector["networkSelectionType"], "ClusterUserDefinedNetworks", "{name}");
                    selector["networkSelectionType"] = written["networkSelectionType"].clone();
                }
            }
        }
        assert_eq!(meaning(&again), meaning(&manifest), "{name}");
    }
}

#[test]
fn everything_comes_back_exactly() {
    // Where we write what goes without saying, we write more; never less, and never something else.
    let (again, manifest) = (through_our_types(&everything()), everything());
    assert_eq!(meaning(&again), meaning(&manifest));
    assert_eq!(meaning(&manifest), manifest["spec"], "the manifest has values that go without saying");
}

#[test]
fn everything_is_everything() {
    let mut missing = vec![];
    find_missing(
        &[&everything()["spec"]],
        &schema_of("FRRConfiguration")["properties"]["spec"],
        "spec",
        &mut missing,
    );
    assert!(missing.is_empty(), "everything.yaml lacks {missing:?}");
}

/// Fields of the schema that none of the values has.
fn find_missing(values: &[&Value], schema: &Value, path: &str, missing: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let present: Vec<_> = values.iter().filter_map(|value| value.get(name)).collect();
        if present.is_empty() {
            missing.push(format!("{path}.{name}"));
        }
        find_missing(&present, field, &format!("{path}.{name}"), missing);
    }
    if let Some(items) = schema.get("items") {
        let present: Vec<_> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        find_missing(&present, items, &format!("{path}[]"), missing);
    }
}

#[test]
fn fields_and_words_of_later_versions_are_handed_on() {
    let mut manifest = everything();
    add_fields(&mut manifest["spec"]);
    // These two are Kubernetes' own types.
    manifest["spec"]["nodeSelector"].as_object_mut().unwrap().remove("later");
    manifest["spec"]["nodeSelector"]["matchLabels"].as_object_mut().unwrap().remove("later");
    manifest["spec"]["nodeSelector"]["matchExpressions"][0].as_object_mut().unwrap().remove("later");
    let router = &mut manifest["spec"]["bgp"]["routers"][0];
    router["neighbors"][1]["passwordSecret"].as_object_mut().unwrap().remove("later");
    router["neighbors"][0]["addressFamilies"] = json!(["unicast", "later"]);
    router["neighbors"][0]["toAdvertise"]["allowed"]["mode"] = json!("later");
    router["neighbors"][1]["dynamicASN"] = json!("later");
    router["evpn"]["advertiseVNIs"] = json!("Later");
    assert_eq!(meaning(&through_our_types(&manifest)), meaning(&manifest));
}

fn add_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_fields);
            fields.insert("later".to_owned(), json!({ "than": ["us"] }));
        }
        Value::Array(items) => items.iter_mut().for_each(add_fields),
        _ => {}
    }
}

#[test]
fn a_bare_object_is_read() {
    let bare = json!({ "metadata": { "name": "bare" } });
    assert!(serde_json::from_value::<FRRConfiguration>(bare.clone()).unwrap().spec.bgp.routers.is_empty());
    assert_eq!(serde_json::from_value::<FRRNodeState>(bare.clone()).unwrap().status, None);
    assert_eq!(serde_json::from_value::<NetworkAttachmentDefinition>(bare.clone()).unwrap().spec.config, "");
    assert_eq!(serde_json::from_value::<RouteAdvertisements>(bare).unwrap().spec.network_selectors, []);
}

#[test]
fn one_odd_object_does_not_spoil_the_list() {
    let spec = |asn: Value| json!({ "bgp": { "routers": [{ "asn": asn }] } });
    let item = |name: &str, asn| json!({ "metadata": { "name": name }, "spec": spec(asn) });
    let list = json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfigurationList",
        "metadata": {},
        "items": [item("odd", "many".into()), item("even", 64512.into())],
    });
    let list: ObjectList<DeserializeGuard<FRRConfiguration>> = serde_json::from_value(list).unwrap();
    let [odd, even] = list.items.as_slice() else { panic!("two objects went in") };
    assert_eq!(even.0.as_ref().unwrap().spec.bgp.routers[0].asn, 64512);
    assert_eq!(odd.0.as_ref().unwrap_err().metadata.name.as_deref(), Some("odd"));
}
