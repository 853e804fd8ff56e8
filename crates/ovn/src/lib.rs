//! The OVN edge: observes a database of OVN, compares it with the plan and applies the difference.
//!
//! In: the rows that should be ([`underlay_desired::ovn::Rows`]) and a replica of the database. Out: one transaction.
//! A row is ours by the mark in its `external_ids`; a row without it is never changed or removed, and of a set that
//! others use too only our own members come and go.

pub mod diff;
pub mod imports;
mod observe;
pub mod sync;
mod value;

pub use diff::{Difference, difference};
pub use observe::{northbound, southbound};
pub use sync::{SyncError, sync};
