//! FRR on nodes and routers: its configuration from a few declarative lines, and its daemons.

use std::fmt::Write;
use std::net::IpAddr;

use super::{Daemon, Probe, Step, run, words, write};
use crate::topology::{Bgp, Machine};

/// Daemons in starting order: the others register with zebra. Without mgmtd zebra never stops trying to reach it, which
/// takes several percent of a processor and fills its log.
const DAEMONS: [&str; 4] = ["mgmtd", "zebra", "bgpd", "bfdd"];

/// Writes `frr.conf` and starts the daemons on it. Each reads the file at its start, which converges in a second;
/// feeding a running bgpd line by line takes several.
pub(super) fn steps(config: &str) -> Vec<Step> {
    let mut steps = vec![
        write("/etc/frr/frr.conf", config),
        write("/etc/frr/vtysh.conf", "service integrated-vtysh-config\n"),
        run("chown -R frr:frr /etc/frr"),
        run("install -d -o frr -g frr /run/frr /var/tmp/frr /var/lib/frr"),
    ];
    steps.extend(DAEMONS.map(|name| {
        // mgmtd only passes on what it is told while it runs.
        let file = if name == "mgmtd" { "" } else { "-f /etc/frr/frr.conf" };
        Step::Start(Daemon {
            name: name.to_owned(),
            // As FRR's own service has it.
            argv: words(&format!("nice -n -5 /usr/lib/frr/{name} -A 127.0.0.1 {file} --log stdout")),
            ready: Probe::socket(&format!("/run/frr/{name}.vty")),
            after: vec![],
        })
    }));
    steps
}

/// A node without BGP of its own: FRR runs and waits to be told.
pub(super) fn silent(machine: &Machine) -> String {
    format!("frr defaults datacenter\nhostname {}\n", machine.name)
}

/// Renders the configuration of a speaker.
pub(super) fn config(machine: &Machine, bgp: &Bgp) -> String {
    let mut text = silent(machine);
    let _ = writeln!(text, "!\nrouter bgp {}", bgp.asn);
    // The router id is the uplink's IPv4 address: unique in the lab, and known to whoever reads the output.
    if let Some(IpAddr::V4(id)) = machine.addresses().into_iter().find(IpAddr::is_ipv4) {
        let _ = writeln!(text, " bgp router-id {id}");
    }
    text.push_str(
        " no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n no bgp network import-check\n",
    );
    text.push_str(" bgp graceful-restart\n bgp graceful-restart preserve-fw-state\n timers bgp 3 9\n");
    for neighbor in &bgp.neighbors {
        let address = neighbor.address;
        let _ = writeln!(text, " neighbor {address} remote-as {}", neighbor.asn);
        // A lab converges at once or a test waits: FRR's own default is two minutes.
        let _ = writeln!(text, " neighbor {address} timers connect 1");
        if neighbor.bfd {
            let _ = writeln!(text, " neighbor {address} bfd");
        }
        if let Some(password) = &neighbor.password {
            let _ = writeln!(text, " neighbor {address} password {password}");
        }
    }
    text.push_str(&address_family(bgp, "ipv4", IpAddr::is_ipv4));
    text.push_str(&address_family(bgp, "ipv6", IpAddr::is_ipv6));
    text.push_str("exit\n");
    text
}

fn address_family(bgp: &Bgp, family: &str, belongs: fn(&IpAddr) -> bool) -> String {
    let mut text = format!(" !\n address-family {family} unicast\n");
    for network in bgp.networks.iter().filter(|network| belongs(&network.addr())) {
        let _ = writeln!(text, "  network {network}");
    }
    for neighbor in bgp.neighbors.iter().filter(|neighbor| belongs(&neighbor.address)) {
        let _ = writeln!(text, "  neighbor {} activate", neighbor.address);
        if neighbor.reflector_client {
            let _ = writeln!(text, "  neighbor {} route-reflector-client", neighbor.address);
        }
        if neighbor.next_hop_self {
            let _ = writeln!(text, "  neighbor {} next-hop-self", neighbor.address);
        }
    }
    text.push_str(" exit-address-family\n");
    text
}
