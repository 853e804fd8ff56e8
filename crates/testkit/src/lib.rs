//! What tests share: real servers, namespaces and labs that are gone when the test is, and waiters that can explain
//! themselves.
//!
//! In: the artifacts that `make setup` made, and root where namespaces are needed. Out: things to test against. None of
//! it is a stand-in, none of it is skipped: what is missing fails the test with the command that helps. Whatever a test
//! starts ends with the test, and at the latest with the test's process, however that ends.

mod api_server;
mod frr;
mod lab;
mod netns;
mod output;
mod ovsdb;
mod owner;
mod process;
mod require;
mod scratch;
mod traces;
mod wait;

pub use api_server::ApiServer;
pub use frr::FrrHost;
pub use lab::{LabUnderTest, turn};
pub use netns::Netns;
pub use output::OutputExt;
pub use ovsdb::{OvsdbServer, Schema};
pub use owner::Owner;
pub use require::{require_artifacts, require_root};
pub use scratch::Scratch;
pub use traces::HostLook;
pub use wait::{TimedOut, try_wait_for, wait_for};
