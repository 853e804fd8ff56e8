//! The verbs of `kubectl-underlay lab`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use underlay_lab::file;
use underlay_lab::plan::Datapath;
use underlay_lab::run::vm::{self, VmRecord};
use underlay_lab::run::{cut, down, enter, images, init, logs, machine, status, up};
use underlay_lab::state::{Lab, all_labs};

use crate::output::Output;
use crate::progress::UpProgress;
use crate::tables;

#[derive(Debug, Args)]
pub struct LabArguments {
    /// Name of the lab; several can be up at once.
    #[arg(long, global = true, default_value = "lab")]
    name: String,
    #[command(subcommand)]
    verb: LabVerb,
}

#[derive(Debug, Subcommand)]
enum LabVerb {
    /// Bring a lab up.
    Up {
        /// The lab file; without it, three nodes, a top-of-rack router and an outside host.
        #[arg(short, long)]
        file: Option<PathBuf>,
        /// Kernel the machines run on.
        #[arg(long, value_enum, default_value_t = Kernel::Host)]
        kernel: Kernel,
        /// Leave a lab that failed to come up as it is, to look around in it.
        #[arg(long)]
        keep: bool,
    },
    /// Take a lab down, whatever state it is in.
    Down,
    /// Show every daemon, the API server, the nodes and the BGP sessions. Exits with 1 if anything is not well.
    Status {
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Run a command in a machine.
    Exec {
        machine: String,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Cut a link or segment, or one machine's end of it (WIRE/MACHINE).
    Cut { wire: String },
    /// Undo a cut.
    Heal { wire: String },
    /// Print the log of a daemon.
    Logs { machine: String, daemon: String },
    /// Print the path of a kubeconfig.
    Kubeconfig {
        /// Whose: admin, cluster, agent-NODE or kubelet-NODE.
        #[arg(long, default_value = "admin")]
        actor: String,
    },
    /// Bring a container image archive to every node.
    LoadImage { archive: PathBuf },
    /// List the labs.
    List,
    /// Print the default lab file, to start your own from.
    Example,
    #[command(hide = true)]
    Launch {
        directory: PathBuf,
        #[arg(last = true)]
        more: Vec<String>,
    },
    #[command(hide = true)]
    Init {
        directory: PathBuf,
        #[arg(long)]
        vm: bool,
        #[arg(long)]
        guest: bool,
        #[arg(long)]
        door: Option<String>,
    },
    #[command(hide = true)]
    Guest { directory: PathBuf },
    #[command(hide = true)]
    Inside { directory: PathBuf },
    #[command(hide = true)]
    Machine {
        directory: PathBuf,
        machine: String,
        #[arg(long)]
        inside: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kernel {
    /// The running kernel: fast; the switch runs in user space.
    Host,
    /// A Debian kernel in QEMU: VRF devices, the kernel's OVS datapath, Geneve. The control plane runs beside it, and
    /// there are no kubelets.
    Vm,
}

pub fn run(arguments: LabArguments) -> Result<ExitCode> {
    let lab = Lab::named(&arguments.name)?;
    if let Some(words) = forwarded(&arguments.verb)
        && VmRecord::of(&lab)?.is_some()
    {
        return run_in_vm(&lab, &arguments.verb, words);
    }
    match arguments.verb {
        LabVerb::Up { file, kernel, keep } => bring_up(&lab, file.as_deref(), kernel, keep)?,
        LabVerb::Down => take_down(&lab)?,
        LabVerb::Status { output } => return show_status(&lab, output),
        LabVerb::Exec { machine, command } => {
            let status = enter::status(&lab, &machine, &command)?;
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
        LabVerb::Cut { wire } => cut::set(&lab, &wire, cut::Wiring::Cut)?,
        LabVerb::Heal { wire } => cut::set(&lab, &wire, cut::Wiring::Healed)?,
        LabVerb::Logs { machine, daemon } => logs::copy(&lab, &machine, &daemon, &mut io::stdout().lock())?,
        LabVerb::Kubeconfig { actor } => print_kubeconfig(&lab, &actor)?,
        LabVerb::LoadImage { archive } => {
            images::load(&lab, &archive, |node| eprintln!("importing {} on {node}", archive.display()))?;
        }
        LabVerb::List => all_labs().iter().for_each(|name| println!("{name}")),
        LabVerb::Example => print!("{}", file::DEFAULT),
        LabVerb::Launch { directory, more } => init::launch(&Lab::at(&directory)?, &more)?,
        LabVerb::Init { directory, vm: true, .. } => vm::run_host(&Lab::at(&directory)?),
        LabVerb::Init { directory, vm: false, guest, door } => {
            let datapath = if guest { Datapath::Kernel } else { Datapath::Userspace };
            init::run(&Lab::at(&directory)?, datapath, door.as_deref());
        }
        LabVerb::Guest { directory } => vm::run_guest(&directory),
        LabVerb::Inside { directory } => vm::run_inside(&directory)?,
        LabVerb::Machine { directory, machine, inside: true } => machine::run(&directory, &machine),
        LabVerb::Machine { directory, machine, inside: false } => machine::launch(&directory, &machine)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The words of a verb that a lab in a virtual machine carries out itself.
fn forwarded(verb: &LabVerb) -> Option<Vec<String>> {
    let words = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
    match verb {
        LabVerb::Exec { machine, command } => {
            let mut argv = vec!["exec".to_owned(), machine.clone(), "--".to_owned()];
            argv.extend(command.iter().cloned());
            Some(argv)
        }
        LabVerb::Cut { wire } => words(&["cut", wire]),
        LabVerb::Heal { wire } => words(&["heal", wire]),
        LabVerb::Logs { machine, daemon } => words(&["logs", machine, daemon]),
        _ => None,
    }
}

/// Carries a verb out in the lab's virtual machine.
fn run_in_vm(lab: &Lab, verb: &LabVerb, words: Vec<String>) -> Result<ExitCode> {
    if let LabVerb::Logs { machine, daemon } = verb
        && lab.log(machine, daemon).exists()
    {
        // The control plane is beside the virtual machine; its node has steps on both sides.
        logs::copy(lab, machine, daemon, &mut io::stdout().lock())?;
        if !["steps", "machine"].contains(&daemon.as_str()) {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let interactive = matches!(verb, LabVerb::Exec { .. });
    Ok(ExitCode::from(vm::forward(lab, words, interactive)?))
}

fn bring_up(lab: &Lab, path: Option<&Path>, kernel: Kernel, keep: bool) -> Result<()> {
    let topology = match path {
        Some(path) => file::read(path)?,
        None => file::parse("default lab", file::DEFAULT)?,
    };
    let program = std::env::current_exe().context("finding this program")?;
    let started = Instant::now();
    let mut progress = UpProgress::start(lab.name());
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, Arc::clone(&interrupted)).context("waiting for signals")?;
    }
    let kernel = match kernel {
        Kernel::Host => up::Kernel::Host,
        Kernel::Vm => up::Kernel::Vm,
    };
    let options = up::Options { program: &program, kernel, keep_failed: keep, interrupted: &interrupted };
    let result = up::up(lab, &topology, &options, |event| progress.event(event));
    progress.finish();
    result?;
    eprintln!("lab {:?} is up after {:.1} s", lab.name(), started.elapsed().as_secs_f64());
    Ok(())
}

fn take_down(lab: &Lab) -> Result<()> {
    up::must_be_root()?;
    let started = Instant::now();
    if down::down(lab)? {
        eprintln!("lab {:?} is down after {:.1} s", lab.name(), started.elapsed().as_secs_f64());
    } else {
        eprintln!("there is no lab {:?}", lab.name());
    }
    Ok(())
}

fn show_status(lab: &Lab, output: Output) -> Result<ExitCode> {
    let status = status::status(lab)?;
    match output {
        Output::Json => println!("{}", serde_json::to_string_pretty(&status)?),
        Output::Table => anstream::print!("{}", tables::status(&status)),
    }
    Ok(if status.healthy() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_kubeconfig(lab: &Lab, actor: &str) -> Result<()> {
    let path = lab.kubeconfig(actor);
    if !path.exists() {
        lab.topology()?;
        anyhow::bail!("there is no kubeconfig of {actor:?}: use admin, cluster, agent-NODE or kubelet-NODE");
    }
    println!("{}", path.display());
    Ok(())
}
