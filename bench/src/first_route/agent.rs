//! The agent starts again: how soon it serves pods, what it writes, and what a pod notices.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::burst::{self, NODE};
use crate::figures::{Figures, at, millis};
use crate::process::{Process, uptime};
use crate::rig::{PATIENCE, Rig};

/// Restarts to look at.
const RESTARTS: usize = 5;
/// Pods to look at, with and without a restart.
const PODS: usize = 5;
/// After this long a daemon that dies is started again at once, and nothing of the last time goes on.
const CALM: Duration = Duration::from_secs(12);
/// What the agent writes when pods can start.
const CONFIG: &str = "/etc/cni/net.d/10-ovn-kubernetes.conf";

/// Start, writes, pods.
pub async fn measure(rig: &Rig<'_>, figures: &mut Figures) -> Result<()> {
    let mut starts = Vec::new();
    for _ in 0..RESTARTS {
        rig.pause(CALM)?;
        rig.exec(NODE, &["rm", CONFIG])?;
        kill(rig)?;
        starts.push(ready(rig)?);
    }
    figures.tell_times("agent start -> ready for pods", &starts);
    rig.pause(CALM)?;
    kill(rig)?;
    rig.pause(CALM)?;
    figures.tell("writes of an agent that starts again", writes(rig)?, "");
    pods(rig, figures).await
}

/// A pod whose node's agent is killed as it is made, beside one that is left alone.
async fn pods(rig: &Rig<'_>, figures: &mut Figures) -> Result<()> {
    let (mut undisturbed, mut disturbed) = (Vec::new(), Vec::new());
    for _ in 0..PODS {
        rig.pause(CALM)?;
        undisturbed.push(burst::create(&rig.client, 1).await?);
        burst::delete(&rig.client).await?;
        rig.pause(CALM)?;
        kill(rig)?;
        disturbed.push(burst::create(&rig.client, 1).await?);
        burst::delete(&rig.client).await?;
    }
    let usual = at(&undisturbed, 50);
    figures.tell_times("pod Running", &undisturbed);
    figures.tell_times("pod Running, agent killed", &disturbed);
    let later: Vec<Duration> = disturbed.iter().map(|time| time.saturating_sub(usual)).collect();
    figures.tell("pod Running later by, at most", millis(at(&later, 100)), "ms");
    Ok(())
}

fn kill(rig: &Rig<'_>) -> Result<()> {
    let number = Process::find(&rig.lab, "underlay-agent", Some(NODE))?.number()?;
    rig.exec(NODE, &["kill", "-9", &number]).map(drop)
}

/// Waits until pods can start; returns how long after the agent's start that is.
fn ready(rig: &Rig<'_>) -> Result<Duration> {
    let began = Instant::now();
    let kubelet = Process::find(&rig.lab, "kubelet", Some(&format!("--hostname-override={NODE}")))?;
    let config = kubelet.path(CONFIG);
    while fs::metadata(&config).is_err() {
        if began.elapsed() > PATIENCE {
            bail!("the agent is not ready in {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let now = uptime()?;
    let agent = Process::find(&rig.lab, "underlay-agent", Some(NODE))?;
    Ok(now.saturating_sub(agent.started()?))
}

/// What the agent counts: changes of its edges, and writes to the API.
fn writes(rig: &Rig<'_>) -> Result<f64> {
    let text = rig.exec(NODE, &["curl", "--silent", "http://127.0.0.1:9411/metrics"])?;
    let counted = text.lines().filter(|line| {
        line.starts_with("underlay_edge_changes_total{") || line.starts_with("underlay_writes_total{")
    });
    let values = counted.map(|line| {
        let value = line.rsplit(' ').next().and_then(|word| word.parse::<f64>().ok());
        value.with_context(|| format!("a counter without a value: {line}"))
    });
    values.sum()
}
