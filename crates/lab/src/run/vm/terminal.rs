//! The user's terminal: what a command in the virtual machine must know of it, and how keys pass it unchanged.

use std::io::{self, IsTerminal};
use std::process::{Command, Stdio};

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use super::frame::Terminal;

/// The terminal we are run from, if both input and output are one.
pub fn ours() -> Option<Terminal> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return None;
    }
    let size = Command::new("stty").arg("size").stdin(Stdio::inherit()).output().ok()?;
    let size = String::from_utf8_lossy(&size.stdout).trim().to_owned();
    Some(Terminal { kind: std::env::var("TERM").unwrap_or_else(|_| "dumb".to_owned()), size })
}

/// The user's terminal passes every key on as it is, until this is dropped.
#[derive(Debug)]
pub struct Raw {
    before: Termios,
}

impl Raw {
    /// Makes the terminal transparent. If it cannot be, keys arrive a line at a time.
    pub fn enter() -> Option<Self> {
        let before = tcgetattr(io::stdin()).ok()?;
        let mut raw = before.clone();
        cfmakeraw(&mut raw);
        tcsetattr(io::stdin(), SetArg::TCSANOW, &raw).ok()?;
        Some(Self { before })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.before);
    }
}
