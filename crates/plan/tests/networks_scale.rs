//! How long plans take in a cluster of 3,000 nodes with 1,000 networks:
//! `cargo test --release -p underlay-plan --test networks_scale -- --ignored --nocapture`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use serde_json::{Value, json};
use underlay_api::ClusterUserDefinedNetwork;
use underlay_plan::cluster::networks::{NetworksPlan, Numbers, Step};
use underlay_plan::cluster::{NodesPlan, networks, nodes};
use underlay_world::kind::key_of;
use underlay_world::{AnyAttachment, Attachment, Kind, Settings, World};

const NODES: usize = 3000;
const NETWORKS: usize = 1000;
/// What a plan may take.
const LIMIT: Duration = Duration::from_secs(2);

fn put<K: Kind + kube::Resource + serde::de::DeserializeOwned>(world: &mut World, object: Value) {
    let object: K = serde_json::from_value(object).unwrap();
    let key = key_of(object.meta());
    K::store(world).extend(object.read().map(|record| (key, record)));
}

fn network(world: &mut World, number: usize) {
    let name = format!("tenant-{number:04}");
    let labels = json!({ "tenant": name, "k8s.ovn.org/primary-user-defined-network": "" });
    put::<v1::Namespace>(world, json!({ "metadata": { "name": name, "labels": labels } }));
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": "10.64.0.0/12", "hostSubnet": 24 }] });
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "tenant": name } },
        "network": { "topology": "Layer3", "layer3": layer3 },
    });
    let metadata = json!({ "name": name, "uid": format!("uid-{number}") });
    put::<ClusterUserDefinedNetwork>(world, json!({ "metadata": metadata, "spec": spec }));
}

/// Plans, and puts what was planned on record.
fn turn(what: &str, world: &mut World) -> (NetworksPlan, NodesPlan) {
    let settings = Settings::default();
    let began = Instant::now();
    let planned = networks::plan(world, &settings, &Numbers::default());
    let between = began.elapsed();
    let given = nodes::plan(world, &settings, Some(&planned.parts));
    let took = began.elapsed();
    let counts = (planned.attachments.len(), given.given.len());
    println!("{what}: {took:?}, of which networks {between:?}; attachments and nodes to write: {counts:?}");
    assert!(took < LIMIT, "{what} took {took:?}");
    for (name, given) in &given.given {
        given.record(name, world);
    }
    for (key, change) in &planned.attachments {
        let Step::Create(object) = &change.step else { continue };
        AnyAttachment::store(world).insert(key.clone(), Arc::new(Attachment::read(object.as_ref().clone())));
    }
    (planned, given)
}

#[test]
#[ignore = "it measures time, and wants a release build and a quiet machine"]
fn a_large_cluster_is_planned_in_time() {
    let mut world = World::default();
    for number in 0..NODES {
        let metadata = json!({ "name": format!("node-{number:04}"), "uid": format!("uid-{number}") });
        put::<v1::Node>(&mut world, json!({ "metadata": metadata }));
    }
    (0..NETWORKS - 1).for_each(|number| network(&mut world, number));
    turn("everything new", &mut world);
    let (planned, given) = turn("nothing new", &mut world);
    assert!(planned.attachments.is_empty() && given.given.is_empty());
    network(&mut world, NETWORKS);
    let (_, given) = turn("one network more", &mut world);
    assert_eq!(given.given.len(), NODES);
}
