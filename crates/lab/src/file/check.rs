//! From the file as written to a [`Topology`]: names resolved, mistakes refused with their line.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_saphyr::Spanned;

use super::{AttachmentEntry, BgpEntry, Cidr, KubernetesSection, LabFile, RouterEntry, settings};
use crate::topology::{Attachment, Bgp, Kubernetes, Machine, Neighbor, Role, RouterConfig, Topology, Wire};

/// A wire's name is the name of its bridge: a netdev name has 15 bytes.
const WIRE_NAME_MAX: usize = 15;
/// Names of wires that the kernel has taken for itself.
const RESERVED_NAMES: [&str; 3] = ["lo", "all", "default"];
/// A machine's port on a bridge is called `<machine>.<number>`, which must fit 15 bytes too.
const MACHINE_NAME_MAX: usize = 12;
/// IPv6 needs 1280 bytes; 65535 is what a veth takes.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 1280..=65535;

/// What is wrong, where.
#[derive(Debug)]
pub(super) struct Problem {
    pub line: u64,
    pub message: String,
}

fn problem<T>(at: &Spanned<T>, message: impl Into<String>) -> Problem {
    Problem { line: at.referenced.line(), message: message.into() }
}

pub(super) fn check(file: &LabFile) -> Result<Topology, Problem> {
    let mut machines = machines(file)?;
    let wires = wires(file, &mut machines)?;
    everyone_is_wired(file, &machines)?;
    addresses_differ(file)?;
    nodes_have_addresses(file, &machines)?;
    gateways_are_reachable(file, &machines)?;
    let kubernetes = kubernetes(&file.kubernetes, file)?;
    cluster_subnets_are_free(file, &kubernetes)?;
    let settings = settings::check(&file.settings)?;
    Ok(Topology { kubernetes, settings, restart: file.restart, machines, wires })
}

fn everyone_is_wired(file: &LabFile, machines: &[Machine]) -> Result<(), Problem> {
    if machines.is_empty() {
        let message = "there are no machines: add nodes, routers or hosts; `kubectl-underlay lab example` prints a file \
                       to start from";
        return Err(Problem { line: 1, message: message.to_owned() });
    }
    let Some(lonely) = machines.iter().find(|machine| machine.attachments.is_empty()) else { return Ok(()) };
    let at = names(file).find(|name| name.value == lonely.name);
    let message = format!(
        "machine {0:?} is on no wire: add `{{machine: {0}, addresses: [...]}}` to a segment or link",
        lonely.name
    );
    Err(Problem { line: at.map_or(0, |at| at.referenced.line()), message })
}

/// Kubernetes and OVN know a node by its addresses on the first wire; the API server advertises an IPv4 address.
fn nodes_have_addresses(file: &LabFile, machines: &[Machine]) -> Result<(), Problem> {
    for (node, machine) in file.nodes.iter().zip(machines) {
        let wire = machine.uplink().map(|uplink| uplink.wire.as_str()).unwrap_or_default();
        let missing = match machine.addresses() {
            addresses if addresses.is_empty() => "address",
            addresses if node.control_plane && !addresses.iter().any(IpAddr::is_ipv4) => "IPv4 address",
            _ => continue,
        };
        let name = &node.name.value;
        let text = format!("node {name:?} has no {missing} on its first wire {wire:?}: add one there");
        return Err(problem(&node.name, text));
    }
    Ok(())
}

/// Every machine name with its place in the file.
fn names(file: &LabFile) -> impl Iterator<Item = &Spanned<String>> {
    let nodes = file.nodes.iter().map(|node| &node.name);
    nodes
        .chain(file.routers.iter().map(|router| &router.name))
        .chain(file.hosts.iter().map(|host| &host.name))
}

fn machines(file: &LabFile) -> Result<Vec<Machine>, Problem> {
    let mut seen = BTreeMap::new();
    for name in names(file) {
        check_name(name, "machine", MACHINE_NAME_MAX)?;
        if let Some(first) = seen.insert(&name.value, name.referenced.line()) {
            let text =
                format!("machine {:?} is already defined on line {first}: give one another name", name.value);
            return Err(problem(name, text));
        }
    }
    one_control_plane(file)?;
    let machine = |name: &Spanned<String>, role, gateways: &[Spanned<IpAddr>]| {
        let gateways = gateways.iter().map(|gateway| gateway.value).collect();
        Machine { name: name.value.clone(), role, attachments: Vec::new(), gateways }
    };
    let nodes = file.nodes.iter().enumerate().map(|(index, node)| {
        let role = Role::Node { control_plane: node.control_plane, index, bgp: node.bgp.as_ref().map(bgp) };
        Ok(machine(&node.name, role, &node.gateways))
    });
    let routers = file
        .routers
        .iter()
        .map(|router| Ok(machine(&router.name, Role::Router(router_config(router)?), &router.gateways)));
    let hosts = file.hosts.iter().map(|host| Ok(machine(&host.name, Role::Host, &host.gateways)));
    nodes.chain(routers).chain(hosts).collect()
}

fn one_control_plane(file: &LabFile) -> Result<(), Problem> {
    let mut control_planes = file.nodes.iter().filter(|node| node.control_plane);
    let first = control_planes.next();
    if let (Some(first), Some(second)) = (first, control_planes.next()) {
        let text = format!(
            "node {:?} is a second control plane beside {:?}: a lab has one, remove `controlPlane: true`",
            second.name.value, first.name.value
        );
        return Err(problem(&second.name, text));
    }
    match (first, file.nodes.first()) {
        (None, Some(node)) => {
            Err(problem(&node.name, "no node hosts the control plane: add `controlPlane: true` to one node"))
        }
        _ => Ok(()),
    }
}

fn router_config(router: &RouterEntry) -> Result<RouterConfig, Problem> {
    match (&router.frr, &router.bgp) {
        (Some(frr), Some(_)) => {
            Err(problem(frr, "give either `frr` (a whole configuration) or `bgp`, not both"))
        }
        (Some(frr), None) => Ok(RouterConfig::Whole(frr.value.clone())),
        (None, Some(entry)) => Ok(RouterConfig::Bgp(bgp(entry))),
        (None, None) => Ok(RouterConfig::Plain),
    }
}

fn bgp(entry: &BgpEntry) -> Bgp {
    let neighbors = entry
        .neighbors
        .iter()
        .map(|neighbor| Neighbor {
            address: neighbor.address.value,
            asn: neighbor.asn,
            reflector_client: neighbor.reflector_client,
            next_hop_self: neighbor.next_hop_self,
            bfd: neighbor.bfd,
            password: neighbor.password.clone(),
        })
        .collect();
    let networks = entry.networks.iter().map(|network| network.value.0.trunc()).collect();
    Bgp { asn: entry.asn, neighbors, networks }
}

/// Letters, digits and dashes: fit for host names, netdevs and Kubernetes alike.
fn check_name(name: &Spanned<String>, what: &str, max: usize) -> Result<(), Problem> {
    let text = &name.value;
    if text.len() > max {
        let message = format!(
            "{what} name {text:?} has {} characters, too long for a network device: use at most {max}",
            text.len()
        );
        return Err(problem(name, message));
    }
    let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let starts = text.starts_with(|first: char| first.is_ascii_lowercase());
    if !plain || !starts || text.ends_with('-') {
        let message = format!(
            "{what} name {text:?} cannot be a host or device name: use lower-case letters, digits and dashes, \
             starting with a letter"
        );
        return Err(problem(name, message));
    }
    Ok(())
}

fn wires(file: &LabFile, machines: &mut [Machine]) -> Result<Vec<Wire>, Problem> {
    let segments = file.segments.iter().map(|segment| (&segment.name, &segment.mtu, &segment.members));
    let links = file.links.iter().map(|link| (&link.name, &link.mtu, &link.ends));
    for link in &file.links {
        if link.ends.len() != 2 {
            let text = format!(
                "link {:?} has {} ends: give two, or make it a segment",
                link.name.value,
                link.ends.len()
            );
            return Err(problem(&link.name, text));
        }
    }
    let mut wires: Vec<Wire> = Vec::new();
    for (name, mtu, ends) in segments.chain(links) {
        check_name(name, "wire", WIRE_NAME_MAX)?;
        if RESERVED_NAMES.contains(&name.value.as_str()) {
            let text =
                format!("wire name {:?} means something else to the kernel: choose another", name.value);
            return Err(problem(name, text));
        }
        if wires.iter().any(|wire| wire.name == name.value) {
            return Err(problem(
                name,
                format!("segment or link {:?} exists already: rename one", name.value),
            ));
        }
        if !MTU_RANGE.contains(&mtu.value) {
            let text = format!("mtu {} is out of range: use {MTU_RANGE:?}", mtu.value);
            return Err(problem(mtu, text));
        }
        let ports =
            ends.iter().map(|end| attach(machines, &name.value, mtu.value, end)).collect::<Result<_, _>>()?;
        wires.push(Wire { name: name.value.clone(), mtu: mtu.value, ports });
    }
    Ok(wires)
}

/// Puts one machine on a wire; returns its name and the name of its port on the wire's bridge.
fn attach(
    machines: &mut [Machine],
    wire: &str,
    mtu: u32,
    end: &AttachmentEntry,
) -> Result<(String, String), Problem> {
    let known = machines.iter().map(|machine| machine.name.as_str()).collect::<Vec<_>>().join(", ");
    let name = &end.machine.value;
    let Some(machine) = machines.iter_mut().find(|machine| machine.name == *name) else {
        let text = format!(
            "{wire:?} joins machine {name:?}, which does not exist: use one of {known}, or define it"
        );
        return Err(problem(&end.machine, text));
    };
    if machine.attachments.iter().any(|attachment| attachment.wire == wire) {
        let text = format!("machine {name:?} is on {wire:?} twice: give both addresses in one entry");
        return Err(problem(&end.machine, text));
    }
    let number = machine.attachments.len();
    let port = format!("{name}.{number}");
    machine.attachments.push(Attachment {
        wire: wire.to_owned(),
        interface: format!("eth{number}"),
        port: port.clone(),
        addresses: end.addresses.iter().map(|address| address.value.0).collect(),
        mtu,
    });
    Ok((name.clone(), port))
}

/// No address twice, and no two wires with overlapping subnets: routes between them would be a matter of luck.
fn addresses_differ(file: &LabFile) -> Result<(), Problem> {
    let segments = file.segments.iter().map(|segment| (&segment.name.value, &segment.members));
    let links = file.links.iter().map(|link| (&link.name.value, &link.ends));
    let mut seen: Vec<(&str, &str, &Spanned<Cidr>)> = Vec::new();
    for (wire, ends) in segments.chain(links) {
        for end in ends {
            for address in &end.addresses {
                for (other_wire, other_machine, other) in &seen {
                    conflict(address, wire, other, other_wire, other_machine)?;
                }
                seen.push((wire, &end.machine.value, address));
            }
        }
    }
    Ok(())
}

/// Pods and Services have subnets of their own, apart from each other and from every wire.
fn cluster_subnets_are_free(file: &LabFile, kubernetes: &Kubernetes) -> Result<(), Problem> {
    if file.nodes.is_empty() {
        return Ok(());
    }
    let given = |subnet: &IpNet| {
        let section = &file.kubernetes;
        section
            .pod_subnets
            .iter()
            .chain(&section.service_subnets)
            .find(|given| given.value.0.trunc() == *subnet)
    };
    let attachments =
        file.segments.iter().flat_map(|segment| segment.members.iter().map(|end| (&segment.name, end)));
    let ends = file.links.iter().flat_map(|link| link.ends.iter().map(|end| (&link.name, end)));
    for (wire, end) in attachments.chain(ends) {
        for address in &end.addresses {
            let all = kubernetes.pod_subnets.iter().chain(&kubernetes.service_subnets);
            let Some(subnet) = all.into_iter().find(|subnet| overlap(address.value.0, **subnet)) else {
                continue;
            };
            let (on_wire, wire, line) = (address.value.0.trunc(), &wire.value, address.referenced.line());
            return Err(match given(subnet) {
                Some(at) => problem(
                    at,
                    format!("subnet {subnet} overlaps {on_wire} of {wire:?} on line {line}: choose another"),
                ),
                None => problem(
                    address,
                    format!(
                        "{on_wire} of {wire:?} overlaps {subnet}, which the cluster has unless told otherwise: choose \
                         another, or set podSubnets and serviceSubnets of `kubernetes`"
                    ),
                ),
            });
        }
    }
    let pods = kubernetes.pod_subnets.iter();
    let mut pairs = pods.flat_map(|pod| kubernetes.service_subnets.iter().map(move |service| (pod, service)));
    let Some((pod, service)) = pairs.find(|(pod, service)| overlap(**pod, **service)) else { return Ok(()) };
    let message =
        format!("podSubnets has {pod} and serviceSubnets has {service}: choose subnets that do not overlap");
    let at = given(pod).or_else(|| given(service));
    Err(Problem { line: at.map_or(0, |at| at.referenced.line()), message })
}

fn conflict(
    address: &Spanned<Cidr>,
    wire: &str,
    other: &Spanned<Cidr>,
    other_wire: &str,
    other_machine: &str,
) -> Result<(), Problem> {
    let (new, old) = (address.value.0, other.value.0);
    let line = other.referenced.line();
    if new.addr() == old.addr() {
        let text = format!(
            "address {} is already given to {other_machine:?} on line {line}: choose another",
            new.addr()
        );
        return Err(problem(address, text));
    }
    if wire != other_wire && overlap(new, old) {
        let text = format!(
            "{} of {wire:?} overlaps {} of {other_wire:?} on line {line}: give every wire a subnet of its own",
            new.trunc(),
            old.trunc()
        );
        return Err(problem(address, text));
    }
    Ok(())
}

fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

fn gateways_are_reachable(file: &LabFile, machines: &[Machine]) -> Result<(), Problem> {
    let nodes = file.nodes.iter().map(|node| (&node.name, &node.gateways));
    let routers = file.routers.iter().map(|router| (&router.name, &router.gateways));
    let hosts = file.hosts.iter().map(|host| (&host.name, &host.gateways));
    for (name, gateways) in nodes.chain(routers).chain(hosts) {
        let machine = machines.iter().find(|machine| machine.name == name.value);
        let subnets: Vec<IpNet> =
            machine.iter().flat_map(|m| &m.attachments).flat_map(|a| a.addresses.clone()).collect();
        for (number, gateway) in gateways.iter().enumerate() {
            if !subnets.iter().any(|subnet| subnet.contains(&gateway.value)) {
                let text = format!(
                    "gateway {} of {:?} is on none of its wires: use an address inside one of {}",
                    gateway.value,
                    name.value,
                    subnets.iter().map(|subnet| subnet.trunc().to_string()).collect::<Vec<_>>().join(", ")
                );
                return Err(problem(gateway, text));
            }
            let twice =
                gateways[..number].iter().any(|other| other.value.is_ipv4() == gateway.value.is_ipv4());
            if twice {
                return Err(problem(
                    gateway,
                    format!("{:?} has two gateways of one family: keep one", name.value),
                ));
            }
        }
    }
    Ok(())
}

fn kubernetes(section: &KubernetesSection, file: &LabFile) -> Result<Kubernetes, Problem> {
    let subnets = |given: &[Spanned<Cidr>], default: [&str; 2]| -> Vec<IpNet> {
        if given.is_empty() {
            default.iter().filter_map(|text| text.parse().ok()).collect()
        } else {
            given.iter().map(|subnet| subnet.value.0.trunc()).collect()
        }
    };
    let kubernetes = Kubernetes {
        kubelets: section.kubelets,
        cni: section.cni.0,
        pod_subnets: subnets(&section.pod_subnets, ["10.244.0.0/16", "fd00:10:244::/48"]),
        service_subnets: subnets(&section.service_subnets, ["10.96.0.0/16", "fd00:10:96::/112"]),
    };
    for (given, what) in [(&section.pod_subnets, "podSubnets"), (&section.service_subnets, "serviceSubnets")]
    {
        let v4 = given.iter().filter(|subnet| subnet.value.0.addr().is_ipv4()).count();
        if let Some(last) = given.last().filter(|_| v4 > 1 || given.len() - v4 > 1) {
            return Err(problem(last, format!("{what} has two subnets of one family: keep one of each")));
        }
    }
    let families = kubernetes.pod_subnets.len();
    if let Some(poor) = (0..file.nodes.len()).find(|index| kubernetes.pod_subnets_of(*index).len() < families)
    {
        let text = format!(
            "podSubnets has no /24 (or /64) left for node {:?}: widen it",
            file.nodes[poor].name.value
        );
        return Err(section.pod_subnets.first().map_or_else(
            || problem(&file.nodes[poor].name, text.clone()),
            |subnet| problem(subnet, text.clone()),
        ));
    }
    Ok(kubernetes)
}
