//! The first process of the virtual machine: makes a computer of it, then takes commands from the host.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use nix::unistd::sethostname;

use super::network;
use super::record::VmRecord;
use super::server::Server;
use crate::error::{Doing, LabError};
use crate::run::reaper::Reaper;
use crate::run::{init, machine, root};
use crate::state::Lab;

/// Where the lab inside keeps its files: memory of the machine. A machine's root is an overlay, whose upper part must
/// not be on an overlay itself, as the root of the virtual machine is.
const STATE: &str = "/var/lib/underlay-vm";

/// File systems that the initramfs leaves to us. The host's `/run` and `/tmp` stay in sight: the lab's directory may be
/// in one of them, and what we write there is ours alone.
const MOUNTS: [(&str, &str, &str); 4] = [
    ("tmpfs", "/dev/shm", "mode=1777"),
    ("devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666"),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("tmpfs", STATE, "mode=0755,size=75%"),
];

/// Needed before the first machine starts.
const FIRST_MODULES: [&str; 2] = ["veth", "bridge"];
/// Loaded meanwhile. The kernel would load most of them when first asked for, but a lab is there to be looked at.
const MODULES: [&str; 13] = [
    "openvswitch",
    "vport-geneve",
    "vport-vxlan",
    "vrf",
    "nf_conntrack",
    "nf_nat",
    "nf_tables",
    "nft_chain_nat",
    "nft_ct",
    "nft_fib_inet",
    "dummy",
    "tun",
    "8021q",
];

/// The kernel is the lab's own: its limits fit large labs.
const SETTINGS: [(&str, &str); 6] = [
    ("net/ipv4/neigh/default/gc_thresh3", "16384"),
    ("net/ipv6/neigh/default/gc_thresh3", "16384"),
    ("fs/inotify/max_user_instances", "8192"),
    ("fs/inotify/max_user_watches", "1048576"),
    ("kernel/printk", "4"),
    ("vm/overcommit_memory", "1"),
];

/// Never returns: if it did, the kernel would panic.
pub fn run(directory: &Path) -> ! {
    if let Err(error) = start(directory) {
        eprintln!("lab: {}", machine::describe(&error));
        // Ends the virtual machine; the host then shows these lines.
        std::process::exit(1);
    }
    loop {
        thread::sleep(Duration::from_hours(1));
    }
}

fn start(directory: &Path) -> Result<(), LabError> {
    let lab = Lab::at(directory)?;
    let record = VmRecord::of(&lab)?.ok_or_else(|| LabError::refused("there is no vm.json"))?;
    for (kind, target, options) in MOUNTS {
        let target = Path::new(target);
        fs::create_dir_all(target).doing(|| format!("making {}", target.display()))?;
        root::mount_fs(kind, target, options)?;
    }
    sethostname(lab.name()).doing(|| "setting the host name".to_owned())?;
    for (setting, value) in SETTINGS {
        if let Err(error) = fs::write(Path::new("/proc/sys").join(setting), value) {
            eprintln!("lab: {setting}: {error}");
        }
    }
    let reaper = Reaper::start();
    modprobe(&reaper, &FIRST_MODULES)?;
    network::make_inside(&reaper)?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, network::COMMANDS))
        .doing(|| "opening the port for commands".to_owned())?;
    let background = reaper.clone();
    thread::spawn(move || {
        if let Err(error) = modprobe(&background, &MODULES) {
            eprintln!("lab: {}", machine::describe(&error));
        }
    });
    let mut environment = vec![("UNDERLAY_STATE".to_owned(), STATE.to_owned())];
    if let Some(cache) = record.cache {
        environment.push(("UNDERLAY_CACHE".to_owned(), cache.display().to_string()));
    }
    let server = Server { lab: lab.name().to_owned(), environment, reaper };
    thread::spawn(move || server.serve(&listener));
    Ok(())
}

fn modprobe(reaper: &Reaper, modules: &[&str]) -> Result<(), LabError> {
    init::run_command(reaper, Command::new("modprobe").arg("-a").args(modules), "loading kernel modules")
}
