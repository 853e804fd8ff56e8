//! From the world to what should be: pure, one file a feature.
//!
//! In: a [`underlay_world::World`] and the cluster's settings; for a node also what it sees of itself. Out: everything
//! that should be, in the vocabulary of [`underlay_desired`], each item with its reason. The same input gives the same
//! output, whatever the order in which it was learned.

pub mod cluster;
pub mod node;
