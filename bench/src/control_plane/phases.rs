//! What happens to the cluster, one thing after another, and when the cluster manager has followed.
//!
//! Every phase returns how long it took to ask, and how long after that until all was done.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use underlay_api::annotations::{Advertisers, Annotation, NodeId, NodeSubnets, TransitAddresses};
use underlay_api::{
    ClusterUserDefinedNetwork, FRRConfiguration, NetworkAttachmentDefinition, RouteAdvertisements,
};

use super::objects::{self, PEER, SPEAKERS};
use crate::watch::until;

/// Requests at once; a client with fewer would be what takes the time.
const AT_ONCE: usize = 20;
/// The number of the other autonomous system.
const OTHER_PEER: u32 = PEER + 1;

/// How long a phase took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    /// From the first request of the phase to the answer to the last.
    pub asking: Duration,
    /// From there until all was done.
    pub after: Duration,
}

impl Took {
    fn new(began: Instant, asked: Instant, done: Instant) -> Self {
        Self { asking: asked.duration_since(began), after: done.saturating_duration_since(asked) }
    }
}

/// Nodes come; each is given its place.
pub async fn nodes(client: &Client, count: usize) -> Result<Took> {
    let api: Api<Node> = Api::all(client.clone());
    let objects = (0..count).map(objects::node).collect::<Result<Vec<_>>>()?;
    let placed = |node: &Node| {
        let has = |key: &str| node.annotations().contains_key(key);
        has(NodeId::KEY) && has(NodeSubnets::KEY) && has(TransitAddresses::KEY)
    };
    let began = Instant::now();
    let (asked, done) = tokio::try_join!(create(&api, &objects), until(api.clone(), "nodes", placed, count))?;
    Ok(Took::new(began, asked, done))
}

/// Tenants come, each with a namespace and a network; every node has its part of every network.
pub async fn networks(client: &Client, nodes: usize, count: usize) -> Result<Took> {
    let (namespaces, networks) = (Api::<Namespace>::all(client.clone()), Api::all(client.clone()));
    let names: Vec<String> = (0..count).map(objects::tenant).collect();
    let new_namespaces = names.iter().map(|name| objects::namespace(name)).collect::<Result<Vec<_>>>()?;
    let new_networks =
        (0..count).map(|number| objects::network(number, nodes)).collect::<Result<Vec<_>>>()?;
    let part = |node: &Node| parts(node) == count + 1;
    let began = Instant::now();
    let (asked, also_asked, done) = tokio::try_join!(
        create(&namespaces, &new_namespaces),
        create(&networks, &new_networks),
        until(Api::<Node>::all(client.clone()), "parts of networks", part, nodes),
    )?;
    Ok(Took::new(began, asked.max(also_asked), done))
}

/// All networks are advertised; every node has a generated configuration with its part of each, and every attachment
/// says so.
pub async fn advertise(client: &Client, nodes: usize, networks: usize) -> Result<Took> {
    create(&Api::<Namespace>::all(client.clone()), &[objects::namespace(SPEAKERS)?]).await?;
    let configurations = Api::<FRRConfiguration>::namespaced(client.clone(), SPEAKERS);
    let advertisements = Api::<RouteAdvertisements>::all(client.clone());
    let began = Instant::now();
    let asked = async {
        create(&configurations, &[objects::peers()?]).await?;
        create(&advertisements, &[objects::advertisement()?]).await
    };
    let complete = |object: &FRRConfiguration| {
        let told = object.spec.bgp.routers.iter().map(|router| router.prefixes.len()).sum::<usize>();
        generated(object) && told == networks + 1
    };
    let announced =
        |object: &NetworkAttachmentDefinition| object.annotations().contains_key(Advertisers::KEY);
    let attachments = Api::<NetworkAttachmentDefinition>::all(client.clone());
    let (asked, configured, announced) = tokio::try_join!(
        asked,
        until(configurations.clone(), "generated configurations", complete, nodes),
        until(attachments, "attachments that say who advertises them", announced, networks),
    )?;
    Ok(Took::new(began, asked, configured.max(announced)))
}

/// The peers change; every generated configuration follows.
pub async fn change_peers(client: &Client, nodes: usize) -> Result<Took> {
    let configurations = Api::<FRRConfiguration>::namespaced(client.clone(), SPEAKERS);
    let mut peers = objects::peers()?;
    peer_with(&mut peers, OTHER_PEER);
    let patch = Patch::Merge(json!({ "spec": peers.spec }));
    let follows = |object: &FRRConfiguration| {
        let mut neighbors = object.spec.bgp.routers.iter().flat_map(|router| &router.neighbors);
        generated(object) && neighbors.all(|neighbor| neighbor.asn == OTHER_PEER)
    };
    let done = until(configurations.clone(), "changed configurations", follows, nodes);
    let began = Instant::now();
    let asked = async {
        configurations.patch("peers", &PatchParams::default(), &patch).await.context("changing the peers")?;
        anyhow::Ok(Instant::now())
    };
    let (asked, done) = tokio::try_join!(asked, done)?;
    Ok(Took::new(began, asked, done))
}

/// The configurations that the manager has written.
pub async fn generated_configurations(client: &Client) -> Result<Vec<FRRConfiguration>> {
    let configurations = Api::<FRRConfiguration>::namespaced(client.clone(), SPEAKERS);
    let mut all = configurations.list(&ListParams::default()).await.context("listing configurations")?.items;
    all.retain(generated);
    Ok(all)
}

/// Makes copies of configurations and then changes them, with nothing to decide: so long the API server takes for that
/// many writes, whoever asks for them. Returns how long each took.
pub async fn write_copies(client: &Client, originals: Vec<FRRConfiguration>) -> Result<(Duration, Duration)> {
    let configurations = Api::<FRRConfiguration>::namespaced(client.clone(), SPEAKERS);
    let copy = |one: FRRConfiguration| FRRConfiguration {
        metadata: ObjectMeta { name: Some(format!("copy-of-{}", one.name_any())), ..ObjectMeta::default() },
        ..one
    };
    let copies: Vec<FRRConfiguration> = originals.into_iter().map(copy).collect();
    let began = Instant::now();
    let created = create(&configurations, &copies).await?.duration_since(began);
    let written = configurations.list(&ListParams::default()).await.context("listing copies")?.items;
    let mut written: Vec<_> =
        written.into_iter().filter(|one| one.name_any().starts_with("copy-of-")).collect();
    for one in &mut written {
        peer_with(one, PEER);
    }
    let (params, began) = (PostParams::default(), Instant::now());
    let requests = stream::iter(&written)
        .map(async |one| configurations.replace(&one.name_any(), &params, one).await.map(drop));
    requests.buffer_unordered(AT_ONCE).try_collect::<()>().await.context("replacing copies")?;
    Ok((created, began.elapsed()))
}

/// All networks are deleted; no definition, no attachment and no part of a node is left.
pub async fn delete(client: &Client, nodes: usize) -> Result<Took> {
    let networks = Api::<ClusterUserDefinedNetwork>::all(client.clone());
    let attachments = Api::<NetworkAttachmentDefinition>::all(client.clone());
    let alone = |node: &Node| parts(node) == 1;
    let began = Instant::now();
    let asked = async {
        networks.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        anyhow::Ok(Instant::now())
    };
    let (asked, networks, attachments, nodes) = tokio::try_join!(
        asked,
        until(networks.clone(), "networks", |_| true, 0),
        until(attachments, "attachments", |_| true, 0),
        until(Api::<Node>::all(client.clone()), "nodes with no network but the default", alone, nodes),
    )?;
    Ok(Took::new(began, asked, networks.max(attachments).max(nodes)))
}

/// Makes objects, many at once; returns when the last was there.
async fn create<K>(api: &Api<K>, objects: &[K]) -> Result<Instant>
where
    K: Resource<DynamicType: Default> + Clone + Debug + DeserializeOwned + Serialize,
{
    let params = PostParams::default();
    let requests = stream::iter(objects).map(|object| api.create(&params, object));
    requests
        .buffer_unordered(AT_ONCE)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await
        .context("making objects")?;
    Ok(Instant::now())
}

/// In how many networks a node has a part.
fn parts(node: &Node) -> usize {
    let text = node.annotations().get(NodeSubnets::KEY).map_or("{}", String::as_str);
    let parts: BTreeMap<String, Vec<String>> = serde_json::from_str(text).unwrap_or_default();
    parts.len()
}

/// Makes all neighbors of a configuration have this number.
fn peer_with(configuration: &mut FRRConfiguration, asn: u32) {
    let routers = configuration.spec.bgp.routers.iter_mut().map(Arc::make_mut);
    routers.flat_map(|router| &mut router.neighbors).for_each(|neighbor| neighbor.asn = asn);
}

/// Whether a configuration is none of the users'.
fn generated(object: &FRRConfiguration) -> bool {
    object.name_any() != "peers"
}
