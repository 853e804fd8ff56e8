//! The same stream between two nodes in tunnels and without them.
//!
//! In: nothing. Out: figures of a lab with two tenants: one whose packets travel in Geneve tunnels, one whose packets
//! travel as they are. They send in turns, so that whatever else the machine does falls on both.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use underlay_api::ClusterUserDefinedNetwork;
use underlay_lab::artifacts::Artifacts;

use super::streams::{self, Arrived};
use crate::Bench;
use crate::figures::Figures;
use crate::lab_file::mesh_file;
use crate::networks::reach;
use crate::process::{Process, cpu_in};
use crate::rig::{PATIENCE, Rig};

/// The default network keeps its tunnels; a mesh is there for networks that ask for it.
const SETTINGS: &str = "  managed: { topology: full-mesh }\n";
const NODES: [&str; 2] = ["worker1", "worker2"];
/// The tenants: name, range, and what their networks have besides.
const TENANTS: [(&str, &str, &str); 2] =
    [("blue", "10.10.0.0/16", "Geneve"), ("green", "10.20.0.0/16", "no overlay")];
const PORT: u16 = 5001;
/// How often each sends, and for how long; and for how long before that counts.
const TURNS: usize = 5;
const TURN: Duration = Duration::from_secs(8);
const WARMING: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(500);

/// What a stream of a tenant brought, and what it cost the switches of both nodes.
#[derive(Debug, Default)]
struct Sum {
    gigabits_per_second: f64,
    seconds_per_gibibyte: f64,
}

/// One tenant after the other, several times.
pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let directory = tempfile::tempdir().context("a directory")?;
    let file = directory.path().join("lab.yaml");
    fs::write(&file, mesh_file(3, SETTINGS)).context("writing a lab file")?;
    let rig = Rig::up(bench, Some(&file)).await?;
    let mut ends = Vec::new();
    for (name, range, _) in TENANTS {
        create(&rig, name, range).await.context(name)?;
        ends.push(ends_of(&rig, name).await.context(name)?);
    }
    let mut all: [Vec<(Arrived, Duration)>; 2] = Default::default();
    for _ in 0..TURNS {
        for (ends, all) in ends.iter().zip(&mut all) {
            rig.bench.interrupt.check()?;
            let before = switches(&rig)?;
            let arrived = streams::send(&ends.0, (&ends.1, ends.2), TURN)?;
            all.push((arrived, switches(&rig)?.saturating_sub(before)));
        }
    }
    let [blue, green] = all.map(|all| sum(&all));
    for ((_, _, how), sum) in TENANTS.iter().zip([&blue, &green]) {
        figures.tell(format!("{how}: stream between nodes"), sum.gigabits_per_second, "Gbit/s");
        figures.tell(format!("{how}: CPU of both switches per GiB"), sum.seconds_per_gibibyte, "s");
    }
    let times = green.gigabits_per_second / blue.gigabits_per_second;
    figures.tell("no overlay, times Geneve: stream between nodes", times, "");
    let times = green.seconds_per_gibibyte / blue.seconds_per_gibibyte;
    figures.tell("no overlay, times Geneve: CPU per GiB", times, "");
    rig.down()
}

#[allow(clippy::cast_precision_loss, reason = "bytes of seconds are far from where a float loses some")]
fn sum(all: &[(Arrived, Duration)]) -> Sum {
    let bytes = all.iter().map(|(arrived, _)| arrived.bytes).sum::<u64>() as f64;
    let time: Duration = all.iter().map(|(arrived, _)| arrived.time).sum();
    let cpu: Duration = all.iter().map(|(_, cpu)| *cpu).sum();
    Sum {
        gigabits_per_second: bytes * 8.0 / 1e9 / time.as_secs_f64(),
        seconds_per_gibibyte: cpu.as_secs_f64() / (bytes / f64::from(1 << 30)),
    }
}

/// CPU time of the switches of both nodes.
fn switches(rig: &Rig<'_>) -> Result<Duration> {
    let stat = |node: &str| rig.exec(node, &["sh", "-c", "cat /proc/$(pidof ovs-vswitchd)/stat"]);
    NODES.iter().map(|node| Ok(cpu_in(&stat(node)?))).sum()
}

/// The namespaces of a tenant's pods, and the address of the second: waits until a stream passes.
async fn ends_of(rig: &Rig<'_>, tenant: &str) -> Result<(PathBuf, PathBuf, SocketAddr)> {
    let api: Api<Pod> = Api::namespaced(rig.client.clone(), tenant);
    let end = Instant::now() + PATIENCE;
    let mut problem = anyhow::anyhow!("pods have no addresses");
    while Instant::now() < end {
        rig.rest(LOOK).await?;
        let mut found = Vec::new();
        for node in NODES {
            let Some(address) = reach::address(&api.get(node).await?) else { continue };
            let kubelet = Process::find(&rig.lab, "kubelet", Some(&format!("--hostname-override={node}")))?;
            let namespace = reach::namespace_of(&kubelet.path(reach::NAMESPACES), &address);
            found.extend(namespace.map(|namespace| (namespace, address)));
        }
        let [(from, _), (to, address)] = found.as_slice() else { continue };
        let address = SocketAddr::new(address.parse::<IpAddr>()?, PORT);
        match streams::send(from, (to, address), WARMING) {
            Ok(_) => return Ok((from.clone(), to.clone(), address)),
            Err(error) => problem = error,
        }
    }
    bail!(problem.context(format!("no stream in {PATIENCE:?}")))
}

/// Asks for a tenant: a network and a pod on each node.
async fn create(rig: &Rig<'_>, name: &str, range: &str) -> Result<()> {
    let labels = json!({ "k8s.ovn.org/primary-user-defined-network": "" });
    let namespace: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } }))?;
    let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": range, "hostSubnet": 24 }] });
    let mut network = json!({ "topology": "Layer3", "layer3": layer3 });
    if name == TENANTS[1].0 {
        network["transport"] = json!("NoOverlay");
        network["noOverlay"] = json!({ "outboundSNAT": "Enabled", "routing": "Managed" });
        network["layer3"]["mtu"] = json!(1500);
    }
    let selector = json!({ "matchLabels": { "kubernetes.io/metadata.name": name } });
    let network: ClusterUserDefinedNetwork = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "namespaceSelector": selector, "network": network },
    }))?;
    let (client, params) = (rig.client.clone(), PostParams::default());
    Api::all(client.clone()).create(&params, &namespace).await.context("a namespace")?;
    Api::all(client.clone()).create(&params, &network).await.context("a network")?;
    for node in NODES {
        let pod: Pod = serde_json::from_value(pod(node)?)?;
        Api::namespaced(client.clone(), name).create(&params, &pod).await.context("a pod")?;
    }
    Ok(())
}

/// A pod that does nothing.
fn pod(node: &str) -> Result<Value> {
    // The first image is that of sandboxes, which does nothing and is on every node.
    let image = Artifacts::find()?.image_names()?.swap_remove(0);
    Ok(json!({
        "metadata": { "name": node },
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "pause", "image": image, "imagePullPolicy": "Never" }],
        },
    }))
}
