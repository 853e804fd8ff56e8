//! When pods reach each other: their addresses come from the API, pings from within the first pod's namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, future, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use nix::sched::{CloneFlags, setns};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::sync::watch;
use underlay_api::annotations::{Annotation, PodNetworks};

use super::tenants::{HOMES, LABEL, Tenant};
use crate::process::Process;
use crate::rig::{PATIENCE, Rig};

/// Where a node keeps the network namespaces of pods.
pub const NAMESPACES: &str = "/run/netns";
/// How often a ping is sent, in seconds, and how often is looked for what is not there yet.
const PING: &str = "0.02";
const LOOK: Duration = Duration::from_millis(20);

/// Addresses of pods in their tenants' networks, by namespace and name.
type Addresses = BTreeMap<(String, String), String>;

/// Waits until in every tenant's network the first pod's ping was answered by the second; returns when the last was.
pub async fn all(rig: &Rig<'_>, tenants: &[Tenant]) -> Result<Instant> {
    let kubelet = Process::find(&rig.lab, "kubelet", Some(&format!("--hostname-override={}", HOMES[0])))?;
    let finder = Finder::start(kubelet.path(NAMESPACES));
    let (sender, addresses) = watch::channel(Addresses::new());
    let answers = stream::iter(tenants)
        .map(|tenant| answered(tenant, addresses.clone(), &finder))
        .buffer_unordered(tenants.len().max(1))
        .try_fold(Instant::now(), |last, next| future::ready(Ok(last.max(next))));
    let first = async {
        tokio::select! {
            last = answers => last,
            ended = follow(rig, sender) => ended.and_then(|()| bail!("the watch of pods ended")),
        }
    };
    tokio::time::timeout(PATIENCE, first).await.with_context(|| format!("no answers in {PATIENCE:?}"))?
}

/// Keeps the addresses of pods up to date.
async fn follow(rig: &Rig<'_>, addresses: watch::Sender<Addresses>) -> Result<()> {
    let api: Api<Pod> = Api::all(rig.client.clone());
    let mut events = watcher(api, watcher::Config::default().labels(LABEL)).boxed();
    while let Some(event) = events.try_next().await.context("watching pods")? {
        if let Event::Apply(pod) | Event::InitApply(pod) = event
            && let Some(address) = address(&pod)
        {
            let key = (pod.namespace().unwrap_or_default(), pod.name_any());
            addresses.send_modify(|all| _ = all.insert(key, address));
        }
    }
    Ok(())
}

/// The address of a pod in its tenant's network, once it has one.
pub fn address(pod: &Pod) -> Option<String> {
    let networks: Value = serde_json::from_str(pod.annotations().get(PodNetworks::KEY)?).ok()?;
    let primary = networks.as_object()?.values().find(|network| network["role"] == "primary")?;
    let address = primary["ip_addresses"][0].as_str()?;
    Some(address.split('/').next().unwrap_or_default().to_owned())
}

/// Waits for an answer in one tenant's network.
async fn answered(
    tenant: &Tenant,
    mut addresses: watch::Receiver<Addresses>,
    finder: &Finder,
) -> Result<Instant> {
    let keys = HOMES.map(|node| (tenant.name.clone(), Tenant::pod(node)));
    let known = addresses.wait_for(|all| keys.iter().all(|key| all.contains_key(key))).await?.clone();
    let [from, to] = keys.map(|key| known[&key].clone());
    loop {
        if let Some(namespace) = finder.find(&from)
            && let Some(when) = ping(&namespace, &to).await?
        {
            return Ok(when);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Pings until there is an answer; nothing if there is no way to send one yet.
async fn ping(namespace: &Path, to: &str) -> Result<Option<Instant>> {
    let mut child = Command::new("nsenter")
        .arg(format!("--net={}", namespace.display()))
        .args(["ping", "-n", "-i", PING, "-w", "60", to])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("running ping")?;
    let mut lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
    while let Some(line) = lines.next_line().await? {
        if line.contains("bytes from") {
            let when = Instant::now();
            child.kill().await.context("ending ping")?;
            return Ok(Some(when));
        }
    }
    child.wait().await.context("waiting for ping")?;
    Ok(None)
}

/// The network namespace of a node that has this address, if one has it yet.
pub fn namespace_of(directory: &Path, address: &str) -> Option<PathBuf> {
    let paths = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let (paths, address) = (paths.collect::<Vec<_>>(), address.to_owned());
    // A thread of its own: it enters these namespaces.
    let has_it = move |path: &PathBuf| addresses_in(path).is_ok_and(|found| found.contains(&address));
    thread::spawn(move || paths.into_iter().find(has_it)).join().ok().flatten()
}

/// Looks which network namespace of a node has which address. It ends when dropped.
struct Finder {
    found: Arc<Mutex<BTreeMap<String, PathBuf>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Finder {
    fn start(directory: PathBuf) -> Self {
        let (found, stop) = (Arc::<Mutex<BTreeMap<_, _>>>::default(), Arc::<AtomicBool>::default());
        let (result, ended) = (found.clone(), stop.clone());
        // A thread of its own: it enters these namespaces.
        let thread = thread::spawn(move || {
            let mut known = BTreeSet::new();
            while !ended.load(Ordering::Relaxed) {
                let entries =
                    fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path());
                for path in entries.filter(|path| !known.contains(path)).collect::<Vec<_>>() {
                    let addresses = addresses_in(&path).unwrap_or_default();
                    // A pod of a tenant has two: its own, and one for its node only.
                    if addresses.len() > 1 {
                        known.insert(path.clone());
                        let entries = addresses.into_iter().map(|address| (address, path.clone()));
                        result.lock().unwrap_or_else(PoisonError::into_inner).extend(entries);
                    }
                }
                thread::sleep(LOOK);
            }
        });
        Self { found, stop, thread: Some(thread) }
    }

    fn find(&self, address: &str) -> Option<PathBuf> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).get(address).cloned()
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Addresses of a network namespace. This thread is in it from then on.
fn addresses_in(namespace: &Path) -> Result<BTreeSet<String>> {
    setns(File::open(namespace)?, CloneFlags::CLONE_NEWNET)?;
    Ok(local_addresses(&fs::read_to_string("/proc/thread-self/net/fib_trie")?))
}

/// The addresses in the kernel's text of its routes that are this host's own, but for loopback.
fn local_addresses(trie: &str) -> BTreeSet<String> {
    let mut addresses = BTreeSet::new();
    let mut last = "";
    for line in trie.lines() {
        if let Some((_, address)) = line.split_once("|-- ") {
            last = address.trim();
        } else if line.contains("/32 host LOCAL") && !last.starts_with("127.") {
            addresses.insert(last.to_owned());
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_addresses_are_found_among_routes() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.100.1.0\n        /24 link UNICAST\n     |-- 10.100.1.3\n        \
                    /32 host LOCAL\n     |-- 10.100.1.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        \
                    /32 host LOCAL\n";
        assert_eq!(local_addresses(trie), BTreeSet::from(["10.100.1.3".to_owned()]));
        assert!(local_addresses("").is_empty());
    }
}
