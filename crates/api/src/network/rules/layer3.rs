//! Rules of networks in which each node has a subnet of its own.

use serde_json::Value;

use super::super::says;
use super::{Rule, inside, ipv6_fits, rule, rules, stays};

/// Rules of the network.
pub fn layer3() -> Value {
    rules(subnets().into_iter().chain(others()).chain(changes()))
}

/// How many subnets the API server can compare with each other before it gives up, however long their texts are. There
/// may be more; whether those overlap is told when they are read.
const COMPARED: usize = 150;

fn subnets() -> [Rule; 5] {
    let of_one_family = "!isCIDR(self.subnets[0].cidr) || !isCIDR(self.subnets[1].cidr) || \
        cidr(self.subnets[0].cidr).ip().family() != cidr(self.subnets[1].cidr).ip().family()";
    [
        rule("self.role != 'Secondary' || size(self.subnets) <= 2", says::SECONDARY_SUBNETS),
        rule(
            format!("self.role != 'Secondary' || size(self.subnets) != 2 || {of_one_family}"),
            says::SECONDARY_FAMILIES,
        ),
        // A list of one gives its element a name.
        rule(
            format!(
                "size(self.subnets) > {COMPARED} || !self.subnets.all(s, isCIDR(s.cidr)) || \
                self.subnets.all(a, [cidr(a.cidr)].all(c, \
                self.subnets.all(b, a.cidr == b.cidr || !c.containsCIDR(b.cidr))))"
            ),
            says::SUBNETS_OVERLAP,
        ),
        rule(
            "[self.subnets.map(s, s.cidr)].all(c, c.all(s, c.indexOf(s) == c.lastIndexOf(s)))",
            says::SUBNETS_TWICE,
        ),
        rule(format!("{} && {}", one_host_subnet(4), one_host_subnet(6)), says::HOST_SUBNETS_DIFFER),
    ]
}

/// Whether nodes get parts of one length from all subnets of a family.
fn one_host_subnet(family: u8) -> String {
    let lengths = host_subnets("self", family);
    format!("(size({lengths}) < 2 || {lengths}.min() == {lengths}.max())")
}

/// Whether it is the length that they got before. One subnet speaks for all of its family.
fn same_host_subnet(family: u8) -> String {
    let (before, now) = (host_subnets("oldSelf", family), host_subnets("self", family));
    format!("(size({before}) == 0 || size({now}) == 0 || {before}[0] == {now}[0])")
}

/// The lengths of nodes' parts of the subnets of a family, 0 where none is given.
fn host_subnets(network: &str, family: u8) -> String {
    format!(
        "{network}.subnets.filter(s, isCIDR(s.cidr) && cidr(s.cidr).ip().family() == {family})\
        .map(s, has(s.hostSubnet) ? s.hostSubnet : 0)"
    )
}

fn others() -> [Rule; 3] {
    [
        rule("!has(self.joinSubnets) || self.role == 'Primary'", says::JOIN_PRIMARY),
        ipv6_fits("s.cidr", says::MTU_IPV6),
        inside("excludeSubnets", "s.cidr", says::EXCLUDE_INSIDE),
    ]
}

/// A primary network may get more subnets; nothing else changes. Subnets are compared as texts: there may be hundreds of
/// them, and every change of the network's status asks again.
fn changes() -> [Rule; 6] {
    [
        rule("self.role != 'Secondary' || self.subnets == oldSelf.subnets", says::SECONDARY_IMMUTABLE),
        rule(
            "[self.subnets.map(n, n.cidr)].all(cidrs, oldSelf.subnets.all(o, o.cidr in cidrs))",
            says::SUBNETS_REMOVED,
        ),
        rule(format!("{} && {}", same_host_subnet(4), same_host_subnet(6)), says::HOST_SUBNET_IMMUTABLE),
        stays("mtu", says::MTU_IMMUTABLE),
        stays("joinSubnets", says::JOIN_IMMUTABLE),
        stays("excludeSubnets", says::EXCLUDE_IMMUTABLE),
    ]
}

/// Rules of one of its subnets.
pub fn subnet() -> Value {
    rules([
        rule(
            "!has(self.hostSubnet) || !isCIDR(self.cidr) || self.hostSubnet > cidr(self.cidr).prefixLength()",
            says::HOST_SUBNET_SIZE,
        ),
        rule(
            "!has(self.hostSubnet) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 6 || self.hostSubnet < 32",
            says::HOST_SUBNET_IPV4,
        ),
    ])
}
