//! Tenants: what each asks the API for.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;
use underlay_api::ClusterUserDefinedNetwork;
use underlay_lab::artifacts::Artifacts;

/// Where the two pods of a tenant are: the first asks, the second answers.
pub const HOMES: [&str; 2] = ["worker1", "worker2"];
/// What all pods here have in common.
pub const LABEL: &str = "app=tenant";
/// Ranges that tenants take turns with; as many tenants are there at once at most.
const RANGES: usize = 100;

/// A tenant.
#[derive(Debug, Clone)]
pub struct Tenant {
    /// The name of its namespace and of its network.
    pub name: String,
    cidr: String,
}

impl Tenant {
    /// The tenant of this number.
    pub fn new(number: usize) -> Self {
        Self { name: format!("tenant{number:03}"), cidr: format!("10.{}.0.0/16", 100 + number % RANGES) }
    }

    /// The name of its pod on a node.
    pub fn pod(node: &str) -> String {
        format!("pod-{node}")
    }

    fn namespace_object(&self) -> Result<Namespace> {
        let labels = json!({ "tenant": self.name, "k8s.ovn.org/primary-user-defined-network": "" });
        Ok(serde_json::from_value(json!({ "metadata": { "name": self.name, "labels": labels } }))?)
    }

    fn network_object(&self) -> Result<ClusterUserDefinedNetwork> {
        let layer3 = json!({ "role": "Primary", "subnets": [{ "cidr": self.cidr, "hostSubnet": 24 }] });
        let spec = json!({
            "namespaceSelector": { "matchLabels": { "tenant": self.name } },
            "network": { "topology": "Layer3", "layer3": layer3 },
        });
        Ok(serde_json::from_value(json!({ "metadata": { "name": self.name }, "spec": spec }))?)
    }

    /// A pod that does nothing.
    fn pod_object(node: &str) -> Result<Pod> {
        // The first image is that of sandboxes, which does nothing and is on every node.
        let image = Artifacts::find()?.image_names()?.swap_remove(0);
        let (key, value) = LABEL.split_once('=').unwrap_or_default();
        Ok(serde_json::from_value(json!({
            "metadata": { "name": Self::pod(node), "labels": { key: value } },
            "spec": {
                "nodeName": node,
                "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0,
                "containers": [{ "name": "pause", "image": image, "imagePullPolicy": "Never" }],
            },
        }))?)
    }

    /// Asks for everything, as a manifest would: one thing after another.
    async fn create(&self, client: &Client) -> Result<()> {
        let params = PostParams::default();
        Api::all(client.clone()).create(&params, &self.namespace_object()?).await.context("a namespace")?;
        Api::all(client.clone()).create(&params, &self.network_object()?).await.context("a network")?;
        let pods = Api::namespaced(client.clone(), &self.name);
        for node in HOMES {
            pods.create(&params, &Self::pod_object(node)?).await.context("a pod")?;
        }
        Ok(())
    }
}

/// Makes tenants, all at once.
pub async fn create(client: &Client, tenants: &[Tenant]) -> Result<()> {
    let all = stream::iter(tenants).map(|tenant| tenant.create(client));
    all.buffer_unordered(tenants.len().max(1)).try_collect().await
}
