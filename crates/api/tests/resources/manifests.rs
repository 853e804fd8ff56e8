//! Manifests come back from our types as they went in.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kube::core::{DeserializeGuard, ObjectList};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use underlay_api::nad::NetConf;
use underlay_api::network::{
    Addressing, Layer2, Layer3, Network, NetworkRole, NoOverlay, OwnAddresses, Routing, Topology, Transport,
};
use underlay_api::{
    ClusterUserDefinedNetwork, FRRConfiguration, FRRNodeState, IPAMClaim, NetworkAttachmentDefinition,
    RouteAdvertisements, UserDefinedNetwork, VirtualMachineInstance, VirtualMachineInstanceMigration,
};

use crate::meaning::{meaning, schema_of};
use crate::networks::reading;

const EVERYTHING: &str = include_str!("everything.yaml");

/// The example manifests that apply, with the names of their files.
pub fn seeds() -> Vec<(String, Value)> {
    let seeds = seeds_in("");
    assert!(seeds.len() > 10, "the examples are gone");
    seeds
}

/// The example manifests in a folder of theirs, with the names of their files.
pub fn seeds_in(folder: &str) -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/seeds").join(folder);
    let mut seeds = vec![];
    for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap();
            seeds.extend(documents.into_iter().map(|document| (name.clone(), document)));
        }
    }
    assert!(!seeds.is_empty(), "{} is empty", folder.display());
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
        Some("ClusterUserDefinedNetwork") => through::<ClusterUserDefinedNetwork>(manifest),
        Some("FRRConfiguration") => through::<FRRConfiguration>(manifest),
        Some("NetworkAttachmentDefinition") => through::<NetworkAttachmentDefinition>(manifest),
        Some("RouteAdvertisements") => through::<RouteAdvertisements>(manifest),
        Some("UserDefinedNetwork") => through::<UserDefinedNetwork>(manifest),
        kind => panic!("no type for {kind:?}"),
    }
}

#[test]
fn examples_mean_the_same_afterwards() {
    for (name, mut manifest) in seeds() {
        let again = through_our_types(&manifest);
        assert_eq!(again["metadata"], manifest["metadata"], "{name}");
        use_our_spelling(&mut manifest["spec"]);
        assert_eq!(meaning(&again), meaning(&manifest), "{name}");
    }
}

/// Of two spellings of a word we write one.
fn use_our_spelling(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(use_our_spelling),
        Value::Array(items) => items.iter_mut().for_each(use_our_spelling),
        Value::String(word) => match word.as_str() {
            "ClusterUserDefinedNetwork" => *value = json!("ClusterUserDefinedNetworks"),
            "Enable" => *value = json!("Enabled"),
            "Disable" => *value = json!("Disabled"),
            _ => {}
        },
        _ => {}
    }
}

#[test]
fn example_networks_are_understood() {
    let mut networks = BTreeMap::new();
    for (name, manifest) in seeds() {
        if manifest["kind"] == "ClusterUserDefinedNetwork" || manifest["kind"] == "UserDefinedNetwork" {
            networks.insert(name, reading(&manifest).unwrap());
        }
    }
    let no_overlay =
        |outbound_snat, routing| Transport::NoOverlay(NoOverlay { outbound_snat, routing: Some(routing) });
    let blue = Network {
        role: NetworkRole::Primary,
        topology: Topology::Layer3(Layer3 {
            subnets: vec!["10.10.0.0/16/24".parse().unwrap()],
            exclude_subnets: vec![],
        }),
        transport: no_overlay(false, Routing::Unmanaged),
        mtu: Some(1500),
        join_subnets: vec![],
        uplink: None,
    };
    let managed = Network { transport: no_overlay(true, Routing::Managed), ..blue.clone() };
    let machines = Network {
        role: NetworkRole::Primary,
        topology: Topology::Layer2(Layer2 {
            subnets: vec!["192.168.100.0/24".parse().unwrap()],
            addressing: Addressing::Allocated { persistent: false },
            gateways: vec![],
            reserved_subnets: vec![],
            infrastructure_subnets: vec![],
            exclude_subnets: vec!["192.168.100.1/32".parse().unwrap()],
            own: vec![OwnAddresses {
                gateway: "192.168.100.1".parse().unwrap(),
                management: "192.168.100.2".parse().unwrap(),
            }],
        }),
        transport: Transport::Geneve,
        mtu: None,
        join_subnets: vec!["100.64.0.0/16".parse().unwrap()],
        uplink: None,
    };
    let want = [
        ("blue-managed", managed.clone()),
        ("blue-unmanaged", blue.clone()),
        ("no-overlay-managed", managed),
        ("no-overlay-unmanaged", blue),
        ("vm-network", machines),
    ];
    assert_eq!(networks, want.map(|(name, network)| (name.to_owned(), network)).into());
}

#[test]
fn example_attachments_are_understood() {
    let mut attachments = BTreeMap::new();
    for (name, manifest) in seeds() {
        if manifest["kind"] == "NetworkAttachmentDefinition" {
            attachments.insert(name, NetConf::parse(manifest["spec"]["config"].as_str().unwrap()));
        }
    }
    let machines = attachments["vm-network"].as_ref().unwrap();
    assert_eq!(machines.attachment, "vm-workloads/vm-bgp-network");
    assert_eq!(machines.network.as_ref().unwrap().subnets(), ["192.168.100.0/24".parse().unwrap()]);
    // What we do not know is handed on.
    assert_eq!(machines.other["bgp"], json!({ "advertise": true, "subnet": "192.168.100.0/24" }));
    // This one is about its transport, and shows no subnets; there is no network without them.
    let without_subnets = attachments["no-overlay-attachment"].as_ref().unwrap_err();
    assert_eq!(without_subnets.to_string(), "CNI configuration: subnets: is missing");
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
    assert_eq!(
        serde_json::from_value::<RouteAdvertisements>(bare.clone()).unwrap().spec.network_selectors,
        []
    );
    assert_eq!(serde_json::from_value::<UserDefinedNetwork>(bare.clone()).unwrap().spec.topology, None);
    let cluster = serde_json::from_value::<ClusterUserDefinedNetwork>(bare.clone()).unwrap();
    assert_eq!(cluster.spec.network().unwrap_err().to_string(), "spec.network.topology: is missing");
    assert_eq!(serde_json::from_value::<IPAMClaim>(bare.clone()).unwrap().status, None);
    assert_eq!(serde_json::from_value::<VirtualMachineInstance>(bare.clone()).unwrap().status, None);
    assert_eq!(serde_json::from_value::<VirtualMachineInstanceMigration>(bare).unwrap().spec.vmi_name, "");
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
