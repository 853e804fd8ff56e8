//! What a real API server says to writes that were decided upon something older.

use k8s_openapi::api::core::v1::Node;
use serde_json::json;
use tokio::time::Instant;
use underlay_testkit::ApiServer;

use super::*;
use crate::client::connect;

/// A node, and a writer for it.
async fn node(name: &str) -> (Api<Node>, Node, Writer) {
    let client = connect(Some(&ApiServer::shared().kubeconfig())).await.unwrap();
    let api = Api::all(client);
    let writer = Writer::register("test", &mut Registry::default());
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    let made = writer.create(&api, &node).await.unwrap();
    (api, made, writer)
}

fn said(text: &str) -> BTreeMap<String, Option<String>> {
    BTreeMap::from([("example.com/said".to_owned(), Some(text.to_owned()))])
}

fn says(node: &Node) -> Option<&str> {
    node.metadata.annotations.as_ref()?.get("example.com/said").map(String::as_str)
}

#[tokio::test]
async fn a_write_that_is_late_is_refused() {
    let (api, old, writer) = node("late").await;
    let (uid, version) = (old.metadata.uid.clone().unwrap(), Version::of(&old));
    let basis = || Basis::exactly(&uid, &version);
    writer.annotate(&api, "late", basis(), &said("in time")).await.unwrap();
    let status = json!({ "phase": "Running" });
    let late = [
        writer.annotate(&api, "late", basis(), &said("late")).await.err(),
        writer.merge(&api, "late", basis(), json!({ "spec": { "unschedulable": true } })).await.err(),
        writer.apply_status(&api, "late", basis(), &status).await.err(),
        writer.replace(&api, &old).await.err(),
        writer.delete(&api, "late", basis()).await.err(),
    ];
    for error in late {
        assert!(error.as_ref().is_some_and(WriteError::is_conflict), "{error:?}");
    }
    let now = api.get("late").await.unwrap();
    assert_eq!(says(&now), Some("in time"));
    assert_eq!(now.spec.unwrap_or_default().unschedulable, None);
    let another = Basis::identity("another");
    assert!(writer.annotate(&api, "late", another, &said("late")).await.unwrap_err().is_conflict());
}

#[tokio::test]
async fn what_others_write_elsewhere_is_no_obstacle() {
    let (api, old, writer) = node("shared").await;
    let (uid, version) = (old.metadata.uid.clone().unwrap(), Version::of(&old));
    writer.annotate(&api, "shared", Basis::identity(&uid), &said("theirs")).await.unwrap();
    let cares = |now: &Node| says(now).is_none();
    let refused =
        writer.apply_status(&api, "shared", Basis::version(&uid, &version, &cares), &json!({})).await;
    assert!(refused.unwrap_err().is_conflict(), "it was decided upon what is no longer so");
    let patch = json!({ "spec": { "unschedulable": true } });
    let written =
        writer.merge(&api, "shared", Basis::version(&uid, &version, &|_| true), patch).await.unwrap();
    assert_eq!(written.spec.as_ref().unwrap().unschedulable, Some(true));
    assert_eq!(says(&written), Some("theirs"));
}

#[tokio::test]
async fn nothing_is_sent_behind_a_closed_fence() {
    let (api, _, writer) = node("fenced").await;
    let fence = Fence::default();
    let writer = writer.behind(fence.clone());
    let write = async |text| writer.annotate(&api, "fenced", Basis::identity(""), &said(text)).await;
    assert!(matches!(write("one").await, Err(WriteError::Late(_))));
    fence.open_until(Instant::now() + Duration::from_mins(5));
    write("two").await.unwrap();
    fence.close();
    assert!(matches!(write("three").await, Err(WriteError::Late(_))));
    assert_eq!(says(&api.get("fenced").await.unwrap()), Some("two"));
}
