//! The networks that can be advertised, each looked at once however many advertisements select it.
//!
//! In: definitions with their labels, numbers and attachments, and the settings for the default network. Out: what each
//! network brings, or why it cannot be advertised; and for an advertisement, the ones it selects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ipnet::IpNet;
use kube::core::SelectorExt;
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_api::frr::PrefixSelector;
use underlay_api::network::{Network, Subnet, Topology, Transport};
use underlay_api::route_advertisements::{
    AdvertisementType, NetworkSelectionType, NetworkSelector, RouteAdvertisementsSpec, TargetVrf,
};
use underlay_desired::ObjectRef;
use underlay_net::names::vrf;
use underlay_world::select::parse;
use underlay_world::{Definition, Scope, Settings, World};

use super::{bad_selector, error};
use crate::cluster::networks::{Numbers, check, object};
use crate::cluster::speaker::{DEFAULT_VRF, Families};
use crate::cluster::verdict::Verdict;

/// A network is found by its name through this label, whether or not somebody has set it.
const NAME_LABEL: &str = "k8s.ovn.org/metadata.name";

/// The labels by which a definition is selected.
pub fn labels_of(definition: &Definition) -> BTreeMap<String, String> {
    let mut labels = definition.labels.clone();
    labels.entry(NAME_LABEL.to_owned()).or_insert_with(|| definition.key.name.clone());
    labels
}

/// A network that can be selected.
#[derive(Debug)]
pub struct Known {
    /// Its name.
    pub name: Arc<str>,
    /// Its VRF on nodes.
    pub vrf: String,
    /// Its definition; the default network has none.
    pub object: Option<ObjectRef>,
    /// Its ranges of addresses.
    pub subnets: Vec<IpNet>,
    /// What nodes advertise of it.
    pub part: Part,
    /// What nodes have to hear to reach each other's pods, if that goes without overlay.
    pub heard: Families<PrefixSelector>,
    labels: BTreeMap<String, String>,
    kind: Kind,
}

/// What nodes advertise of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Each the subnet that it has on record.
    Recorded {
        /// Whether every node is to have one.
        expected: bool,
    },
    /// All of them all of it.
    Whole,
}

/// What kind of network it is, as far as that decides whether it can be advertised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Routed,
    Switched,
    Evpn,
    NotPrimary,
    Unsupported(&'static str),
}

/// All networks.
#[derive(Debug)]
pub struct Networks {
    default: Known,
    tenants: Vec<Known>,
}

impl Networks {
    /// Looks at all networks.
    pub fn of(world: &World, settings: &Settings, numbers: &Numbers) -> Self {
        let attached = attached(world);
        let tenants = world.cluster_networks.values();
        let tenants =
            tenants.filter_map(|definition| tenant(world, settings, numbers, &attached, definition));
        Self { default: default_network(settings), tenants: tenants.collect() }
    }

    /// The networks that an advertisement selects, in order of their names, or why it cannot be as it is.
    pub fn select(&self, spec: &RouteAdvertisementsSpec) -> Result<Vec<&Known>, Verdict> {
        let mut selected = Vec::new();
        for selector in &spec.network_selectors {
            match &selector.network_selection_type {
                NetworkSelectionType::DefaultNetwork => selected.push(&self.default),
                NetworkSelectionType::ClusterUserDefinedNetworks => {
                    selected.extend(self.labelled(selector)?);
                }
                other => return error(format!("unsupported network selection type {other}")),
            }
        }
        if selected.is_empty() {
            return Err(Verdict::Pending("no networks selected".to_owned()));
        }
        selected.sort_by(|one, other| one.name.cmp(&other.name));
        selected.dedup_by(|one, other| one.name == other.name);
        check_all(&selected, spec)?;
        Ok(selected)
    }

    fn labelled(&self, selector: &NetworkSelector) -> Result<impl Iterator<Item = &Known>, Verdict> {
        let field = "clusterUserDefinedNetworkSelector";
        let written = selector.cluster_user_defined_network_selector.as_ref();
        let parsed = written.map(|written| parse(&written.network_selector)).transpose();
        let parsed = parsed.map_err(|problem| bad_selector(field, &problem))?;
        let picked =
            move |known: &&Known| parsed.as_ref().is_some_and(|labels| labels.matches(&known.labels));
        Ok(self.tenants.iter().filter(picked))
    }
}

/// What can be told of the networks alone.
fn check_all(selected: &[&Known], spec: &RouteAdvertisementsSpec) -> Result<(), Verdict> {
    let mut vrfs: BTreeMap<&str, &str> = BTreeMap::new();
    for known in selected {
        let Known { name, vrf, .. } = known;
        match known.kind {
            Kind::NotPrimary => {
                return error(format!("selected network {name:?} is not the default nor a primary network"));
            }
            Kind::Unsupported(topology) => {
                return error(format!("selected network {name:?} has unsupported topology {topology:?}"));
            }
            Kind::Switched if spec.advertises(&AdvertisementType::EgressIp) => {
                return error(format!(
                    "EgressIP advertisement is currently not supported for Layer2 networks, network: {name}"
                ));
            }
            _ => {}
        }
        if known.part == Part::Whole && known.subnets.is_empty() {
            return error("no layer2 subnets found");
        }
        if let Some(other) = vrfs.insert(vrf, name) {
            return error(format!("vrf {vrf:?} found to be mapped to multiple networks [{other} {name}]"));
        }
        if known.kind == Kind::Evpn {
            return check_evpn(known, spec.target());
        }
    }
    Ok(())
}

/// Routes of an EVPN network are told in its own VRF, and by nobody yet.
fn check_evpn(Known { name, vrf, .. }: &Known, target: TargetVrf<'_>) -> Result<(), Verdict> {
    let got = match target {
        TargetVrf::Auto => None,
        TargetVrf::Named(own) if own == vrf => None,
        TargetVrf::Named(other) => Some(other),
        TargetVrf::Default => Some(""),
    };
    match got {
        Some(got) => error(format!(
            "EVPN network {name:?} with VRF {vrf:?} requires TargetVRF to be 'auto' or {vrf:?}, got {got:?}"
        )),
        None => error(format!("selected network {name:?} has transport EVPN, which is not supported yet")),
    }
}

fn default_network(settings: &Settings) -> Known {
    let ranges = settings.cluster_subnets.iter().map(|range| (range.net(), range.length()));
    Known {
        name: DEFAULT_NETWORK.into(),
        vrf: DEFAULT_VRF.to_owned(),
        object: None,
        subnets: ranges.clone().map(|(net, _)| net).collect(),
        part: Part::Recorded { expected: true },
        heard: if settings.no_overlay.is_some() { heard(ranges) } else { Families::default() },
        labels: BTreeMap::new(),
        kind: Kind::Routed,
    }
}

/// What comes of a definition; nothing if there is no network of it. One that goes, or that cannot be as written, brings
/// what nodes still have of it, for as long as somebody can be attached to it.
fn tenant(
    world: &World,
    settings: &Settings,
    numbers: &Numbers,
    attached: &BTreeSet<&str>,
    definition: &Definition,
) -> Option<Known> {
    let name = definition.network_name();
    let number = numbers.of(&name).or(definition.id.map(|id| id.0))?;
    let network = check::check(definition, settings).ok();
    let stays = network.is_some() && !definition.ending;
    let there = attached.contains(definition.key.name.as_str())
        || world.nodes.values().any(|node| !node.subnets_in(&name).is_empty());
    if !stays && !there {
        return None;
    }
    let kind = network.map_or(Kind::Routed, kind);
    Some(Known {
        vrf: vrf(&name, number),
        name: name.into(),
        object: Some(object(definition)),
        subnets: network.into_iter().flat_map(Network::subnets).map(|net| net.trunc()).collect(),
        part: if kind == Kind::Switched { Part::Whole } else { Part::Recorded { expected: stays && there } },
        heard: network.map(without_overlay).unwrap_or_default(),
        labels: labels_of(definition),
        kind,
    })
}

fn kind(network: &Network) -> Kind {
    match &network.topology {
        _ if !network.is_primary() => Kind::NotPrimary,
        Topology::Localnet(_) => Kind::Unsupported(network.topology.as_str()),
        _ if matches!(network.transport, Transport::Evpn(_)) => Kind::Evpn,
        Topology::Layer3(_) => Kind::Routed,
        Topology::Layer2(_) => Kind::Switched,
    }
}

fn without_overlay(network: &Network) -> Families<PrefixSelector> {
    match (&network.topology, &network.transport) {
        (Topology::Layer3(layer3), Transport::NoOverlay(_)) => {
            let range = |subnet: &Subnet| (subnet.cidr.trunc(), subnet.host_length());
            heard(layer3.subnets.iter().map(range))
        }
        _ => Families::default(),
    }
}

/// Nodes' parts of these ranges, in the order of their texts.
fn heard(ranges: impl Iterator<Item = (IpNet, u8)>) -> Families<PrefixSelector> {
    let selector = |(net, length): (IpNet, u8)| {
        let length = Some(u32::from(length));
        let prefix = net.to_string();
        PrefixSelector { prefix, ge: length, le: length, ..PrefixSelector::default() }
    };
    let mut selectors: Vec<PrefixSelector> = ranges.map(selector).collect();
    selectors.sort_by(|one, other| one.prefix.cmp(&other.prefix));
    Families::new(selectors.into(), |selector| &selector.prefix)
}

/// Names of the definitions that some namespace has an attachment of.
fn attached(world: &World) -> BTreeSet<&str> {
    let made = world.attachments.values().filter_map(|attachment| attachment.made_from());
    made.filter(|(scope, _)| *scope == Scope::Cluster).map(|(_, name)| name).collect()
}
