//! A machine: its first process makes the machine's root its own, carries out the plan and keeps the daemons.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::sethostname;

use super::events::{Event, EventLog};
use super::keeper::{Keeper, StatusBoard, open_log};
use super::reaper::Reaper;
use super::root;
use super::steps::Runner;
use crate::artifacts::Artifacts;
use crate::error::{Doing, LabError};
use crate::plan::MachinePlan;

/// The namespaces a machine has beside its network. The mount namespace comes later, made by the first process alone:
/// changing the root changes it for everyone who shares the mounts.
const NAMESPACES: [CloneFlags; 3] =
    [CloneFlags::CLONE_NEWPID, CloneFlags::CLONE_NEWUTS, CloneFlags::CLONE_NEWIPC];

/// Enters the machine's network, makes its other namespaces and starts its first process in them. Ends at once; the
/// lab's first process inherits the machine. Its number there is left in the file `pid`.
pub fn launch(directory: &Path, name: &str) -> Result<(), LabError> {
    let network = format!("/run/netns/{name}");
    let file = File::open(&network).doing(|| format!("opening {network}"))?;
    setns(file, CloneFlags::CLONE_NEWNET).doing(|| format!("entering {network}"))?;
    unshare(CloneFlags::from_iter(NAMESPACES)).doing(|| "making namespaces".to_owned())?;
    let machine = directory.join("machines").join(name);
    let log =
        open_log(&machine.join("lab/log/machine.log")).doing(|| "opening the machine's log".to_owned())?;
    let output = log.try_clone().doing(|| "opening the machine's log".to_owned())?;
    let child = Command::new("/proc/self/exe")
        .args(["lab", "machine"])
        .args([directory.as_os_str(), name.as_ref()])
        .arg("--inside")
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(log)
        .process_group(0)
        .spawn()
        .doing(|| format!("starting {name}"))?;
    let path = machine.join("pid");
    fs::write(&path, child.id().to_string()).doing(|| format!("writing {}", path.display()))
}

/// The machine's first process: never returns while the machine is up.
pub fn run(directory: &Path, name: &str) -> ! {
    let machine = directory.join("machines").join(name);
    let events = EventLog::at(PathBuf::from("/lab/events.jsonl"));
    let result = start(&machine, name, &events);
    if let Err(error) = result {
        let text = format!("{name}: {}", describe(&error));
        eprintln!("{text}");
        // Before the root is entered the log of events is still at its outer place.
        let outer = EventLog::at(machine.join("lab/events.jsonl"));
        if Path::new("/lab").is_dir() { &events } else { &outer }.write(&Event::Failed { text });
    }
    loop {
        thread::sleep(Duration::from_hours(1));
    }
}

fn start(machine: &Path, name: &str, events: &EventLog) -> Result<(), LabError> {
    let path = machine.join("plan.json");
    let text = fs::read(&path).doing(|| format!("reading {}", path.display()))?;
    let plan: MachinePlan = serde_json::from_slice(&text).doing(|| format!("reading {}", path.display()))?;
    let artifacts = Artifacts::find()?;
    unshare(CloneFlags::CLONE_NEWNS).doing(|| "making the machine's mounts".to_owned())?;
    root::enter_root(machine, &artifacts, plan.node)?;
    sethostname(name).doing(|| "setting the host name".to_owned())?;
    let board = StatusBoard::at(PathBuf::from("/lab/status.json"));
    let keeper = Keeper {
        reaper: Reaper::start(),
        board: board.clone(),
        logs: PathBuf::from("/lab/log"),
        restart: plan.restart,
    };
    let runner = Runner { machine: name.to_owned(), keeper, events: events.clone() };
    runner.carry_out(&plan.steps).map_err(|text| {
        let (what, detail) = text.split_once('\n').unwrap_or((&text, ""));
        LabError::failed(what, detail)
    })?;
    board.change(|status| status.ready = true);
    events.write(&Event::Ready { machine: name.to_owned() });
    Ok(())
}

/// An error with its causes, in one text.
pub(crate) fn describe(error: &LabError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
