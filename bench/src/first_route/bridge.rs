//! The same burst with the reference bridge plugin, in the same lab without Underlay.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::json;
use underlay_lab::file::DEFAULT;

use super::burst::{self, NODE};
use crate::Bench;
use crate::figures::Figures;
use crate::rig::{PATIENCE, Rig};

/// Brings the lab up, gives it the plugin, measures.
pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let directory = tempfile::tempdir().context("making a directory for the lab file")?;
    let file = directory.path().join("lab.yaml");
    fs::write(&file, DEFAULT.replace("kubernetes:\n", "kubernetes:\n  cni: none\n"))
        .with_context(|| format!("writing {}", file.display()))?;
    let rig = Rig::up(bench, Some(&file)).await?;
    let write = "printf %s \"$1\" > /etc/cni/net.d/10-bridge.conflist";
    rig.exec(NODE, &["sh", "-c", write, "sh", &config()])?;
    ready(&rig).await?;
    burst::measure_running(&rig, figures, "bridge").await?;
    rig.down()
}

/// Addresses of both families, as Underlay gives them.
fn config() -> String {
    let plugin = json!({
        "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "mtu": 1400,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni-ipam",
            "ranges": [[{ "subnet": "10.244.1.0/24" }], [{ "subnet": "fd00:10:244:1::/64" }]],
            "routes": [{ "dst": "0.0.0.0/0" }, { "dst": "::/0" }],
        },
    });
    json!({ "cniVersion": "1.0.0", "name": "bridge", "plugins": [plugin] }).to_string()
}

async fn ready(rig: &Rig<'_>) -> Result<()> {
    let began = Instant::now();
    let api: Api<Node> = Api::all(rig.client.clone());
    loop {
        let node = api.get(NODE).await?;
        let mut conditions = node.status.and_then(|status| status.conditions).into_iter().flatten();
        if conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True") {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            bail!("{NODE} is not ready in {PATIENCE:?}");
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}
