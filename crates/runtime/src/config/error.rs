//! What is told of settings that cannot be used: where they were said, what is wrong, and what to write.

use std::fmt;
use std::path::PathBuf;

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("--config-file {}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// A value is wrong.
    #[error("{place}: {value:?}: {problem}")]
    Value {
        /// Where it was said.
        place: Place,
        /// What was said.
        value: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// A value is missing that others call for.
    #[error("{key} is required when {why}: write {section} {key} = {write}, or --{flag}")]
    Missing {
        /// What is missing.
        key: &'static str,
        /// Where it belongs.
        section: &'static str,
        /// The flag for it.
        flag: &'static str,
        /// Who calls for it.
        why: &'static str,
        /// What to write.
        write: &'static str,
    },
    /// Two places say different things.
    #[error("{one} and {other} are two spellings of one setting and say different things: keep one of them")]
    Contradiction {
        /// One of them.
        one: Place,
        /// The other.
        other: Place,
    },
    /// Two ranges share addresses.
    #[error("{one} and {other} overlap: give each its own addresses")]
    Overlap {
        /// One of them, with its name.
        one: String,
        /// The other.
        other: String,
    },
}

/// Where a value was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the command line.
    Flag(&'static str),
    /// In the file.
    File {
        /// The file.
        path: PathBuf,
        /// The section.
        section: &'static str,
        /// The key.
        key: &'static str,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(key) => write!(formatter, "--{key}"),
            Self::File { path, section, key } => write!(formatter, "{} [{section}] {key}", path.display()),
        }
    }
}
