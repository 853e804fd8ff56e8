//! Children of a first process: ours, and the orphans that the kernel hands to it.
//!
//! Only one thread calls `wait`; it tells whoever waits for one of our own children, and drops the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// Whether it reported success.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {signal}"),
            },
        }
    }
}

type Children = BTreeMap<i32, Option<Exit>>;

/// Spawns children and waits for them.
#[derive(Debug, Clone, Default)]
pub struct Reaper {
    shared: Arc<(Mutex<Children>, Condvar)>,
}

impl Reaper {
    /// Starts the thread that reaps. Call once in a process.
    pub fn start() -> Self {
        let reaper = Self::default();
        let worker = reaper.clone();
        thread::spawn(move || worker.reap_forever());
        reaper
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reap_forever(&self) {
        loop {
            let (pid, exit) = match wait() {
                Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal as i32)),
                Ok(_) => continue,
                // No child at all: one may come by `spawn` or, unannounced, as an orphan.
                Err(_) => {
                    let children = self.children();
                    drop(self.shared.1.wait_timeout(children, Duration::from_millis(200)));
                    continue;
                }
            };
            if let Some(slot) = self.children().get_mut(&pid.as_raw()) {
                *slot = Some(exit);
            }
            self.shared.1.notify_all();
        }
    }

    /// Starts a child. The lock is held meanwhile, so that a child that ends at once is not taken for an orphan.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Pid> {
        let mut children = self.children();
        let child = command.spawn()?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        children.insert(pid, None);
        drop(children);
        self.shared.1.notify_all();
        Ok(Pid::from_raw(pid))
    }

    /// Waits for a child's end.
    pub fn wait(&self, pid: Pid) -> Exit {
        loop {
            if let Some(exit) = self.wait_for(pid, Duration::from_hours(1)) {
                return exit;
            }
        }
    }

    /// Waits for a child's end, but not longer than this.
    pub fn wait_for(&self, pid: Pid, patience: Duration) -> Option<Exit> {
        let deadline = Instant::now() + patience;
        let mut children = self.children();
        loop {
            if let Some(Some(exit)) = children.get(&pid.as_raw()).copied() {
                children.remove(&pid.as_raw());
                return Some(exit);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            children = self.shared.1.wait_timeout(children, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
