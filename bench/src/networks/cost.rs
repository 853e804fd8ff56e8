//! What networks cost the first node: memory of its agent, flows of its switch, work of its turns.

use anyhow::{Context, Result};

use super::northbound::Northbound;
use super::tenants::HOMES;
use crate::process::Process;
use crate::rig::Rig;

/// What was seen.
#[derive(Debug)]
pub struct Cost {
    /// MiB of the agent.
    pub memory: f64,
    /// Flows of the switch.
    pub flows: f64,
    /// Rows of the northbound database.
    pub rows: f64,
    /// Milliseconds of the agent's turns, on average over its life.
    pub turn: f64,
    /// Milliseconds of passes over the northbound database, on average over its life.
    pub pass: f64,
    /// Passes that wrote to the northbound database: a transaction each.
    pub transactions: f64,
}

/// Looks.
pub fn look(rig: &Rig<'_>) -> Result<Cost> {
    let node = HOMES[0];
    let metrics = rig.exec(node, &["curl", "--silent", "http://127.0.0.1:9411/metrics"])?;
    let aggregate = rig.exec(node, &["ovs-ofctl", "dump-aggregate", "br-int"])?;
    let flows = aggregate.split_whitespace().find_map(|word| word.strip_prefix("flow_count="));
    let value = |name: &str| value(&metrics, name).with_context(|| format!("no metric {name}"));
    let northbound = r#"{edge="northbound"}"#;
    let mean = |name: &str, labels: &str| -> Result<f64> {
        Ok(value(&format!("{name}_sum{labels}"))? / value(&format!("{name}_count{labels}"))? * 1000.0)
    };
    Ok(Cost {
        memory: Process::find(&rig.lab, "underlay-agent", Some(node))?.memory()?,
        flows: flows.and_then(|number| number.parse().ok()).context("no count of flows")?,
        rows: super::count(Northbound::look(rig, node)?.len()),
        turn: mean("underlay_turn_seconds", "")?,
        pass: mean("underlay_edge_seconds", northbound)?,
        transactions: value(&format!("underlay_edge_changing_passes_total{northbound}"))?,
    })
}

/// The value of a metric with these very labels.
fn value(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_found_by_its_whole_name() {
        let text = "a_total{edge=\"x\"} 3\na_total{edge=\"y\"} 4\na_totals 5\n";
        assert_eq!(value(text, "a_total{edge=\"y\"}"), Some(4.0));
        assert_eq!(value(text, "a_total"), None);
    }
}
