//! The settings of a daemon: a flag wins over the file, the file over what is usual.
//!
//! In: flags, and an INI file as clusters of this family have it. Out: [`Settings`] that make sense together, or an
//! error that says where the wrong value is and what to write instead. Keys of the file that nobody here reads are told
//! once: such files serve several programs.

use std::fmt;
use std::path::{Path, PathBuf};

use ini::{Ini, ParseOption};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use underlay_net::Family;
use underlay_net::alloc::SubnetRange;
use underlay_net::cidr::overlap;
use underlay_world::Settings;
use underlay_world::settings::{HOST_LENGTH_V4, HOST_LENGTH_V6};

/// Smallest packet that every link must carry.
fn least_mtu(family: Family) -> u32 {
    match family {
        Family::V4 => 576,
        Family::V6 => 1280,
    }
}

/// Flags that say the same as keys of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Flags {
    /// INI file with settings of the cluster; flags win over it.
    #[arg(long, value_name = "FILE")]
    pub config_file: Option<PathBuf>,
    /// Ranges of pod addresses, each with the length of a node's part, like 10.128.0.0/14/23.
    #[arg(long, value_name = "CIDR/LENGTH,...")]
    pub cluster_subnets: Option<String>,
    /// Ranges of service addresses, like 172.16.1.0/24.
    #[arg(long, value_name = "CIDR,...")]
    pub service_cidrs: Option<String>,
    /// Largest packet of a pod, in bytes.
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<String>,
    /// UDP port of the tunnels between nodes.
    #[arg(long, value_name = "PORT")]
    pub encap_port: Option<String>,
    /// Namespace of the default network's definition.
    #[arg(long, value_name = "NAMESPACE")]
    pub ovn_config_namespace: Option<String>,
    /// IPv4 addresses between a node's two routers.
    #[arg(long, value_name = "CIDR")]
    pub v4_join_subnet: Option<String>,
    /// IPv6 addresses between a node's two routers.
    #[arg(long, value_name = "CIDR")]
    pub v6_join_subnet: Option<String>,
    /// IPv4 addresses by which a node speaks with its own gateway router.
    #[arg(long, value_name = "CIDR")]
    pub v4_masquerade_subnet: Option<String>,
    /// IPv6 addresses by which a node speaks with its own gateway router.
    #[arg(long, value_name = "CIDR")]
    pub v6_masquerade_subnet: Option<String>,
    /// IPv4 addresses between the nodes' routers.
    #[arg(long, value_name = "CIDR")]
    pub v4_transit_subnet: Option<String>,
    /// IPv6 addresses between the nodes' routers.
    #[arg(long, value_name = "CIDR")]
    pub v6_transit_subnet: Option<String>,
}

/// Section and name of every key; a flag has the same name.
const KEYS: [(&str, &str); 11] = [
    ("default", "cluster-subnets"),
    ("default", "mtu"),
    ("default", "encap-port"),
    ("kubernetes", "service-cidrs"),
    ("kubernetes", "ovn-config-namespace"),
    ("gateway", "v4-join-subnet"),
    ("gateway", "v6-join-subnet"),
    ("gateway", "v4-masquerade-subnet"),
    ("gateway", "v6-masquerade-subnet"),
    ("clustermanager", "v4-transit-subnet"),
    ("clustermanager", "v6-transit-subnet"),
];

impl Flags {
    fn of(&self, key: &str) -> Option<&str> {
        let flag = match key {
            "cluster-subnets" => &self.cluster_subnets,
            "mtu" => &self.mtu,
            "encap-port" => &self.encap_port,
            "service-cidrs" => &self.service_cidrs,
            "ovn-config-namespace" => &self.ovn_config_namespace,
            "v4-join-subnet" => &self.v4_join_subnet,
            "v6-join-subnet" => &self.v6_join_subnet,
            "v4-masquerade-subnet" => &self.v4_masquerade_subnet,
            "v6-masquerade-subnet" => &self.v6_masquerade_subnet,
            "v4-transit-subnet" => &self.v4_transit_subnet,
            "v6-transit-subnet" => &self.v6_transit_subnet,
            _ => &None,
        };
        flag.as_deref()
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The settings.
    pub settings: Settings,
    /// Namespace of the default network's definition.
    pub config_namespace: String,
    /// Keys of the file that nobody here reads, as `[section] key`.
    pub unknown: Vec<String>,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("--config-file {}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A value is wrong.
    #[error("{place}: {value:?}: {problem}")]
    Value {
        /// Where it was said.
        place: Place,
        /// What was said.
        value: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// Two ranges share addresses.
    #[error("{one} and {other} overlap: give each its own addresses")]
    Overlap {
        /// One of them, with its name.
        one: String,
        /// The other.
        other: String,
    },
}

/// Where a value was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the command line.
    Flag(&'static str),
    /// In the file.
    File {
        /// The file.
        path: PathBuf,
        /// The section.
        section: &'static str,
        /// The key.
        key: &'static str,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(key) => write!(formatter, "--{key}"),
            Self::File { path, section, key } => write!(formatter, "{} [{section}] {key}", path.display()),
        }
    }
}

/// Reads the file that the flags name, and puts the flags over it.
pub fn load(flags: &Flags) -> Result<Config, ConfigError> {
    let Some(path) = &flags.config_file else { return merge(flags, None) };
    let failed = |problem: String| ConfigError::File { path: path.clone(), problem };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let options = ParseOption { enabled_escape: false, ..ParseOption::default() };
    let file = Ini::load_from_str_opt(&text, options)
        .map_err(|error| failed(format!("line {}: {}", error.line, error.msg)))?;
    merge(flags, Some((path, &file)))
}

fn merge(flags: &Flags, file: Option<(&Path, &Ini)>) -> Result<Config, ConfigError> {
    let layers = Layers { flags, file };
    let mut settings = Settings::default();
    layers.set("cluster-subnets", &mut settings.cluster_subnets, |text| list(text, cluster_range))?;
    layers.set("service-cidrs", &mut settings.service_subnets, |text| list(text, net))?;
    layers.set("encap-port", &mut settings.encap_port, port)?;
    layers.set("v4-join-subnet", &mut settings.join.v4, v4)?;
    layers.set("v6-join-subnet", &mut settings.join.v6, v6)?;
    layers.set("v4-masquerade-subnet", &mut settings.masquerade.v4, v4)?;
    layers.set("v6-masquerade-subnet", &mut settings.masquerade.v6, v6)?;
    layers.set("v4-transit-subnet", &mut settings.transit.v4, v4)?;
    layers.set("v6-transit-subnet", &mut settings.transit.v6, v6)?;
    let least = settings.families().map(least_mtu).max().unwrap_or_default();
    layers.set("mtu", &mut settings.mtu, |text| mtu(text, least))?;
    let mut config_namespace = "ovn-kubernetes".to_owned();
    layers.set("ovn-config-namespace", &mut config_namespace, |text| Ok(text.to_owned()))?;
    refuse_overlaps(&settings)?;
    Ok(Config { settings, config_namespace, unknown: layers.unknown() })
}

struct Layers<'a> {
    flags: &'a Flags,
    file: Option<(&'a Path, &'a Ini)>,
}

impl Layers<'_> {
    fn set<T>(
        &self,
        key: &'static str,
        target: &mut T,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<(), ConfigError> {
        if let Some((place, text)) = self.find(key) {
            let text = text.trim();
            *target = read(text).map_err(|problem| ConfigError::Value {
                place,
                value: text.to_owned(),
                problem,
            })?;
        }
        Ok(())
    }

    fn find(&self, wanted: &'static str) -> Option<(Place, &str)> {
        if let Some(text) = self.flags.of(wanted) {
            return Some((Place::Flag(wanted), text));
        }
        let (path, file) = self.file?;
        let (section, key) = *KEYS.iter().find(|(_, key)| *key == wanted)?;
        let text = file.get_from(Some(section), key)?;
        Some((Place::File { path: path.to_owned(), section, key }, text))
    }

    fn unknown(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        for (section, properties) in self.file.iter().flat_map(|(_, file)| file.iter()) {
            let section = section.unwrap_or_default();
            let strange = properties.iter().filter(|(key, _)| !KEYS.contains(&(section, *key)));
            unknown.extend(strange.map(|(key, _)| format!("[{section}] {key}")));
        }
        unknown
    }
}

fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    text.split(',').map(|part| read(part.trim())).collect()
}

fn net(text: &str) -> Result<IpNet, String> {
    let net = text.parse::<IpNet>().map_err(|_| "write a range like 172.16.1.0/24".to_owned())?;
    Ok(net.trunc())
}

fn v4(text: &str) -> Result<Ipv4Net, String> {
    text.parse::<Ipv4Net>().map(|net| net.trunc()).map_err(|_| "write a range like 100.64.0.0/16".to_owned())
}

fn v6(text: &str) -> Result<Ipv6Net, String> {
    text.parse::<Ipv6Net>().map(|net| net.trunc()).map_err(|_| "write a range like fd98::/64".to_owned())
}

/// `10.128.0.0/14/23`: a range and the length of a node's part, which may be left out.
fn cluster_range(text: &str) -> Result<SubnetRange, String> {
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

fn mtu(text: &str, least: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (least..=65535).contains(number));
    number.ok_or_else(|| format!("write a number from {least} to 65535"))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().ok().filter(|port| *port != 0).ok_or_else(|| "write a port from 1 to 65535".to_owned())
}

/// Every range has its own addresses: a packet's destination must tell where it goes.
fn refuse_overlaps(settings: &Settings) -> Result<(), ConfigError> {
    let mut ranges: Vec<(&str, IpNet)> =
        settings.cluster_subnets.iter().map(|range| ("cluster-subnets", range.net())).collect();
    ranges.extend(settings.service_subnets.iter().map(|net| ("service-cidrs", *net)));
    let infrastructure = [
        (["v4-join-subnet", "v6-join-subnet"], settings.join),
        (["v4-transit-subnet", "v6-transit-subnet"], settings.transit),
        (["v4-masquerade-subnet", "v6-masquerade-subnet"], settings.masquerade),
    ];
    for ([v4, v6], nets) in infrastructure {
        ranges.extend([(v4, nets.v4.into()), (v6, nets.v6.into())]);
    }
    for (place, (name, net)) in ranges.iter().enumerate() {
        if let Some((other_name, other)) = ranges[..place].iter().find(|(_, other)| overlap(net, other)) {
            let one = format!("{other_name} {other}");
            return Err(ConfigError::Overlap { one, other: format!("{name} {net}") });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(flags: &Flags, text: &str) -> Result<Config, String> {
        let file = Ini::load_from_str(text).unwrap();
        merge(flags, Some((Path::new("/etc/x.conf"), &file))).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_said_is_what_is_usual() {
        let config = load(&Flags::default()).unwrap();
        assert_eq!(config.settings, Settings::default());
        assert_eq!(config.config_namespace, "ovn-kubernetes");
    }

    #[test]
    fn flags_win_over_the_file() {
        let flags = Flags { mtu: Some("9000".to_owned()), ..Flags::default() };
        let text = "[default]\nmtu = 1500\ncluster-subnets=10.244.0.0/16,fd00:10:244::/48/64\n\
                    [gateway]\nv4-join-subnet=100.70.0.0/16\n[kubernetes]\nservice-cidrs=\"10.96.0.0/16\"";
        let config = parse(&flags, text).unwrap();
        assert_eq!(config.settings.mtu, 9000);
        assert_eq!(config.settings.join.v4.to_string(), "100.70.0.0/16");
        let v4 = SubnetRange::new("10.244.0.0/16".parse().unwrap(), 24).unwrap();
        let v6 = SubnetRange::new("fd00:10:244::/48".parse().unwrap(), 64).unwrap();
        assert_eq!(config.settings.cluster_subnets, [v4, v6]);
        assert_eq!(config.settings.service_subnets, ["10.96.0.0/16".parse().unwrap()]);
        assert_eq!(config.unknown, [] as [&str; 0]);
    }

    #[test]
    fn keys_that_nobody_reads_are_told() {
        let config = parse(&Flags::default(), "[default]\nmtu=1400\nlflow=1\n[ovnnorth]\naddress=x").unwrap();
        assert_eq!(config.unknown, ["[default] lflow", "[ovnnorth] address"]);
    }

    #[test]
    fn wrong_values_are_told_with_their_place_and_a_right_one() {
        for (text, want) in [
            ("[default]\nmtu=big", "/etc/x.conf [default] mtu: \"big\": write a number from 576 to 65535"),
            (
                "[default]\nmtu=70000",
                "/etc/x.conf [default] mtu: \"70000\": write a number from 576 to 65535",
            ),
            (
                "[default]\nmtu=1000\ncluster-subnets=fd01::/48",
                "/etc/x.conf [default] mtu: \"1000\": write a number from 1280 to 65535",
            ),
            (
                "[default]\nencap-port=0",
                "/etc/x.conf [default] encap-port: \"0\": write a port from 1 to 65535",
            ),
            (
                "[default]\ncluster-subnets=10.0.0.0",
                "/etc/x.conf [default] cluster-subnets: \"10.0.0.0\": write a range and the length of a node's \
                 part, like 10.128.0.0/14/23 or fd01::/48/64",
            ),
            (
                "[default]\ncluster-subnets=10.0.0.0/16/8",
                "/etc/x.conf [default] cluster-subnets: \"10.0.0.0/16/8\": 10.0.0.0/16 cannot be cut into subnets \
                 of length 8: use a length from 16 to 32",
            ),
            (
                "[default]\ncluster-subnets=fd01::/48/60",
                "/etc/x.conf [default] cluster-subnets: \"fd01::/48/60\": a node's part of an IPv6 range has \
                 length 64",
            ),
            (
                "[gateway]\nv4-join-subnet=fd98::/64",
                "/etc/x.conf [gateway] v4-join-subnet: \"fd98::/64\": write a range like 100.64.0.0/16",
            ),
        ] {
            assert_eq!(parse(&Flags::default(), text).unwrap_err(), want);
        }
        let flags = Flags { encap_port: Some("x".to_owned()), ..Flags::default() };
        assert_eq!(
            parse(&flags, "").unwrap_err(),
            "--encap-port: \"x\": write a port from 1 to 65535",
            "a flag is told as one"
        );
    }

    #[test]
    fn ranges_that_share_addresses_are_refused_by_name() {
        for (text, want) in [
            (
                "[default]\ncluster-subnets=10.0.0.0/8/24\n[kubernetes]\nservice-cidrs=10.96.0.0/16",
                "cluster-subnets 10.0.0.0/8 and service-cidrs 10.96.0.0/16 overlap: give each its own addresses",
            ),
            (
                "[clustermanager]\nv4-transit-subnet=100.64.8.0/24",
                "v4-join-subnet 100.64.0.0/16 and v4-transit-subnet 100.64.8.0/24 overlap: give each its own \
                 addresses",
            ),
        ] {
            assert_eq!(parse(&Flags::default(), text).unwrap_err(), want);
        }
    }

    #[test]
    fn a_broken_file_is_told_with_its_line() {
        let scratch = underlay_testkit::Scratch::new("config");
        let path = scratch.join("x.conf");
        std::fs::write(&path, "[default]\nmtu=1400\nnonsense\n").unwrap();
        let flags = Flags { config_file: Some(path.clone()), ..Flags::default() };
        let error = load(&flags).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--config-file {}: line ", path.display())), "{error}");
    }
}
