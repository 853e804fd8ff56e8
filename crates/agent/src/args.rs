//! What the agent is told at its start.

use std::path::PathBuf;

use clap::Parser;
use underlay_runtime::report::AGENT_PORT;
use underlay_runtime::{config, logging::LogFormat};

/// Makes a node what the cluster asks of it: OVN, Open vSwitch, kernel, packet filter and FRR.
#[derive(Debug, Parser)]
#[command(name = "underlay-agent", version)]
pub struct Args {
    /// Name of the node's object.
    #[arg(long, env = "NODE_NAME")]
    pub node_name: String,

    /// How to reach the API server. Without it: the pod's own account, or the user's kubeconfig.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,

    /// The node's own northbound database.
    #[arg(long, default_value = "unix:/var/run/ovn/ovnnb_db.sock")]
    pub northbound: String,

    /// The node's own southbound database.
    #[arg(long, default_value = "unix:/var/run/ovn/ovnsb_db.sock")]
    pub southbound: String,

    /// The database of the node's switch.
    #[arg(long, default_value = "unix:/var/run/openvswitch/db.sock")]
    pub switch: String,

    /// Where the CNI plugin asks.
    #[arg(long, default_value = underlay_cni::SOCKET)]
    pub cni_socket: PathBuf,

    /// The plugin that is installed for the container runtime.
    #[arg(long, default_value = "/usr/libexec/underlay/underlay-cni")]
    pub cni_plugin: PathBuf,

    /// Where the container runtime looks for plugins.
    #[arg(long, default_value = "/opt/cni/bin")]
    pub cni_bin_dir: PathBuf,

    /// Where the container runtime looks for network configurations.
    #[arg(long, default_value = "/etc/cni/net.d")]
    pub cni_conf_dir: PathBuf,

    /// Who makes FRR do what FRRConfigurations say: the agent, or frr-k8s where it is installed.
    #[arg(long, value_enum, default_value_t = Speaker::Agent)]
    pub bgp_speaker: Speaker,

    /// Namespace of the states of BGP sessions.
    #[arg(long, default_value = "frr-k8s-system")]
    pub frr_namespace: String,

    /// Address for metrics, probes and `kubectl underlay`; empty for none.
    #[arg(long, default_value_t = format!("[::]:{AGENT_PORT}"))]
    pub metrics_bind_address: String,

    /// How to write the log.
    #[arg(long, value_enum, default_value_t = LogFormat::default())]
    pub log_format: LogFormat,

    /// Settings of the cluster.
    #[command(flatten)]
    pub settings: config::Flags,
}

/// Who configures FRR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Speaker {
    /// This agent.
    Agent,
    /// frr-k8s, which runs beside it.
    FrrK8s,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Args::command().debug_assert();
    }
}
