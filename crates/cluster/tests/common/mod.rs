//! What the tests of the whole program share: the program, kubectl, and the objects of a cluster with tenants.

pub mod daemon;
pub mod objects;
