//! The lab file: what a user writes to describe a lab.
//!
//! In: YAML text. Out: a [`Topology`] with every name resolved, or one [`FileError`] that names file, line and what to
//! write instead. Nothing is started from a file that does not pass.

mod check;
mod settings;
mod syntax;

use std::net::IpAddr;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use crate::topology::{Cni, Topology};

/// The topology used when no file is given.
pub const DEFAULT: &str = include_str!("default.yaml");

/// A file that cannot become a lab, with the place and the remedy.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{file}{}: {message}", place(*line))]
pub struct FileError {
    /// Name of the file as the user gave it.
    pub file: String,
    /// Line, from 1. 0 when the text as a whole is at fault.
    pub line: u64,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// No line is better than line 0.
fn place(line: u64) -> String {
    if line == 0 { String::new() } else { format!(":{line}") }
}

/// Parses and checks the text of a lab file.
pub fn parse(file: &str, text: &str) -> Result<Topology, FileError> {
    let parsed: LabFile = serde_saphyr::from_str(text).map_err(|error| syntax::describe(file, &error))?;
    check::check(&parsed).map_err(|problem| FileError {
        file: file.to_owned(),
        line: problem.line,
        message: problem.message,
    })
}

/// Reads, parses and checks a lab file.
pub fn read(path: &Path) -> Result<Topology, FileError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| FileError {
        file: file.clone(),
        line: 0,
        message: format!("cannot be read: {error}"),
    })?;
    parse(&file, &text)
}

/// The file as written. Field names are the file format.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LabFile {
    #[serde(default)]
    pub kubernetes: KubernetesSection,
    /// What the cluster manager and the agents are told.
    #[serde(default)]
    pub settings: settings::SettingsSection,
    /// Whether a daemon that dies is started again.
    #[serde(default = "yes")]
    pub restart: bool,
    #[serde(default)]
    pub nodes: Vec<NodeEntry>,
    #[serde(default)]
    pub routers: Vec<RouterEntry>,
    #[serde(default)]
    pub hosts: Vec<HostEntry>,
    #[serde(default)]
    pub segments: Vec<SegmentEntry>,
    #[serde(default)]
    pub links: Vec<LinkEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct KubernetesSection {
    /// Whether nodes run kubelet and containerd. Without them the API server still runs.
    pub kubelets: bool,
    /// Who gives pods their network.
    pub cni: CniName,
    pub pod_subnets: Vec<Spanned<Cidr>>,
    pub service_subnets: Vec<Spanned<Cidr>>,
}

impl Default for KubernetesSection {
    fn default() -> Self {
        Self {
            kubelets: true,
            cni: CniName(Cni::Underlay),
            pod_subnets: Vec::new(),
            service_subnets: Vec::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NodeEntry {
    pub name: Spanned<String>,
    /// The one node that also runs etcd, the API server, the controller manager and the scheduler.
    #[serde(default)]
    pub control_plane: bool,
    #[serde(default)]
    pub gateways: Vec<Spanned<IpAddr>>,
    pub bgp: Option<BgpEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RouterEntry {
    pub name: Spanned<String>,
    #[serde(default)]
    pub gateways: Vec<Spanned<IpAddr>>,
    /// A whole FRR configuration, used as it is.
    pub frr: Option<Spanned<String>>,
    /// A few lines instead of a whole configuration.
    pub bgp: Option<BgpEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct HostEntry {
    pub name: Spanned<String>,
    #[serde(default)]
    pub gateways: Vec<Spanned<IpAddr>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct BgpEntry {
    pub asn: u32,
    #[serde(default)]
    pub neighbors: Vec<NeighborEntry>,
    #[serde(default)]
    pub networks: Vec<Spanned<Cidr>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NeighborEntry {
    pub address: Spanned<IpAddr>,
    pub asn: u32,
    #[serde(default)]
    pub reflector_client: bool,
    #[serde(default)]
    pub next_hop_self: bool,
    #[serde(default)]
    pub bfd: bool,
    pub password: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SegmentEntry {
    pub name: Spanned<String>,
    #[serde(default = "ethernet_mtu")]
    pub mtu: Spanned<u32>,
    pub members: Vec<AttachmentEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LinkEntry {
    pub name: Spanned<String>,
    #[serde(default = "ethernet_mtu")]
    pub mtu: Spanned<u32>,
    pub ends: Vec<AttachmentEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AttachmentEntry {
    pub machine: Spanned<String>,
    #[serde(default)]
    pub addresses: Vec<Spanned<Cidr>>,
}

/// An address with its prefix length; its error text shows how to write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr(pub ipnet::IpNet);

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| {
            serde::de::Error::custom(format!(
                "{text:?} is not an address with a prefix length: write it like 172.30.0.10/24 or \"fd00:30::10/64\""
            ))
        })
    }
}

/// Who gives pods their network; its error text tells the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CniName(pub Cni);

impl<'de> Deserialize<'de> for CniName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "underlay" => Ok(Self(Cni::Underlay)),
            "none" => Ok(Self(Cni::None)),
            other => Err(serde::de::Error::custom(format!(
                "{other:?} gives pods no network: write underlay, or none to install a plugin yourself"
            ))),
        }
    }
}

fn yes() -> bool {
    true
}

fn ethernet_mtu() -> Spanned<u32> {
    Spanned::new(1500, serde_saphyr::Location::UNKNOWN, serde_saphyr::Location::UNKNOWN)
}
