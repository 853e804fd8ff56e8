//! The first process of a lab in a virtual machine: runs QEMU and the control plane, and has the network brought up in
//! the machine.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::client::{console, console_path, send_request};
use super::frame::{Frame, Request};
use super::inside::network_part;
use super::link::Receiver;
use super::{network, qemu};
use crate::artifacts::Artifacts;
use crate::error::{Doing, LabError};
use crate::pki::Pki;
use crate::plan::{Datapath, LabPlan, plan, plan_control_plane};
use crate::run::events::{Event, EventLog};
use crate::run::reaper::{Exit, Reaper};
use crate::run::steps::tail;
use crate::run::{enter, init, machine};
use crate::state::Lab;
use crate::topology::Topology;

/// How long the machine may take to boot. On a host with much other work it takes ten seconds.
const BOOT: Duration = Duration::from_mins(3);

/// Refuses if a virtual machine cannot be started here.
pub fn check(artifacts: &Artifacts) -> Result<(), LabError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|directory| directory.join(qemu::PROGRAM).is_file()) {
        return Err(LabError::refused(format!("{} is not installed: run `make setup`", qemu::PROGRAM)));
    }
    let files = ["vmlinux", "initramfs.gz", "modules"].map(|name| artifacts.vm().join(name));
    match files.iter().find(|file| !file.exists()) {
        Some(file) => Err(LabError::refused(format!("{} is missing: run `make setup`", file.display()))),
        None => Ok(()),
    }
}

/// The lab's first process: ends when the virtual machine does.
pub fn run(lab: &Lab) -> ! {
    let events = EventLog::at(lab.events());
    let reaper = Reaper::start();
    let text = match keep_running(lab, &reaper, &events) {
        Ok(exit) => format!("the virtual machine ended with {exit}{}", console(lab)),
        // Commands that failed have explained themselves in our log, which goes when the lab is taken down.
        Err(error) => {
            let log = tail(&lab.directory().join("init.log"), 8);
            format!("{}\n{log}", machine::describe(&error)).trim_end().to_owned()
        }
    };
    eprintln!("{text}");
    events.write(&Event::Failed { text });
    std::process::exit(1);
}

/// Runs all there is until QEMU ends.
fn keep_running(lab: &Lab, reaper: &Reaper, events: &EventLog) -> Result<Exit, LabError> {
    init::make_mounts()?;
    let topology = lab.topology()?;
    let artifacts = Artifacts::find()?;
    network::make_outside(&topology, reaper)?;
    let pid = start_qemu(lab, &topology, &artifacts, reaper)?;
    let pki = Pki::generate(&topology)?;
    let place = init::place(lab, Datapath::Userspace, &artifacts)?;
    let control_plane = plan_control_plane(&topology, &pki, &place);
    let network = plan(&network_part(topology.clone()), &pki, &place);
    events.write(&Event::Planned { daemons: control_plane.daemons() + network.daemons() });
    init::publish_api(lab, &topology, &pki)?;
    init::start_machines(lab, &control_plane, None, reaper)?;
    let (lab, events) = (lab.clone(), events.clone());
    thread::spawn(move || bring_up(&lab, &topology, &control_plane, &events));
    Ok(reaper.wait(pid))
}

fn start_qemu(
    lab: &Lab,
    topology: &Topology,
    artifacts: &Artifacts,
    reaper: &Reaper,
) -> Result<Pid, LabError> {
    // The machine reads its program from the host for as long as it is up: it must not change under it.
    let program = lab.directory().join("program");
    fs::copy("/proc/self/exe", &program).doing(|| format!("writing {}", program.display()))?;
    let machine = qemu::Machine {
        artifacts: artifacts.vm(),
        directory: lab.directory().to_owned(),
        program,
        console: console_path(lab),
        processors: thread::available_parallelism().map_or(1, usize::from),
    };
    let mut command = Command::new(qemu::PROGRAM);
    command.args(machine.arguments()?).stdin(Stdio::null());
    enter::in_network(&network::namespace(topology), || {
        reaper.spawn(&mut command).doing(|| format!("starting {}", qemu::PROGRAM))
    })
}

/// Waits for both parts of the lab and passes on what happens in them.
fn bring_up(lab: &Lab, topology: &Topology, control_plane: &LabPlan, events: &EventLog) {
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            // The machine of the control plane is ready when its part in the virtual machine is as well.
            init::await_machines(lab, control_plane, |event| match event {
                Event::Ready { .. } => {}
                event => events.write(&event),
            });
        });
        ask_for_network(lab, topology).and_then(|receiver| follow(lab, receiver, events))
    });
    match result {
        Ok(()) => events.write(&Event::Complete),
        Err(text) => {
            // If the machine is gone, its end is the better explanation: let that be told first.
            thread::sleep(Duration::from_secs(2));
            eprintln!("{text}");
            events.write(&Event::Failed { text });
        }
    }
}

/// Waits for the machine to boot and asks it to bring the network up.
fn ask_for_network(lab: &Lab, topology: &Topology) -> Result<Receiver, String> {
    let arguments = vec!["inside".to_owned(), lab.directory().display().to_string()];
    let request = Request { arguments, colour: false, terminal: None };
    let namespace = network::namespace(topology);
    let deadline = Instant::now() + BOOT;
    loop {
        match network::connect_from(&namespace, Duration::from_secs(1)) {
            Ok(stream) => {
                let asked = send_request(stream, &request);
                return asked.map(|(_, receiver)| receiver).map_err(|error| error.to_string());
            }
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(100)),
            Err(error) => {
                return Err(format!("{}{}", machine::describe(&error), console(lab)));
            }
        }
    }
}

/// Reads the machine's report until it ends.
fn follow(lab: &Lab, mut receiver: Receiver, events: &EventLog) -> Result<(), String> {
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    loop {
        match receiver.receive().map_err(|error| format!("the virtual machine: {error}{}", console(lab)))? {
            Frame::Output(bytes) => output.extend(bytes),
            Frame::Errors(bytes) => errors.extend(bytes),
            Frame::Exit(0) => return Ok(()),
            Frame::Exit(_) => return Err(String::from_utf8_lossy(&errors).trim().to_owned()),
            _ => {}
        }
        while let Some(end) = output.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = output.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                // How many daemons there are has been told; and the control plane may need longer.
                Ok(Event::Planned { .. } | Event::Complete) => {}
                Ok(event) => events.write(&event),
                Err(error) => eprintln!("a line that cannot be read: {error}"),
            }
        }
    }
}
