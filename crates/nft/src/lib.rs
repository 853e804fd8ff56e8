//! The packet filter edge: one nftables table, made what it should be by difference.
//!
//! In: the chains that should be ([`underlay_desired::nft::Ruleset`]). Out: one `nft -f -` transaction, or none. The
//! table is ours by its name, and all in it. A rule is recognised by its comment, which is a hash of its text: nft prints
//! a rule in other words than it was written in, but keeps the comment.

pub mod diff;
pub mod observe;

use underlay_desired::nft::Ruleset;
use underlay_desired::owner::NFT_TABLE;
use underlay_program::ProgramError;

/// The packet filter could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The program did not start, or refused.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// It said something that cannot be understood.
    #[error("what nft says")]
    Unreadable(#[source] serde_json::Error),
}

/// How `nft` is called.
#[derive(Debug, Clone)]
pub struct Nft {
    /// The command with its first arguments; more than one word to run it elsewhere.
    pub command: Vec<String>,
}

impl Default for Nft {
    fn default() -> Self {
        Self { command: vec!["nft".to_owned()] }
    }
}

impl Nft {
    /// Makes the table what it should be. Returns how many chains changed.
    pub async fn sync(&self, want: &Ruleset) -> Result<usize, NftError> {
        let have = self.observe().await?;
        let difference = diff::difference(want, &have);
        if difference.changes > 0 {
            self.run(&["-f", "-"], &difference.script).await?;
        }
        Ok(difference.changes)
    }

    /// Reads the table.
    pub async fn observe(&self) -> Result<observe::Observed, NftError> {
        match self.run(&["-j", "list", "table", "inet", NFT_TABLE], "").await {
            Ok(text) => observe::parse(&text).map_err(NftError::Unreadable),
            Err(ProgramError::Refused(_, text)) if text.contains("No such file or directory") => {
                Ok(observe::Observed::default())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn run(&self, arguments: &[&str], input: &str) -> Result<String, ProgramError> {
        let words: Vec<&str> =
            self.command.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
        underlay_program::run(&words, input).await
    }
}
