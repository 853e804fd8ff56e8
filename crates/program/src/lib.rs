//! Runs the programs that edges talk through where there is no better way, like `nft` and `ovs-ofctl`.
//!
//! In: a command and its input. Out: what it printed, or what it complained of.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// A program did not do as told.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It did not start or went away.
    #[error("running {0}")]
    Run(String, #[source] std::io::Error),
    /// It refused: what it said.
    #[error("{0}: {1}")]
    Refused(String, String),
}

/// Runs a command, of which the first word is the program, and returns what it printed. It is killed when nobody waits
/// for it any more.
pub async fn run(command: &[&str], input: &str) -> Result<String, ProgramError> {
    let (program, arguments) = command.split_first().unwrap_or((&"", &[]));
    let failed = |error| ProgramError::Run((*program).to_owned(), error);
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that stops reading says why at its end, which tells more than a broken pipe.
        let _ = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await.map_err(failed)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ProgramError::Refused((*program).to_owned(), complaint))
}
