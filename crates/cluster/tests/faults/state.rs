//! What is on the API server: what is ours, what is others', and what was handed out twice. Read with kubectl, and judged
//! by code that has nothing in common with the program's own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use underlay_testkit::ApiServer;

use crate::common::daemon::get;
use crate::common::objects::{ID, SUBNETS};

const KINDS: &str = "nodes,cudn,udn,network-attachment-definitions,frrconfigurations,ra";
const NODE_ID: &str = "k8s.ovn.org/node-id";
const TRANSIT: &str = "k8s.ovn.org/node-transit-switch-port-ifaddr";
const TUNNEL_KEYS: &str = "k8s.ovn.org/tunnel-keys";
const NETWORK_LABEL: &str = "k8s.ovn.org/user-defined-network";
const GENERATED_LABEL: &str = "k8s.ovn.org/route-advertisements";
/// The annotation that a competitor writes all the time.
pub const COMPETITOR: &str = "example.com/competitor";

/// All objects that the cluster manager writes, or could.
pub struct State(Vec<Value>);

impl State {
    pub fn of(server: &ApiServer) -> Self {
        Self(get(server, &[KINDS, "-A"])["items"].as_array().unwrap().clone())
    }

    /// What we wrote, by object. Times do not count.
    pub fn ours(&self) -> BTreeMap<String, Value> {
        self.0.iter().filter_map(|object| Some((name(object), ours(object)?))).collect()
    }

    /// What others wrote and nobody changes while tests run.
    pub fn theirs(&self) -> BTreeMap<String, Value> {
        self.0.iter().filter_map(|object| Some((name(object), theirs(object)?))).collect()
    }

    /// The version of every object.
    pub fn versions(&self) -> BTreeMap<String, Value> {
        self.0.iter().map(|object| (name(object), object["metadata"]["resourceVersion"].clone())).collect()
    }

    /// What was handed out twice.
    pub fn doubles(&self) -> Vec<String> {
        doubles(self.0.iter())
    }

    /// Definitions of networks.
    pub fn definitions(&self) -> usize {
        let kinds = ["ClusterUserDefinedNetwork", "UserDefinedNetwork"];
        self.0.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == **kind)).count()
    }
}

fn name(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{} {}/{}", object["kind"].as_str().unwrap_or_default(), text("namespace"), text("name"))
}

fn ours(object: &Value) -> Option<Value> {
    let metadata = &object["metadata"];
    let annotation = |key: &str| metadata["annotations"][key].clone();
    let whole = || {
        let fields = ["labels", "annotations", "finalizers", "ownerReferences"];
        json!([fields.map(|field| metadata[field].clone()), object["spec"]])
    };
    match object["kind"].as_str()? {
        "Node" => Some(json!([SUBNETS, NODE_ID, TRANSIT].map(annotation))),
        "NetworkAttachmentDefinition" => metadata["labels"].get(NETWORK_LABEL).map(|_| whole()),
        "FRRConfiguration" => metadata["labels"].get(GENERATED_LABEL).map(|_| whole()),
        _ => Some(json!([annotation(ID), metadata["finalizers"], without_times(&object["status"])])),
    }
}

fn without_times(status: &Value) -> Value {
    let mut status = status.clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        condition.as_object_mut().unwrap().remove("lastTransitionTime");
    }
    status
}

fn theirs(object: &Value) -> Option<Value> {
    let metadata = &object["metadata"];
    match object["kind"].as_str()? {
        "Node" => {
            let mut annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
            annotations.retain(|key, _| !key.starts_with("k8s.ovn.org/") && key != COMPETITOR);
            Some(json!([metadata["labels"], annotations, object["spec"]]))
        }
        "NetworkAttachmentDefinition" if metadata["labels"].get(NETWORK_LABEL).is_none() => {
            Some(object.clone())
        }
        "FRRConfiguration" if metadata["labels"].get(GENERATED_LABEL).is_none() => Some(object.clone()),
        _ => None,
    }
}

/// What differs between two looks, as `before -> after`.
pub fn difference(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |state: &BTreeMap<String, Value>, name: &String| state.get(name).cloned().unwrap_or_default();
    let line = |name: &String| format!("{name}: {} -> {}", of(before, name), of(after, name));
    names.into_iter().filter(|name| before.get(*name) != after.get(*name)).map(line).collect()
}

/// What was handed out twice among these objects.
pub fn doubles<'a>(objects: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut owners: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut doubles = Vec::new();
    for (what, thing, owner) in objects.flat_map(claims) {
        let first = owners.entry((what, thing)).or_insert_with(|| owner.clone());
        if *first != owner {
            doubles.push(format!("{first} and {owner} have the same"));
        }
    }
    doubles
}

/// What an object has for itself: of which sort, what, and who.
fn claims(object: &Value) -> Vec<(String, String, String)> {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
    let annotation = |key: &str| metadata["annotations"][key].as_str();
    let mut claims = Vec::new();
    let mut claim = |what: &str, thing: &str, owner: &str| {
        claims.push((what.to_owned(), thing.to_owned(), format!("{owner} ({what} {thing})")));
    };
    let network = match object["kind"].as_str().unwrap_or_default() {
        "Node" => {
            if let Some(id) = annotation(NODE_ID) {
                claim("node id", id, &name);
            }
            let subnets: BTreeMap<String, Vec<String>> =
                annotation(SUBNETS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            for (network, subnets) in &subnets {
                for subnet in subnets {
                    claim(&format!("subnet of {network}"), subnet, &name);
                }
            }
            return claims;
        }
        "ClusterUserDefinedNetwork" => format!("cluster_udn_{name}"),
        "UserDefinedNetwork" => format!("{namespace}_{name}"),
        "NetworkAttachmentDefinition" if metadata["labels"].get(NETWORK_LABEL).is_some() => {
            let config: Value = serde_json::from_str(&text(&object["spec"]["config"])).unwrap_or_default();
            text(&config["name"])
        }
        _ => return claims,
    };
    if let Some(id) = annotation(ID) {
        claim("network id", id, &network);
    }
    let keys: Vec<u32> =
        annotation(TUNNEL_KEYS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    for key in keys {
        claim("tunnel key", &key.to_string(), &network);
    }
    claims
}

#[test]
fn the_judge_sees_what_was_handed_out_twice() {
    let node = |name: &str, subnet: &str| {
        let subnets = format!(r#"{{"default":["{subnet}"]}}"#);
        json!({ "kind": "Node", "metadata": { "name": name, "annotations": { SUBNETS: subnets } } })
    };
    let (one, other) = (node("a", "10.0.0.0/24"), node("b", "10.0.1.0/24"));
    assert!(doubles([&one, &other].into_iter()).is_empty());
    let same = node("c", "10.0.0.0/24");
    assert_eq!(doubles([&one, &other, &same].into_iter()).len(), 1);
}
