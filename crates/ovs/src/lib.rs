//! The Open vSwitch edge: ports and flows of ours among those of others.
//!
//! In: what should be ([`underlay_desired::switch::Switch`], [`underlay_desired::flow::Flows`]) and the pods that come and
//! go. Out: transactions on the switch's database, and bundles of flows. Ports are ours by a mark in their interface's
//! `external_ids`, those of pods by the `sandbox` there, flows by the high half of their cookie.

pub mod announce;
pub mod database;
pub mod flows;
pub mod pods;

pub use database::{selection, sync};

use underlay_ovsdb::{Replica, TransactError};

/// The switch's database was never reached, refused the change, or went away meanwhile.
#[derive(Debug, thiserror::Error)]
#[error("the switch's database did not take the change")]
pub struct SwitchError(#[from] TransactError);

/// The number by which flows know an interface, once the switch has given it one.
pub fn ofport(switch: &Replica, interface: &str) -> Option<u32> {
    let row = switch.table("Interface")?.find("name", interface).next()?;
    let number: Option<i64> = row.read("ofport").ok()?;
    number.and_then(|number| u32::try_from(number).ok())
}
