//! The FRR edge: makes FRR on a node do what it should, and tells how its sessions fare.
//!
//! In: a [`underlay_desired::frr::Config`] and the sockets of FRR's daemons. Out: the lines that differ, and the sessions
//! as they are. Ours are all BGP routers, BFD profiles, and lists and route maps whose names begin with our prefix;
//! everything else in FRR's configuration is left alone.
//!
//! Daemons are talked to over their own sockets instead of by `vtysh`: that takes milliseconds, starts no process, shows
//! no password to `ps`, and each line gets its own answer.

pub mod apply;
mod blame;
mod converse;
pub mod diff;
mod file;
pub mod implied;
mod leave;
mod ledger;
mod observe;
pub mod peers;
pub mod render;
pub mod state;
pub mod tree;
pub mod vty;
mod watch;

pub use apply::{Frr, Report, SyncError};
pub use state::{Session, SessionReader};
pub use watch::Patience;
