//! One generated FRRConfiguration: what a user's configuration says of a node's peers, with the node's routes added.
//!
//! In: what is asked of all nodes, a node with its parts of the networks, and a source. Out: routers with neighbors that
//! hear the node's prefixes and no others, and routers that exchange routes between VRFs.

mod families;
mod leaks;
mod source;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use underlay_api::Shared;
use underlay_api::frr::{
    Advertise, AllowMode, AllowedIn, AllowedOut, Bgp, FRRConfigurationSpec, Neighbor, PrefixSelector,
    RawConfig, Receive, Router,
};
use underlay_api::route_advertisements::TargetVrf;
use underlay_net::Family;
use underlay_world::Node;

use super::advertise::networks::{Known, Part};
pub use families::Families;
pub use leaks::Leaks;
pub use source::{HOSTNAME, Source, Sources};
use texts::texts;

/// How the default VRF is named where a name is needed.
pub const DEFAULT_VRF: &str = "default";
/// Place of our text among the texts of other configurations.
const RAW_PRIORITY: i32 = 10;
/// Routers that a configuration can have.
const ROUTERS: usize = 50;

/// What is asked of all nodes.
pub struct Request<'a> {
    target: TargetVrf<'a>,
    /// Whether the prefixes of pods are advertised.
    pods: bool,
    /// In order of their names.
    networks: Vec<&'a Known>,
    by_vrf: BTreeMap<&'a str, usize>,
    /// What neighbors may tell, for the sake of networks without overlay.
    heard: Families<PrefixSelector>,
}

impl<'a> Request<'a> {
    /// To advertise these networks, which are in order of their names.
    pub fn new(target: TargetVrf<'a>, pods: bool, networks: Vec<&'a Known>) -> Self {
        let by_vrf = networks.iter().enumerate().map(|(place, known)| (known.vrf.as_str(), place)).collect();
        let heard = networks.iter().flat_map(|known| known.heard.all().iter().cloned()).collect();
        let heard = Families::new(heard, |selector| &selector.prefix);
        Self { target, pods, networks, by_vrf, heard }
    }

    /// The networks.
    pub fn networks(&self) -> &[&'a Known] {
        &self.networks
    }

    /// How routes of networks get into the VRF that is told, if that is another one than their own.
    pub fn leaks(&self) -> Leaks<'a> {
        let into = match self.target {
            TargetVrf::Default => Some(DEFAULT_VRF),
            TargetVrf::Named(vrf) => Some(vrf),
            TargetVrf::Auto => None,
        };
        Leaks::new(into, &self.by_vrf)
    }
}

/// What a node says.
pub struct Speech<'a> {
    request: &'a Request<'a>,
    node: &'a Node,
    own: BTreeSet<IpAddr>,
    /// The node's part of each network.
    parts: Vec<&'a [IpNet]>,
    /// All its prefixes as texts; with `auto`, each router has others.
    all: Families<String>,
}

/// What came of a source for a node.
pub enum Spoken {
    /// This; more than one only if there are more routers than one can have.
    Said(Vec<FRRConfigurationSpec>),
    /// There is nobody to tell but the node itself, or nothing to tell.
    Silent,
    /// The source has no router that fits.
    NoRouter,
}

/// What a router says, and hears.
struct Words {
    prefixes: Families<String>,
    heard: Families<PrefixSelector>,
    /// The network it is for, where each has its own.
    network: Option<usize>,
}

impl<'a> Speech<'a> {
    /// What this node says of its parts of the networks, and of addresses it holds. `there` is what it said before.
    pub fn new(
        request: &'a Request<'a>,
        node: &'a Node,
        held: &[IpNet],
        there: Option<&Shared<String>>,
    ) -> Self {
        let parts = parts(&request.networks, node);
        let pods = parts.iter().filter(|_| request.pods).copied().flatten();
        let all = match request.target {
            TargetVrf::Auto => Families::default(),
            _ => texts(pods.chain(held), there),
        };
        Self { request, node, own: own_addresses(node), parts, all }
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        match self.request.target {
            TargetVrf::Auto => !self.has_pods(),
            _ => self.all.all().is_empty(),
        }
    }

    fn has_pods(&self) -> bool {
        self.request.pods && self.parts.iter().any(|part| !part.is_empty())
    }

    /// Whether the node is known by an address: without one it cannot be told from its peers.
    pub fn is_known(&self) -> bool {
        !self.own.is_empty()
    }

    /// Networks of which the node should have a part to advertise, and has none.
    pub fn lacks(&self) -> impl Iterator<Item = &'a Known> {
        let networks = self.request.networks.iter().zip(&self.parts).filter(|_| self.request.pods);
        let lacking = networks
            .filter(|(known, part)| part.is_empty() && known.part == Part::Recorded { expected: true });
        lacking.map(|(known, _)| *known)
    }

    /// With `auto`, whether all that the node has to say was said in some router: places of networks in `met`.
    pub fn said_all(&self, met: &BTreeSet<usize>) -> bool {
        let mut parts = self.parts.iter().enumerate();
        self.request.target != TargetVrf::Auto
            || parts.all(|(place, part)| part.is_empty() || met.contains(&place))
    }

    /// The source's specification with the node's routes. Networks that a router was for are put into `met`. The error
    /// is the user's to mend.
    pub fn through(
        &self,
        source: &Source<'_>,
        met: &mut BTreeSet<usize>,
        leaks: &mut Leaks<'_>,
    ) -> Result<Spoken, String> {
        let (mut routers, mut fits) = (Vec::new(), false);
        for (router, addresses) in source.routers() {
            let Some(words) = self.words_for(&router.vrf) else { continue };
            let prefixes = words.prefixes.all();
            if prefixes.is_empty() {
                fits = true;
                continue;
            }
            let others = self.without_itself(router, addresses, source)?;
            let lonely = others.is_empty() && !router.neighbors.is_empty();
            let neighbors = told(others, &words, source)?;
            fits |= lonely;
            if lonely || !neighbors.is_empty() {
                met.extend(words.network);
            }
            if !neighbors.is_empty() {
                routers.push(Router { neighbors, prefixes: Arc::clone(prefixes), ..bare(router) });
            }
        }
        if routers.is_empty() {
            return Ok(if fits { Spoken::Silent } else { Spoken::NoRouter });
        }
        let leaked = leaks.leak(&mut routers, |place| !self.parts[place].is_empty());
        Ok(Spoken::Said(self.specs(routers, leaked, source)))
    }

    /// What the router of a VRF says; nothing if it is not for any of this.
    fn words_for(&self, vrf: &str) -> Option<Words> {
        let request = self.request;
        match request.target {
            TargetVrf::Default if !is_default(vrf) => None,
            TargetVrf::Named(target) if vrf != target => None,
            TargetVrf::Auto => {
                let place = *request.by_vrf.get(if is_default(vrf) { DEFAULT_VRF } else { vrf })?;
                let (prefixes, heard) =
                    (texts(self.parts[place].iter(), None), request.networks[place].heard.clone());
                Some(Words { prefixes, heard, network: Some(place) })
            }
            _ => Some(Words { prefixes: self.all.clone(), heard: request.heard.clone(), network: None }),
        }
    }

    /// All neighbors but the node itself: in a mesh, all nodes share one list.
    fn without_itself<'n>(
        &self,
        router: &'n Router,
        addresses: &[Option<IpAddr>],
        source: &Source<'_>,
    ) -> Result<Vec<&'n Neighbor>, String> {
        let mut others = Vec::with_capacity(router.neighbors.len());
        for (neighbor, address) in router.neighbors.iter().zip(addresses) {
            if neighbor.address.is_empty() && neighbor.interface.is_empty() {
                let key = source.key;
                return Err(format!("neighbor with neither address nor interface on FRRConfiguration {key}"));
            }
            if !address.is_some_and(|address| self.own.contains(&address)) {
                others.push(neighbor);
            }
        }
        Ok(others)
    }

    /// The node's routers and those of other VRFs, in as many configurations as it takes.
    fn specs(
        &self,
        routers: Vec<Router>,
        leaked: Vec<Arc<Router>>,
        source: &Source<'_>,
    ) -> Vec<FRRConfigurationSpec> {
        let raw = RawConfig {
            priority: RAW_PRIORITY,
            raw_config: own_routes_back(&routers),
            ..RawConfig::default()
        };
        let mut routers = routers.into_iter().map(Arc::new).chain(leaked);
        let mut next = || routers.by_ref().take(ROUTERS).collect::<Vec<_>>();
        let from = &source.configuration.spec;
        let bgp = Bgp {
            routers: next(),
            bfd_profiles: from.bgp.bfd_profiles.clone(),
            other: from.bgp.other.clone(),
        };
        let node_selector = self.only_this_node();
        let mut specs = vec![FRRConfigurationSpec {
            bgp,
            raw,
            node_selector: node_selector.clone(),
            other: from.other.clone(),
        }];
        loop {
            let bgp = Bgp { routers: next(), ..Bgp::default() };
            if bgp.routers.is_empty() {
                return specs;
            }
            let node_selector = node_selector.clone();
            specs.push(FRRConfigurationSpec { bgp, node_selector, ..FRRConfigurationSpec::default() });
        }
    }

    fn only_this_node(&self) -> LabelSelector {
        let name = self.node.labels.get(HOSTNAME).unwrap_or(&self.node.name);
        let labels = [(HOSTNAME.to_owned(), name.clone())].into();
        LabelSelector { match_labels: Some(labels), match_expressions: None }
    }
}

/// A node's part of each network. Records and networks are both in order of their names; where most records are of
/// other networks, looking for each is faster than walking past them.
fn parts<'a>(networks: &[&'a Known], node: &'a Node) -> Vec<&'a [IpNet]> {
    let records = &node.subnets.0;
    let few = networks.len() * 8 < records.len();
    let mut walk = records.iter().peekable();
    let mut recorded = |name: &str| {
        if few {
            return node.subnets_in(name);
        }
        while walk.next_if(|(passed, _)| passed.as_str() < name).is_some() {}
        walk.next_if(|(found, _)| found.as_str() == name).map_or(&[][..], |(_, subnets)| subnets)
    };
    let part = |known: &&'a Known| match known.part {
        Part::Whole => known.subnets.as_slice(),
        Part::Recorded { .. } => recorded(&known.name),
    };
    networks.iter().map(part).collect()
}

/// Neighbors that hear something, with what they hear and what is taken from them.
fn told(neighbors: Vec<&Neighbor>, words: &Words, source: &Source<'_>) -> Result<Vec<Neighbor>, String> {
    let mut told = Vec::with_capacity(neighbors.len());
    for neighbor in neighbors {
        let (name, key) = (peer(neighbor), source.key);
        if neighbor.dual_stack_address_family {
            return Err(format!(
                "DualStackAddressFamily==true not supported, seen on FRRConfiguration {key} neighbor {name}"
            ));
        }
        let family = family(neighbor).map_err(|()| {
            format!("neighbor {name} on FRRConfiguration {key} has an address that is no IP address")
        })?;
        let prefixes = Arc::clone(words.prefixes.of(family));
        if prefixes.is_empty() {
            continue;
        }
        let allowed = AllowedOut { prefixes, mode: AllowMode::Filtered, ..AllowedOut::default() };
        let to_advertise = Advertise { allowed, ..Advertise::default() };
        let prefixes = Arc::clone(words.heard.of(family));
        let to_receive = if prefixes.is_empty() {
            neighbor.to_receive.clone()
        } else {
            let allowed = AllowedIn { prefixes, mode: AllowMode::Filtered, ..AllowedIn::default() };
            Receive { allowed, ..Receive::default() }
        };
        told.push(Neighbor { to_advertise, to_receive, ..neighbor.clone() });
    }
    Ok(told)
}

/// Addresses by which a mesh may name the node itself.
pub fn own_addresses(node: &Node) -> BTreeSet<IpAddr> {
    node.primary.0.nets().map(|net| net.addr()).chain(node.addresses.iter().copied()).collect()
}

/// A router without its neighbors and prefixes, which are replaced: there may be many.
fn bare(router: &Router) -> Router {
    let Router { asn, id, vrf, neighbors: _, prefixes: _, imports, evpn, other } = router;
    Router {
        asn: *asn,
        id: id.clone(),
        vrf: vrf.clone(),
        imports: imports.clone(),
        evpn: evpn.clone(),
        other: other.clone(),
        ..Router::default()
    }
}

fn is_default(vrf: &str) -> bool {
    vrf.is_empty() || vrf == DEFAULT_VRF
}

/// The family a neighbor exchanges routes of; without an address it is both.
fn family(neighbor: &Neighbor) -> Result<Option<Family>, ()> {
    if neighbor.address.is_empty() {
        return Ok(None);
    }
    neighbor.address.parse().map(|address| Some(Family::of(address))).map_err(|_| ())
}

fn peer(neighbor: &Neighbor) -> &str {
    if neighbor.address.is_empty() { &neighbor.interface } else { &neighbor.address }
}

/// Text that makes the routers take routes that come back with their own AS number: nodes share one, and hear of each
/// other through their peers.
fn own_routes_back(routers: &[Router]) -> String {
    let mut routers: Vec<&Router> = routers.iter().collect();
    routers.sort_by_key(|router| (!is_default(&router.vrf), router.vrf.as_str()));
    let mut text = String::new();
    for router in routers {
        let vrf = if is_default(&router.vrf) { String::new() } else { format!(" vrf {}", router.vrf) };
        line(&mut text, format_args!("router bgp {}{vrf}", router.asn));
        for (family, word) in [(Family::V4, "ipv4"), (Family::V6, "ipv6")] {
            let speaks = |neighbor: &&Neighbor| {
                matches!(self::family(neighbor), Ok(None)) || self::family(neighbor) == Ok(Some(family))
            };
            let peers: BTreeSet<&str> = router.neighbors.iter().filter(speaks).map(peer).collect();
            if peers.is_empty() {
                continue;
            }
            line(&mut text, format_args!(" address-family {word} unicast"));
            for peer in peers {
                line(&mut text, format_args!("  neighbor {peer} allowas-in origin"));
            }
            line(&mut text, format_args!(" exit-address-family"));
        }
        line(&mut text, format_args!("exit\n!"));
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}
