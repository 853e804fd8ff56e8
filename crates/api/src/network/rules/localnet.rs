//! Rules of networks outside the cluster.

use serde_json::Value;

use super::super::says;
use super::layer2::mode_is;
use super::{inside, ipv6_fits, rule, rules};

/// Rules of the network.
pub fn localnet() -> Value {
    let (disabled, guest) = (mode_is("Disabled"), mode_is("GuestAssigned"));
    rules([
        rule("self == oldSelf", says::LOCALNET_IMMUTABLE),
        rule(format!("({guest}) || ({disabled}) != has(self.subnets)"), says::LOCALNET_SUBNETS),
        rule(format!("!({guest})"), says::GUEST_LAYER2),
        rule("!has(self.excludeSubnets) || has(self.subnets)", says::EXCLUDE_SUBNETS),
        inside("excludeSubnets", "s", says::EXCLUDE_INSIDE),
        ipv6_fits("s", says::MTU_IPV6_LOCALNET),
    ])
}

/// Rules of the name outside.
pub fn physical_network_name() -> Value {
    rules([rule("self.matches('^[^,:]*$')", says::PHYSICAL_NAME)])
}

/// Rules of its VLAN.
pub fn vlan() -> Value {
    rules([rule("has(self.access) == (self.mode == 'Access')", says::VLAN_ACCESS)])
}
