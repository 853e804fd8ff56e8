//! The cluster manager with the API server it works for, and nobody else.

use std::fs::{self, File};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::json;
use tokio::process::{Child, Command};
use underlay_api::crds;
use underlay_lab::plan::RBAC;
use underlay_runtime::client;
use underlay_testkit::{ApiServer, Scratch};

use super::audit::{Audit, Writes};
use crate::process::Process;

/// Nothing more is written if nothing was for this long.
const CALM: Duration = Duration::from_millis(500);

/// Both, while they run.
pub struct Stage {
    /// A client with all rights.
    pub client: Client,
    /// The cluster manager.
    pub manager: Process,
    audit: Audit,
    // Dropped in order: the manager before its server.
    daemon: Child,
    _server: ApiServer,
    _scratch: Scratch,
}

impl Stage {
    /// Starts both, with the definitions of all kinds and the manager's own identity and rights.
    pub async fn set() -> Result<Self> {
        let (server, scratch) = (ApiServer::audited(), Scratch::new("bench"));
        prepare(&server, &scratch)?;
        let daemon = start(&server, &scratch)?;
        let manager = Process::of(daemon.id().context("the manager ended")?);
        let client = client::connect(Some(&server.kubeconfig())).await?;
        let audit = Audit::new(server.audit_log());
        Ok(Self { client, manager, audit, daemon, _server: server, _scratch: scratch })
    }

    /// Ends the manager: what is asked for from then on is not answered.
    pub async fn end_manager(&mut self) -> Result<()> {
        self.daemon.kill().await.context("ending the manager")
    }

    /// Waits until the manager writes no more; returns what it wrote since the last time.
    pub async fn calm(&mut self) -> Result<Writes> {
        let mut all = Writes::default();
        loop {
            tokio::time::sleep(CALM).await;
            let more = self.audit.take()?;
            all.add(&more);
            if more.count() == 0 {
                return Ok(all);
            }
        }
    }
}

/// Definitions, and what the manager may do.
fn prepare(server: &ApiServer, scratch: &Scratch) -> Result<()> {
    let definitions = json!({ "apiVersion": "v1", "kind": "List", "items": crds::all() });
    for (name, text) in [("crds.json", definitions.to_string()), ("rbac.yaml", RBAC.to_owned())] {
        let path = scratch.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        kubectl(server, &["apply", "--server-side", "-f", &path.display().to_string()])?;
    }
    kubectl(server, &["wait", "--for=condition=Established", "crd", "--all"])
}

fn kubectl(server: &ApiServer, arguments: &[&str]) -> Result<()> {
    let output = server.kubectl(arguments);
    if !output.status.success() {
        bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Starts the manager that was built with us. It ends with us, however that happens.
fn start(server: &ApiServer, scratch: &Scratch) -> Result<Child> {
    let program = std::env::current_exe().context("finding this program")?.with_file_name("underlay-cluster");
    let log = File::create(scratch.join("manager.log")).context("making a log")?;
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(&program)
        .arg("--kubeconfig")
        .arg(server.manager_kubeconfig())
        .args(["--cluster-subnets=10.128.0.0/12/24", "--service-cidrs=10.96.0.0/16"])
        .arg("--metrics-bind-address=127.0.0.1:0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true);
    command.spawn().with_context(|| format!("starting {}", program.display()))
}
