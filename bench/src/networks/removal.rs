//! How tenants go.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, future, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use underlay_api::ClusterUserDefinedNetwork;

use super::NODES;
use super::northbound::{DATABASE, Northbound, SOCKET};
use super::tenants::{LABEL, Tenant};
use crate::figures::millis;
use crate::rig::{Listener, Rig};
use crate::watch::until;

/// If no row was removed for this long, all are.
const CALM: Duration = Duration::from_secs(4);

/// Milliseconds that it took.
#[derive(Debug)]
pub struct Removed {
    /// From the first request until no pod was left.
    pub pods: f64,
    /// From then until no row was left in any northbound database.
    pub rows: f64,
    /// From then until no network was left in the API.
    pub definitions: f64,
}

/// Deletes tenants: pods, networks and namespaces, all at once. Returns when the last pod and the last network were
/// gone.
pub async fn delete(rig: &Rig<'_>, tenants: &[Tenant]) -> Result<(Instant, Instant)> {
    let client = &rig.client;
    let pods = Api::<Pod>::all(client.clone());
    let networks = Api::<ClusterUserDefinedNetwork>::all(client.clone());
    let ours = |name: Option<String>| tenants.iter().any(|tenant| Some(&tenant.name) == name.as_ref());
    let ((), pods, networks) = tokio::try_join!(
        ask(client, tenants),
        until(pods, "pods to go", |pod| ours(pod.namespace()), 0),
        until(networks, "networks to go", |network| ours(Some(network.name_any())), 0),
    )?;
    Ok((pods, networks))
}

async fn ask(client: &Client, tenants: &[Tenant]) -> Result<()> {
    let params = DeleteParams::default();
    let (networks, namespaces) =
        (Api::<ClusterUserDefinedNetwork>::all(client.clone()), Api::<Namespace>::all(client.clone()));
    let one = async |tenant: &Tenant| {
        let pods = Api::<Pod>::namespaced(client.clone(), &tenant.name);
        pods.delete_collection(&params, &ListParams::default().labels(LABEL)).await.context("pods")?;
        networks.delete(&tenant.name, &params).await.context("a network")?;
        namespaces.delete(&tenant.name, &params).await.context("a namespace")?;
        anyhow::Ok(())
    };
    let all = stream::iter(tenants).map(one).buffer_unordered(tenants.len().max(1));
    all.try_for_each(|()| future::ready(Ok(()))).await
}

/// Deletes tenants, and listens to the nodes' databases meanwhile.
pub async fn measure(rig: &Rig<'_>, tenants: &[Tenant]) -> Result<Removed> {
    let monitor = ["ovsdb-client", "monitor", "--format=csv", "--no-headings", SOCKET, DATABASE, "ALL"];
    let mut listeners =
        NODES.iter().map(|node| rig.listen(node, &monitor)).collect::<Result<Vec<Listener>>>()?;
    // What is there already is told first.
    tokio::time::sleep(CALM).await;
    listeners.iter_mut().for_each(Listener::forget);
    let began = Instant::now();
    let (pods, definitions) = delete(rig, tenants).await?;
    let mut rows = pods;
    for listener in &mut listeners {
        let last = listener.hear_out(CALM, |line| line.contains(",delete,")).await;
        rows = rows.max(last.context("no row was removed")?);
    }
    for node in NODES {
        let look = Northbound::look(rig, node)?;
        let left: Vec<&String> = look.naming(tenants).collect();
        ensure!(left.is_empty(), "{node} still has {left:?}");
    }
    let since = |from: Instant, to: Instant| millis(to.saturating_duration_since(from));
    Ok(Removed { pods: since(began, pods), rows: since(pods, rows), definitions: since(pods, definitions) })
}
