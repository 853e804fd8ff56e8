//! Whether the routes of an advertisement are really told: FRR took every generated configuration, and every neighbour
//! in it has a session that stands.

use std::collections::{BTreeMap, BTreeSet};

use underlay_api::FRRConfiguration;
use underlay_api::annotations::{Annotation, GeneratedFrom};
use underlay_api::conditions::{self, Outcome};
use underlay_api::frr::Router;
use underlay_api::route_advertisements::READY;
use underlay_world::{Key, Speaker, World};

use super::advertise::LABEL;
use super::speaker::DEFAULT_VRF;
use super::{Advertised, Verdict};

/// Sessions that a message names before it only counts them.
const NAMED: usize = 5;

/// Whether routes are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// To everybody: how many sessions of how many nodes.
    Told {
        /// Sessions.
        sessions: usize,
        /// Nodes.
        nodes: usize,
    },
    /// Not to all: what is wrong, in the words of each place.
    Missing(Vec<String>),
    /// The advertisement is not accepted.
    NotAccepted,
}

impl Readiness {
    /// As a condition of an object of this generation.
    pub fn outcome(&self, generation: Option<i64>) -> Outcome {
        let (verdict, reason, message) = match self {
            Self::Told { sessions, nodes } => (
                conditions::Verdict::True,
                "RoutesAdvertised",
                format!("routes are advertised in {sessions} BGP sessions of {nodes} nodes"),
            ),
            Self::Missing(places) => {
                let shown = places[..places.len().min(NAMED)].join("; ");
                let more = match places.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!("; and {more} more"),
                };
                (conditions::Verdict::False, "RoutesMissing", format!("{shown}{more}"))
            }
            Self::NotAccepted => {
                (conditions::Verdict::False, "NotAccepted", "see condition Accepted".to_owned())
            }
        };
        Outcome {
            type_: READY.to_owned(),
            verdict,
            reason: reason.to_owned(),
            message,
            observed_generation: generation,
        }
    }
}

/// Judges every advertisement.
pub fn plan(world: &World, advertised: &Advertised) -> BTreeMap<String, Readiness> {
    let established: BTreeSet<(&str, &str, &str)> = world
        .sessions
        .values()
        .filter(|session| session.established)
        .map(|session| (session.node.as_str(), session.vrf.as_str(), session.peer.as_str()))
        .collect();
    let mut found: BTreeMap<&str, Found> = BTreeMap::new();
    for generated in advertised.configurations.values() {
        let labels = generated.object.metadata.labels.as_ref();
        let Some(name) = labels.and_then(|labels| labels.get(LABEL)) else { continue };
        found.entry(name).or_default().look(world, &established, &generated.object);
    }
    let judge = |(name, verdict): (&String, &Verdict)| {
        let readiness = match verdict {
            Verdict::Accepted { .. } => found.remove(name.as_str()).unwrap_or_default().judge(),
            _ => Readiness::NotAccepted,
        };
        (name.clone(), readiness)
    };
    advertised.verdicts.iter().map(judge).collect()
}

#[derive(Default)]
struct Found {
    nodes: BTreeSet<String>,
    sessions: usize,
    missing: BTreeSet<String>,
}

impl Found {
    fn look(&mut self, world: &World, established: &BTreeSet<(&str, &str, &str)>, object: &FRRConfiguration) {
        let Ok(Some(GeneratedFrom { node, .. })) = GeneratedFrom::of(&object.metadata) else { return };
        match world.speakers.get(&Key::cluster(&node)) {
            None => drop(self.missing.insert(format!("node {node} has not told what became of it"))),
            Some(speaker) => {
                let problem = speaker.problem.as_ref();
                self.missing.extend(problem.map(|problem| format!("FRR of node {node}: {problem}")));
                let untold = object.spec.bgp.routers.iter().filter_map(|router| untold(speaker, router));
                self.missing.extend(untold.map(|untold| format!("FRR of node {node} lacks {untold}")));
            }
        }
        for router in &object.spec.bgp.routers {
            let vrf = vrf(router);
            for neighbor in &router.neighbors {
                let peer = if neighbor.address.is_empty() { &neighbor.interface } else { &neighbor.address };
                if established.contains(&(node.as_str(), vrf, peer.as_str())) {
                    self.sessions += 1;
                } else {
                    self.missing.insert(format!("node {node} has no session with {peer}{}", within(vrf)));
                }
            }
        }
        self.nodes.insert(node);
    }

    fn judge(self) -> Readiness {
        if self.missing.is_empty() {
            Readiness::Told { sessions: self.sessions, nodes: self.nodes.len() }
        } else {
            Readiness::Missing(self.missing.into_iter().collect())
        }
    }
}

/// The VRF of a router; that of the default one is empty.
fn vrf(router: &Router) -> &str {
    if router.vrf == DEFAULT_VRF { "" } else { &router.vrf }
}

fn within(vrf: &str) -> String {
    if vrf.is_empty() { String::new() } else { format!(" in VRF {vrf}") }
}

/// What a router should originate and FRR does not: the first prefix, and how many more.
fn untold(speaker: &Speaker, router: &Router) -> Option<String> {
    let vrf = vrf(router);
    let there = speaker.networks.get(vrf);
    let untold = |prefix: &&String| !there.is_some_and(|there| there.contains(*prefix));
    let mut untold = router.prefixes.iter().filter(untold);
    let first = untold.next()?;
    let more = match untold.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!("{first}{more}{}", within(vrf)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use underlay_desired::{ObjectRef, Why};
    use underlay_world::Session;

    use super::*;
    use crate::cluster::Generated;

    fn advertised(verdict: Verdict) -> Advertised {
        let object: FRRConfiguration = serde_json::from_value(json!({
            "metadata": {
                "namespace": "frr", "name": "ovnk-generated-1",
                "labels": { LABEL: "ra" }, "annotations": { LABEL: "ra/peers/one" },
            },
            "spec": { "bgp": { "routers": [{
                "asn": 64512, "prefixes": ["10.244.1.0/24"], "neighbors": [{ "address": "172.30.0.1" }],
            }] } },
        }))
        .unwrap();
        let why = Why::from_object(ObjectRef::cluster("RouteAdvertisements", "ra"));
        let generated = Generated { object: object.into(), why };
        Advertised {
            configurations: [(Key::new("frr", "ovnk-generated-1"), generated)].into(),
            verdicts: [("ra".to_owned(), verdict)].into(),
            ..Advertised::default()
        }
    }

    fn world() -> World {
        let mut world = World::default();
        let networks = [(String::new(), ["10.244.1.0/24".to_owned()].into())].into();
        world.speakers.insert(Key::cluster("one"), Speaker { problem: None, networks });
        let session = Session {
            node: "one".to_owned(),
            vrf: String::new(),
            peer: "172.30.0.1".to_owned(),
            established: true,
        };
        world.sessions.insert(Key::new("frr", "one-1"), session);
        world
    }

    fn judged(world: &World) -> Readiness {
        plan(world, &advertised(Verdict::Accepted { uncovered: vec![] })).remove("ra").unwrap()
    }

    #[test]
    fn routes_are_told_when_frr_has_them_and_every_session_stands() {
        assert_eq!(judged(&world()), Readiness::Told { sessions: 1, nodes: 1 });
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = |change: fn(&mut World)| {
            let mut world = world();
            change(&mut world);
            match judged(&world) {
                Readiness::Missing(places) => places.join("; "),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(missing(|world| world.sessions.clear()), "node one has no session with 172.30.0.1");
        assert_eq!(missing(|world| world.speakers.clear()), "node one has not told what became of it");
        let refuse = |world: &mut World| {
            let speaker = world.speakers.entry(Key::cluster("one")).or_default();
            speaker.problem = Some("refused".to_owned());
            speaker.networks.clear();
        };
        assert_eq!(missing(refuse), "FRR of node one lacks 10.244.1.0/24; FRR of node one: refused");
    }

    #[test]
    fn each_vrf_has_its_own_routes_and_sessions() {
        let mut advertised = advertised(Verdict::Accepted { uncovered: vec![] });
        let (_, generated) = advertised.configurations.first_key_value().unwrap();
        let mut generated = generated.clone();
        let router = Arc::make_mut(&mut Arc::make_mut(&mut generated.object).spec.bgp.routers[0]);
        router.vrf = "blue".to_owned();
        router.prefixes = ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"].map(str::to_owned).into();
        advertised.configurations.insert(Key::new("frr", "ovnk-generated-2"), generated);
        let mut world = world();
        let missing = Readiness::Missing(vec![
            "FRR of node one lacks 10.244.1.0/24 and 2 more in VRF blue".to_owned(),
            "node one has no session with 172.30.0.1 in VRF blue".to_owned(),
        ]);
        assert_eq!(plan(&world, &advertised)["ra"], missing);
        let all = ["10.244.1.0/24", "10.244.2.0/24", "10.244.3.0/24"].map(str::to_owned);
        let speaker = world.speakers.entry(Key::cluster("one")).or_default();
        speaker.networks.insert("blue".to_owned(), all.into());
        let mut session = world.sessions[&Key::new("frr", "one-1")].clone();
        session.vrf = "blue".to_owned();
        world.sessions.insert(Key::new("frr", "one-2"), session);
        assert_eq!(plan(&world, &advertised)["ra"], Readiness::Told { sessions: 2, nodes: 1 });
    }

    #[test]
    fn what_is_not_accepted_is_not_ready() {
        let judged = plan(&world(), &advertised(Verdict::Error("x".to_owned())));
        assert_eq!(judged["ra"], Readiness::NotAccepted);
        let outcome = judged["ra"].outcome(Some(2));
        assert_eq!((outcome.type_.as_str(), outcome.reason.as_str()), (READY, "NotAccepted"));
    }
}
