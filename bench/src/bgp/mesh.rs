//! A node that joins a managed mesh.
//!
//! In: nothing. Out: figures of a lab of nine nodes without overlay. One node is deleted from the API, and its kubelet
//! registers it again: from then on everybody has to tell it of everybody's pods, and everybody else of its pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::watcher::{self, Event, watcher};
use underlay_api::annotations::{Annotation, NodeSubnets};

use crate::Bench;
use crate::figures::Figures;
use crate::lab_file::mesh_file;
use crate::process::Process;
use crate::rig::{Listener, PATIENCE, Rig};

/// Nodes of the lab, with the one that joins.
const NODES: usize = 9;
const SETTINGS: &str = "  transport: no-overlay\n  noOverlay: { outboundSNAT: enable, routing: managed }\n  \
                        managed: { topology: full-mesh }\n";
/// The one that joins.
const NODE: &str = "worker8";
/// How often it does.
const TRIES: usize = 5;
/// The most milliseconds that it should take.
const JOINED: f64 = 2000.0;
/// What still goes on after something was done is not its effect on what comes next. A kubelet that died young is
/// started again later than one that did not.
const SETTLING: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(500);
const MONITOR: [&str; 4] = ["ip", "-o", "monitor", "route"];

/// Subnets of the default network, by node.
type Subnets = BTreeMap<String, BTreeSet<String>>;
type Events = BoxStream<'static, watcher::Result<Event<Node>>>;

/// Joins, several times.
pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let directory = tempfile::tempdir().context("a directory")?;
    let file = directory.path().join("lab.yaml");
    fs::write(&file, mesh_file(NODES, SETTINGS)).context("writing a lab file")?;
    let rig = Rig::up(bench, Some(&file)).await?;
    let api: Api<Node> = Api::all(rig.client.clone());
    let nodes = api.list(&ListParams::default()).await?;
    let mut listeners = BTreeMap::new();
    for node in &nodes {
        listeners.insert(node.name_any(), rig.listen(&node.name_any(), &MONITOR)?);
    }
    rig.rest(SETTLING).await?;
    let mut times = Vec::new();
    for number in 0..TRIES {
        let time = leave_and_join(&rig, &api, &mut listeners).await;
        times.push(time.with_context(|| format!("try {number}"))?);
    }
    figures.tell_times_aimed("node joins a mesh of 8: routes everywhere", &times, JOINED);
    rig.down()
}

async fn leave_and_join(
    rig: &Rig<'_>,
    api: &Api<Node>,
    listeners: &mut BTreeMap<String, Listener>,
) -> Result<Duration> {
    let mut others = Subnets::new();
    for node in api.list(&ListParams::default()).await? {
        others.insert(node.name_any(), subnets(&node)?);
    }
    let old = others.remove(NODE).context("the node is not there")?;
    api.delete(NODE, &DeleteParams::default()).await.context("deleting the node")?;
    for node in others.keys() {
        until_routes(rig, node, |routes| !old.iter().any(|subnet| has(routes, subnet))).await?;
    }
    until_routes(rig, NODE, str::is_empty).await?;
    rig.rest(SETTLING).await?;
    let mut events = watch(api).await?;
    listeners.values_mut().for_each(Listener::forget);
    let kubelet = Process::find(&rig.lab, "kubelet", Some(&format!("--hostname-override={NODE}")))?;
    rig.exec(NODE, &["kill", "-9", &kubelet.number()?])?;
    let (began, own) = joined(&mut events).await?;
    let everybody: BTreeSet<String> = others.values().flatten().cloned().collect();
    let mut last = began;
    for (node, listener) in listeners {
        let wanted = if node == NODE { &everybody } else { &own };
        last = last.max(told(listener, wanted).await.with_context(|| format!("routes of {node}"))?);
    }
    Ok(last.duration_since(began))
}

/// Waits until a node's kernel has been told of all these subnets; returns when the last one came.
async fn told(listener: &mut Listener, subnets: &BTreeSet<String>) -> Result<Instant> {
    let mut missing = subnets.clone();
    let all = |line: &str| {
        missing.remove(line.split(' ').next().unwrap_or_default());
        missing.is_empty()
    };
    listener.hear("routes", all).await
}

/// Waits until the node is there and has its subnets; returns when it came, and the subnets.
async fn joined(events: &mut Events) -> Result<(Instant, BTreeSet<String>)> {
    let mut began = None;
    let hear = async {
        while let Some(event) = events.try_next().await.context("watching nodes")? {
            let Event::Apply(node) = event else { continue };
            if node.name_any() == NODE {
                let began = *began.get_or_insert_with(Instant::now);
                let own = subnets(&node)?;
                if !own.is_empty() {
                    return Ok((began, own));
                }
            }
        }
        bail!("the watch ended");
    };
    tokio::time::timeout(PATIENCE, hear).await.with_context(|| format!("no node in {PATIENCE:?}"))?
}

/// A watch that has begun.
async fn watch(api: &Api<Node>) -> Result<Events> {
    let mut events = watcher(api.clone(), watcher::Config::default()).boxed();
    while let Some(event) = events.try_next().await.context("watching nodes")? {
        if matches!(event, Event::InitDone) {
            return Ok(events);
        }
    }
    bail!("the watch ended");
}

/// The node's subnets of the default network; none if it has none yet.
fn subnets(node: &Node) -> Result<BTreeSet<String>> {
    let Some(text) = node.annotations().get(NodeSubnets::KEY) else { return Ok(BTreeSet::new()) };
    let mut all: BTreeMap<String, BTreeSet<String>> = serde_json::from_str(text)?;
    Ok(all.remove("default").unwrap_or_default())
}

fn has(routes: &str, subnet: &str) -> bool {
    routes.lines().any(|line| line.split(' ').next() == Some(subnet))
}

/// Waits until the routes that BGP brought to a node are as they should be.
async fn until_routes(rig: &Rig<'_>, node: &str, good: impl Fn(&str) -> bool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        let routes = rig.exec(node, &["sh", "-c", "ip route show proto bgp; ip -6 route show proto bgp"])?;
        if good(&routes) {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("routes of {node} stay for {PATIENCE:?}:\n{routes}");
        }
        rig.rest(LOOK).await?;
    }
}
