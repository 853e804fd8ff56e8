//! Words of the trade: MAC addresses, prefixes, names, hashes and allocators.
//!
//! Pure: no IO, no clock, no randomness. What other programs read (names, derived addresses) is made here and nowhere
//! else, so that every part of the system agrees on it.

pub mod alloc;
pub mod cidr;
pub mod hash;
pub mod mac;
pub mod names;

pub use cidr::Family;
pub use mac::Mac;
pub use names::NetworkNames;
