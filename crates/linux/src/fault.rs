//! What can go wrong between us and the kernel.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The kernel was not reached, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is no runtime that could serve a connection.
    #[error("a netlink connection needs a tokio runtime")]
    NoRuntime,
    /// The namespace is not there, or may not be entered.
    #[error("entering network namespace {path}")]
    Namespace {
        /// Where it should be.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No socket.
    #[error("opening a netlink socket")]
    Socket(#[source] io::Error),
    /// Something could not be read.
    #[error("reading {what}")]
    Read {
        /// What.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Some changes failed; all others were made.
    #[error("{}", failures(.0))]
    Changes(Vec<Failure>),
}

impl Fault {
    pub(crate) fn read(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read { what: what.into(), source }
    }

    pub(crate) fn change(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Changes(vec![Failure { what: what.into(), error }])
    }
}

/// A change that the kernel refused.
#[derive(Debug)]
pub struct Failure {
    /// What was to be done.
    pub what: String,
    /// What the kernel said.
    pub error: io::Error,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.what, self.error)
    }
}

fn failures(all: &[Failure]) -> String {
    all.iter().map(Failure::to_string).collect::<Vec<_>>().join("; ")
}
