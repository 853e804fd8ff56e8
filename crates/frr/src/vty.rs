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
        let mut answers = self.ask_all([line]).await?;
        answers.pop().ok_or(VtyError::Silent)
    }

    /// Says several lines at once and returns the answers: daemons read on while they answer. A line is taken also when
    /// the one before it is not.
    pub async fn ask_all<'a>(
        &mut self,
        lines: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<Answer>, VtyError> {
        let (mut request, mut count) = (Vec::new(), 0);
        for line in lines {
            if line.contains(['\0', '\n', '\r']) {
                return Err(VtyError::BadLine);
            }
            request.extend_from_slice(line.as_bytes());
            request.push(0);
            count += 1;
        }
        timeout(PATIENCE, self.exchange(&request, count)).await.map_err(|_| VtyError::Silent)?
    }

    async fn exchange(&mut self, request: &[u8], count: usize) -> Result<Vec<Answer>, VtyError> {
        self.stream.write_all(request).await?;
        let (mut heard, mut answers) = (Vec::with_capacity(4096), Vec::new());
        while answers.len() < count {
            // What came before is known to hold no end.
            let from = heard.len();
            if self.stream.read_buf(&mut heard).await? == 0 {
                return Err(VtyError::Gone(io::ErrorKind::UnexpectedEof.into()));
            }
            let mut from = from.saturating_sub(END);
            while let Some((answer, rest)) = first(&heard, from) {
                answers.push(answer);
                heard.drain(..rest);
                from = 0;
            }
            if heard.len() > LONGEST {
                return Err(VtyError::Endless);
            }
        }
        Ok(answers)
    }
}

/// The first answer, once all of it is there, and where the next one begins. It does not end before `from`.
fn first(bytes: &[u8], from: usize) -> Option<(Answer, usize)> {
    let end = from + bytes.get(from..)?.windows(END).position(|end| end.starts_with(&[0; END - 1]))?;
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = bytes.get(end + END - 1).copied()?;
    Some((Answer { text, status }, end + END))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_status() {
        for cut in 0..7 {
            assert_eq!(first(&b"abc\0\0\0\x00"[..cut], 0), None, "{cut}");
        }
        let answer = |text: &str, status| Answer { text: text.to_owned(), status };
        assert_eq!(first(b"abc\0\0\0\x0d", 0), Some((answer("abc", 13), 7)));
        assert_eq!(first(b"\0\0\0\0", 0), Some((answer("", 0), 4)));
        assert_eq!(first(b"\0\0\0", 0), None);
    }

    #[test]
    fn answers_follow_each_other() {
        let all = b"one\0\0\0\0\0\0\0\x02two\0\0\0\0";
        let (mut at, mut texts) = (0, Vec::new());
        while let Some((answer, next)) = first(&all[at..], 0) {
            texts.push((answer.text, answer.status));
            at += next;
        }
        assert_eq!(texts, [("one".to_owned(), 0), (String::new(), 2), ("two".to_owned(), 0)]);
    }
}
