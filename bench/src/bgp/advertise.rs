//! Many networks that are advertised at once, and one more beside them.
//!
//! In: nothing. Out: figures of the default lab. Networks are primary ones of namespaces without pods: what is measured
//! is the way from the API to the router, which is the same for all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use underlay_api::annotations::{Annotation, NodeSubnets};
use underlay_api::{ClusterUserDefinedNetwork, RouteAdvertisements};

use super::flood::ROUTER;
use crate::Bench;
use crate::figures::{Figures, at, millis};
use crate::rig::{Listener, PATIENCE, Rig};

/// Networks that are there, without the one more.
const NETWORKS: usize = 100;
/// How often all are advertised, and how often one more is.
const TRIES: (usize, usize) = (5, 10);
/// Aims in milliseconds: the slowest of a hundred routes, one more network.
const ALL: f64 = 1000.0;
const ONE_MORE: f64 = 300.0;
/// Requests at once.
const AT_ONCE: usize = 10;
/// What still goes on after something was done is not its effect on what comes next. After a hundred networks that is
/// OVN's work for several seconds.
const SETTLING: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(5));
/// Nodes build their parts of all networks first.
const BUILDING: Duration = Duration::from_secs(30);
const NAME: &str = "all";

/// The subnets of all nodes, by network.
type Subnets = BTreeMap<String, BTreeSet<String>>;

/// All networks, then one more.
pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let rig = Rig::up(bench, None).await?;
    let numbers = stream::iter(0..=NETWORKS);
    let made = numbers.map(|number| create(&rig.client, number)).buffer_unordered(AT_ONCE);
    made.try_collect::<()>().await.context("making networks")?;
    let subnets = subnets(&rig).await?;
    rig.rest(BUILDING).await?;
    let one_more = subnets.iter().find(|(network, _)| network.ends_with(&name(NETWORKS)));
    let (last, one_more) = one_more.context("the last network has no subnets")?;
    let others = subnets.iter().filter(|(network, _)| *network != last);
    let others: BTreeSet<String> = others.flat_map(|(_, all)| all).cloned().collect();
    let mut kernel = rig.listen(ROUTER, &["ip", "-o", "monitor", "route"])?;
    all_at_once(&rig, &mut kernel, &others, figures).await.context("all networks")?;
    rig.rest(SETTLING.0).await?;
    one_at_a_time(&rig, &mut kernel, one_more, figures).await.context("one network more")?;
    rig.down()
}

async fn all_at_once(
    rig: &Rig<'_>,
    kernel: &mut Listener,
    subnets: &BTreeSet<String>,
    figures: &mut Figures,
) -> Result<()> {
    let api: Api<RouteAdvertisements> = Api::all(rig.client.clone());
    let (mut each, mut last) = (Vec::new(), Vec::new());
    for number in 0..TRIES.0 {
        rig.rest(SETTLING.0).await?;
        kernel.forget();
        let began = Instant::now();
        api.create(&PostParams::default(), &advertisement()?).await.context("making RouteAdvertisements")?;
        let times = arrivals(kernel, subnets).await?;
        each.extend(times.iter().map(|when| when.duration_since(began)));
        last.extend(times.last().map(|when| when.duration_since(began)));
        if number + 1 < TRIES.0 {
            api.delete(NAME, &DeleteParams::default()).await.context("deleting RouteAdvertisements")?;
            departures(kernel, subnets).await?;
        }
    }
    figures.tell("100 networks advertised: route on the ToR p50", millis(at(&each, 50)), "ms");
    figures.tell_aimed("100 networks advertised: route on the ToR p99", millis(at(&each, 99)), "ms", ALL);
    figures.tell_times("100 networks advertised: all 300 routes on the ToR", &last);
    Ok(())
}

async fn one_at_a_time(
    rig: &Rig<'_>,
    kernel: &mut Listener,
    subnets: &BTreeSet<String>,
    figures: &mut Figures,
) -> Result<()> {
    let api: Api<ClusterUserDefinedNetwork> = Api::all(rig.client.clone());
    let label = async |value: Value| {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "advertise": value } } }));
        api.patch_metadata(&name(NETWORKS), &PatchParams::default(), &patch).await.context("labelling")
    };
    let mut times = Vec::new();
    for _ in 0..TRIES.1 {
        rig.rest(SETTLING.1).await?;
        kernel.forget();
        let began = Instant::now();
        label(json!("true")).await?;
        times.extend(arrivals(kernel, subnets).await?.last().map(|when| when.duration_since(began)));
        label(Value::Null).await?;
        departures(kernel, subnets).await?;
    }
    figures.tell_times_aimed("one network more beside 100: routes on the ToR", &times, ONE_MORE);
    Ok(())
}

/// Waits until the router has all these routes; returns when each came, the last one last.
async fn arrivals(kernel: &mut Listener, subnets: &BTreeSet<String>) -> Result<Vec<Instant>> {
    let mut missing = subnets.clone();
    let mut times = Vec::new();
    while !missing.is_empty() {
        let came = |line: &str| missing.remove(line.split(' ').next().unwrap_or_default());
        times.push(kernel.hear("routes on the router", came).await?);
    }
    Ok(times)
}

/// Waits until the router has none of these routes.
async fn departures(kernel: &mut Listener, subnets: &BTreeSet<String>) -> Result<()> {
    let mut left = subnets.clone();
    let all_gone = |line: &str| {
        let gone = line.strip_prefix("Deleted ").and_then(|rest| rest.split(' ').next());
        left.remove(gone.unwrap_or_default());
        left.is_empty()
    };
    kernel.hear("no routes on the router", all_gone).await.map(drop)
}

/// Waits until every node has its subnet of every network.
async fn subnets(rig: &Rig<'_>) -> Result<Subnets> {
    let api = Api::<Node>::all(rig.client.clone());
    let end = Instant::now() + PATIENCE;
    loop {
        let nodes = api.list(&ListParams::default()).await?;
        let mut found = Subnets::new();
        for node in &nodes {
            let text = node.annotations().get(NodeSubnets::KEY).map_or("{}", String::as_str);
            let all: BTreeMap<String, Vec<String>> = serde_json::from_str(text)?;
            for (network, subnets) in all.into_iter().filter(|(network, _)| network != "default") {
                found.entry(network).or_default().extend(subnets);
            }
        }
        let all = found.values().flatten().count();
        if all == nodes.items.len() * (NETWORKS + 1) {
            return Ok(found);
        }
        if Instant::now() > end {
            bail!("nodes have {all} subnets, and that for {PATIENCE:?}");
        }
        rig.rest(Duration::from_millis(200)).await?;
    }
}

fn name(number: usize) -> String {
    format!("told{number:03}")
}

/// Asks for a network; the last one is not to be advertised yet.
async fn create(client: &Client, number: usize) -> Result<()> {
    let name = name(number);
    let labels = json!({ "k8s.ovn.org/primary-user-defined-network": "" });
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } }))?;
    let cidr = format!("10.{}.{}.0/20", 100 + number / 16, number % 16 * 16);
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": cidr, "hostSubnet": 24 }] });
    let labels = if number < NETWORKS { json!({ "advertise": "true" }) } else { json!({}) };
    let network: ClusterUserDefinedNetwork = serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } },
            "network": { "topology": "Layer3", "layer3": layer3 },
        },
    }))?;
    let params = PostParams::default();
    Api::all(client.clone()).create(&params, &namespace).await.context("a namespace")?;
    Api::all(client.clone()).create(&params, &network).await.context("a network")?;
    Ok(())
}

fn advertisement() -> Result<RouteAdvertisements> {
    let selector = json!({ "networkSelector": { "matchLabels": { "advertise": "true" } } });
    Ok(serde_json::from_value(json!({
        "metadata": { "name": NAME },
        "spec": {
            "networkSelectors": [{
                "networkSelectionType": "ClusterUserDefinedNetworks",
                "clusterUserDefinedNetworkSelector": selector,
            }],
            "nodeSelector": {},
            "frrConfigurationSelector": {},
            "advertisements": ["PodNetwork"],
        },
    }))?)
}
