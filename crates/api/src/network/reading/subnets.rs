//! Lists of subnets and addresses, and how they lie in each other.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use underlay_net::Family;
use underlay_net::cidr::overlap;

use super::super::says;
use super::{FieldError, ensure};

/// The sizes of packets that a network can have.
const MTU: std::ops::RangeInclusive<u32> = 576..=65536;
/// The smallest size of packets that IPv6 works with.
const IPV6_MTU: u32 = 1280;

/// A subnet that nodes get theirs from. In attachment definitions it is `10.10.0.0/16/24`, or `10.10.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    /// The whole, as written: bits behind its length may be set.
    pub cidr: IpNet,
    /// The prefix length of each node's part, if the user chose it.
    pub host_subnet: Option<u8>,
}

impl Subnet {
    /// The prefix length of each node's part.
    pub fn host_length(&self) -> u8 {
        self.host_subnet.unwrap_or(match Family::of_net(&self.cidr) {
            Family::V4 => 24,
            Family::V6 => 64,
        })
    }
}

impl From<IpNet> for Subnet {
    fn from(cidr: IpNet) -> Self {
        Self { cidr, host_subnet: None }
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.cidr)?;
        self.host_subnet.map_or(Ok(()), |length| write!(formatter, "/{length}"))
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a subnet: write it like 10.10.0.0/16 or 10.10.0.0/16/24");
        if let Some(cidr) = cidr(text) {
            return Ok(cidr.into());
        }
        let (whole, length) = text.rsplit_once('/').ok_or_else(wrong)?;
        let (cidr, length) = (cidr(whole).ok_or_else(wrong)?, length.parse().map_err(|_| wrong())?);
        Ok(Self { cidr, host_subnet: Some(length) })
    }
}

/// Checks the subnets that nodes get theirs from.
pub fn check_layer3(subnets: &[Subnet], secondary: bool, at: &str) -> Result<(), FieldError> {
    let field = format!("{at}.subnets");
    ensure(!subnets.is_empty(), &field, "is missing")?;
    for (index, subnet) in subnets.iter().enumerate() {
        check_host_subnet(subnet, &format!("{field}[{index}]"))?;
    }
    ensure(!secondary || subnets.len() <= 2, at, says::SECONDARY_SUBNETS)?;
    let families = |one: &Subnet, other: &Subnet| one.cidr.addr().is_ipv4() == other.cidr.addr().is_ipv4();
    for (index, one) in subnets.iter().enumerate() {
        for other in subnets.iter().skip(index + 1).filter(|other| families(one, other)) {
            ensure(one.cidr != other.cidr, at, says::SUBNETS_TWICE)?;
            ensure(!overlap(&one.cidr, &other.cidr), at, says::SUBNETS_OVERLAP)?;
            ensure(!secondary, at, says::SECONDARY_FAMILIES)?;
            ensure(one.host_subnet == other.host_subnet, at, says::HOST_SUBNETS_DIFFER)?;
        }
    }
    Ok(())
}

fn check_host_subnet(subnet: &Subnet, field: &str) -> Result<(), FieldError> {
    let Some(length) = subnet.host_subnet else {
        let fits = subnet.host_length() > subnet.cidr.prefix_len();
        return ensure(fits, field, says::HOST_SUBNET_UNSET);
    };
    ensure(length > subnet.cidr.prefix_len(), field, says::HOST_SUBNET_SIZE)?;
    match Family::of_net(&subnet.cidr) {
        Family::V4 => ensure(length < 32, field, says::HOST_SUBNET_IPV4),
        Family::V6 => ensure(length == 64, &format!("{field}.hostSubnet"), says::HOST_SUBNET_IPV6),
    }
}

/// The text as a subnet, if the API server takes it as one: not with zeros in front, which some read as octal numbers,
/// and not an IPv4 address in IPv6's clothes, which is of neither family.
pub fn cidr(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let address = address.parse().ok().filter(|address| !is_mapped(*address))?;
    let sound = length == "0" || length.starts_with(|digit| ('1'..='9').contains(&digit));
    IpNet::new(address, length.parse().ok().filter(|_| sound)?).ok()
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Each text of a list as a subnet.
pub fn cidrs(texts: &[String], at: &str, name: &str) -> Result<Vec<IpNet>, FieldError> {
    let read = |(index, text): (usize, &String)| {
        cidr(text).ok_or_else(|| FieldError::new(format!("{at}.{name}[{index}]"), says::CIDR_INVALID))
    };
    texts.iter().enumerate().map(read).collect()
}

/// The same for a list with at most one subnet of each family.
pub fn cidr_of_each_family(texts: &[String], at: &str, name: &str) -> Result<Vec<IpNet>, FieldError> {
    let cidrs = cidrs(texts, at, name)?;
    let field = format!("{at}.{name}");
    match cidrs.as_slice() {
        [] | [_] => {}
        [one, two] => ensure(one.addr().is_ipv4() != two.addr().is_ipv4(), &field, says::CIDR_FAMILIES)?,
        _ => return Err(FieldError::new(field, "has more than one of each IP family")),
    }
    Ok(cidrs)
}

/// Each text of a list as an address, at most one of each family.
pub fn address_of_each_family(texts: &[String], at: &str, name: &str) -> Result<Vec<IpAddr>, FieldError> {
    let field = format!("{at}.{name}");
    let read = |(index, text): (usize, &String)| {
        let address = text.parse().ok().filter(|address| !is_mapped(*address));
        address.ok_or_else(|| FieldError::new(format!("{field}[{index}]"), says::IP_INVALID))
    };
    let addresses = texts.iter().enumerate().map(read).collect::<Result<Vec<IpAddr>, _>>()?;
    match addresses.as_slice() {
        [] | [_] => {}
        [one, two] => ensure(one.is_ipv4() != two.is_ipv4(), &field, says::IP_FAMILIES)?,
        _ => return Err(FieldError::new(field, "has more than one of each IP family")),
    }
    Ok(addresses)
}

/// Whether every part lies in one of the wholes.
pub fn inside(parts: &[IpNet], wholes: &[IpNet]) -> bool {
    parts.iter().all(|part| wholes.iter().any(|whole| whole.contains(part)))
}

/// Whether every part begins where its length says.
pub fn masked(parts: &[IpNet]) -> bool {
    parts.iter().all(|part| *part == part.trunc())
}

/// Fails unless packets of this size can carry what is in the subnets; the reason is why they must be larger for IPv6.
pub fn check_mtu(mtu: Option<u32>, subnets: &[IpNet], at: &str, ipv6: &str) -> Result<(), FieldError> {
    let Some(mtu) = mtu else { return Ok(()) };
    ensure(MTU.contains(&mtu), &format!("{at}.mtu"), "is not a number from 576 to 65536")?;
    ensure(mtu >= IPV6_MTU || subnets.iter().all(|subnet| subnet.addr().is_ipv4()), at, ipv6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnets_are_what_the_api_server_takes() {
        for text in ["10.0.0.0/8", "10.1.2.3/0", "fd10::/48", "::/0"] {
            assert_eq!(cidr(text).map(|net| net.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "/",
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0/8",
            "010.0.0.0/8",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "fd10::/129",
            "fe80::1%eth0/64",
            "::ffff:10.0.0.0/104",
            " 10.0.0.0/8",
        ] {
            assert_eq!(cidr(text), None, "{text}");
        }
    }

    #[test]
    fn a_subnet_says_what_nodes_get() {
        for (text, length) in
            [("10.10.0.0/16/26", 26), ("10.10.0.0/16", 24), ("fd10::/48", 64), ("fd10::/48/72", 72)]
        {
            let subnet: Subnet = text.parse().unwrap();
            assert_eq!((subnet.to_string().as_str(), subnet.host_length()), (text, length));
        }
        for text in ["", "10.10.0.0", "10.10.0.0/16/", "10.10.0.0/16/256", "10.10.0.0/16/24/8", "x/16/24"] {
            assert!(text.parse::<Subnet>().is_err(), "{text}");
        }
    }
}
