//! Brings the lab up inside the virtual machine and tells the host how it goes: an event a line.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::{Doing, LabError};
use crate::pki::Actor;
use crate::plan::{API_PORT, kubeconfig_path};
use crate::run::enter;
use crate::run::events::Event;
use crate::run::up::{Kernel, Options, up};
use crate::state::Lab;
use crate::topology::{Role, Topology};

/// Brings up the network of the lab whose directory on the host is this one; we read it through the host's file system.
pub fn run(outside: &Path) -> Result<(), LabError> {
    let outer = Lab::at(outside)?;
    let topology = outer.topology()?;
    let lab = Lab::named(outer.name())?;
    let program = std::env::current_exe().doing(|| "finding this program".to_owned())?;
    let options = Options {
        program: &program,
        kernel: Kernel::Guest { door: topology.control_plane().map(|machine| machine.name.clone()) },
        // It ends with the virtual machine, and until then it can be looked at.
        keep_failed: true,
        interrupted: &AtomicBool::new(false),
    };
    up(&lab, &network_part(topology.clone()), &options, tell)?;
    hand_out_kubeconfigs(&outer, &lab, &topology)
}

/// Gives the nodes the kubeconfigs that they would have beside a control plane of their own. The host has made them,
/// with the address of the API server as it is there.
fn hand_out_kubeconfigs(outer: &Lab, lab: &Lab, topology: &Topology) -> Result<(), LabError> {
    let Some(control_plane) = topology.control_plane() else { return Ok(()) };
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, API_PORT));
    let server = control_plane.addresses().first().map_or(local, |&address| (address, API_PORT).into());
    write_kubeconfig(outer, lab, &control_plane.name, Actor::Admin, local)?;
    topology
        .nodes()
        .try_for_each(|node| write_kubeconfig(outer, lab, &node.name, Actor::Agent(&node.name), server))
}

fn write_kubeconfig(
    outer: &Lab,
    lab: &Lab,
    machine: &str,
    actor: Actor<'_>,
    server: SocketAddr,
) -> Result<(), LabError> {
    let path = enter::root_of(lab, machine)?.join(kubeconfig_path(actor).trim_start_matches('/'));
    let write = || -> io::Result<()> {
        let text = fs::read_to_string(outer.kubeconfig(&actor.slug()))?;
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path)?;
        file.write_all(with_server(&text, server).as_bytes())
    };
    write().doing(|| format!("writing a kubeconfig of {} on {machine}", actor.slug()))
}

/// A kubeconfig with another address of the API server.
fn with_server(text: &str, server: SocketAddr) -> String {
    let line = |line: &str| match line.split_once("server: ") {
        Some((indent, _)) if indent.trim().is_empty() => format!("{indent}server: https://{server}\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// The lab without its control plane.
pub fn network_part(mut topology: Topology) -> Topology {
    topology.kubernetes.kubelets = false;
    for machine in &mut topology.machines {
        if let Role::Node { control_plane, .. } = &mut machine.role {
            *control_plane = false;
        }
    }
    topology
}

fn tell(event: &Event) {
    let Ok(mut line) = serde_json::to_vec(event) else { return };
    line.push(b'\n');
    // If nobody listens, the host is gone and soon so are we.
    let _ = io::stdout().write_all(&line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{DEFAULT, parse};
    use crate::pki::Pki;
    use crate::plan::{Datapath, Place, plan, plan_control_plane};

    #[test]
    fn the_two_parts_are_the_whole() {
        let mut whole = parse("default lab", DEFAULT).unwrap();
        whole.kubernetes.kubelets = false;
        let pki = Pki::generate(&whole).unwrap();
        let place = Place {
            lab: "lab".to_owned(),
            datapath: Datapath::Userspace,
            sandbox_image: "pause".to_owned(),
            dns_image: "coredns".to_owned(),
            slowness: 1,
        };
        let control_plane = plan_control_plane(&whole, &pki, &place);
        let network = plan(&network_part(whole.clone()), &pki, &place);
        assert_eq!(control_plane.daemons(), 4);
        assert_eq!(control_plane.daemons() + network.daemons(), plan(&whole, &pki, &place).daemons());
    }

    #[test]
    fn only_the_control_plane_and_kubelets_are_left_out() {
        let whole = parse("default lab", DEFAULT).unwrap();
        let part = network_part(whole.clone());
        assert!(part.control_plane().is_none() && !part.kubernetes.kubelets);
        assert_eq!(part.nodes().count(), whole.nodes().count());
        assert_eq!(part.wires, whole.wires);
    }

    #[test]
    fn a_kubeconfig_changes_in_its_server_only() {
        let topology = parse("default lab", DEFAULT).unwrap();
        let pki = Pki::generate(&topology).unwrap();
        let there = pki.kubeconfig(Actor::Admin, "https://172.30.0.10:6443");
        let here = pki.kubeconfig(Actor::Admin, "https://127.0.0.1:40001");
        assert_eq!(with_server(&here, "172.30.0.10:6443".parse().unwrap()), there);
    }
}
