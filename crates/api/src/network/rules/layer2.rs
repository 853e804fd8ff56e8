//! Rules of networks with one switch for all nodes.

use serde_json::Value;

use super::super::says;
use super::{Rule, inside, ipv6_fits, rule, rules};

/// Whether `ipam.mode` is this one.
pub fn mode_is(mode: &str) -> String {
    format!("has(self.ipam) && has(self.ipam.mode) && self.ipam.mode == '{mode}'")
}

/// Whether addresses are allocated.
pub fn allocated() -> &'static str {
    "!has(self.ipam) || !has(self.ipam.mode) || self.ipam.mode == 'Enabled'"
}

/// A field that only primary networks have.
fn only_primary(field: &str, message: &'static str) -> Rule {
    rule(format!("!has(self.{field}) || self.role == 'Primary'"), message)
}

/// A field that means nothing without subnets.
fn only_with_subnets(field: &str, message: &'static str) -> Rule {
    rule(format!("!has(self.{field}) || has(self.subnets)"), message)
}

/// A field with subnets that begin where their lengths say.
fn masked(field: &str, message: &'static str) -> Rule {
    let masked =
        format!("!has(self.{field}) || self.{field}.all(p, !isCIDR(p) || cidr(p) == cidr(p).masked())");
    rule(masked, message)
}

/// Rules of the network.
pub fn layer2() -> Value {
    let frozen = [rule("self == oldSelf", says::LAYER2_IMMUTABLE)];
    rules(frozen.into_iter().chain(modes()).chain(gateways()).chain(parts()))
}

fn modes() -> [Rule; 7] {
    let (disabled, guest) = (mode_is("Disabled"), mode_is("GuestAssigned"));
    [
        rule(format!("!({}) || has(self.subnets)", allocated()), says::SUBNETS_REQUIRED),
        rule(format!("!({disabled}) || !has(self.subnets)"), says::SUBNETS_FORBIDDEN),
        rule(format!("!({disabled}) || self.role == 'Secondary'"), says::DISABLED_SECONDARY),
        rule(format!("!({guest}) || has(self.subnets)"), says::GUEST_SUBNETS),
        rule(format!("!({guest}) || self.role == 'Primary'"), says::GUEST_PRIMARY),
        only_primary("joinSubnets", says::JOIN_PRIMARY),
        ipv6_fits("s", says::MTU_IPV6),
    ]
}

fn gateways() -> [Rule; 4] {
    let inside = |subnets: &str| {
        format!(
            "self.defaultGatewayIPs.all(g, !isIP(g) || \
            self.{subnets}.exists(s, !isCIDR(s) || cidr(s).containsIP(g)))"
        )
    };
    [
        only_primary("defaultGatewayIPs", says::GATEWAYS_PRIMARY),
        rule(
            format!("!has(self.defaultGatewayIPs) || has(self.subnets) && {}", inside("subnets")),
            says::GATEWAYS_INSIDE,
        ),
        rule(
            "!has(self.defaultGatewayIPs) || !has(self.subnets) || \
            size(self.defaultGatewayIPs) == size(self.subnets)",
            says::GATEWAYS_FAMILIES,
        ),
        rule(
            format!(
                "!has(self.defaultGatewayIPs) || !has(self.infrastructureSubnets) || {}",
                inside("infrastructureSubnets")
            ),
            says::GATEWAYS_INFRASTRUCTURE,
        ),
    ]
}

fn parts() -> [Rule; 11] {
    let apart = "!has(self.infrastructureSubnets) || !has(self.reservedSubnets) || \
        self.infrastructureSubnets.all(a, !isCIDR(a) || self.reservedSubnets.all(b, !isCIDR(b) || \
        !cidr(a).containsCIDR(b) && !cidr(b).containsCIDR(a)))";
    [
        only_with_subnets("reservedSubnets", says::RESERVED_SUBNETS),
        only_primary("reservedSubnets", says::RESERVED_PRIMARY),
        inside("reservedSubnets", "s", says::RESERVED_INSIDE),
        masked("reservedSubnets", says::RESERVED_MASKED),
        only_with_subnets("infrastructureSubnets", says::INFRASTRUCTURE_SUBNETS),
        only_primary("infrastructureSubnets", says::INFRASTRUCTURE_PRIMARY),
        inside("infrastructureSubnets", "s", says::INFRASTRUCTURE_INSIDE),
        masked("infrastructureSubnets", says::INFRASTRUCTURE_MASKED),
        rule(apart, says::INFRASTRUCTURE_RESERVED),
        only_with_subnets("excludeSubnets", says::EXCLUDE_SUBNETS),
        inside("excludeSubnets", "s", says::EXCLUDE_INSIDE),
    ]
}

/// Rules of who gives pods their addresses.
pub fn ipam() -> Value {
    let persistent =
        "!has(self.lifecycle) || self.lifecycle != 'Persistent' || !has(self.mode) || self.mode == 'Enabled'";
    rules([rule(persistent, says::PERSISTENT_ENABLED)])
}
