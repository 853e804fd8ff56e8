//! Parts put together: what must be one way must agree, what can be many adds up.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::Ipv4Addr;

use ipnet::IpNet;
use underlay_desired::ObjectRef;
use underlay_desired::frr::{
    BfdProfile, Community, Config, Neighbor, NextHop, Peer, PrefixRange, RawText, Receive, Router, Session,
    Tags, Vrf,
};
use underlay_desired::why::Why;
use underlay_net::Family;

use super::read::{NeighborPart, Part, RouterPart};
use super::{Conflict, Problem};

/// The parts so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Draft {
    routers: BTreeMap<Vrf, DraftRouter>,
    profiles: BTreeMap<String, BfdProfile>,
}

#[derive(Debug, Clone)]
struct DraftRouter {
    asn: u32,
    id: Option<Ipv4Addr>,
    neighbors: BTreeMap<Peer, DraftNeighbor>,
    prefixes: BTreeMap<IpNet, Why>,
    imports: BTreeMap<Vrf, Why>,
    why: Why,
}

#[derive(Debug, Clone)]
struct DraftNeighbor {
    session: Session,
    families: BTreeSet<Family>,
    advertise_all: bool,
    advertise: BTreeMap<IpNet, Why>,
    local_preferences: BTreeMap<IpNet, (u32, Why)>,
    communities: BTreeMap<(IpNet, Community), Why>,
    next_hop: NextHop,
    receive_all: bool,
    receive: BTreeMap<PrefixRange, Why>,
    why: Why,
}

impl Draft {
    /// Adds a part. When it contradicts an earlier one, the draft is no longer of use.
    pub fn unite(&mut self, part: &Part) -> Result<(), Problem> {
        for (name, settings) in &part.profiles {
            match self.profiles.entry(name.clone()) {
                Entry::Vacant(slot) => {
                    let why = Why::from_object(part.object.clone());
                    slot.insert(BfdProfile { settings: settings.clone(), why });
                }
                Entry::Occupied(mut slot) => {
                    let field = format!("spec.bgp.bfdProfiles[{name}]");
                    same(&field, *settings == slot.get().settings, &slot.get().why)?;
                    also(&mut slot.get_mut().why, &part.object);
                }
            }
        }
        for router in &part.routers {
            self.unite_router(router, &part.object)?;
        }
        Ok(())
    }

    fn unite_router(&mut self, part: &RouterPart, object: &ObjectRef) -> Result<(), Problem> {
        let field = router_field(&part.vrf);
        let router = self.routers.entry(part.vrf.clone()).or_insert_with(|| DraftRouter {
            asn: part.asn,
            id: part.id,
            neighbors: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            imports: BTreeMap::new(),
            why: Why::default(),
        });
        agree(&format!("{field}.asn"), &part.asn, &router.asn, &router.why)?;
        one_of(&format!("{field}.id"), &mut router.id, part.id, &router.why)?;
        also(&mut router.why, object);
        add(&mut router.prefixes, &part.prefixes, object);
        add(&mut router.imports, &part.imports, object);
        for neighbor in &part.neighbors {
            let slot = router.neighbors.entry(neighbor.peer.clone());
            let united = slot.or_insert_with(|| DraftNeighbor::from(neighbor));
            united.unite(&format!("{field}.neighbors[{}]", neighbor.peer), neighbor, object)?;
        }
        Ok(())
    }

    /// Who asks for what the whole does not have: prefixes that no router originates, profiles that nobody describes.
    pub fn dangling(&self) -> Vec<Conflict> {
        let mut conflicts = Vec::new();
        for (vrf, router) in &self.routers {
            for (peer, neighbor) in &router.neighbors {
                let field = format!("{}.neighbors[{peer}]", router_field(vrf));
                let mut report = |why: &Why, step: &str, reason: String| {
                    let field = format!("{field}.{step}");
                    let problem = Problem { field, reason };
                    conflicts.extend(why.objects().map(|object| problem.clone().of(object)));
                };
                neighbor.dangling_prefixes(router, &mut report);
                if let Some(name) =
                    neighbor.session.bfd.as_ref().filter(|name| !self.profiles.contains_key(*name))
                {
                    report(&neighbor.why, "bfdProfile", format!("there is no BFD profile {name}"));
                }
            }
        }
        conflicts
    }

    /// The configuration.
    pub fn finish(self, raw: Vec<RawText>) -> Config {
        let routers = self.routers.into_iter().map(|(vrf, router)| (vrf, router.finish())).collect();
        Config { routers, bfd_profiles: self.profiles, raw }
    }
}

impl DraftRouter {
    fn finish(self) -> Router {
        let Self { asn, id, neighbors, prefixes, imports, why } = self;
        let neighbors =
            neighbors.into_iter().map(|(peer, neighbor)| (peer, neighbor.finish(&prefixes))).collect();
        Router { asn, id, neighbors, prefixes, imports, why }
    }
}

impl From<&NeighborPart> for DraftNeighbor {
    fn from(part: &NeighborPart) -> Self {
        Self {
            session: part.session.clone(),
            families: part.families.clone(),
            advertise_all: false,
            advertise: BTreeMap::new(),
            local_preferences: BTreeMap::new(),
            communities: BTreeMap::new(),
            next_hop: NextHop::default(),
            receive_all: false,
            receive: BTreeMap::new(),
            why: Why::default(),
        }
    }
}

impl DraftNeighbor {
    fn unite(&mut self, field: &str, part: &NeighborPart, object: &ObjectRef) -> Result<(), Problem> {
        agree_on_session(field, &part.session, &self.session, &self.why)?;
        same(&format!("{field}.dualStackAddressFamily"), part.families == self.families, &self.why)?;
        let next_hop = format!("{field}.toAdvertise.nextHop");
        one_of(&format!("{next_hop}.ipv4"), &mut self.next_hop.ipv4, part.next_hop.ipv4, &self.why)?;
        one_of(&format!("{next_hop}.ipv6"), &mut self.next_hop.ipv6, part.next_hop.ipv6, &self.why)?;
        also(&mut self.why, object);
        self.advertise_all |= part.advertise_all;
        add(&mut self.advertise, &part.advertise, object);
        self.receive_all |= part.receive_all;
        add(&mut self.receive, &part.receive, object);
        for (prefix, preference) in &part.local_preferences {
            let slot = self.local_preferences.entry(*prefix).or_insert((*preference, Why::default()));
            agree(&format!("{field}.toAdvertise.withLocalPref[{prefix}]"), preference, &slot.0, &slot.1)?;
            also(&mut slot.1, object);
        }
        for (prefix, communities) in &part.communities {
            let tagged = communities.iter().map(|community| (*prefix, *community)).collect();
            add(&mut self.communities, &tagged, object);
        }
        Ok(())
    }

    /// Whether routes of a prefix's family are exchanged at all.
    fn exchanges(&self, prefix: &IpNet) -> bool {
        self.families.contains(&Family::of_net(prefix))
    }

    /// Whether a prefix may be advertised.
    fn allows(&self, prefix: &IpNet, router: &DraftRouter) -> bool {
        self.advertise.contains_key(prefix) || (self.advertise_all && router.prefixes.contains_key(prefix))
    }

    fn dangling_prefixes(&self, router: &DraftRouter, report: &mut impl FnMut(&Why, &str, String)) {
        for (prefix, why) in self.advertise.iter().filter(|(prefix, _)| self.exchanges(prefix)) {
            if !router.prefixes.contains_key(prefix) {
                let reason = format!("{prefix} is not a prefix of the router");
                report(why, "toAdvertise.allowed.prefixes", reason);
            }
        }
        let preferred =
            self.local_preferences.iter().map(|(prefix, (_, why))| (prefix, why, "withLocalPref"));
        let tagged = self.communities.iter().map(|((prefix, _), why)| (prefix, why, "withCommunity"));
        for (prefix, why, field) in preferred.chain(tagged) {
            if self.exchanges(prefix) && !self.allows(prefix, router) {
                let reason = format!("{prefix} is not among the prefixes that may be advertised");
                report(why, &format!("toAdvertise.{field}"), reason);
            }
        }
    }

    fn finish(self, prefixes: &BTreeMap<IpNet, Why>) -> Neighbor {
        let all = prefixes.iter().filter(|_| self.advertise_all);
        let allowed = self.advertise.iter().chain(all).filter(|(prefix, _)| self.exchanges(prefix));
        let mut advertise: BTreeMap<IpNet, Tags> = BTreeMap::new();
        for (prefix, why) in allowed {
            let tags = advertise.entry(*prefix).or_default();
            why.objects().for_each(|object| also(&mut tags.why, object));
        }
        for (prefix, (preference, _)) in &self.local_preferences {
            if let Some(tags) = advertise.get_mut(prefix) {
                tags.local_preference = Some(*preference);
            }
        }
        for (prefix, community) in self.communities.keys() {
            if let Some(tags) = advertise.get_mut(prefix) {
                tags.communities.insert(*community);
            }
        }
        let families = &self.families;
        let exchanged = |range: &PrefixRange| families.contains(&Family::of_net(&range.prefix));
        let receive = if self.receive_all {
            Receive::All
        } else {
            Receive::Only(self.receive.into_iter().filter(|(range, _)| exchanged(range)).collect())
        };
        let Self { session, families, next_hop, why, .. } = self;
        Neighbor { session, families, advertise, next_hop, receive, why }
    }
}

fn router_field(vrf: &Vrf) -> String {
    format!("spec.bgp.routers[{vrf}]")
}

/// Settings of a session, each under the name by which users know it.
fn agree_on_session(field: &str, mine: &Session, other: &Session, why: &Why) -> Result<(), Problem> {
    for ((setting, mine), (_, other)) in settings(mine).into_iter().zip(settings(other)) {
        agree(&format!("{field}.{setting}"), &mine, &other, why)?;
    }
    same(&format!("{field}.password"), mine.password == other.password, why)
}

fn settings(session: &Session) -> [(&'static str, String); 10] {
    fn shown<T: ToString>(value: Option<&T>) -> String {
        value.map_or_else(|| "none".to_owned(), T::to_string)
    }
    [
        ("asn", session.remote.to_string()),
        ("localASN", shown(session.local_asn.as_ref())),
        ("sourceaddress", shown(session.source.as_ref())),
        ("port", shown(session.port.as_ref())),
        ("holdTime", format!("{}s", session.timers.hold)),
        ("keepaliveTime", format!("{}s", session.timers.keepalive)),
        ("connectTime", shown(session.connect.as_ref())),
        ("ebgpMultiHop", session.multihop.to_string()),
        ("bfdProfile", shown(session.bfd.as_ref())),
        ("enableGracefulRestart", session.graceful_restart.to_string()),
    ]
}

fn agree<T: PartialEq + Display>(field: &str, mine: &T, other: &T, why: &Why) -> Result<(), Problem> {
    if mine == other {
        return Ok(());
    }
    Err(Problem::new(field, format!("{mine} differs from {other} of {}", names(why))))
}

/// Takes over what only some say: whoever says it must say the same.
fn one_of<T: PartialEq + Display + Copy>(
    field: &str,
    known: &mut Option<T>,
    mine: Option<T>,
    why: &Why,
) -> Result<(), Problem> {
    if let (Some(mine), Some(known)) = (mine, &known) {
        agree(field, &mine, known, why)?;
    }
    *known = known.or(mine);
    Ok(())
}

/// For what is not to be shown, or is too long to be.
fn same(field: &str, same: bool, why: &Why) -> Result<(), Problem> {
    if same { Ok(()) } else { Err(Problem::new(field, format!("differs from that of {}", names(why)))) }
}

fn names(why: &Why) -> String {
    why.objects().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn also(why: &mut Why, object: &ObjectRef) {
    *why = std::mem::take(why).and(object.clone());
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, Why>, keys: &BTreeSet<K>, object: &ObjectRef) {
    for key in keys {
        also(to.entry(key.clone()).or_default(), object);
    }
}
