//! What the cluster manager counts.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use underlay_api::conditions::Outcome;

/// Values a condition can have.
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConditionLabels {
    name: String,
    condition: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NetworkLabels {
    kind: String,
    condition: String,
    status: &'static str,
}

/// The metrics.
#[derive(Debug, Clone)]
pub struct Metrics {
    leader: Gauge,
    turns: Counter,
    failed: Counter,
    unfinished: Gauge,
    seconds: Histogram,
    problems: Gauge,
    conditions: Family<ConditionLabels, Gauge>,
    networks: Family<NetworkLabels, Gauge>,
}

impl Metrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            leader: Gauge::default(),
            turns: Counter::default(),
            failed: Counter::default(),
            unfinished: Gauge::default(),
            seconds: Histogram::new([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]),
            problems: Gauge::default(),
            conditions: Family::default(),
            networks: Family::default(),
        };
        registry.register("underlay_leader", "Whether this replica leads", metrics.leader.clone());
        registry.register("underlay_turns", "Plans that were made and written", metrics.turns.clone());
        registry.register("underlay_turns_failed", "Turns with a write that failed", metrics.failed.clone());
        let help = "Whether something of the last turn has to be written again";
        registry.register("underlay_unfinished", help, metrics.unfinished.clone());
        registry.register("underlay_turn_seconds", "Duration of a turn", metrics.seconds.clone());
        registry.register("underlay_problems", "Nodes that lack something", metrics.problems.clone());
        let help = "Conditions of RouteAdvertisements: 1 at the status that holds";
        registry.register("underlay_route_advertisements_condition", help, metrics.conditions.clone());
        let help = "Networks by what their conditions say";
        registry.register("underlay_networks", help, metrics.networks.clone());
        metrics
    }

    /// Whether we lead.
    pub fn leads(&self, leading: bool) {
        self.leader.set(i64::from(leading));
        if !leading {
            self.conditions.clear();
            self.networks.clear();
            self.problems.set(0);
            self.unfinished.set(0);
        }
    }

    /// A turn is over. Some write may have failed, and something may have to be written again.
    pub fn turn(&self, took: Duration, failed: bool, unfinished: bool) {
        self.turns.inc();
        self.unfinished.set(i64::from(unfinished));
        self.failed.inc_by(u64::from(failed));
        self.seconds.observe(took.as_secs_f64());
    }

    /// How many nodes lack something.
    pub fn problems(&self, count: usize) {
        self.problems.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// These are the conditions of all networks: the kind of the definition, and what is said.
    pub fn networks<'a>(&self, all: impl Iterator<Item = (&'a str, &'a Outcome)>) {
        self.networks.clear();
        for (kind, outcome) in all {
            let status = outcome.verdict.as_str();
            let labels = NetworkLabels { kind: kind.to_owned(), condition: outcome.type_.clone(), status };
            self.networks.get_or_create(&labels).inc();
        }
    }

    /// An object has this condition.
    pub fn condition(&self, name: &str, condition: &Condition) {
        for status in STATUSES {
            let labels =
                ConditionLabels { name: name.to_owned(), condition: condition.type_.clone(), status };
            self.conditions.get_or_create(&labels).set(i64::from(condition.status == status));
        }
    }

    /// Objects are gone, and their conditions with them.
    pub fn forget(&self, gone: &BTreeSet<String>, condition: &str) {
        for name in gone {
            for status in STATUSES {
                let labels = ConditionLabels { name: name.clone(), condition: condition.to_owned(), status };
                self.conditions.remove(&labels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn a_condition_is_one_series_a_status_and_goes_with_its_object() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let condition = Condition {
            type_: "Accepted".to_owned(),
            status: "False".to_owned(),
            last_transition_time: Time(Timestamp::UNIX_EPOCH),
            message: String::new(),
            observed_generation: None,
            reason: String::new(),
        };
        metrics.condition("ra", &condition);
        let text = |registry: &Registry| {
            let mut text = String::new();
            encode(&mut text, registry).unwrap();
            text
        };
        let series = |status: &str, value: u8| {
            format!(
                "underlay_route_advertisements_condition{{name=\"ra\",condition=\"Accepted\",status=\"{status}\"}} {value}"
            )
        };
        let lines = text(&registry);
        assert!(lines.contains(&series("True", 0)) && lines.contains(&series("False", 1)), "{lines}");
        metrics.forget(&BTreeSet::from(["ra".to_owned()]), "Accepted");
        assert!(!text(&registry).contains("name=\"ra\""));
    }
}
