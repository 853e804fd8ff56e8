//! What every daemon shares: feeds, turns, edges, lease, admin.
//!
//! In: the Kubernetes API, flags and a configuration file. Out: a world that follows the API, turns in which a daemon
//! plans, loops that make the plan so, and what people look at from outside. Nothing here decides what should be.

pub mod admin;
pub mod client;
pub mod config;
pub mod edge;
pub mod elsewhere;
pub mod events;
pub mod fault;
pub mod feed;
pub mod fence;
pub mod lease;
pub mod logging;
pub mod objects;
pub mod pace;
pub mod report;
pub mod turn;
