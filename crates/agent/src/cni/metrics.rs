//! How long the plugin is kept waiting.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Finer where a pod's start is decided.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    verb: &'static str,
    result: &'static str,
}

/// Durations by verb.
#[derive(Debug, Clone)]
pub struct Metrics(Family<Labels, Histogram>);

impl Metrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self(Family::new_with_constructor(|| Histogram::new(BUCKETS)));
        registry.register("underlay_cni_seconds", "Time until the plugin had its answer", metrics.0.clone());
        metrics
    }

    /// Counts an answer.
    pub(super) fn answered(&self, verb: &'static str, success: bool, took: Duration) {
        let result = if success { "done" } else { "failed" };
        self.0.get_or_create(&Labels { verb, result }).observe(took.as_secs_f64());
    }
}
