//! A conversation with one daemon of FRR over its own socket.
//!
//! A line goes out, ended by a zero byte; an answer comes back, ended by three zero bytes and how it went.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long a daemon may think about one line. A daemon that takes so long is not well.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer that is taken. A full table of the Internet's routes is not asked for.
const LONGEST: usize = 256 << 20;
/// Bytes after an answer.
const END: usize = 4;

/// A daemon could not be talked with.
#[derive(Debug, thiserror::Error)]
pub enum VtyError {
    /// It is not there, or went away.
    #[error("the daemon is not there")]
    Gone(#[from] io::Error),
    /// It says nothing.
    #[error("the daemon does not answer")]
    Silent,
    /// It says too much.
    #[error("the daemon's answer has no end")]
    Endless,
    /// A line cannot be sent.
    #[error("a line with a zero byte or a line break cannot be sent")]
    BadLine,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it said.
    pub text: String,
    /// How it went; FRR's own number.
    pub status: u8,
}

impl Answer {
    /// Whether the line was taken.
    pub fn taken(&self) -> bool {
        self.status == 0
    }

    /// Whether the daemon does not know the line: no match, ambiguous or incomplete, where it is.
    pub fn unknown(&self) -> bool {
        (2..=4).contains(&self.status)
    }
}

/// A connection to a daemon, in the mode in which everything may be asked and configured.
#[derive(Debug)]
pub struct Vty {
    stream: UnixStream,
}

impl Vty {
    /// Connects.
    pub async fn connect(socket: &Path) -> Result<Self, VtyError> {
        let stream = timeout(PATIENCE, UnixStream::connect(socket)).await.map_err(|_| VtyError::Silent)??;
        let mut this = Self { stream };
        this.ask("enable").await?;
        Ok(this)
    }

    /// Says a line and returns the answer. After an error the conversation is of no use any more.
    pub async fn ask(&mut self, line: &str) -> Result<Answer, VtyError> {
        if line.contains(['\0', '\n', '\r']) {
            return Err(VtyError::BadLine);
        }
        timeout(PATIENCE, self.exchange(line)).await.map_err(|_| VtyError::Silent)?
    }

    async fn exchange(&mut self, line: &str) -> Result<Answer, VtyError> {
        let mut request = Vec::with_capacity(line.len() + 1);
        request.extend_from_slice(line.as_bytes());
        request.push(0);
        self.stream.write_all(&request).await?;
        let mut answer = Vec::with_capacity(4096);
        loop {
            if self.stream.read_buf(&mut answer).await? == 0 {
                return Err(VtyError::Gone(io::ErrorKind::UnexpectedEof.into()));
            }
            if let Some(answer) = complete(&answer) {
                return Ok(answer);
            }
            if answer.len() > LONGEST {
                return Err(VtyError::Endless);
            }
        }
    }
}

/// The answer, once all of it is there.
fn complete(bytes: &[u8]) -> Option<Answer> {
    let (text, end) = bytes.split_at_checked(bytes.len().checked_sub(END)?)?;
    match end {
        [0, 0, 0, status] => {
            Some(Answer { text: String::from_utf8_lossy(text).into_owned(), status: *status })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_status() {
        for cut in 0..7 {
            assert_eq!(complete(&b"abc\0\0\0\x00"[..cut]), None, "{cut}");
        }
        assert_eq!(complete(b"abc\0\0\0\x0d"), Some(Answer { text: "abc".to_owned(), status: 13 }));
        assert_eq!(complete(b"\0\0\0\0"), Some(Answer { text: String::new(), status: 0 }));
        assert_eq!(complete(b"\0\0\0"), None);
    }
}
