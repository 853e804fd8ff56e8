//! Somebody else writes to the same nodes, definitions and attachments without a pause. Nothing of his is lost, and all of
//! ours arrives.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};
use underlay_api::{ClusterUserDefinedNetwork, NetworkAttachmentDefinition};

use crate::cluster::Cluster;
use crate::common::daemon::{Daemon, get};
use crate::state::COMPETITOR;
use crate::witness::Witness;

/// A condition that is not ours.
const THEIRS: &str = "ExampleChecked";

pub fn everything_is_written_by_others_too(cluster: &Cluster, daemon: Daemon) -> Daemon {
    let (stop, writes) = (AtomicBool::new(false), AtomicUsize::new(0));
    let witness = Witness::start(&cluster.server);
    thread::scope(|scope| {
        let competitor = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(compete(cluster, &stop, &writes));
        });
        cluster.roll_out(0..20);
        cluster.has_networks(20, &daemon);
        stop.store(true, Ordering::SeqCst);
        competitor.join().unwrap();
    });
    let rounds = writes.load(Ordering::SeqCst);
    println!("a competitor wrote everything {rounds} times");
    assert!(rounds > 0);
    let last = rounds.to_string();
    for node in get(&cluster.server, &["nodes"])["items"].as_array().unwrap() {
        assert_eq!(node["metadata"]["annotations"][COMPETITOR], last, "{node}");
    }
    let definitions = get(&cluster.server, &["cudn"]);
    let said = |object: &&Value| {
        let conditions = object["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|condition| condition["type"] == THEIRS)
    };
    let definitions = definitions["items"].as_array().unwrap();
    let theirs = definitions.iter().filter(said).count();
    let annotated = definitions.iter().filter(|object| object["metadata"]["annotations"][COMPETITOR] == last);
    assert_eq!(theirs, annotated.count(), "who was written to in the last round has it all");
    assert!(theirs > 0);
    witness.ends_content();
    cluster.judge(daemon)
}

/// Writes to everything, round after round, and counts the rounds.
async fn compete(cluster: &Cluster, stop: &AtomicBool, rounds: &AtomicUsize) {
    let client = underlay_runtime::client::connect(Some(&cluster.server.kubeconfig())).await.unwrap();
    while !stop.load(Ordering::SeqCst) {
        let round = rounds.load(Ordering::SeqCst) + 1;
        let nodes = Api::<Node>::all(client.clone());
        for node in nodes.list(&ListParams::default()).await.unwrap() {
            annotate(&nodes, &node, COMPETITOR, round).await;
        }
        let definitions = Api::<ClusterUserDefinedNetwork>::all(client.clone());
        for definition in definitions.list(&ListParams::default()).await.unwrap() {
            annotate(&definitions, &definition, COMPETITOR, round).await;
            say(&definitions, &definition.name_any(), round).await;
        }
        annotate_attachments(&client, round).await;
        rounds.store(round, Ordering::SeqCst);
    }
}

/// Of attachments, the annotations of our family stay, whoever writes them.
async fn annotate_attachments(client: &Client, round: usize) {
    let all = Api::<NetworkAttachmentDefinition>::all(client.clone());
    for attachment in all.list(&ListParams::default()).await.unwrap() {
        let namespace = attachment.namespace().unwrap_or_default();
        if namespace.starts_with('t') {
            let api = Api::<NetworkAttachmentDefinition>::namespaced(client.clone(), &namespace);
            annotate(&api, &attachment, "k8s.ovn.org/competitor", round).await;
        }
    }
}

async fn annotate<K>(api: &Api<K>, object: &K, key: &str, round: usize)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let patch = json!({ "metadata": { "annotations": { key: round.to_string() } } });
    api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn say(api: &Api<ClusterUserDefinedNetwork>, name: &str, round: usize) {
    let condition = json!({
        "type": THEIRS, "status": "True", "reason": "Round", "message": round.to_string(),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let object = json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": { "name": name },
        "status": { "conditions": [condition] },
    });
    let params = PatchParams::apply("competitor");
    api.patch_status(name, &params, &Patch::Apply(object)).await.unwrap();
}
