//! Egress IPs: which node holds which address.
//!
//! In: the world. Out: for every egress IP the nodes that hold its addresses, and what cannot be. What is assigned stays
//! for as long as it can; the rest goes where the least is. An address is held by one node, and a node holds one address
//! of each family of an egress IP. Of two egress IPs that ask for the same address the one that has it keeps it, else the older one.
//!
//! A node can hold an address of its primary interface's network, where it answers for it. An address outside the
//! networks of all nodes can be held by any of them from which it is advertised: BGP leads there.

mod advertised;
mod field;
mod refused;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use serde::Serialize;
use underlay_api::egress_ip::ASSIGNABLE_LABEL;
use underlay_net::Family;
use underlay_world::egress::Item;
use underlay_world::{EgressIp, Key, Settings, World};

use field::Field;

pub(super) use advertised::Networks;

/// Reason of an event: an address or a selector makes no sense.
pub const INVALID: &str = "InvalidEgressIP";
/// Reason of an event: somebody has the address already.
pub const CONFLICT: &str = "EgressIPConflict";
/// Reason of an event: another egress IP has the address.
pub const TAKEN: &str = "UnsupportedRequest";
/// Reason of an event: no node can hold any of the addresses.
pub const NO_NODE: &str = "NoMatchingNodeFound";
/// Reason of an event: no node can hold some of the addresses.
pub const UNASSIGNED: &str = "UnassignedRequest";
/// Reason of an event: pods of some networks do not leave with the addresses.
pub const NOT_SUPPORTED: &str = "EgressIPNotSupported";

/// What becomes of an egress IP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Who holds what, in the order in which it is asked for.
    pub items: Vec<Item>,
    /// Whether that is another record than the one that is there.
    pub news: bool,
    /// What cannot be: a reason and a sentence each.
    pub problems: Vec<(&'static str, String)>,
}

/// All egress IPs.
type Sources = BTreeMap<Key, Arc<EgressIp>>;

/// Decides about all egress IPs.
pub fn plan(world: &World, settings: &Settings) -> BTreeMap<Key, Told> {
    let mut sources = world.egress_ips.clone();
    let mut told = BTreeMap::new();
    // Who cannot keep an address leaves it to the next who asks for it.
    for _ in 0..=sources.len() {
        told = decide(&sources, world, settings);
        if !told.values().any(|told: &Told| told.news) {
            break;
        }
        write(&told, &mut sources);
    }
    for (key, told) in &mut told {
        let source = world.egress_ips.get(key);
        told.news = source.is_some_and(|source| source.damaged || source.items != told.items);
    }
    told
}

fn decide(sources: &Sources, world: &World, settings: &Settings) -> BTreeMap<Key, Told> {
    if sources.is_empty() {
        return BTreeMap::new();
    }
    let (field, networks) = (Field::survey(world), Networks::survey(world));
    let mut told: BTreeMap<&Key, Told> = BTreeMap::new();
    for (key, source) in sources {
        let problems = refused::selectors(source).into_iter().chain(networks.unsupported(source, settings));
        told.insert(key, Told { problems: problems.collect(), ..Told::default() });
    }
    let taken = refused::Taken::survey(world, settings);
    let claims = claims(sources, &taken, &field, &networks, &mut told);
    let holders = assign(&claims);
    let mut lacking: BTreeMap<&Key, Vec<&Claim<'_>>> = BTreeMap::new();
    for (claim, holder) in claims.iter().zip(&holders) {
        let key = &claim.source.key;
        match holder {
            Some(node) => {
                let item = Item { node: (*node).to_owned(), address: claim.address };
                told.entry(key).or_default().items.push(item);
            }
            None => lacking.entry(key).or_default().push(claim),
        }
    }
    for (key, told) in &mut told {
        let lacking = lacking.get(*key).map_or(&[][..], Vec::as_slice);
        told.problems.extend(unassigned(key, lacking, !told.items.is_empty(), &field, world));
        told.news = sources.get(*key).is_some_and(|source| source.damaged || source.items != told.items);
    }
    told.into_iter().map(|(key, told)| (key.clone(), told)).collect()
}

/// Makes a world as if this was written.
pub fn record(told: &BTreeMap<Key, Told>, world: &mut World) {
    write(told, &mut world.egress_ips);
}

fn write(told: &BTreeMap<Key, Told>, sources: &mut Sources) {
    for (key, told) in told.iter().filter(|(_, told)| told.news) {
        if let Some(source) = sources.get_mut(key) {
            let source = Arc::make_mut(source);
            source.items.clone_from(&told.items);
            source.damaged = false;
        }
    }
}

/// The nodes whose life matters, with the addresses by which they are asked: those that may hold something, as long as
/// there is anything to hold.
pub fn watched(world: &World) -> BTreeMap<String, Vec<IpAddr>> {
    if world.egress_ips.is_empty() {
        return BTreeMap::new();
    }
    let labelled = world.nodes.values().filter(|node| node.labels.contains_key(ASSIGNABLE_LABEL));
    let addresses = |node: &underlay_world::Node| -> Vec<IpAddr> {
        let primary = node.primary.0.nets().map(|net| net.addr());
        node.addresses.iter().copied().chain(primary).collect::<BTreeSet<IpAddr>>().into_iter().collect()
    };
    labelled.map(|node| (node.name.clone(), addresses(node))).filter(|(_, known)| !known.is_empty()).collect()
}

/// An address that an egress IP asks for and may have.
struct Claim<'a> {
    source: &'a EgressIp,
    address: IpAddr,
    /// Nodes that can hold it.
    candidates: BTreeSet<&'a str>,
}

impl<'a> Claim<'a> {
    /// What only one address can have: the place of an egress IP and family on a node.
    fn seat<'b>(&self, node: &'b str) -> (&'a Key, Family, &'b str) {
        (&self.source.key, Family::of(self.address), node)
    }
}

/// All that is asked for and may be, in the order of names and lists. What may not be is told.
fn claims<'a>(
    sources: &'a Sources,
    taken: &refused::Taken<'_>,
    field: &Field<'a>,
    networks: &Networks<'a>,
    told: &mut BTreeMap<&'a Key, Told>,
) -> Vec<Claim<'a>> {
    let winners = winners(sources);
    let mut claims = Vec::new();
    for (key, source) in sources {
        let mut problem = |problem| told.entry(key).or_default().problems.push(problem);
        let mut seen = BTreeSet::new();
        for (index, wanted) in source.wanted.iter().enumerate() {
            let address = match wanted {
                Ok(address) => *address,
                Err((text, why)) => {
                    problem((INVALID, format!("spec.egressIPs[{index}] {text:?}: {why}")));
                    continue;
                }
            };
            let winner = winners.get(&address).copied().filter(|winner| *winner != key);
            let other =
                winner.map(|other| (TAKEN, format!("EgressIP {other} has it already; use another address")));
            let twice =
                (!seen.insert(address)).then(|| (INVALID, "it is there twice; remove one".to_owned()));
            if let Some((reason, why)) = taken.by(address).or(other).or(twice) {
                problem((reason, format!("spec.egressIPs[{index}] {address}: {why}")));
                continue;
            }
            let candidates = field.candidates(address, |node| networks.advertised(source, node));
            claims.push(Claim { source, address, candidates });
        }
    }
    claims
}

/// For every address, the egress IP that may have it.
fn winners(sources: &Sources) -> BTreeMap<IpAddr, &Key> {
    let mut winners: BTreeMap<IpAddr, &EgressIp> = BTreeMap::new();
    for source in sources.values() {
        for address in source.addresses() {
            let holds = |one: &EgressIp| one.items.iter().any(|item| item.address == address);
            let order = |one: &EgressIp| (Reverse(holds(one)), one.rank().0, one.key.clone());
            let first = winners.entry(address).or_insert(source);
            if order(source) < order(first) {
                *first = source;
            }
        }
    }
    winners.into_iter().map(|(address, source)| (address, &source.key)).collect()
}

/// The node of every claim. Who has one keeps it; then those are served who have the least choice.
fn assign<'a>(claims: &[Claim<'a>]) -> Vec<Option<&'a str>> {
    let mut holders: Vec<Option<&'a str>> = vec![None; claims.len()];
    let mut load: BTreeMap<&str, usize> = BTreeMap::new();
    let mut used: BTreeSet<(&Key, Family, &str)> = BTreeSet::new();
    for (claim, holder) in claims.iter().zip(&mut holders) {
        let recorded = claim.source.items.iter().find(|item| item.address == claim.address);
        let node = recorded.and_then(|item| claim.candidates.get(item.node.as_str()));
        *holder = node.copied().filter(|node| used.insert(claim.seat(node)));
        if let Some(node) = *holder {
            *load.entry(node).or_default() += 1;
        }
    }
    let mut rest: Vec<usize> = (0..claims.len()).filter(|index| holders[*index].is_none()).collect();
    rest.sort_by_key(|index| (claims[*index].candidates.len(), claims[*index].source.rank(), *index));
    for index in rest {
        let claim = &claims[index];
        let free = claim.candidates.iter().filter(|node| !used.contains(&claim.seat(node)));
        let Some(node) = free.min_by_key(|node| (load.get(*node).copied().unwrap_or_default(), **node))
        else {
            continue;
        };
        used.insert(claim.seat(node));
        *load.entry(node).or_default() += 1;
        holders[index] = Some(node);
    }
    holders
}

/// What is said of addresses that no node holds.
fn unassigned(
    key: &Key,
    lacking: &[&Claim<'_>],
    some: bool,
    field: &Field<'_>,
    world: &World,
) -> Option<(&'static str, String)> {
    let whys: Vec<String> = lacking
        .iter()
        .map(|claim| {
            format!(
                "{}: {}",
                claim.address,
                field.why_not(claim.address, !claim.candidates.is_empty(), world)
            )
        })
        .collect();
    if whys.is_empty() {
        return None;
    }
    let whys = whys.join("; ");
    Some(if some {
        let known =
            format!("Not all egress IPs for EgressIP: {key} could be assigned, please tag more nodes");
        (UNASSIGNED, format!("{known}: {whys}"))
    } else {
        (NO_NODE, format!("no node can hold an address of EgressIP {key}: {whys}"))
    })
}

#[cfg(test)]
mod tests;
