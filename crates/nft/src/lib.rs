//! The packet filter edge: one nftables table, made what it should be by difference.
//!
//! In: the chains that should be ([`underlay_desired::nft::Ruleset`]). Out: one `nft -f -` transaction, or none. The
//! table is ours by its name, and all in it. A rule is recognised by its comment, which is a hash of its text: nft prints
//! a rule in other words than it was written in, but keeps the comment.

pub mod diff;
pub mod observe;

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use underlay_desired::nft::Ruleset;
use underlay_desired::owner::NFT_TABLE;

/// The packet filter could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NftError {
    /// The program did not start or went away.
    #[error("running nft")]
    Run(#[source] std::io::Error),
    /// It refused.
    #[error("nft: {0}")]
    Refused(String),
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
            Err(NftError::Refused(text)) if text.contains("No such file or directory") => {
                Ok(observe::Observed::default())
            }
            Err(error) => Err(error),
        }
    }

    async fn run(&self, arguments: &[&str], input: &str) -> Result<String, NftError> {
        let mut words = self.command.iter();
        let mut child = Command::new(words.next().map_or("nft", String::as_str))
            .args(words)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(NftError::Run)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that stops reading says why at its end, which tells more than a broken pipe.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(NftError::Run)?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(NftError::Refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
