//! What a cluster tells when asked: objects of the API server, and reports of the agents.
//!
//! In: a kubeconfig. Out: [`Facts`], which are judged elsewhere, without asking anybody. An agent that does not answer
//! is a fact like any other; only an API server that does not answer is an error.

pub mod advertising;
pub mod agents;
pub mod facts;
pub mod networks;
#[cfg(test)]
pub mod scene;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use k8s_openapi::api::core::v1;
use kube::api::ListParams;
use kube::core::DeserializeGuard;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use underlay_api::{
    BGPSessionState, ClusterUserDefinedNetwork, FRRConfiguration, FRRNodeState, NetworkAttachmentDefinition,
    RouteAdvertisements, UserDefinedNetwork,
};
use underlay_world::{Definition, Nad, Namespace, Node};

use facts::{Facts, NodeFacts, Readiness};

/// How long the API server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// How to reach the cluster.
#[derive(Debug, Args)]
pub struct Access {
    /// The kubeconfig. Without it: $KUBECONFIG, or the user's own.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,
}

impl Access {
    /// Runs a conversation with the cluster to its end.
    pub fn run<T>(&self, conversation: impl AsyncFnOnce(Client) -> Result<T>) -> Result<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let kubeconfig = self.kubeconfig.as_deref();
        runtime.block_on(async { conversation(underlay_runtime::client::connect(kubeconfig).await?).await })
    }
}

/// Waits for the API server, but not for ever.
pub async fn patiently<T>(
    what: &str,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<Result<T, kube::Error>> {
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.with_context(|| format!("the API server did not tell of {what} within {} s", PATIENCE.as_secs()))
}

/// An error that says what the API server said and no more.
pub fn refused(what: &str, error: kube::Error) -> anyhow::Error {
    let error = match error {
        kube::Error::Api(status) => anyhow::anyhow!(status.message),
        other => other.into(),
    };
    error.context(format!("asking the API server for {what}"))
}

/// Reads everything but pods and agents.
pub async fn read(client: &Client) -> Result<Facts> {
    let (nodes, advertisements, configurations, speakers, sessions) = tokio::try_join!(
        list::<v1::Node>(client),
        list::<RouteAdvertisements>(client),
        list::<FRRConfiguration>(client),
        list::<FRRNodeState>(client),
        list::<BGPSessionState>(client),
    )?;
    let (of_cluster, of_namespaces, attachments, namespaces) = tokio::try_join!(
        list::<ClusterUserDefinedNetwork>(client),
        list::<UserDefinedNetwork>(client),
        list::<NetworkAttachmentDefinition>(client),
        list::<v1::Namespace>(client),
    )?;
    let mut missing = vec![];
    let of_cluster = or_missing(of_cluster, &mut missing).into_iter().map(Definition::of_cluster);
    let of_namespaces = or_missing(of_namespaces, &mut missing).into_iter().map(Definition::of_namespace);
    let namespace = |object: v1::Namespace| (object.name_any(), Namespace::read(object));
    let facts = Facts {
        nodes: nodes.unwrap_or_default().iter().map(|node| (node.name_any(), node_facts(node))).collect(),
        advertisements: or_missing(advertisements, &mut missing),
        configurations: or_missing(configurations, &mut missing),
        speakers: or_missing(speakers, &mut missing)
            .into_iter()
            .filter_map(|state| Some((state.name_any(), state.status?)))
            .collect(),
        sessions: or_missing(sessions, &mut missing).into_iter().filter_map(|state| state.status).collect(),
        networks: of_cluster.chain(of_namespaces).collect(),
        attachments: or_missing(attachments, &mut missing).iter().filter_map(Nad::read).collect(),
        namespaces: namespaces.unwrap_or_default().into_iter().map(namespace).collect(),
        ..Facts::default()
    };
    Ok(Facts { missing, ..facts })
}

/// All objects of a kind; nothing if the API server does not know the kind. Objects that cannot be read are left out.
pub async fn list<K>(client: &Client) -> Result<Option<Vec<K>>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + 'static,
{
    listed(&Api::all(client.clone()), &ListParams::default()).await
}

/// The objects of a kind that are asked for.
pub async fn listed<K>(api: &Api<DeserializeGuard<K>>, which: &ListParams) -> Result<Option<Vec<K>>>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + 'static,
{
    match patiently(&K::plural(&()), Box::pin(api.list(which))).await? {
        Ok(list) => Ok(Some(list.items.into_iter().filter_map(|object| object.0.ok()).collect())),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(refused(&K::plural(&()), error)),
    }
}

fn or_missing<K: Resource<DynamicType = ()>>(list: Option<Vec<K>>, missing: &mut Vec<String>) -> Vec<K> {
    list.unwrap_or_else(|| {
        missing.push(format!("{}.{}", K::plural(&()), K::group(&())));
        vec![]
    })
}

fn node_facts(object: &v1::Node) -> NodeFacts {
    let conditions = object.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    let readiness = match ready {
        Some(condition) if condition.status == "True" => Readiness::Ready,
        Some(condition) => Readiness::NotReady(condition.message.clone().unwrap_or_default()),
        None => Readiness::NotReady("its kubelet has not said so".to_owned()),
    };
    NodeFacts { node: Node::read(object), readiness }
}
