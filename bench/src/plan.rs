//! How long the plan of a large cluster takes: 3,000 nodes with 1,000 networks of tenants. No program runs; what is
//! planned is put on record as the API server would.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1;
use serde_json::{Value, json};
use underlay_api::ClusterUserDefinedNetwork;
use underlay_plan::cluster::networks::{NetworksPlan, Numbers, Step};
use underlay_plan::cluster::{NodesPlan, networks, nodes};
use underlay_world::kind::key_of;
use underlay_world::{AnyAttachment, Attachment, Kind, Settings, World};

use crate::Bench;
use crate::figures::{Figures, millis};

const NODES: usize = 3000;
const NETWORKS: usize = 1000;

/// All at once, nothing more, one more.
pub fn run(bench: &Bench) -> Result<Value> {
    let (mut world, mut figures) = (World::default(), Figures::default());
    for number in 0..NODES {
        let metadata = json!({ "name": format!("node-{number:04}"), "uid": format!("uid-{number}") });
        put::<v1::Node>(&mut world, json!({ "metadata": metadata }))?;
    }
    for number in 1..NETWORKS {
        network(&mut world, number)?;
    }
    turn(bench, &mut figures, "everything new", &mut world)?;
    let (planned, given) = turn(bench, &mut figures, "nothing new", &mut world)?;
    ensure!(
        planned.attachments.is_empty() && given.given.is_empty(),
        "nothing new, and yet something to write"
    );
    network(&mut world, NETWORKS)?;
    let (_, given) = turn(bench, &mut figures, "one network more", &mut world)?;
    ensure!(given.given.len() == NODES, "{} nodes have a part of the new network", given.given.len());
    Ok(serde_json::to_value(figures)?)
}

/// Plans, and puts what was planned on record.
fn turn(
    bench: &Bench,
    figures: &mut Figures,
    what: &str,
    world: &mut World,
) -> Result<(NetworksPlan, NodesPlan)> {
    bench.interrupt.check()?;
    let settings = Settings::default();
    let began = Instant::now();
    let planned = networks::plan(world, &settings, &Numbers::default());
    let given = nodes::plan(world, &settings, Some(&planned.parts));
    figures.tell(format!("plan, {what}"), millis(began.elapsed()), "ms");
    for (name, given) in &given.given {
        given.record(name, world);
    }
    for (key, change) in &planned.attachments {
        let Step::Create(object) = &change.step else { continue };
        AnyAttachment::store(world).insert(key.clone(), Arc::new(Attachment::read(object.as_ref().clone())));
    }
    Ok((planned, given))
}

fn put<K: Kind + kube::Resource + serde::de::DeserializeOwned>(
    world: &mut World,
    object: Value,
) -> Result<()> {
    let object: K = serde_json::from_value(object)?;
    let key = key_of(object.meta());
    K::store(world).extend(object.read().map(|record| (key, record)));
    Ok(())
}

/// A tenant with a namespace and a network.
fn network(world: &mut World, number: usize) -> Result<()> {
    let name = format!("tenant-{number:04}");
    let labels = json!({ "tenant": name, "k8s.ovn.org/primary-user-defined-network": "" });
    put::<v1::Namespace>(world, json!({ "metadata": { "name": name, "labels": labels } }))?;
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": "10.64.0.0/12", "hostSubnet": 24 }] });
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "tenant": name } },
        "network": { "topology": "Layer3", "layer3": layer3 },
    });
    let metadata = json!({ "name": name, "uid": format!("uid-{number}") });
    put::<ClusterUserDefinedNetwork>(world, json!({ "metadata": metadata, "spec": spec }))
}
