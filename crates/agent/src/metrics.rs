//! How many user-defined networks the node carries, and how many wait for something.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    state: &'static str,
}

/// Networks by state.
#[derive(Debug, Clone)]
pub struct NetworkMetrics(Family<Labels, Gauge>);

impl NetworkMetrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self(Family::default());
        let help = "User-defined networks that the node carries, and that wait for something";
        registry.register("underlay_node_networks", help, metrics.0.clone());
        metrics.count(0, 0);
        metrics
    }

    /// Tells how many there are.
    pub fn count(&self, carried: usize, waiting: usize) {
        for (state, count) in [("carried", carried), ("waiting", waiting)] {
            self.0.get_or_create(&Labels { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
