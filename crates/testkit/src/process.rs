//! Servers that a test starts: they write a log, end when dropped, and die with the test's process.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Lines of a server's log that are shown when it fails.
const LOG_LINES: usize = 15;

/// A server that ends when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts a server made by [`mortal`] with its output in a log file.
    #[track_caller]
    pub fn start(name: &str, mut command: Command, log: &Path) -> Self {
        let started = File::create(log).and_then(|file| {
            command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
            spawn(command)
        });
        match started {
            Ok(child) => Self { name: name.to_owned(), child, log: log.to_owned() },
            Err(error) => panic!("starting {name}: {error}"),
        }
    }

    /// For waiters: what it said last. A server that has ended will not do what is waited for.
    #[track_caller]
    pub fn must_live(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            panic!("{} ended with {status}; its last words:\n{}", self.name, self.last_words());
        }
    }

    /// The end of its log.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }
}

impl Server {
    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let sent = i32::try_from(self.child.id()).map(|pid| kill(Pid::from_raw(pid), signal));
        assert!(matches!(sent, Ok(Ok(()))), "{signal} for {}: {sent:?}", self.name);
    }

    /// Ends it at once, and waits until it has ended.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data goes with it, so there is nothing to shut down in good order.
        self.end();
    }
}

/// A command that the kernel kills when the thread that started it ends; [`Server::start`] uses one that lives as long
/// as our process.
pub(crate) fn mortal(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

type Request = (Command, Sender<io::Result<Child>>);

/// Starts a child from a thread that ends only with the process. A test's own thread would not do: the child would be
/// killed at the end of the test that happened to need it first.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, requests) = channel::<Request>();
        thread::spawn(move || {
            for (mut command, answer) in requests {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (sender, answer) = channel();
    let ended = || io::Error::other("the thread that starts servers has ended");
    spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, sender)).map_err(|_| ended())?;
    answer.recv().map_err(|_| ended())?
}
