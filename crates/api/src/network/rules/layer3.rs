//! Rules of networks in which each node has a subnet of its own.

use serde_json::Value;

use super::super::says;
use super::{Rule, inside, ipv6_fits, rule, rules, stays};

/// Rules of the network.
pub fn layer3() -> Value {
    rules(subnets().into_iter().chain(others()).chain(changes()))
}

fn subnets() -> [Rule; 5] {
    // Every pair is looked at, up to 400 times 400: what one element tells is asked before, for all of them.
    let pairs = |rule: &str| {
        format!("!self.subnets.all(s, isCIDR(s.cidr)) || self.subnets.all(a, self.subnets.all(b, {rule}))")
    };
    let of_one_family = "!isCIDR(self.subnets[0].cidr) || !isCIDR(self.subnets[1].cidr) || \
        cidr(self.subnets[0].cidr).ip().family() != cidr(self.subnets[1].cidr).ip().family()";
    [
        rule("self.role != 'Secondary' || size(self.subnets) <= 2", says::SECONDARY_SUBNETS),
        rule(
            format!("self.role != 'Secondary' || size(self.subnets) != 2 || {of_one_family}"),
            says::SECONDARY_FAMILIES,
        ),
        rule(
            "!self.subnets.all(s, isCIDR(s.cidr)) || self.subnets.all(a, [cidr(a.cidr)].all(c, \
            self.subnets.all(b, a.cidr == b.cidr || !c.containsCIDR(b.cidr))))",
            says::SUBNETS_OVERLAP,
        ),
        rule("self.subnets.all(a, self.subnets.exists_one(b, a.cidr == b.cidr))", says::SUBNETS_TWICE),
        rule(
            pairs(
                "cidr(a.cidr).ip().family() != cidr(b.cidr).ip().family() || \
                has(a.hostSubnet) == has(b.hostSubnet) && (!has(a.hostSubnet) || a.hostSubnet == b.hostSubnet)",
            ),
            says::HOST_SUBNETS_DIFFER,
        ),
    ]
}

fn others() -> [Rule; 3] {
    [
        rule("!has(self.joinSubnets) || self.role == 'Primary'", says::JOIN_PRIMARY),
        ipv6_fits("s.cidr", says::MTU_IPV6),
        inside("excludeSubnets", "s.cidr", says::EXCLUDE_INSIDE),
    ]
}

/// A primary network may get more subnets; nothing else changes.
fn changes() -> [Rule; 6] {
    [
        rule("self.role != 'Secondary' || self.subnets == oldSelf.subnets", says::SECONDARY_IMMUTABLE),
        rule("oldSelf.subnets.all(o, self.subnets.exists(n, n.cidr == o.cidr))", says::SUBNETS_REMOVED),
        rule(
            "oldSelf.subnets.all(o, self.subnets.all(n, n.cidr != o.cidr || \
            has(n.hostSubnet) == has(o.hostSubnet) && (!has(n.hostSubnet) || n.hostSubnet == o.hostSubnet)))",
            says::HOST_SUBNET_IMMUTABLE,
        ),
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
