//! Prefixes and addresses in them, for both families at once.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

/// One of the two address families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both, in the order in which they are written.
    pub const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family of a prefix.
    pub fn of_net(net: &IpNet) -> Self {
        Self::of(net.addr())
    }

    /// Length of a host route: 32 or 128.
    pub fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    /// The prefix of all addresses.
    pub fn everything(self) -> IpNet {
        match self {
            Self::V4 => Ipv4Net::default().into(),
            Self::V6 => Ipv6Net::default().into(),
        }
    }

    /// `ip4` or `ip6`, as in OVN matches.
    pub fn ovn(self) -> &'static str {
        match self {
            Self::V4 => "ip4",
            Self::V6 => "ip6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        })
    }
}

/// The address this far into a prefix, if it is still inside.
pub fn nth(net: &IpNet, offset: u128) -> Option<IpAddr> {
    let address = match net.network() {
        IpAddr::V4(base) => {
            let sum = u128::from(u32::from(base)).checked_add(offset)?;
            IpAddr::V4(Ipv4Addr::from(u32::try_from(sum).ok()?))
        }
        IpAddr::V6(base) => IpAddr::V6(Ipv6Addr::from(u128::from(base).checked_add(offset)?)),
    };
    net.contains(&address).then_some(address)
}

/// How far into a prefix an address lies.
pub fn offset(net: &IpNet, address: IpAddr) -> Option<u128> {
    if !net.contains(&address) {
        return None;
    }
    match (net.network(), address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => Some(u128::from(u32::from(address) - u32::from(base))),
        (IpAddr::V6(base), IpAddr::V6(address)) => Some(u128::from(address) - u128::from(base)),
        _ => None,
    }
}

/// An address with the length of a prefix: how interfaces carry addresses.
pub fn with_length_of(address: IpAddr, net: &IpNet) -> IpNet {
    with_length(address, net.prefix_len())
}

/// An address as a host route.
pub fn host(address: IpAddr) -> IpNet {
    with_length(address, Family::of(address).bits())
}

fn with_length(address: IpAddr, length: u8) -> IpNet {
    // A length of the same family always fits; a longer one becomes a host route instead of an error.
    match address {
        IpAddr::V4(v4) => Ipv4Net::new(v4, length).unwrap_or_else(|_| Ipv4Net::from(v4)).into(),
        IpAddr::V6(v6) => Ipv6Net::new(v6, length).unwrap_or_else(|_| Ipv6Net::from(v6)).into(),
    }
}

/// Whether two prefixes share an address.
pub fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

/// The block of the same size that comes next, if there is one.
pub fn next_block(net: &IpNet) -> Option<IpNet> {
    let after = match net.broadcast() {
        IpAddr::V4(last) => IpAddr::V4(Ipv4Addr::from(u32::from(last).checked_add(1)?)),
        IpAddr::V6(last) => IpAddr::V6(Ipv6Addr::from(u128::from(last).checked_add(1)?)),
    };
    Some(with_length_of(after, net))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn nth_stays_inside() {
        assert_eq!(nth(&net("10.244.1.0/24"), 2), Some("10.244.1.2".parse().unwrap()));
        assert_eq!(nth(&net("10.244.1.0/24"), 256), None);
        assert_eq!(nth(&net("255.255.255.255/32"), 1), None);
        assert_eq!(nth(&net("fd98::/64"), 10), Some("fd98::a".parse().unwrap()));
    }

    #[test]
    fn overlap_needs_one_family() {
        assert!(overlap(&net("10.0.0.0/8"), &net("10.1.0.0/16")));
        assert!(!overlap(&net("10.0.0.0/16"), &net("10.1.0.0/16")));
        assert!(!overlap(&net("0.0.0.0/0"), &net("::/0")));
    }

    #[test]
    fn blocks_follow_each_other_until_the_end() {
        assert_eq!(next_block(&net("100.88.0.0/16")), Some(net("100.89.0.0/16")));
        assert_eq!(next_block(&net("fd97::/64")), Some(net("fd97:0:0:1::/64")));
        assert_eq!(next_block(&net("255.255.0.0/16")), None);
    }

    proptest! {
        #[test]
        fn nth_and_offset_are_inverse(base: u32, length in 0u8..=32, step: u16) {
            let net = IpNet::V4(Ipv4Net::new(base.into(), length).unwrap());
            if let Some(address) = nth(&net, step.into()) {
                prop_assert_eq!(offset(&net, address), Some(step.into()));
            }
        }
    }
}
