//! Cables between machines, and the addresses and routes a machine has in its own kernel.

use std::fmt::Write;

use ipnet::IpNet;

use super::{Step, run, words, write};
use crate::topology::{Attachment, Machine, Role, Topology, Wire};

/// Bridges for all wires and a veth pair for every end, as input of `ip -batch` in the namespace of the bridges.
/// A link is a bridge with two ports, so that `cut` works the same on links and segments: the machine keeps its carrier.
/// `name` and `dev` are written out because `ip` takes a name like `l` for a short form of its own words.
pub(super) fn wires(topology: &Topology) -> String {
    let mut batch = String::new();
    for Wire { name, mtu, .. } in &topology.wires {
        let _ = writeln!(batch, "link add name {name} mtu {mtu} type bridge mcast_snooping 0");
        let _ = writeln!(batch, "link set dev {name} addrgenmode none up");
    }
    for machine in &topology.machines {
        let name = &machine.name;
        for Attachment { wire, interface, port, mtu, .. } in &machine.attachments {
            let _ = writeln!(
                batch,
                "link add {port} mtu {mtu} type veth peer name {interface} mtu {mtu} netns {name}"
            );
            let _ = writeln!(batch, "link set {port} master {wire} addrgenmode none up");
        }
    }
    batch
}

/// What every machine has: loopback, names, forwarding where it routes.
pub(super) fn base(machine: &Machine) -> Vec<Step> {
    let name = &machine.name;
    let mut steps = vec![
        write("/etc/hostname", format!("{name}\n")),
        write("/etc/hosts", format!("127.0.0.1 localhost {name}\n::1 localhost {name}\n")),
        // There is no name server beyond the cluster's own.
        write("/etc/resolv.conf", "options timeout:1 attempts:1\n"),
        run("ip link set lo up"),
    ];
    let mut sysctls = words(
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0 \
         net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0",
    );
    if !matches!(machine.role, Role::Host) {
        sysctls.extend(words(
            "net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
             net.ipv4.conf.default.rp_filter=0 net.ipv4.fib_multipath_hash_policy=1",
        ));
    }
    steps.push(Step::Run(sysctls));
    steps
}

/// Addresses on the interfaces themselves: hosts, routers, and a node's further interfaces.
pub(super) fn kernel_addresses(machine: &Machine) -> Vec<Step> {
    let mut batch = String::new();
    for attachment in &machine.attachments {
        batch.push_str(&addresses_of(&attachment.interface, &attachment.addresses));
    }
    batch.push_str(&default_routes(machine));
    vec![feed_ip(batch)]
}

/// Addresses and link state of one interface. `replace` and `nodad`, so that it can run again and counts at once.
pub(super) fn addresses_of(interface: &str, addresses: &[IpNet]) -> String {
    let mut batch = format!("link set {interface} up\n");
    for address in addresses {
        let dad = if address.addr().is_ipv6() { " nodad" } else { "" };
        let _ = writeln!(batch, "address replace {address} dev {interface}{dad}");
    }
    batch
}

/// Default routes through the machine's gateways.
pub(super) fn default_routes(machine: &Machine) -> String {
    machine.gateways.iter().fold(String::new(), |mut batch, gateway| {
        let _ = writeln!(batch, "route replace default via {gateway}");
        batch
    })
}

/// One `ip -batch` call.
pub(super) fn feed_ip(input: String) -> Step {
    Step::Feed { argv: words("ip -batch -"), input }
}
