//! The network between the host and the virtual machine: a tap in a namespace of the host, which also holds the control
//! plane. Nothing else is in it, so only root of the host reaches the machine, and the machine only the API server.

use std::io::{Seek, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Doing, LabError};
use crate::plan::API_PORT;
use crate::run::reaper::Reaper;
use crate::run::{enter, init, proxy};
use crate::state::Lab;
use crate::topology::Topology;

/// The tap.
pub const TAP: &str = "vm";
/// Port where the machine takes commands.
pub const COMMANDS: u16 = 1000;
const HOST: Ipv4Addr = Ipv4Addr::new(169, 254, 0, 1);
const GUEST: Ipv4Addr = Ipv4Addr::new(169, 254, 0, 2);
/// Namespace of the tap in a lab without a control plane; not a legal machine name.
const NAMESPACE: &str = "vm.";

/// How long a machine that is up may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// The namespace, as the lab's first process sees it. The control plane runs in it.
pub fn namespace(topology: &Topology) -> PathBuf {
    let name = topology.control_plane().map_or(NAMESPACE, |machine| machine.name.as_str());
    Path::new("/run/netns").join(name)
}

/// Makes the namespace and the host's end of the network.
pub fn make_outside(topology: &Topology, reaper: &Reaper) -> Result<(), LabError> {
    let what = "making the network of the virtual machine";
    let namespace = namespace(topology);
    let name = namespace.file_name().unwrap_or_default();
    init::run_command(reaper, Command::new("ip").args(["netns", "add"]).arg(name), what)?;
    let batch =
        format!("tuntap add dev {TAP} mode tap\naddress add {HOST}/30 dev {TAP}\nlink set {TAP} up\n");
    ip_batch(Command::new("ip").arg("-n").arg(name), &batch, reaper, what)
}

/// Sets up the machine's end.
pub fn make_inside(reaper: &Reaper) -> Result<(), LabError> {
    let batch = format!("link set lo up\naddress add {GUEST}/30 dev eth0\nlink set eth0 up\n");
    ip_batch(&mut Command::new("ip"), &batch, reaper, "setting up the network to the host")
}

fn ip_batch(command: &mut Command, batch: &str, reaper: &Reaper, what: &str) -> Result<(), LabError> {
    let doing = || what.to_owned();
    let mut input = tempfile::tempfile_in("/run").doing(doing)?;
    input.write_all(batch.as_bytes()).and_then(|()| input.rewind()).doing(doing)?;
    init::run_command(reaper, command.args(["-batch", "-"]).stdin(input), what)
}

/// Connects to the machine of a lab that is up.
pub fn connect(lab: &Lab) -> Result<TcpStream, LabError> {
    let first = lab.first_process().ok_or_else(|| lab.not_up())?;
    let root = PathBuf::from(format!("/proc/{first}/root"));
    let namespace = namespace(&lab.topology()?);
    connect_from(&root.join(namespace.strip_prefix("/").unwrap_or(&namespace)), PATIENCE)
}

/// Connects to the machine from the namespace with its tap. A machine that has not booted yet does not even refuse.
pub fn connect_from(namespace: &Path, patience: Duration) -> Result<TcpStream, LabError> {
    enter::in_network(namespace, || {
        TcpStream::connect_timeout(&SocketAddr::from((GUEST, COMMANDS)), patience)
            .doing(|| "connecting to the virtual machine".to_owned())
    })
}

/// In the machine: the API server's port of a lab machine leads to the API server outside.
pub fn open_door(machine: &str) -> Result<(), LabError> {
    let network = Path::new("/run/netns").join(machine);
    let listener = enter::in_network(&network, || {
        TcpListener::bind((Ipv6Addr::UNSPECIFIED, API_PORT))
            .doing(|| "opening the port of the API server".to_owned())
    })?;
    proxy::pass_on(listener, (HOST, API_PORT).into());
    Ok(())
}
