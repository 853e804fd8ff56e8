//! Texts of users that FRR refused.
//!
//! To try such a text again tells FRR half of it and takes it back, which may disturb others. So it is tried again only
//! when something is there that it may build on: another text, a router, a neighbour, a profile. After a restart it is
//! tried once.

use std::collections::{BTreeMap, BTreeSet};

use underlay_desired::ObjectRef;
use underlay_desired::frr::{Config, Peer, RawText, Vrf};
use underlay_plan::node::frr::Merged;

/// Where users write their texts.
const FIELD: &str = "spec.raw.rawConfig";

/// What texts build on.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ground {
    routers: BTreeMap<Vrf, (u32, BTreeSet<Peer>)>,
    profiles: BTreeSet<String>,
    texts: Vec<RawText>,
}

impl Ground {
    fn of(config: &Config) -> Self {
        let router = |(vrf, router): (&Vrf, &underlay_desired::frr::Router)| {
            (vrf.clone(), (router.asn, router.neighbors.keys().cloned().collect()))
        };
        Self {
            routers: config.routers.iter().map(router).collect(),
            profiles: config.bfd_profiles.keys().cloned().collect(),
            texts: config.raw.clone(),
        }
    }
}

/// What FRR refused, on the ground that there was then.
#[derive(Debug, Default)]
pub struct Refusals {
    ground: Ground,
    refused: Vec<(ObjectRef, String)>,
}

impl Refusals {
    /// A configuration without what FRR would refuse again.
    pub fn leave_out(&mut self, merged: &Merged) -> Merged {
        let ground = Ground::of(&merged.config);
        if ground != self.ground {
            *self = Self { ground, refused: Vec::new() };
        }
        let out =
            |merged: Merged, (object, reason): &(ObjectRef, String)| merged.without(object, FIELD, reason);
        self.refused.iter().fold(merged.clone(), out)
    }

    /// Remembers that FRR refuses a text; returns the configuration without it.
    pub fn add(&mut self, merged: Merged, object: ObjectRef, reason: String) -> Merged {
        let without = merged.without(&object, FIELD, &reason);
        self.refused.push((object, reason));
        without
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use underlay_api::FRRConfiguration;
    use underlay_plan::node::frr::{Host, merge};

    use super::*;

    fn merged(specs: &[(&str, Value)]) -> Merged {
        let resource = |(name, spec): &(&str, Value)| -> FRRConfiguration {
            let object = json!({ "metadata": { "name": name, "namespace": "frr" }, "spec": spec });
            serde_json::from_value(object).expect("a configuration")
        };
        let resources: Vec<FRRConfiguration> = specs.iter().map(resource).collect();
        let host = Host { labels: &BTreeMap::new(), addresses: &[], has_vrf: true };
        merge(host, &resources, &BTreeMap::new())
    }

    #[test]
    fn a_refused_text_is_tried_again_when_there_is_something_new_to_build_on() {
        let router = |prefixes: Value, neighbors: Value| {
            let router = json!({ "asn": 1, "prefixes": prefixes, "neighbors": neighbors });
            ("a", json!({ "bgp": { "routers": [router] } }))
        };
        let text = |text: &str| ("b", json!({ "raw": { "rawConfig": text } }));
        let mut refusals = Refusals::default();
        let first = merged(&[router(json!([]), json!([])), text("bad")]);
        let tried = refusals.leave_out(&first);
        assert_eq!(tried, first);
        let object = ObjectRef::namespaced("FRRConfiguration", "frr", "b");
        let rest = refusals.add(tried, object, "no such word".to_owned());
        assert_eq!(rest.conflicts.len(), 1);
        assert_eq!(refusals.leave_out(&first), rest);
        let more = merged(&[router(json!(["10.0.0.0/24"]), json!([])), text("bad")]);
        let left = refusals.leave_out(&more);
        assert_eq!((left.conflicts.len(), left.config.raw.len()), (1, 0), "a prefix is nothing to build on");
        let neighbor =
            merged(&[router(json!([]), json!([{ "address": "10.0.0.2", "asn": 2 }])), text("bad")]);
        assert_eq!(refusals.leave_out(&neighbor), neighbor);
    }
}
