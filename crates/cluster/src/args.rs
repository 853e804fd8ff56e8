//! Flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser};
use underlay_runtime::config::Flags;
use underlay_runtime::logging::LogFormat;
use underlay_runtime::report::AGENT_PORT;

/// Gives nodes their place in the cluster and turns RouteAdvertisements into FRRConfigurations.
#[derive(Debug, Clone, Parser)]
#[command(name = "underlay-cluster", version)]
pub struct Args {
    /// Kubeconfig file; without it, KUBECONFIG or the pod's service account.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Settings of the cluster.
    #[command(flatten)]
    pub settings: Flags,

    /// Where metrics and probes are served; empty turns them off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9410")]
    pub metrics_bind_address: String,

    /// Whether to work only while no other replica does.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          default_missing_value = "true")]
    pub leader_elect: bool,

    /// Namespace of the lease by which replicas agree.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub leader_elect_namespace: String,

    /// Seconds after which a leader that gives no sign of life is replaced. The default leaves a new leader enough of
    /// 15 seconds to list everything and go on.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    pub leader_elect_lease_duration: u64,

    /// Seconds without an answer after which a node loses its egress IPs to another one; 0 asks no node, and only what
    /// its kubelet says counts. Nodes that may hold egress IPs are asked once a second.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=300))]
    pub egress_ip_reachability_timeout: u32,

    /// Port of the agents at which nodes are asked: that of their metrics.
    #[arg(long, value_name = "PORT", default_value_t = AGENT_PORT)]
    pub egress_ip_health_port: u16,

    /// Shape of the log lines.
    #[arg(long, value_enum, default_value_t)]
    pub log_format: LogFormat,
}

impl Args {
    /// How long a lease lasts.
    pub fn lease_lasts(&self) -> Duration {
        Duration::from_secs(self.leader_elect_lease_duration)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_are_consistent_and_can_be_turned_off() {
        Args::command().debug_assert();
        let parse = |arguments: &[&str]| {
            Args::try_parse_from(["underlay-cluster"].iter().chain(arguments)).map(|args| args.leader_elect)
        };
        assert!(parse(&[]).unwrap());
        assert!(parse(&["--leader-elect"]).unwrap());
        assert!(!parse(&["--leader-elect=false"]).unwrap());
    }

    #[test]
    fn a_dead_leader_is_replaced_well_within_fifteen_seconds() {
        let args = Args::try_parse_from(["underlay-cluster"]).unwrap();
        assert!(args.lease_lasts() <= Duration::from_secs(10));
    }
}
