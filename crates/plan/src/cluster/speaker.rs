//! One generated FRRConfiguration: what a user's configuration says of a node's peers, with the node's routes added.
//!
//! In: a source, a node, the prefixes the node advertises and the VRF they are advertised in. Out: routers with
//! neighbors that hear these prefixes and no others.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use underlay_api::FRRConfiguration;
use underlay_api::frr::{
    Advertise, AllowMode, AllowedOut, FRRConfigurationSpec, Import, Neighbor, RawConfig, Router,
};
use underlay_api::route_advertisements::TargetVrf;
use underlay_net::Family;
use underlay_world::Node;

/// How the default VRF is named where a name is needed.
const DEFAULT_VRF: &str = "default";
/// Label by which a configuration selects one node.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Place of our text among the texts of other configurations.
const RAW_PRIORITY: i32 = 10;

/// What a node advertises, and where.
pub struct Speech<'a> {
    /// The node.
    pub node: &'a Node,
    /// Its prefixes.
    pub prefixes: &'a [IpNet],
    /// The VRF.
    pub target: TargetVrf<'a>,
}

/// What came of a source for a node.
pub enum Spoken {
    /// This.
    Said(Box<FRRConfigurationSpec>),
    /// The node's only peer is itself: there is nobody to tell.
    NobodyElse,
    /// The source has no router that fits.
    NoRouter,
}

impl Speech<'_> {
    /// The source's specification with the node's routes. The error is the user's to mend.
    pub fn through(&self, source: &FRRConfiguration) -> Result<Spoken, String> {
        let named = format!(
            "{}/{}",
            source.metadata.namespace.as_deref().unwrap_or_default(),
            source.metadata.name.as_deref().unwrap_or_default()
        );
        let mut routers = Vec::new();
        let mut lonely = false;
        for router in source.spec.bgp.routers.iter().filter(|router| self.uses(router)) {
            let others = self.without_itself(&router.neighbors, &named)?;
            lonely |= others.is_empty() && !router.neighbors.is_empty();
            let neighbors = self.told(others, &named)?;
            if !neighbors.is_empty() {
                routers.push(self.router(router, neighbors));
            }
        }
        if routers.is_empty() {
            return Ok(if lonely { Spoken::NobodyElse } else { Spoken::NoRouter });
        }
        let raw = RawConfig {
            priority: RAW_PRIORITY,
            raw_config: own_routes_back(&routers),
            ..RawConfig::default()
        };
        let leaked: Vec<Router> = routers.iter().filter_map(leak).collect();
        let mut spec = source.spec.clone();
        spec.bgp.routers = routers.into_iter().chain(leaked).collect();
        spec.node_selector = self.only_this_node();
        spec.raw = raw;
        Ok(Spoken::Said(Box::new(spec)))
    }

    fn uses(&self, router: &Router) -> bool {
        match self.target {
            // The default network lives in the default VRF, so that is where `auto` puts it.
            TargetVrf::Default | TargetVrf::Auto => is_default(&router.vrf),
            TargetVrf::Named(vrf) => router.vrf == vrf,
        }
    }

    /// All neighbors but the node itself: in a mesh, all nodes share one list.
    fn without_itself<'n>(
        &self,
        neighbors: &'n [Neighbor],
        named: &str,
    ) -> Result<Vec<&'n Neighbor>, String> {
        let mut others = Vec::new();
        for neighbor in neighbors {
            if neighbor.address.is_empty() && neighbor.interface.is_empty() {
                return Err(format!(
                    "neighbor with neither address nor interface on FRRConfiguration {named}"
                ));
            }
            let address = neighbor.address.parse().ok();
            if !address.is_some_and(|address: IpAddr| own_addresses(self.node).contains(&address)) {
                others.push(neighbor);
            }
        }
        Ok(others)
    }

    /// Neighbors that hear something, with what they hear.
    fn told(&self, neighbors: Vec<&Neighbor>, named: &str) -> Result<Vec<Neighbor>, String> {
        let mut told = Vec::new();
        for neighbor in neighbors {
            let name = peer(neighbor);
            if neighbor.dual_stack_address_family {
                return Err(format!(
                    "DualStackAddressFamily==true not supported, seen on FRRConfiguration {named} neighbor {name}"
                ));
            }
            let family = family(neighbor).map_err(|()| {
                format!("neighbor {name} on FRRConfiguration {named} has an address that is no IP address")
            })?;
            let fits = |net: &&IpNet| family.is_none_or(|family| family == Family::of_net(net));
            let prefixes = texts(self.prefixes.iter().filter(fits));
            if !prefixes.is_empty() {
                let allowed = AllowedOut { prefixes, mode: AllowMode::Filtered, ..AllowedOut::default() };
                let to_advertise = Advertise { allowed, ..Advertise::default() };
                told.push(Neighbor { to_advertise, ..neighbor.clone() });
            }
        }
        Ok(told)
    }

    fn router(&self, source: &Router, neighbors: Vec<Neighbor>) -> Router {
        let mut router = Router { neighbors, prefixes: texts(self.prefixes.iter()), ..source.clone() };
        if !is_default(&router.vrf) {
            import(&mut router, DEFAULT_VRF);
        }
        router
    }

    fn only_this_node(&self) -> LabelSelector {
        let name = self.node.labels.get(HOSTNAME).unwrap_or(&self.node.name);
        let labels = [(HOSTNAME.to_owned(), name.clone())].into();
        LabelSelector { match_labels: Some(labels), match_expressions: None }
    }
}

/// Addresses by which a mesh may name the node itself.
pub fn own_addresses(node: &Node) -> BTreeSet<IpAddr> {
    node.primary.0.nets().map(|net| net.addr()).chain(node.addresses.iter().copied()).collect()
}

/// Routes that are advertised in another VRF live in the default one: each takes over the other's routes.
fn leak(target: &Router) -> Option<Router> {
    if is_default(&target.vrf) {
        return None;
    }
    let mut router = Router { asn: target.asn, id: target.id.clone(), ..Router::default() };
    import(&mut router, &target.vrf);
    Some(router)
}

fn is_default(vrf: &str) -> bool {
    vrf.is_empty() || vrf == DEFAULT_VRF
}

fn import(router: &mut Router, vrf: &str) {
    if !router.imports.iter().any(|import| import.vrf == vrf) {
        router.imports.push(Import { vrf: vrf.to_owned(), ..Import::default() });
    }
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

/// Prefixes in the order of their texts, each once.
fn texts<'a>(nets: impl Iterator<Item = &'a IpNet>) -> Vec<String> {
    nets.map(ToString::to_string).collect::<BTreeSet<_>>().into_iter().collect()
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
