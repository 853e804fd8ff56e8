//! Many pods at once on one node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use underlay_lab::artifacts::Artifacts;

use crate::figures::Figures;
use crate::process::Process;
use crate::rig::{PATIENCE, Rig};

/// The node that is filled.
pub const NODE: &str = "worker1";
/// Pods of a burst.
const PODS: usize = 100;
/// How often it is done: the first time much is not in the caches yet.
const BURSTS: usize = 3;
/// Requests at once; a client with fewer would be what takes the time.
const AT_ONCE: usize = 20;
/// What is still going on after a burst is not idling, and the kernel takes as long to forget a hundred namespaces.
const SETTLING: Duration = Duration::from_secs(15);
/// Long enough for everything that is done once a minute.
const IDLE: Duration = Duration::from_mins(1);
/// What all pods here have in common.
const LABEL: &str = "app=burst";

/// Pods Running, CNI times, and with the pods there memory and idle CPU.
pub async fn measure(rig: &Rig<'_>, figures: &mut Figures) -> Result<()> {
    let log = rig.lab.log(NODE, "underlay-agent");
    let (mut running, mut gone) = (Vec::new(), Vec::new());
    let (mut added, mut deleted) = (Vec::new(), Vec::new());
    for number in 0..BURSTS {
        rig.pause(SETTLING)?;
        let before = said(&log)?.len();
        running.push(create(&rig.client, PODS).await?);
        if number + 1 == BURSTS {
            idle(rig, figures)?;
        }
        gone.push(delete(&rig.client).await?);
        let said = said(&log)?;
        added.extend(cni_times(&said[before..], "ADD"));
        deleted.extend(cni_times(&said[before..], "DEL"));
    }
    if added.len() != BURSTS * PODS {
        bail!("the agent tells of {} additions", added.len());
    }
    figures.tell_times("CNI ADD", &added);
    figures.tell_times("CNI DEL", &deleted);
    figures.tell_times("100 pods Running", &running);
    figures.tell_times("100 pods gone", &gone);
    Ok(())
}

/// As [`measure`], but only how long it takes until the pods run: for other plugins.
pub async fn measure_running(rig: &Rig<'_>, figures: &mut Figures, whose: &str) -> Result<()> {
    let (mut running, mut gone) = (Vec::new(), Vec::new());
    for _ in 0..BURSTS {
        rig.pause(SETTLING)?;
        running.push(create(&rig.client, PODS).await?);
        gone.push(delete(&rig.client).await?);
    }
    figures.tell_times(&format!("{whose}: 100 pods Running"), &running);
    figures.tell_times(&format!("{whose}: 100 pods gone"), &gone);
    Ok(())
}

fn idle(rig: &Rig<'_>, figures: &mut Figures) -> Result<()> {
    rig.pause(SETTLING)?;
    let agent = Process::find(&rig.lab, "underlay-agent", Some(NODE))?;
    let cluster = Process::find(&rig.lab, "underlay-cluster", None)?;
    let (began, before) = (Instant::now(), (agent.cpu()?, cluster.cpu()?));
    rig.pause(IDLE)?;
    let percent = |used: Duration| used.as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    figures.tell("agent CPU, idle, of one core", percent(agent.cpu()?.saturating_sub(before.0)), "%");
    figures.tell("cluster manager CPU, idle", percent(cluster.cpu()?.saturating_sub(before.1)), "%");
    figures.tell("agent RSS, 100 pods", agent.memory()?, "MiB");
    figures.tell("cluster manager RSS, 100 pods", cluster.memory()?, "MiB");
    Ok(())
}

fn said(log: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))
}

/// How long the agent says that each pod's request of a kind took. A runtime asks for a removal twice; the second time
/// there is nothing to do, which must not count.
fn cni_times(log: &str, verb: &str) -> Vec<Duration> {
    let named = format!("verb=\"{verb}\"");
    let mut times: BTreeMap<&str, Duration> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(&named)) {
        let millis = field(line, "millis=").and_then(|text| text.parse().ok());
        if let (Some(pod), Some(millis)) = (field(line, "pod="), millis) {
            let longest = times.entry(pod).or_default();
            *longest = Duration::from_millis(millis).max(*longest);
        }
    }
    times.into_values().collect()
}

fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|word| word.strip_prefix(key))
}

/// Makes pods, all at once; returns how long it took until the last one ran.
pub async fn create(client: &Client, count: usize) -> Result<Duration> {
    let names: Vec<String> = (0..count).map(|number| format!("burst-{number}")).collect();
    let mut events = watch(client).await?;
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let pods = names.iter().map(|name| pod(name)).collect::<Result<Vec<_>>>()?;
    let began = Instant::now();
    let params = PostParams::default();
    let creations = stream::iter(&pods)
        .map(|pod| api.create(&params, pod))
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| std::future::ready(Ok(())));
    let mut waiting: BTreeSet<String> = names.into_iter().collect();
    let all_run = async {
        while let Some(event) = events.try_next().await.context("watching pods")? {
            if let Event::Apply(pod) = event
                && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
            {
                waiting.remove(&pod.name_any());
            }
            if waiting.is_empty() {
                break;
            }
        }
        anyhow::Ok(began.elapsed())
    };
    let both = async {
        let (created, took) = tokio::join!(creations, all_run);
        created.context("making pods")?;
        took
    };
    tokio::time::timeout(PATIENCE, both).await.with_context(|| format!("pods do not run in {PATIENCE:?}"))?
}

/// Deletes all pods at once; returns how long it took until the last one was gone.
pub async fn delete(client: &Client) -> Result<Duration> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let selected = ListParams::default().labels(LABEL);
    let mut events = watch(client).await?;
    let mut waiting: BTreeSet<String> =
        api.list(&selected).await?.iter().map(ResourceExt::name_any).collect();
    let began = Instant::now();
    api.delete_collection(&DeleteParams::default(), &selected).await?;
    let all_gone = async {
        while let Some(event) = events.try_next().await.context("watching pods")? {
            if let Event::Delete(pod) = event {
                waiting.remove(&pod.name_any());
            }
            if waiting.is_empty() {
                break;
            }
        }
        anyhow::Ok(began.elapsed())
    };
    tokio::time::timeout(PATIENCE, all_gone)
        .await
        .with_context(|| format!("pods do not go in {PATIENCE:?}"))?
}

type Events = BoxStream<'static, watcher::Result<Event<Pod>>>;

/// A watch that has begun.
async fn watch(client: &Client) -> Result<Events> {
    let api: Api<Pod> = Api::default_namespaced(client.clone());
    let mut events = watcher(api, watcher::Config::default().labels(LABEL)).boxed();
    while let Some(event) = events.try_next().await.context("watching pods")? {
        if matches!(event, Event::InitDone) {
            return Ok(events);
        }
    }
    bail!("the watch ended");
}

/// A pod that does nothing, on the node that is filled.
fn pod(name: &str) -> Result<Pod> {
    // The first image is that of sandboxes, which does nothing and is on every node.
    let image = Artifacts::find()?.image_names()?.swap_remove(0);
    let (key, value) = LABEL.split_once('=').unwrap_or_default();
    Ok(serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { key: value } },
        "spec": {
            "nodeName": NODE,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "pause", "image": image, "imagePullPolicy": "Never" }],
        },
    }))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_the_log() {
        let log = "2026-11-15T20:00:00.000000Z  INFO done verb=\"ADD\" pod=\"default/a\" millis=12\n\
                   2026-11-15T20:00:00.100000Z  INFO done verb=\"DEL\" pod=\"default/a\" millis=3\n\
                   2026-11-15T20:00:00.150000Z  INFO done verb=\"DEL\" pod=\"default/a\" millis=0\n\
                   2026-11-15T20:00:00.200000Z  INFO ready for pods\n";
        assert_eq!(cni_times(log, "ADD"), [Duration::from_millis(12)]);
        assert_eq!(cni_times(log, "DEL"), [Duration::from_millis(3)]);
        assert!(cni_times(log, "GC").is_empty());
    }
}
