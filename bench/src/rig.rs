//! A lab to measure, and a client of its API.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use underlay_lab::Lab;
use underlay_runtime::client;
use xtask::cli::TakenDown;

use crate::Bench;

/// Longer than anything here should take; what takes longer is broken.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// The lab.
pub struct Rig<'a> {
    pub bench: &'a Bench,
    pub lab: Lab,
    pub client: Client,
    guard: TakenDown,
}

impl<'a> Rig<'a> {
    /// Brings it up: the default lab, or that of a file.
    pub async fn up(bench: &'a Bench, file: Option<&Path>) -> Result<Self> {
        bench.interrupt.check()?;
        let guard = bench.cli.up(&bench.lab, file)?;
        let lab = Lab::named(&bench.lab)?;
        let client = client::connect(Some(&lab.kubeconfig("admin"))).await?;
        Ok(Self { bench, lab, client, guard })
    }

    /// Takes it down.
    pub fn down(self) -> Result<()> {
        self.guard.down()
    }

    /// Runs a command in a machine.
    pub fn exec(&self, machine: &str, argv: &[&str]) -> Result<String> {
        self.bench.cli.exec(&self.bench.lab, machine, argv)
    }

    /// Lets time pass.
    pub fn pause(&self, length: Duration) -> Result<()> {
        self.bench.interrupt.pause(length)
    }

    /// Lets time pass for us only: what listens goes on.
    pub async fn rest(&self, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        while Instant::now() < end {
            self.bench.interrupt.check()?;
            tokio::time::sleep(length.min(Duration::from_millis(100))).await;
        }
        Ok(())
    }

    /// Listens to a command that runs in a machine, line by line, until it is dropped.
    pub fn listen(&self, machine: &str, argv: &[&str]) -> Result<Listener> {
        let mut command = Command::from(self.bench.cli.in_machine(&self.bench.lab, machine, argv));
        let mut child =
            command.stdout(Stdio::piped()).kill_on_drop(true).spawn().context("running a command")?;
        let output = child.stdout.take().context("a pipe")?;
        let (sender, lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut output = BufReader::new(output).lines();
            while let Ok(Some(line)) = output.next_line().await {
                if sender.send((Instant::now(), line)).is_err() {
                    return;
                }
            }
        });
        Ok(Listener { lines, _child: child })
    }
}

/// A command whose lines are listened to.
pub struct Listener {
    lines: mpsc::UnboundedReceiver<(Instant, String)>,
    _child: Child,
}

impl Listener {
    /// Forgets what was said until now.
    pub fn forget(&mut self) {
        while self.lines.try_recv().is_ok() {}
    }

    /// Hears lines until one is the last that was waited for; returns when it came.
    pub async fn hear(&mut self, what: &str, mut is_last: impl FnMut(&str) -> bool) -> Result<Instant> {
        let hear = async {
            while let Some((when, line)) = self.lines.recv().await {
                if is_last(&line) {
                    return Ok(when);
                }
            }
            bail!("{what}: the command ended");
        };
        tokio::time::timeout(PATIENCE, hear).await.with_context(|| format!("{what}: not in {PATIENCE:?}"))?
    }

    /// Hears until nothing that counts was said for a while; returns when the last of that was said.
    pub async fn hear_out(&mut self, calm: Duration, counts: impl Fn(&str) -> bool) -> Option<Instant> {
        let mut last = None;
        let mut end = Instant::now() + calm;
        while let Ok(Some((when, line))) = tokio::time::timeout_at(end.into(), self.lines.recv()).await {
            if counts(&line) {
                last = Some(when);
                end = end.max(when + calm);
            }
        }
        last
    }
}
