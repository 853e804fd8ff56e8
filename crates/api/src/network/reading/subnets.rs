//! Lists of subnets and addresses, and how they lie in each other.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use underlay_net::Family;
use underlay_net::cidr::overlap;

use super::super::says;
use super::{FieldError, ensure};

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
        if let Ok(cidr) = text.parse() {
            return Ok(Self { cidr, host_subnet: None });
        }
        let (cidr, length) = text.rsplit_once('/').ok_or_else(wrong)?;
        let (cidr, length) = (cidr.parse().map_err(|_| wrong())?, length.parse().map_err(|_| wrong())?);
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
        Family::V6 => ensure(length < 128, &format!("{field}.hostSubnet"), "must be less than 128"),
    }
}

/// Each text of a list as a subnet.
pub fn cidrs(texts: &[String], at: &str, name: &str) -> Result<Vec<IpNet>, FieldError> {
    let read = |(index, text): (usize, &String)| {
        text.parse().map_err(|_| FieldError::new(format!("{at}.{name}[{index}]"), says::CIDR_INVALID))
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
        text.parse().map_err(|_| FieldError::new(format!("{field}[{index}]"), says::IP_INVALID))
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

/// Whether packets of this size can carry what is in the subnets.
pub fn fits(mtu: Option<u32>, subnets: &[IpNet]) -> bool {
    mtu.is_none_or(|mtu| mtu >= IPV6_MTU) || subnets.iter().all(|subnet| subnet.addr().is_ipv4())
}
