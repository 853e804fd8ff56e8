//! What the agent writes to the API server: the node's description of itself, and the addresses of its pods.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Api, Client};
use underlay_api::annotations::{Annotation, PodNetworks};
use underlay_plan::node::addresses::Placed;
use underlay_runtime::edge::Report;
use underlay_runtime::objects::{Basis, WriteError, Writer};
use underlay_world::Key;

/// Writes at once, so that a burst of pods does not stand in line.
const AT_ONCE: usize = 16;

/// Annotations of the node that must change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// The node's identity.
    pub uid: String,
    /// Keys and values; nothing removes a key.
    pub annotations: BTreeMap<String, Option<String>>,
}

/// Records of pods that must be written: identity and annotation.
pub type PodRecords = BTreeMap<Key, (String, String)>;

/// The records that a plan asks for.
pub fn of_pods(placed: &Placed) -> PodRecords {
    let record = |(key, pod): (&Key, &underlay_plan::node::addresses::PlacedPod)| {
        Some((key.clone(), (pod.uid.clone(), pod.record.clone()?)))
    };
    placed.pods.iter().filter_map(record).collect()
}

/// Writes the node's annotations.
pub async fn write_node(
    client: &Client,
    writer: &Writer,
    name: &str,
    record: &NodeRecord,
) -> Result<Report, WriteError> {
    if record.annotations.is_empty() {
        return Ok(Report::default());
    }
    let api: Api<Node> = Api::all(client.clone());
    writer.annotate(&api, name, Basis::identity(&record.uid), &record.annotations).await?;
    Ok(Report { changes: 1 })
}

/// Writes the annotations of pods. A pod that is gone needs none, and one that was `written` is only waited for: the
/// API server has not told us yet what we wrote.
pub async fn write_pods(
    client: &Client,
    writer: &Writer,
    records: &PodRecords,
    written: &mut PodRecords,
) -> Result<Report, WriteError> {
    written.retain(|key, record| records.get(key) == Some(record));
    let news: Vec<_> = records.iter().filter(|(key, _)| !written.contains_key(*key)).collect();
    let write = async |(key, record): (&Key, &(String, String))| {
        let (uid, text) = record;
        let api: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
        let annotations = BTreeMap::from([(PodNetworks::KEY.to_owned(), Some(text.clone()))]);
        match writer.annotate(&api, &key.name, Basis::identity(uid), &annotations).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
            _ => Ok((key.clone(), record.clone())),
        }
    };
    let count = news.len();
    let mut results = stream::iter(news).map(write).buffer_unordered(AT_ONCE);
    let mut report = Ok(Report { changes: count });
    while let Some(result) = results.next().await {
        match result {
            Ok((key, record)) => drop(written.insert(key, record)),
            Err(error) => report = Err(error),
        }
    }
    report
}
