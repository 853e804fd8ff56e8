//! The settings of a daemon: a flag wins over the file, the file over what is usual.
//!
//! In: flags, and an INI file as clusters of this family have it. Out: [`Settings`] that make sense together, or an
//! error that says where the wrong value is and what to write instead. Keys of the file that nobody here reads are told
//! once: such files serve several programs.

mod error;
mod layers;
mod overlaps;
#[cfg(test)]
mod tests;
mod transport;
mod values;

use std::path::{Path, PathBuf};

use ini::{Ini, ParseOption};
use underlay_world::Settings;

pub use error::{ConfigError, Place};
use layers::Layers;
use values::{cluster_range, least_mtu, limit, list, mtu, namespace, net, port, v4, v6};

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
    /// How many routes that BGP peers tell a network takes on a node; the narrowest of more are left out.
    #[arg(long, value_name = "NUMBER")]
    pub imported_routes_limit: Option<String>,
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
    /// How packets of the default network travel between nodes: geneve, or no-overlay to route them as they are.
    #[arg(long, value_name = "TRANSPORT")]
    pub transport: Option<String>,
    /// Without overlay: whether packets to the world outside leave with the node's address, enable or disable.
    #[arg(long, value_name = "SNAT")]
    pub outbound_snat: Option<String>,
    /// Without overlay: who sees to it that nodes learn each other's routes, managed (the cluster) or unmanaged (you).
    #[arg(long, value_name = "ROUTING")]
    pub routing: Option<String>,
    /// Who has BGP sessions with whom where routing is managed: full-mesh.
    #[arg(long, value_name = "TOPOLOGY")]
    pub bgp_topology: Option<String>,
    /// AS number of the nodes where routing is managed.
    #[arg(long, value_name = "NUMBER")]
    pub bgp_as_number: Option<String>,
    /// Namespace of the FRRConfiguration that is made where routing is managed.
    #[arg(long, value_name = "NAMESPACE")]
    pub bgp_frr_namespace: Option<String>,
    /// What keeps advertised networks apart: strict, or loose to leave it to the network outside.
    #[arg(long, value_name = "MODE")]
    pub advertised_udn_isolation_mode: Option<String>,
}

impl Flags {
    fn of(&self, key: &str) -> Option<&str> {
        let flag = match key {
            "cluster-subnets" => &self.cluster_subnets,
            "mtu" => &self.mtu,
            "encap-port" => &self.encap_port,
            "imported-routes-limit" => &self.imported_routes_limit,
            "service-cidrs" => &self.service_cidrs,
            "ovn-config-namespace" => &self.ovn_config_namespace,
            "v4-join-subnet" => &self.v4_join_subnet,
            "v6-join-subnet" => &self.v6_join_subnet,
            "v4-masquerade-subnet" => &self.v4_masquerade_subnet,
            "v6-masquerade-subnet" => &self.v6_masquerade_subnet,
            "v4-transit-subnet" => &self.v4_transit_subnet,
            "v6-transit-subnet" => &self.v6_transit_subnet,
            "transport" => &self.transport,
            "outbound-snat" => &self.outbound_snat,
            "routing" => &self.routing,
            "topology" => &self.bgp_topology,
            "as-number" => &self.bgp_as_number,
            "frr-namespace" => &self.bgp_frr_namespace,
            "advertised-udn-isolation-mode" => &self.advertised_udn_isolation_mode,
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
    /// What was said and counts for nothing beside the rest, each a sentence.
    pub unused: Vec<String>,
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
    layers.set("imported-routes-limit", &mut settings.imported_routes_limit, limit)?;
    layers.set("v4-join-subnet", &mut settings.join.v4, v4)?;
    layers.set("v6-join-subnet", &mut settings.join.v6, v6)?;
    layers.set("v4-masquerade-subnet", &mut settings.masquerade.v4, v4)?;
    layers.set("v6-masquerade-subnet", &mut settings.masquerade.v6, v6)?;
    layers.set("v4-transit-subnet", &mut settings.transit.v4, v4)?;
    layers.set("v6-transit-subnet", &mut settings.transit.v6, v6)?;
    // The transport comes first: the width that is usual depends on it.
    let unused = transport::set(&layers, &mut settings)?;
    let least = settings.families().map(least_mtu).max().unwrap_or_default();
    layers.set("mtu", &mut settings.mtu, |text| mtu(text, least))?;
    let mut config_namespace = "ovn-kubernetes".to_owned();
    layers.set("ovn-config-namespace", &mut config_namespace, namespace)?;
    overlaps::refuse(&settings)?;
    Ok(Config { settings, config_namespace, unknown: layers.unknown(), unused })
}
