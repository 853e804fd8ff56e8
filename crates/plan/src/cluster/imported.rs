//! Whether nodes took what peers told: a network takes so many routes and no more, and those who advertise it should know
//! that it does not hear everything.

use std::collections::{BTreeMap, BTreeSet};

use underlay_api::conditions::{self, Outcome};
use underlay_api::route_advertisements::ROUTES_IMPORTED;
use underlay_world::World;

use super::Advertised;
use super::verdict::nodes;

/// Networks that a message names before it only counts them.
const NAMED: usize = 5;

/// What nodes did not take, of the networks of one advertisement: names of nodes by network. Empty if they took all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused(BTreeMap<String, BTreeSet<String>>);

impl Refused {
    /// As a condition of an object of this generation. Where nodes took all, and nothing else was ever said, nothing is.
    pub fn outcome(&self, generation: Option<i64>, said_before: bool) -> Option<Outcome> {
        let (verdict, reason, message) = if self.0.is_empty() {
            let message = "the nodes took all routes that peers told".to_owned();
            (conditions::Verdict::True, "RoutesImported", message)
        } else {
            (conditions::Verdict::False, "RouteLimitReached", self.message())
        };
        (said_before || !self.0.is_empty()).then(|| Outcome {
            type_: ROUTES_IMPORTED.to_owned(),
            verdict,
            reason: reason.to_owned(),
            message,
            observed_generation: generation,
        })
    }

    fn message(&self) -> String {
        let place = |(network, names): (&String, &BTreeSet<String>)| {
            let names: Vec<String> = names.iter().cloned().collect();
            format!(
                "network {network} has as many learned routes as it takes, and refuses more, on {}",
                nodes(&names)
            )
        };
        let shown: Vec<String> = self.0.iter().take(NAMED).map(place).collect();
        match self.0.len().saturating_sub(NAMED) {
            0 => shown.join("; "),
            more => format!("{}; and {more} more networks", shown.join("; ")),
        }
    }
}

/// What nodes did not take, by advertisement. Those of which nothing is to be said are left out.
pub fn plan(world: &World, advertised: &Advertised) -> BTreeMap<String, Refused> {
    let mut all: BTreeMap<String, Refused> = BTreeMap::new();
    for node in world.nodes.values() {
        for (network, _) in node.refused.0.iter().filter(|(_, count)| **count > 0) {
            for name in advertised.advertisers.get(network.as_str()).into_iter().flatten() {
                let refused = all.entry(name.clone()).or_default();
                refused.0.entry(network.clone()).or_default().insert(node.name.clone());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use underlay_api::annotations::RefusedRoutes;
    use underlay_world::{Key, Node};

    use super::*;

    fn world(nodes: &[(&str, &[(&str, usize)])]) -> World {
        let mut world = World::default();
        for (name, refused) in nodes {
            let refused = refused.iter().map(|(network, count)| ((*network).to_owned(), *count)).collect();
            let node = Node { name: (*name).to_owned(), refused: RefusedRoutes(refused), ..Node::default() };
            world.nodes.insert(Key::cluster(name), Arc::new(node));
        }
        world
    }

    fn advertised(networks: &[(&str, &str)]) -> Advertised {
        let mut advertised = Advertised::default();
        for (network, by) in networks {
            advertised.advertisers.entry(Arc::from(*network)).or_default().insert((*by).to_owned());
        }
        advertised
    }

    #[test]
    fn whoever_advertises_a_network_is_told_where_it_refuses_routes() {
        let world = world(&[
            ("n1", &[("default", 7)]),
            ("n2", &[("default", 1), ("blue", 3)]),
            ("n3", &[("red", 0)]),
        ]);
        let advertised =
            advertised(&[("default", "all"), ("blue", "all"), ("default", "other"), ("red", "red")]);
        let refused = plan(&world, &advertised);
        assert_eq!(refused.keys().collect::<Vec<_>>(), ["all", "other"], "nothing is said of others");
        let outcome = refused["other"].outcome(Some(3), false).unwrap();
        assert_eq!(
            (outcome.verdict, outcome.reason.as_str()),
            (conditions::Verdict::False, "RouteLimitReached")
        );
        let words = "has as many learned routes as it takes, and refuses more, on";
        assert_eq!(outcome.message, format!("network default {words} nodes n1, n2"));
        let both = refused["all"].outcome(None, false).unwrap().message;
        assert_eq!(both, format!("network blue {words} node n2; network default {words} nodes n1, n2"));
    }

    #[test]
    fn it_is_taken_back_only_where_it_was_said() {
        let none = Refused::default();
        assert_eq!(none.outcome(None, false), None);
        let outcome = none.outcome(None, true).unwrap();
        assert_eq!((outcome.verdict, outcome.reason.as_str()), (conditions::Verdict::True, "RoutesImported"));
    }

    #[test]
    fn how_many_were_refused_changes_nothing() {
        let advertised = advertised(&[("default", "all")]);
        let few = plan(&world(&[("n1", &[("default", 1)])]), &advertised);
        assert_eq!(few, plan(&world(&[("n1", &[("default", 100_000)])]), &advertised));
    }
}
