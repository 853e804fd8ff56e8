//! How soon the top-of-rack router knows: of pod subnets that are advertised, and of peers that are configured.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use underlay_api::annotations::{Annotation, NodeSubnets};
use underlay_api::{FRRConfiguration, RouteAdvertisements};

use crate::figures::Figures;
use crate::rig::{Listener, Rig};

/// How often an advertisement is made and removed.
const TRIES: usize = 50;
/// How often peers are removed and made again.
const SESSION_TRIES: usize = 5;
const ROUTER: &str = "tor";
const SPEAKERS: &str = "frr-k8s-system";

/// Routes, then sessions.
pub async fn measure(rig: &Rig<'_>, figures: &mut Figures) -> Result<()> {
    let subnets = subnets(&rig.client).await?;
    let mut kernel = rig.listen(ROUTER, &["ip", "-o", "monitor", "route"])?;
    let (mut added, mut withdrawn) = (Vec::new(), Vec::new());
    for number in 0..TRIES {
        rig.bench.interrupt.check()?;
        added.push(advertise(&rig.client, &mut kernel, &subnets).await?);
        withdrawn.push(withdraw(&rig.client, &mut kernel, &subnets).await.context(format!("try {number}"))?);
    }
    figures.tell_times("RouteAdvertisements -> all routes on the ToR", &added);
    figures.tell_times("RouteAdvertisements gone -> no route", &withdrawn);
    let sessions = sessions(rig).await.context("sessions")?;
    figures.tell_times("first FRRConfiguration -> all sessions up", &sessions);
    Ok(())
}

/// The subnets of all nodes.
async fn subnets(client: &Client) -> Result<BTreeSet<String>> {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await?;
    let mut subnets = BTreeSet::new();
    for node in nodes {
        let text = node.annotations().get(NodeSubnets::KEY).context("a node has no subnet")?;
        let all: Value = serde_json::from_str(text)?;
        let default = all["default"].as_array().into_iter().flatten();
        subnets.extend(default.filter_map(Value::as_str).map(str::to_owned));
    }
    Ok(subnets)
}

async fn advertise(client: &Client, kernel: &mut Listener, subnets: &BTreeSet<String>) -> Result<Duration> {
    let api: Api<RouteAdvertisements> = Api::all(client.clone());
    let object: RouteAdvertisements = serde_json::from_value(json!({
        "metadata": { "name": "default" },
        "spec": {
            "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
            "nodeSelector": {},
            "frrConfigurationSelector": {},
            "advertisements": ["PodNetwork"],
        },
    }))?;
    kernel.forget();
    let began = Instant::now();
    api.create(&PostParams::default(), &object).await.context("making RouteAdvertisements")?;
    let mut missing = subnets.clone();
    let last = kernel.hear("routes on the router", |line| {
        missing.remove(line.split(' ').next().unwrap_or_default());
        missing.is_empty()
    });
    Ok(last.await?.duration_since(began))
}

async fn withdraw(client: &Client, kernel: &mut Listener, subnets: &BTreeSet<String>) -> Result<Duration> {
    let api: Api<RouteAdvertisements> = Api::all(client.clone());
    kernel.forget();
    let began = Instant::now();
    api.delete("default", &DeleteParams::default()).await.context("deleting RouteAdvertisements")?;
    let mut left = subnets.clone();
    let last = kernel.hear("no routes on the router", |line| {
        left.remove(
            line.strip_prefix("Deleted ").and_then(|rest| rest.split(' ').next()).unwrap_or_default(),
        );
        left.is_empty()
    });
    Ok(last.await?.duration_since(began))
}

/// Removes the peers of the nodes and makes them again; times from the beginning to the last session.
async fn sessions(rig: &Rig<'_>) -> Result<Vec<Duration>> {
    let look = "while :; do vtysh -c 'show bgp summary json' | grep -c '\"state\":\"Established\"'; sleep 0.02; done";
    let mut counts = rig.listen(ROUTER, &["sh", "-c", look])?;
    let mut all = 0;
    counts.hear("sessions", |line| take(line, &mut all) > 0).await?;
    let api: Api<FRRConfiguration> = Api::namespaced(rig.client.clone(), SPEAKERS);
    let mut times = Vec::new();
    for _ in 0..SESSION_TRIES {
        rig.bench.interrupt.check()?;
        let mut peers = api.get("peers").await.context("the peers")?;
        api.delete("peers", &DeleteParams::default()).await?;
        counts.hear("no sessions", |line| line == "0").await?;
        // Not one of them may come back from what was begun before.
        rig.pause(Duration::from_secs(1))?;
        counts.forget();
        peers.metadata.resource_version = None;
        peers.metadata.uid = None;
        let began = Instant::now();
        api.create(&PostParams::default(), &peers).await?;
        let mut now = 0;
        times.push(counts.hear("sessions", |line| take(line, &mut now) >= all).await?.duration_since(began));
    }
    Ok(times)
}

fn take(line: &str, count: &mut usize) -> usize {
    *count = line.parse().unwrap_or_default();
    *count
}
