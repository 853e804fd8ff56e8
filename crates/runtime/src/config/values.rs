//! Values of the settings, from their texts. An error says what to write.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use underlay_net::Family;
use underlay_net::alloc::SubnetRange;
use underlay_world::settings::{HOST_LENGTH_V4, HOST_LENGTH_V6, Isolation, Routing, Topology};

/// Smallest packet that every link must carry.
pub fn least_mtu(family: Family) -> u32 {
    match family {
        Family::V4 => 576,
        Family::V6 => 1280,
    }
}

pub fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|part| read(part.trim())).collect()
}

pub fn net(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpNet>().map_err(|_| "write a range like 172.16.1.0/24".to_owned())?;
    Ok(net.trunc())
}

pub fn v4(text: &str) -> Result<Ipv4Net, String> {
    text.parse::<Ipv4Net>().map(|net| net.trunc()).map_err(|_| "write a range like 100.64.0.0/16".to_owned())
}

pub fn v6(text: &str) -> Result<Ipv6Net, String> {
    text.parse::<Ipv6Net>().map(|net| net.trunc()).map_err(|_| "write a range like fd98::/64".to_owned())
}

/// `10.128.0.0/14/23`: a range and the length of a node's part, which may be left out.
pub fn cluster_range(text: &str) -> Result<SubnetRange, String> {
    let usage = "write a range and the length of a node's part, like 10.128.0.0/14/23 or fd01::/48/64";
    let (range, length) = match text.match_indices('/').nth(1) {
        Some((second, _)) => (&text[..second], Some(&text[second + 1..])),
        None => (text, None),
    };
    let range: IpNet = range.parse().map_err(|_| usage.to_owned())?;
    let family = Family::of_net(&range);
    let usual = match family {
        Family::V4 => HOST_LENGTH_V4,
        Family::V6 => HOST_LENGTH_V6,
    };
    let length = length.map_or(Ok(usual), |length| length.parse().map_err(|_| usage.to_owned()))?;
    if family == Family::V6 && length != HOST_LENGTH_V6 {
        return Err(format!("a node's part of an IPv6 range has length {HOST_LENGTH_V6}"));
    }
    SubnetRange::new(range, length).map_err(|error| error.to_string())
}

pub fn mtu(text: &str, least: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=65535).contains(number));
    number.ok_or_else(|| format!("write a number from {least} to 65535"))
}

pub fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port != 0).ok_or_else(|| "write a port from 1 to 65535".to_owned())
}

/// How many; none at all is a number too.
pub fn limit(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a number, like 120000".to_owned())
}

/// Whether the default network goes without overlay.
pub fn transport(text: &str) -> Result<bool, String> {
    match text {
        "" | "geneve" => Ok(false),
        "no-overlay" => Ok(true),
        _ => Err("write geneve or no-overlay".to_owned()),
    }
}

pub fn enabled(text: &str) -> Result<bool, String> {
    match text {
        "enable" | "enabled" => Ok(true),
        "disable" | "disabled" => Ok(false),
        _ => Err("write enable or disable".to_owned()),
    }
}

pub fn routing(text: &str) -> Result<Routing, String> {
    match text {
        "managed" => Ok(Routing::Managed),
        "unmanaged" => Ok(Routing::Unmanaged),
        _ => Err("write managed or unmanaged".to_owned()),
    }
}

/// Nothing, where it is left empty.
pub fn topology(text: &str) -> Result<Option<Topology>, String> {
    match text {
        "" => Ok(None),
        "full-mesh" => Ok(Some(Topology::FullMesh)),
        _ => Err("write full-mesh".to_owned()),
    }
}

pub fn isolation(text: &str) -> Result<Isolation, String> {
    match text {
        "strict" => Ok(Isolation::Strict),
        "loose" => Ok(Isolation::Loose),
        _ => Err("write strict or loose".to_owned()),
    }
}

/// Some numbers mean something else to every speaker of BGP.
pub fn as_number(text: &str) -> Result<u32, String> {
    let usage = "write a number from 1 to 4294967294, like 64512";
    match text.parse().map_err(|_| usage.to_owned())? {
        number @ (0 | 65535 | u32::MAX) => Err(format!("{number} is reserved: {usage}")),
        23456 => Err(format!("23456 stands for numbers that old speakers cannot write: {usage}")),
        number => Ok(number),
    }
}

/// The name of a namespace.
pub fn namespace(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = (1..=63).contains(&text.len()) && text.bytes().all(plain);
    if fits && !text.starts_with('-') && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err("write the name of a namespace, like frr-k8s-system".to_owned())
}
