//! The CNI plugin and the words it speaks: with the container runtime, and with the node's agent.
//!
//! The plugin decides nothing. It takes what the runtime says (environment and standard input), hands it to the agent
//! through a socket, and says the agent's answer. The agent may be restarting: the plugin keeps asking until its
//! deadline, so that a pod starts a little later instead of failing.

pub mod exchange;
pub mod plugin;
pub mod result;
pub mod verb;

/// Where the agent listens.
pub const SOCKET: &str = "/var/run/ovn-kubernetes/cni/ovn-cni-server.sock";
/// Name of the plugin in network configurations.
pub const PLUGIN: &str = "ovn-k8s-cni-overlay";
/// The newest version of the CNI specification that we speak.
pub const VERSION: &str = "1.1.0";
/// All versions that we speak.
pub const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
