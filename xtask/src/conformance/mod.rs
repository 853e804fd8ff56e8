//! Kubernetes' own end-to-end tests against a lab.
//!
//! In: a regular expression that picks the tests. Out: a table of what passed, what failed and why, and an exit code
//! that is 0 only if something ran and nothing failed. The tests are built on demand; the lab is brought up by the real
//! command line and taken down afterwards, unless it was there before or is to be kept.

mod e2e;
mod follow;
mod report;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use underlay_lab::Lab;
use underlay_lab::run::status::kubectl;
use underlay_lab::topology::Topology;
use xtask::cli::{Cli, TakenDown};
use xtask::interrupt::Interrupt;

use e2e::{E2e, Selection};
use report::Report;

/// Shown to whoever gave no focus, or one that matches nothing.
const EXAMPLE: &str = "make conformance FOCUS='should function for intra-pod communication: http'";
/// How long the control plane may take to let pods onto nodes that are ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// What to run, and where.
#[derive(Debug, Args)]
pub struct Options {
    /// Regular expression for the names of the specs to run.
    #[arg(long)]
    focus: String,
    /// Regular expression for the names of specs to leave out.
    #[arg(long)]
    skip: Option<String>,
    /// Name of the lab. If it is up already it is used as it is, and left up.
    #[arg(long, default_value = "conformance")]
    name: String,
    /// Lab file to bring up; without it, the default lab.
    #[arg(long)]
    file: Option<PathBuf>,
    /// Leave the lab up afterwards.
    #[arg(long)]
    keep: bool,
}

/// Runs the specs that match and tells how they went.
pub fn run(options: &Options) -> Result<ExitCode> {
    let mut selection = Selection::new(&options.focus, options.skip.as_deref());
    if !e2e::kernel_has_sctp() {
        eprintln!("this kernel has no SCTP: specs that need it are left out");
        selection = selection.without_sctp();
    }
    if selection.focus.is_empty() {
        bail!("say which tests to run, with a regular expression for their names, for example:\n  {EXAMPLE}");
    }
    let lab = Lab::named(&options.name)?;
    let cli = Cli::beside_us()?;
    let e2e = E2e::build(&lab)?;
    let names = e2e.preview(&selection)?;
    if names.is_empty() {
        bail!(
            "no spec matches {:?}: the names are what `{} --list-tests` prints; one that works is:\n  {EXAMPLE}",
            selection.focus,
            e2e.program().display()
        );
    }
    let interrupt = Interrupt::catch()?;
    let ours = bring_up(&cli, &lab, options)?;
    let started = Instant::now();
    let workers = workers(&lab.topology()?);
    let report = interrupt
        .check()
        .and(workers)
        .and_then(|workers| e2e.run(&selection, &names, &lab, workers, &interrupt));
    let elapsed = started.elapsed();
    match ours {
        Some(lab) if options.keep => lab.keep(),
        Some(lab) => lab.down()?,
        None => {}
    }
    let report = report?;
    eprintln!(
        "ran for {:.0} s; all that the tests printed is in {}",
        elapsed.as_secs_f64(),
        e2e.log().display()
    );
    anstream::print!("{}", show::summary(&report));
    Ok(verdict(&report))
}

fn verdict(report: &Report) -> ExitCode {
    if report.passed() > 0 && report.failed() == 0 && report.complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Makes sure the lab is up and takes pods. Returns it if we brought it up.
fn bring_up(cli: &Cli, lab: &Lab, options: &Options) -> Result<Option<TakenDown>> {
    let name = lab.name();
    if lab.first_process().is_none() {
        let ours = cli.up(name, options.file.as_deref())?;
        wait_for_pods(lab)?;
        return Ok(Some(ours));
    }
    if let Some(file) = &options.file {
        bail!(
            "lab {name:?} is up already, so {} would have no effect: take the lab down, or choose another --name",
            file.display()
        );
    }
    if !cli.status(name)?.1 {
        bail!("lab {name:?} is up but not well: see `kubectl-underlay lab status --name {name}`");
    }
    eprintln!("using lab {name:?}, which is up already");
    Ok(None)
}

/// A node is ready a moment before its taint goes. The tests would look once, see the taint, and sleep for half a
/// minute; so wait here.
fn wait_for_pods(lab: &Lab) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let taints = kubectl(lab, &["get", "nodes", "-o", "jsonpath={.items[*].spec.taints[*].key}"])?;
        if !taints.contains("node.kubernetes.io/") {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("nodes are tainted after {PATIENCE:?}: {taints}");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// How many nodes take pods: all but the one with the control plane.
fn workers(topology: &Topology) -> Result<usize> {
    let workers = topology.nodes().filter(|node| !node.is_control_plane()).count();
    if workers == 0 {
        bail!("the lab has no node for pods: add one without `controlPlane: true` to its file");
    }
    Ok(workers)
}
