//! The kernel edge: addresses, routes, rules and neighbours by netlink.
//!
//! In: what should be ([`underlay_desired::linux::Host`]). Out: the kernel has it. What is there is [observed](observe),
//! [compared](diff()) and the difference [applied](Kernel::apply). Routes, rules, neighbours and addresses are ours by
//! their protocol number; nothing else is ever changed or removed. Settings and the state of links are set, never set
//! back.
//!
//! Besides: [`Kernel::watch`] tells when it is time to look again, [`Kernel::bgp_routes`] reads what BGP brought, and
//! [`veth`] gives a pod its interface, best by other [`Hands`].

mod apply;
pub mod diff;
mod fault;
mod hands;
mod kernel;
mod message;
pub mod observe;
mod socket;
pub mod sysctl;
pub mod veth;
pub mod watch;

pub use apply::Report;
pub use diff::{Op, diff, missing_links};
pub use fault::{Failure, Fault};
pub use hands::Hands;
pub use kernel::Kernel;
pub use observe::{BgpChange, BgpRoute, BgpTable, NextHop, Observed, Surroundings};
pub use veth::{PodInterface, PodState, Veth};
pub use watch::Event;
