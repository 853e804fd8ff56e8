//! One FRRConfiguration by itself: its values checked and typed, or all that is wrong with them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use ipnet::IpNet;
use underlay_api::frr::{
    self as api, Advertise, AllowMode, DynamicAsn, FRRConfiguration, LocalPrefPrefixes, Neighbor, Receive,
};
use underlay_api::{Unknown, frr::AddressFamily};
use underlay_desired::ObjectRef;
use underlay_desired::frr::{
    BfdSettings, Community, NextHop, Password, Peer, PrefixRange, RawText, Remote, Session, Timers, Vrf,
};
use underlay_desired::why::Why;
use underlay_net::Family;
use underlay_world::{Key, Secret};

use super::Problem;
use super::values;
use crate::cluster::fabric;

/// Signs of life where nothing is said: what BGP itself proposes.
const TIMERS: Timers = Timers { keepalive: 60, hold: 180 };
/// BGP's own port.
const BGP_PORT: u16 = 179;

/// What stands for a password that nobody has read yet.
const UNREAD: &str = "unread";

/// What one resource asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub object: ObjectRef,
    /// Whether it connects the nodes with each other.
    pub is_fabric: bool,
    pub routers: Vec<RouterPart>,
    pub profiles: BTreeMap<String, BfdSettings>,
    pub raw: Option<(i32, RawText)>,
}

/// What it asks of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RouterPart {
    pub vrf: Vrf,
    pub asn: u32,
    pub id: Option<Ipv4Addr>,
    pub neighbors: Vec<NeighborPart>,
    pub prefixes: BTreeSet<IpNet>,
    pub imports: BTreeSet<Vrf>,
}

/// What it asks of a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NeighborPart {
    pub peer: Peer,
    pub session: Session,
    pub families: BTreeSet<Family>,
    pub advertise_all: bool,
    pub advertise: BTreeSet<IpNet>,
    pub local_preferences: BTreeMap<IpNet, u32>,
    pub communities: BTreeMap<IpNet, BTreeSet<Community>>,
    pub next_hop: NextHop,
    pub receive_all: bool,
    pub receive: BTreeSet<PrefixRange>,
}

/// Reads a resource, and notes which secrets it refers to.
pub(super) fn read(
    object: ObjectRef,
    configuration: &FRRConfiguration,
    secrets: &BTreeMap<Key, Secret>,
    wanted: &mut BTreeSet<Key>,
) -> Result<Part, Vec<Problem>> {
    let spec = &configuration.spec;
    let mut reader = Reader {
        namespace: object.namespace.clone().unwrap_or_default(),
        secrets,
        wanted,
        problems: Vec::new(),
        at: "spec".to_owned(),
    };
    reader.nothing_unknown(&[&spec.other, &spec.bgp.other, &spec.raw.other]);
    let mut profiles = BTreeMap::new();
    for profile in &spec.bgp.bfd_profiles {
        let at = format!("bgp.bfdProfiles[{}]", profile.name);
        reader.inside(&at, |reader| reader.profile(profile, &mut profiles));
    }
    let routers = spec.bgp.routers.iter().map(|router| {
        let at = format!("bgp.routers[{}]", Vrf::new(&router.vrf));
        reader.inside(&at, |reader| reader.router(router))
    });
    let routers = routers.collect();
    let text = Some(spec.raw.raw_config.clone()).filter(|text| !text.trim().is_empty());
    let raw = text.map(|text| {
        let why = Why::from_object(object.clone());
        (spec.raw.priority, RawText { text, why })
    });
    if reader.problems.is_empty() {
        let is_fabric = fabric::connects(&configuration.metadata);
        Ok(Part { object, is_fabric, routers, profiles, raw })
    } else {
        Err(reader.problems)
    }
}

/// Reads on after a mistake, so that all mistakes are told at once.
struct Reader<'a> {
    namespace: String,
    secrets: &'a BTreeMap<Key, Secret>,
    wanted: &'a mut BTreeSet<Key>,
    problems: Vec<Problem>,
    /// Where we are.
    at: String,
}

impl Reader<'_> {
    fn inside<T>(&mut self, step: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let outside = self.at.len();
        self.at.push('.');
        self.at.push_str(step);
        let result = work(self);
        self.at.truncate(outside);
        result
    }

    fn problem(&mut self, field: &str, reason: impl Into<String>) {
        let field = if field.is_empty() { self.at.clone() } else { format!("{}.{field}", self.at) };
        self.problems.push(Problem::new(field, reason));
    }

    /// A value, or a problem of its field.
    fn value<T>(&mut self, field: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|reason| self.problem(field, reason)).ok()
    }

    /// A value that may be left empty.
    fn optional<T: FromStr>(&mut self, field: &str, text: &str, otherwise: &str) -> Option<T> {
        if text.is_empty() {
            return None;
        }
        self.value(field, text.parse().map_err(|_| format!("{text:?} {otherwise}")))
    }

    fn values<'t, T>(
        &mut self,
        field: &str,
        texts: impl IntoIterator<Item = &'t String>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        texts.into_iter().filter_map(|text| self.value(field, read(text))).collect()
    }

    fn not_yet(&mut self, field: &str, asked: bool) {
        if asked {
            self.problem(field, "is not carried out yet");
        }
    }

    /// What a later version added changes the meaning of the rest: better none of it than half.
    fn nothing_unknown(&mut self, others: &[&Unknown]) {
        for field in others.iter().flat_map(|other| other.keys()) {
            self.problem(field, "is not known to this version");
        }
    }

    fn profile(&mut self, profile: &api::BfdProfile, profiles: &mut BTreeMap<String, BfdSettings>) {
        self.nothing_unknown(&[&profile.other]);
        let settings = BfdSettings {
            receive_interval: profile.receive_interval,
            transmit_interval: profile.transmit_interval,
            detect_multiplier: profile.detect_multiplier,
            echo_interval: profile.echo_interval,
            echo_mode: profile.echo_mode.unwrap_or_default(),
            passive_mode: profile.passive_mode.unwrap_or_default(),
            minimum_ttl: profile.minimum_ttl,
        };
        if let Some(name) = self.value("name", values::profile(&profile.name))
            && profiles.insert(name, settings).is_some()
        {
            self.problem("name", "is there twice");
        }
    }

    fn router(&mut self, router: &api::Router) -> RouterPart {
        self.nothing_unknown(&[&router.other]);
        self.not_yet("evpn", router.evpn.is_some());
        let vrf = Vrf::new(&router.vrf);
        if !vrf.is_default() {
            self.value("vrf", values::link(&router.vrf));
        }
        if router.asn == 0 {
            self.problem("asn", "must be more than 0");
        }
        let id = self.optional("id", &router.id, "is not written like an IPv4 address");
        let prefixes = self.values("prefixes", router.prefixes.iter(), values::prefix).into_iter().collect();
        let imports = self.imports(router, &vrf);
        let read = |neighbor: &Neighbor| {
            let name = if neighbor.address.is_empty() { &neighbor.interface } else { &neighbor.address };
            self.inside(&format!("neighbors[{name}]"), |reader| reader.neighbor(neighbor, router.asn))
        };
        let neighbors = router.neighbors.iter().filter_map(read).collect();
        RouterPart { vrf, asn: router.asn, id, neighbors, prefixes, imports }
    }

    fn imports(&mut self, router: &api::Router, own: &Vrf) -> BTreeSet<Vrf> {
        let mut imports = BTreeSet::new();
        for import in router.imports.iter() {
            self.nothing_unknown(&[&import.other]);
            let vrf = Vrf::new(&import.vrf);
            if vrf == *own {
                self.problem("imports", format!("VRF {vrf} cannot take over its own routes"));
            }
            if !vrf.is_default() {
                self.value("imports", values::link(&import.vrf));
            }
            imports.insert(vrf);
        }
        imports
    }

    fn neighbor(&mut self, neighbor: &Neighbor, own: u32) -> Option<NeighborPart> {
        self.nothing_unknown(&[&neighbor.other]);
        let families = &neighbor.address_families.0;
        self.not_yet("addressFamilies", families.iter().any(|family| *family != AddressFamily::Unicast));
        let peer = self.peer(neighbor)?;
        let families = match &peer {
            Peer::Address(address) if !neighbor.dual_stack_address_family => {
                BTreeSet::from([Family::of(*address)])
            }
            _ => Family::ALL.into(),
        };
        let session = self.session(neighbor, &peer, own);
        let (advertise, receive) = (&neighbor.to_advertise, &neighbor.to_receive);
        let advertise_all = self.mode("toAdvertise.allowed.mode", &advertise.allowed.mode);
        let receive_all = self.mode("toReceive.allowed.mode", &receive.allowed.mode);
        let prefixes =
            self.values("toAdvertise.allowed.prefixes", advertise.allowed.prefixes.iter(), values::prefix);
        let local_preferences = self.local_preferences(&advertise.with_local_pref);
        let communities = self.communities(advertise);
        let next_hop = self.next_hop(advertise);
        let receive = self.ranges(receive);
        Some(NeighborPart {
            peer,
            session: session?,
            families,
            advertise_all,
            advertise: prefixes.into_iter().collect(),
            local_preferences,
            communities,
            next_hop,
            receive_all,
            receive,
        })
    }

    fn peer(&mut self, neighbor: &Neighbor) -> Option<Peer> {
        match (neighbor.address.as_str(), neighbor.interface.as_str()) {
            ("", "") => {
                self.problem("", "has neither address nor interface");
                None
            }
            (address, "") => {
                let address = address.parse().map_err(|_| format!("{address:?} is no IP address"));
                self.value("address", address).map(Peer::Address)
            }
            ("", interface) => self.value("interface", values::link(interface)).map(Peer::Interface),
            _ => {
                self.problem("", "has both address and interface");
                None
            }
        }
    }

    fn session(&mut self, neighbor: &Neighbor, peer: &Peer, own: u32) -> Option<Session> {
        let remote = self.remote(neighbor)?;
        let internal = remote == Remote::Internal || remote == Remote::Asn(own);
        let address = if let Peer::Address(address) = peer { Some(*address) } else { None };
        if address.is_none() && neighbor.ebgp_multi_hop {
            self.problem("ebgpMultiHop", "a neighbour by interface is never more than one hop away");
        }
        Some(Session {
            remote,
            local_asn: self.local_asn(neighbor, own, internal),
            source: self.source(neighbor, address),
            port: neighbor.port.filter(|port| ![0, BGP_PORT].contains(port)),
            password: self.password(neighbor),
            timers: self.timers(neighbor),
            connect: self.connect(neighbor),
            // Inside an autonomous system a peer may be anywhere.
            multihop: neighbor.ebgp_multi_hop && !internal,
            bfd: Some(&neighbor.bfd_profile)
                .filter(|name| !name.is_empty())
                .and_then(|name| self.value("bfdProfile", values::profile(name))),
            graceful_restart: neighbor.enable_graceful_restart,
            passive: false,
        })
    }

    fn remote(&mut self, neighbor: &Neighbor) -> Option<Remote> {
        match (neighbor.asn, &neighbor.dynamic_asn) {
            (0, None) => self.problem("asn", "neither asn nor dynamicASN is given"),
            (0, Some(DynamicAsn::Internal)) => return Some(Remote::Internal),
            (0, Some(DynamicAsn::External)) => return Some(Remote::External),
            (0, Some(DynamicAsn::Other(word))) => {
                self.problem("dynamicASN", format!("{word:?} is not known"));
            }
            (asn, None) => return Some(Remote::Asn(asn)),
            (_, Some(_)) => self.problem("dynamicASN", "both asn and dynamicASN are given"),
        }
        None
    }

    /// The number that a peer outside sees in the place of ours.
    fn local_asn(&mut self, neighbor: &Neighbor, own: u32, internal: bool) -> Option<u32> {
        let asn = neighbor.local_asn?;
        if internal {
            self.problem("localASN", "a peer of our own autonomous system knows our number");
        } else if asn == own {
            self.problem("localASN", "is the router's own number");
        } else if asn == 0 || asn == neighbor.asn {
            self.problem("localASN", "must be neither 0 nor the peer's number");
        }
        Some(asn)
    }

    fn source(&mut self, neighbor: &Neighbor, peer: Option<IpAddr>) -> Option<String> {
        let source = neighbor.source_address.as_str();
        match peer {
            _ if source.is_empty() => None,
            Some(peer) => self.value("sourceaddress", values::source(source, peer)),
            None => {
                self.problem("sourceaddress", "a neighbour by interface is spoken to from that interface");
                None
            }
        }
    }

    fn password(&mut self, neighbor: &Neighbor) -> Option<Password> {
        let reference = &neighbor.password_secret;
        if reference.name.is_empty() {
            let text = Some(neighbor.password.as_str()).filter(|text| !text.is_empty())?;
            return self.value("password", values::password(text)).map(Password::new);
        }
        if !neighbor.password.is_empty() {
            self.problem("passwordSecret", "both password and passwordSecret are given");
        }
        let namespace = Some(&reference.namespace).filter(|name| !name.is_empty()).unwrap_or(&self.namespace);
        let key = Key::new(namespace, &reference.name);
        self.wanted.insert(key.clone());
        let Some(secret) = self.secrets.get(&key) else { return Some(Password::new(UNREAD)) };
        let found = secret.password().map_err(str::to_owned).and_then(values::password);
        let found = found.map(Password::new).map_err(|reason| format!("secret {key}: {reason}"));
        self.value("passwordSecret", found)
    }

    fn timers(&mut self, neighbor: &Neighbor) -> Timers {
        let hold = neighbor.hold_time.as_deref().map(values::seconds);
        let hold = hold.and_then(|hold| self.value("holdTime", hold));
        let keepalive = neighbor.keepalive_time.as_deref().map(values::seconds);
        let keepalive = keepalive.and_then(|keepalive| self.value("keepaliveTime", keepalive));
        let timers = Timers {
            hold: hold.unwrap_or(TIMERS.hold),
            keepalive: keepalive.or(hold.map(|hold| hold / 3)).unwrap_or(TIMERS.keepalive),
        };
        if [1, 2].contains(&timers.hold) {
            self.problem("holdTime", "must be 0 or at least 3 seconds");
        }
        if timers.keepalive > timers.hold {
            self.problem("keepaliveTime", format!("is more than the hold time of {} seconds", timers.hold));
        }
        timers
    }

    fn connect(&mut self, neighbor: &Neighbor) -> Option<u16> {
        let text = neighbor.connect_time.as_deref()?;
        let connect = self.value("connectTime", values::seconds(text))?;
        if connect == 0 {
            self.problem("connectTime", "must be at least one second");
        }
        Some(connect)
    }

    /// Whether all is let through.
    fn mode(&mut self, field: &str, mode: &AllowMode) -> bool {
        if let AllowMode::Other(word) = mode {
            self.problem(field, format!("{word:?} is not known"));
        }
        *mode == AllowMode::All
    }

    fn local_preferences(&mut self, entries: &[LocalPrefPrefixes]) -> BTreeMap<IpNet, u32> {
        let field = "toAdvertise.withLocalPref";
        let mut all = BTreeMap::new();
        for entry in entries {
            self.nothing_unknown(&[&entry.other]);
            for prefix in self.values(field, &entry.prefixes, values::prefix) {
                if all.insert(prefix, entry.local_pref).is_some_and(|other| other != entry.local_pref) {
                    self.problem(field, format!("{prefix} has two local preferences"));
                }
            }
        }
        all
    }

    fn communities(&mut self, advertise: &Advertise) -> BTreeMap<IpNet, BTreeSet<Community>> {
        self.nothing_unknown(&[&advertise.other, &advertise.allowed.other]);
        let field = "toAdvertise.withCommunity";
        let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for entry in &advertise.with_community {
            self.nothing_unknown(&[&entry.other]);
            let Some(community) = self.value(field, values::community(&entry.community)) else { continue };
            for prefix in self.values(field, &entry.prefixes, values::prefix) {
                all.entry(prefix).or_default().insert(community);
            }
        }
        all
    }

    fn next_hop(&mut self, advertise: &Advertise) -> NextHop {
        let Some(next_hop) = &advertise.next_hop else { return NextHop::default() };
        self.nothing_unknown(&[&next_hop.other]);
        NextHop {
            ipv4: self.optional("toAdvertise.nextHop.ipv4", &next_hop.ipv4, "is no IPv4 address"),
            ipv6: self.optional("toAdvertise.nextHop.ipv6", &next_hop.ipv6, "is no IPv6 address"),
        }
    }

    fn ranges(&mut self, receive: &Receive) -> BTreeSet<PrefixRange> {
        self.nothing_unknown(&[&receive.other, &receive.allowed.other]);
        let mut ranges = BTreeSet::new();
        for selector in receive.allowed.prefixes.iter() {
            self.nothing_unknown(&[&selector.other]);
            let range = values::range(&selector.prefix, selector.ge, selector.le);
            ranges.extend(self.value("toReceive.allowed.prefixes", range));
        }
        ranges
    }
}
