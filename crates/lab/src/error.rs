//! What can go wrong with a lab, said so that the reader knows what to do.

use std::io;

use crate::file::FileError;
use crate::pki::PkiError;

/// Why a verb did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The lab file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// The request cannot be met; the text says what to do instead.
    #[error("{0}")]
    Refused(String),
    /// A part of the lab did not do its work.
    #[error("{what}{}", detail_lines(.detail))]
    Failed {
        /// Which part.
        what: String,
        /// What it printed last.
        detail: String,
    },
    /// The system refused an operation.
    #[error("{what}")]
    Io {
        /// Which operation.
        what: String,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// Certificates could not be made.
    #[error(transparent)]
    Pki(#[from] PkiError),
}

fn detail_lines(detail: &str) -> String {
    detail.lines().fold(String::new(), |text, line| text + "\n    " + line)
}

impl LabError {
    /// A refusal.
    pub fn refused(text: impl Into<String>) -> Self {
        Self::Refused(text.into())
    }

    /// A failure with the last words of whoever failed.
    pub fn failed(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), detail: detail.into() }
    }
}

/// Adds to a system error what was being done.
pub trait Doing<T> {
    /// Names the operation that failed.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, LabError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, LabError> {
        self.map_err(|source| LabError::Io { what: what(), source: source.into() })
    }
}
