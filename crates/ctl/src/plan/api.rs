//! What changes in the Kubernetes API, besides what the admin writes: attachment definitions, endpoint slices of networks,
//! annotations of nodes, generated FRRConfigurations and RouteAdvertisements, and what is said of networks and
//! advertisements.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value, json};
use underlay_api::annotations::Annotation;
use underlay_api::conditions::Outcome;
use underlay_api::network::OWN_ANNOTATIONS;
use underlay_desired::ObjectRef;
use underlay_frr::tree::redact;
use underlay_plan::cluster::Generated;
use underlay_plan::cluster::networks::Told;
use underlay_world::service::NETWORK_NAME;
use underlay_world::slice::Origin;
use underlay_world::{Attachment, Key, Node, Slice};

use super::compare::{Change, Item, Ledger, names};
use super::settle::Settled;

/// The layer that all of it is in.
pub const LAYER: &str = "api";

/// Objects by their names, as plans call them.
type Items = BTreeMap<ObjectRef, Item>;

/// Compares what two worlds at rest have.
pub fn compare(before: &Settled, after: &Settled) -> Vec<Change> {
    let mut ledger = Ledger::new(usize::MAX);
    let (before, after) = (items(before), items(after));
    let same = |one: &Item, other: &Item| one.fields == other.fields;
    ledger.compare(LAYER, before.into_iter(), after.into_iter(), same, |_, item| item.clone());
    ledger.changes
}

fn items(settled: &Settled) -> Items {
    let mut items = Items::new();
    for attachment in settled.world.attachments.values().filter(|one| one.network.is_some()) {
        let key = &attachment.key;
        let object = ObjectRef::namespaced("NetworkAttachmentDefinition", &key.namespace, &key.name);
        put(&mut items, &object, of_attachment(attachment), made_from(attachment));
    }
    for slice in settled.world.any_slices.values() {
        let Origin::Ours { annotations, owners, .. } = &slice.origin else { continue };
        let Key { namespace, name } = &slice.key;
        let object = ObjectRef::namespaced("EndpointSlice", namespace, name);
        let source =
            |owner: &OwnerReference| ObjectRef::namespaced(&owner.kind, namespace, &owner.name).to_string();
        let why = owners.iter().map(source).collect();
        put(&mut items, &object, of_slice(slice, annotations), why);
    }
    for node in settled.world.nodes.values() {
        let object = ObjectRef::cluster("Node", &node.name);
        put(&mut items, &object, of_node(node), vec![object.to_string()]);
    }
    for (key, Generated { object, why }) in &settled.configurations {
        let name = ObjectRef::namespaced("FRRConfiguration", &key.namespace, &key.name);
        let mut spec = serde_json::to_value(&object.spec).unwrap_or_default();
        hide_passwords(&mut spec);
        let prefixes: Vec<&String> =
            object.spec.bgp.routers.iter().flat_map(|router| router.prefixes.iter()).collect();
        put(&mut items, &name, json!({ "prefixes": prefixes, "spec": spec }), names(why));
    }
    for (object, told) in &settled.networks {
        put(&mut items, object, of_network(told), vec![object.to_string()]);
    }
    for (key, told) in &settled.egress_ips {
        let object = ObjectRef::cluster("EgressIP", &key.name);
        let held: BTreeMap<String, &str> =
            told.items.iter().map(|item| (item.address.to_string(), item.node.as_str())).collect();
        let mut fields = json!({ "nodes": held });
        for (reason, message) in &told.problems {
            fields[*reason] = json!(message);
        }
        put(&mut items, &object, fields, vec![object.to_string()]);
    }
    for (name, verdict) in &settled.verdicts {
        let object = ObjectRef::cluster("RouteAdvertisements", name);
        let mut said = conditions(&[verdict.outcome(name, None)]);
        let mut why = vec![object.to_string()];
        // Of those that users write, they know what is in them.
        if let Some(generated) = settled.advertisements.get(&Key::cluster(name)) {
            said.insert("spec".to_owned(), json!(generated.object.spec));
            why = names(&generated.why);
        }
        put(&mut items, &object, json!(said), why);
    }
    items
}

fn put(items: &mut Items, object: &ObjectRef, fields: Value, why: Vec<String>) {
    let fields = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    items.insert(object.clone(), Item { name: object.to_string(), fields, why });
}

fn of_attachment(attachment: &Attachment) -> Value {
    let ours = |(key, _): &(&String, &String)| key.starts_with(OWN_ANNOTATIONS);
    let annotations: BTreeMap<_, _> = attachment.annotations.iter().filter(ours).collect();
    let config: Value = serde_json::from_str(&attachment.text).unwrap_or_default();
    let mut fields = json!({ "config": config, "labels": attachment.labels });
    for (key, value) in annotations {
        fields[key] = json!(value);
    }
    fields
}

fn made_from(attachment: &Attachment) -> Vec<String> {
    let Some((scope, name)) = attachment.made_from() else { return vec![] };
    let object = match scope {
        underlay_world::Scope::Cluster => ObjectRef::cluster(scope.kind(), name),
        underlay_world::Scope::Namespace => {
            ObjectRef::namespaced(scope.kind(), &attachment.key.namespace, name)
        }
    };
    vec![object.to_string()]
}

fn of_slice(slice: &Slice, annotations: &BTreeMap<String, String>) -> Value {
    let addresses: Vec<&String> = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses).collect();
    json!({ "addresses": addresses, "network": annotations.get(NETWORK_NAME), "ports": slice.ports })
}

/// What the cluster manager gives a node.
fn of_node(node: &Node) -> Value {
    let mut fields = Map::new();
    if let Some(id) = &node.id {
        fields.insert("number".to_owned(), json!(id.0));
    }
    if !node.transit.is_silent() {
        let transit =
            [node.transit.0.ipv4.map(|net| net.to_string()), node.transit.0.ipv6.map(|net| net.to_string())];
        fields.insert("transit".to_owned(), json!(transit.into_iter().flatten().collect::<Vec<_>>()));
    }
    for (network, subnets) in &node.subnets.0 {
        fields.insert(format!("subnets of {network}"), json!(subnets));
    }
    Value::Object(fields)
}

fn of_network(told: &Told) -> Value {
    let mut fields = conditions(&told.outcomes);
    if let Some(number) = told.number {
        fields.insert("number".to_owned(), json!(number));
    }
    Value::Object(fields)
}

fn conditions(outcomes: &[Outcome]) -> Map<String, Value> {
    let said =
        |outcome: &Outcome| format!("{} ({}): {}", outcome.verdict.as_str(), outcome.reason, outcome.message);
    outcomes.iter().map(|outcome| (outcome.type_.clone(), json!(said(outcome)))).collect()
}

/// Passwords stay where they are.
fn hide_passwords(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(text) if name == "password" && !text.is_empty() => *field = json!("***"),
                    Value::String(text) if name == "rawConfig" => {
                        *field = json!(text.lines().map(redact).collect::<Vec<_>>().join("\n"));
                    }
                    field => hide_passwords(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(hide_passwords),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let mut spec = json!({ "bgp": { "routers": [{ "neighbors": [{ "address": "10.0.0.1", "password": "hush" }] }] },
                               "raw": { "rawConfig": "router bgp 1\n neighbor 10.0.0.1 password hush" } });
        hide_passwords(&mut spec);
        assert!(!spec.to_string().contains("hush"), "{spec}");
        assert!(spec.to_string().contains("10.0.0.1 password ***"), "{spec}");
    }
}
