//! How long the plan of a large cluster takes: 3,000 nodes with 1,000 networks of tenants, and a service in each with 50
//! pods. No program runs; what is planned is put on record as the API server would.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use underlay_api::{ClusterUserDefinedNetwork, FRRConfiguration, RouteAdvertisements};
use underlay_net::alloc::SubnetRange;
use underlay_plan::cluster::networks::{NetworksPlan, Numbers, Step, slices};
use underlay_plan::cluster::{NodesPlan, advertise, networks, nodes};
use underlay_world::kind::key_of;
use underlay_world::slice::{MANAGED_BY, SOURCES};
use underlay_world::{AnyAttachment, AnySlice, Attachment, Kind, Settings, World};

use crate::Bench;
use crate::control_plane::objects;
use crate::figures::{Figures, millis};

const NODES: usize = 3000;
const NETWORKS: usize = 1000;
/// Pods of each tenant.
const PODS: usize = 50;
/// Milliseconds that the plan of advertisements may take.
const ADVERTISED: f64 = 2000.0;

/// All at once, nothing more, one more.
pub fn run(bench: &Bench) -> Result<Value> {
    let (mut world, mut figures) = (World::default(), Figures::default());
    for number in 0..NODES {
        put::<v1::Node>(&mut world, serde_json::to_value(objects::node(number)?)?)?;
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
    endpoints(bench, &mut figures, &mut world)?;
    advertisements(bench, &mut figures, &mut world)?;
    Ok(serde_json::to_value(figures)?)
}

/// The endpoints of all services: all at once, nothing more, one pod with another address.
fn endpoints(bench: &Bench, figures: &mut Figures, world: &mut World) -> Result<()> {
    for number in 1..=NETWORKS {
        service(world, number)?;
    }
    let all = timed(bench, figures, "everything new", || slices::plan(world))?;
    ensure!(all.len() == NETWORKS, "{} services have endpoints", all.len());
    for (key, step) in all {
        let slices::Step::Create(object) = step else { continue };
        AnySlice::store(world).extend(AnySlice(*object).read().map(|record| (key, record)));
    }
    let none = timed(bench, figures, "nothing new", || slices::plan(world))?;
    ensure!(none.is_empty(), "nothing new, and yet something to write");
    pod(world, 1, 0, 200)?;
    let one = timed(bench, figures, "one pod", || slices::plan_within(world, ["tenant-0001"]))?;
    ensure!(one.len() == 1, "{} slices have the pod", one.len());
    Ok(())
}

/// All networks are advertised from all nodes: all at once, nothing more.
fn advertisements(bench: &Bench, figures: &mut Figures, world: &mut World) -> Result<()> {
    put::<FRRConfiguration>(world, serde_json::to_value(objects::peers()?)?)?;
    put::<RouteAdvertisements>(world, serde_json::to_value(objects::advertisement()?)?)?;
    let settings = settings()?;
    let numbers = networks::plan(world, &settings, &Numbers::default()).numbers;
    for what in ["everything new", "nothing new"] {
        bench.interrupt.check()?;
        let began = Instant::now();
        let planned = advertise::plan(world, &settings, &numbers);
        figures.tell_aimed(format!("advertisements, {what}"), millis(began.elapsed()), "ms", ADVERTISED);
        let told = planned.configurations.values().flat_map(|generated| &generated.object.spec.bgp.routers);
        let told: usize = told.map(|router| router.prefixes.len()).sum();
        ensure!(told == NODES * (NETWORKS + 1), "{told} prefixes are told: {:?}", planned.verdicts);
        for (key, generated) in planned.configurations {
            world.frr_configurations.insert(key, generated.object);
        }
    }
    Ok(())
}

fn timed<T>(bench: &Bench, figures: &mut Figures, what: &str, plan: impl FnOnce() -> T) -> Result<T> {
    bench.interrupt.check()?;
    let began = Instant::now();
    let planned = plan();
    figures.tell(format!("endpoints, {what}"), millis(began.elapsed()), "ms");
    Ok(planned)
}

/// A pod of a tenant, at this place of its subnet.
fn pod(world: &mut World, tenant: usize, number: usize, place: usize) -> Result<()> {
    let namespace = format!("tenant-{tenant:04}");
    let part = json!({ "ip_addresses": [format!("10.64.0.{place}/24")], "mac_address": "0a:58:0a:40:00:02" });
    let networks = json!({ format!("{namespace}/{namespace}"): part }).to_string();
    let name = format!("pod-{number}");
    let metadata = json!({
        "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"),
        "annotations": { "k8s.ovn.org/pod-networks": networks },
    });
    put::<PartialObjectMeta<v1::Pod>>(world, json!({ "metadata": metadata }))
}

/// A service of a tenant with its pods, as the cluster's controller tells of them.
fn service(world: &mut World, tenant: usize) -> Result<()> {
    let namespace = format!("tenant-{tenant:04}");
    let mut endpoints = Vec::new();
    for number in 0..PODS {
        pod(world, tenant, number, number + 2)?;
        let name = format!("pod-{number}");
        let target = json!({ "kind": "Pod", "name": name, "uid": format!("uid-{namespace}-{name}") });
        endpoints.push(json!({ "addresses": ["10.244.0.2"], "nodeName": "node-0000", "targetRef": target }));
    }
    let labels = json!({ MANAGED_BY: SOURCES[0], "kubernetes.io/service-name": "web" });
    let metadata = json!({ "name": "web", "namespace": namespace, "labels": labels });
    put::<AnySlice>(world, json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints }))
}

/// With room for all nodes in the default network.
fn settings() -> Result<Settings> {
    let range = SubnetRange::new("10.128.0.0/12".parse()?, 24)?;
    Ok(Settings { cluster_subnets: vec![range], ..Settings::default() })
}

/// Plans, and puts what was planned on record.
fn turn(
    bench: &Bench,
    figures: &mut Figures,
    what: &str,
    world: &mut World,
) -> Result<(NetworksPlan, NodesPlan)> {
    bench.interrupt.check()?;
    let settings = settings()?;
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
    let cidr = objects::range(number, NODES).context("a range for a network")?;
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": objects::PART }] });
    let spec = json!({
        "namespaceSelector": { "matchLabels": { "tenant": name } },
        "network": { "topology": "Layer3", "layer3": layer3 },
    });
    let metadata = json!({ "name": name, "uid": format!("uid-{number}") });
    put::<ClusterUserDefinedNetwork>(world, json!({ "metadata": metadata, "spec": spec }))
}
