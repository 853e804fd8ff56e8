//! The lab's first process: makes the networks, starts the machines, then stays as the one thread all hangs on.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::setsid;

use super::events::{Event, EventLog, EventReader};
use super::keeper::open_log;
use super::reaper::Reaper;
use super::steps::tail;
use super::{machine, proxy, root, vm};
use crate::artifacts::Artifacts;
use crate::error::{Doing, LabError};
use crate::pki::{Actor, Pki};
use crate::plan::{Datapath, LabPlan, Place, WIRES_NAMESPACE, plan};
use crate::state::Lab;
use crate::topology::Topology;

/// Starts the lab's first process in a PID and mount namespace of its own, and ends: nobody waits for the lab.
pub fn launch(lab: &Lab, more: &[String]) -> Result<(), LabError> {
    setsid().doing(|| "leaving the session".to_owned())?;
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)
        .doing(|| "making the lab's namespaces".to_owned())?;
    let path = lab.directory().join("init.log");
    let log = open_log(&path).doing(|| format!("opening {}", path.display()))?;
    let output = log.try_clone().doing(|| format!("opening {}", path.display()))?;
    let mut command = Command::new("/proc/self/exe");
    command.args(lab.init_arguments()).args(more).current_dir("/");
    command.stdin(Stdio::null()).stdout(output).stderr(log);
    command.spawn().map(drop).doing(|| "starting the lab's first process".to_owned())
}

/// The lab's first process itself: never returns. If the API server is elsewhere, `door` is the machine of this lab
/// that stands for it.
pub fn run(lab: &Lab, datapath: Datapath, door: Option<&str>) -> ! {
    let events = EventLog::at(lab.events());
    let reaper = Reaper::start();
    if let Err(error) = bring_up(lab, datapath, door, &reaper, &events) {
        // Commands that failed have explained themselves in our log, which goes when the lab is taken down.
        let log = tail(&lab.directory().join("init.log"), 8);
        let text = format!("{}\n{log}", machine::describe(&error)).trim_end().to_owned();
        eprintln!("{text}");
        events.write(&Event::Failed { text });
        // `down` came first: nobody will look for us again.
        if !lab.exists() {
            std::process::exit(1);
        }
    }
    loop {
        thread::sleep(Duration::from_hours(1));
    }
}

fn bring_up(
    lab: &Lab,
    datapath: Datapath,
    door: Option<&str>,
    reaper: &Reaper,
    events: &EventLog,
) -> Result<(), LabError> {
    make_mounts()?;
    let topology = lab.topology()?;
    let artifacts = Artifacts::find()?;
    let pki = Pki::generate(&topology)?;
    let plan = plan(&topology, &pki, &place(lab, datapath, &artifacts)?);
    events.write(&Event::Planned { daemons: plan.daemons() });
    make_networks(&plan, reaper)?;
    publish_api(lab, &topology, &pki)?;
    if let Some(machine) = door {
        vm::open_door(machine)?;
    }
    let seed = topology.kubernetes.kubelets.then(|| artifacts.containerd_seed());
    start_machines(lab, &plan, seed.as_deref(), reaper)?;
    await_machines(lab, &plan, |event| events.write(&event));
    events.write(&Event::Complete);
    Ok(())
}

/// What we mount is nobody else's business; names of network namespaces live in `/run/netns`.
pub(super) fn make_mounts() -> Result<(), LabError> {
    root::make_private()?;
    root::mount_fs("proc", Path::new("/proc"), "")?;
    root::mount_fs("tmpfs", Path::new("/run"), "mode=0755")
}

/// Facts of this place.
pub(super) fn place(lab: &Lab, datapath: Datapath, artifacts: &Artifacts) -> Result<Place, LabError> {
    Ok(Place {
        lab: lab.name().to_owned(),
        datapath,
        sandbox_image: artifacts.image_names()?.swap_remove(0),
        dns_image: artifacts.image_of("coredns")?,
        slowness: if datapath == Datapath::Kernel { 5 } else { 1 },
    })
}

/// Prepares and starts all machines of a plan; containerd of the nodes starts with what is in `seed`.
pub(super) fn start_machines(
    lab: &Lab,
    plan: &LabPlan,
    seed: Option<&Path>,
    reaper: &Reaper,
) -> Result<(), LabError> {
    for machine in &plan.machines {
        prepare_machine(lab, &machine.name, machine.node, seed, reaper)?;
        let path = lab.machine_directory(&machine.name).join("plan.json");
        let text = serde_json::to_vec(machine).doing(|| format!("writing {}", path.display()))?;
        fs::write(&path, text).doing(|| format!("writing {}", path.display()))?;
    }
    for machine in &plan.machines {
        let arguments = ["lab", "machine"].map(PathBuf::from);
        let mut command = Command::new("/proc/self/exe");
        command.args(arguments).arg(lab.directory()).arg(&machine.name);
        run_command(reaper, &mut command, &format!("starting machine {}", machine.name))?;
    }
    Ok(())
}

/// Waits until every machine has reported, and tells all they report; a failure has been told by the machine itself.
pub(super) fn await_machines(lab: &Lab, plan: &LabPlan, mut tell: impl FnMut(Event)) {
    let mut waiting: Vec<(PathBuf, EventReader)> = plan
        .machines
        .iter()
        .map(|machine| (lab.shared_directory(&machine.name).join("events.jsonl"), EventReader::default()))
        .collect();
    while !waiting.is_empty() {
        thread::sleep(Duration::from_millis(20));
        waiting.retain_mut(|(path, reader)| {
            let mut done = false;
            for event in reader.read(path) {
                done |= matches!(event, Event::Ready { .. } | Event::Failed { .. });
                tell(event);
            }
            !done
        });
    }
}

pub(super) fn make_networks(plan: &LabPlan, reaper: &Reaper) -> Result<(), LabError> {
    for namespace in &plan.namespaces {
        run_command(
            reaper,
            Command::new("ip").args(["netns", "add", namespace]),
            "making network namespaces",
        )?;
    }
    let mut input = tempfile::tempfile_in("/run").doing(|| "making the wires".to_owned())?;
    input.write_all(plan.wires.as_bytes()).doing(|| "making the wires".to_owned())?;
    std::io::Seek::rewind(&mut input).doing(|| "making the wires".to_owned())?;
    let mut command = Command::new("ip");
    command.args(["-n", WIRES_NAMESPACE, "-batch", "-"]).stdin(input);
    run_command(reaper, &mut command, "making the wires")
}

/// Opens the way to the API server and writes a kubeconfig for everyone who comes from outside.
pub(super) fn publish_api(lab: &Lab, topology: &Topology, pki: &Pki) -> Result<(), LabError> {
    let Some(control_plane) = topology.control_plane() else { return Ok(()) };
    let listener = proxy::listen()?;
    let address = listener.local_addr().doing(|| "opening a port for the API server".to_owned())?;
    let server = format!("https://{address}");
    let directory = lab.directory().join("kubeconfigs");
    fs::create_dir_all(&directory).doing(|| format!("making {}", directory.display()))?;
    let nodes: Vec<&str> = topology.nodes().map(|node| node.name.as_str()).collect();
    let mut actors = vec![Actor::Admin, Actor::ClusterManager];
    actors.extend(nodes.iter().flat_map(|node| [Actor::Agent(node), Actor::Kubelet(node)]));
    for actor in actors {
        let path = lab.kubeconfig(&actor.slug());
        fs::write(&path, pki.kubeconfig(actor, &server)).doing(|| format!("writing {}", path.display()))?;
    }
    proxy::serve(listener, &Path::new("/run/netns").join(&control_plane.name))
}

/// A machine's directories; a node's containerd starts with the images of the seed, shared by hard links.
fn prepare_machine(
    lab: &Lab,
    name: &str,
    node: bool,
    seed: Option<&Path>,
    reaper: &Reaper,
) -> Result<(), LabError> {
    let machine = lab.machine_directory(name);
    let containerd = machine.join("containerd");
    let log = machine.join("lab/log");
    fs::create_dir_all(&log).doing(|| format!("making {}", log.display()))?;
    if !node {
        return Ok(());
    }
    for directory in [&machine.join("kubelet"), &containerd] {
        fs::create_dir_all(directory).doing(|| format!("making {}", directory.display()))?;
    }
    let Some(seed) = seed else { return Ok(()) };
    let mut copy = Command::new("cp");
    copy.arg("-al").arg(seed.join(".")).arg(&containerd);
    if run_command(reaper, &mut copy, "linking images").is_err() {
        // The cache is on another file system: copy.
        let mut copy = Command::new("cp");
        copy.args(["-a", "--reflink=auto"]).arg(seed.join(".")).arg(&containerd);
        run_command(reaper, &mut copy, "copying images")?;
    }
    // Databases are written in place: each node needs its own.
    own_databases(&containerd)
}

/// Replaces every `*.db` below a directory by a copy of its own.
fn own_databases(directory: &Path) -> Result<(), LabError> {
    for plugin in fs::read_dir(directory).doing(|| format!("reading {}", directory.display()))?.flatten() {
        let Ok(files) = fs::read_dir(plugin.path()) else { continue };
        for file in files.flatten().filter(|file| file.path().extension().is_some_and(|ext| ext == "db")) {
            let (path, copy) = (file.path(), file.path().with_extension("copy"));
            fs::copy(&path, &copy)
                .and_then(|_| fs::rename(&copy, &path))
                .doing(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}

pub(super) fn run_command(reaper: &Reaper, command: &mut Command, what: &str) -> Result<(), LabError> {
    let pid = reaper.spawn(command).doing(|| what.to_owned())?;
    let exit = reaper.wait(pid);
    if exit.success() { Ok(()) } else { Err(LabError::failed(format!("{what}: {exit}"), "")) }
}
