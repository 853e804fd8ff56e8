//! A cluster of namespaces on one machine: real Kubernetes, OVN, Open vSwitch and FRR.
//!
//! ```text
//! lab file --file--> Topology --plan--> LabPlan --run--> processes in namespaces
//! ```
//!
//! `file`, `topology` and `plan` are pure. `run` holds the deeds: one process is the first of a PID namespace that
//! holds the whole lab, and every machine is a PID, mount and network namespace below it. Killing that one process
//! makes the kernel take everything else down, mounts and networks included; that is what `down` relies on.

pub mod artifacts;
pub mod error;
pub mod file;
pub mod pki;
pub mod plan;
pub mod run;
pub mod state;
pub mod topology;

pub use error::LabError;
pub use state::Lab;
