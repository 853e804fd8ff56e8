//! The vocabulary of "what should be", shared by the plan, which says it, and the edges, which make it so.
//!
//! Plain values: no IO, no clock, ordered collections only, so that two equal plans are equal byte for byte. Every item
//! says why it is there, and every kind of item has a mark by which its edge knows its own from everybody else's.

pub mod flow;
pub mod frr;
pub mod linux;
pub mod nft;
pub mod ovn;
pub mod owner;
pub mod switch;
pub mod why;

pub use why::{ObjectRef, Why};
