//! Keeps daemons running, as systemd would: starts them again with a growing delay, and tells how they are.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use super::reaper::{Exit, Reaper};
use super::steps::{probe_once, tail};
use crate::plan::Daemon;

/// Delay before the first restart; it doubles with every failure in a row.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(10);
/// Pause between two looks whether a daemon is ready.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// A daemon that ran this long failed anew, not again.
const STEADY: Duration = Duration::from_secs(10);
/// Pause before a command that follows a start is tried again.
const FOLLOW_UP_PAUSE: Duration = Duration::from_millis(200);
/// Failed starts in a row before a lab that is coming up gives up.
const FIRST_TRIES: u32 = 3;

/// What `status` shows of one daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonStatus {
    /// Its name.
    pub name: String,
    /// Whether it runs and is ready.
    pub state: DaemonState,
    /// Its number inside the machine.
    pub pid: Option<i32>,
    /// How often it was started again.
    pub restarts: u32,
    /// Seconds since the epoch at which it took its state.
    pub since: u64,
    /// How it ended the last time.
    pub last_exit: Option<String>,
}

/// Whether a daemon works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DaemonState {
    /// Started, not ready.
    Starting,
    /// Ready.
    Up,
    /// Not running.
    Down,
}

/// What a machine writes down about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// All its steps are done.
    pub ready: bool,
    /// In starting order.
    pub daemons: Vec<DaemonStatus>,
}

/// The status, shared by the keepers of one machine and saved with every change.
#[derive(Debug, Clone)]
pub struct StatusBoard {
    status: Arc<Mutex<MachineStatus>>,
    path: PathBuf,
}

impl StatusBoard {
    /// A board saved at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { status: Arc::default(), path }
    }

    /// Changes the status and saves it.
    pub fn change(&self, change: impl FnOnce(&mut MachineStatus)) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut status);
        if let Err(error) = self.save(&status) {
            eprintln!("saving {}: {error}", self.path.display());
        }
    }

    /// A reader sees the old file or the new one, never half of it.
    fn save(&self, status: &MachineStatus) -> io::Result<()> {
        let partial = self.path.with_extension("partial");
        serde_json::to_writer(File::create(&partial)?, status)?;
        std::fs::rename(partial, &self.path)
    }

    fn daemon(&self, name: &str, change: impl FnOnce(&mut DaemonStatus)) {
        self.change(|status| {
            if let Some(daemon) = status.daemons.iter_mut().find(|daemon| daemon.name == name) {
                change(daemon);
                daemon.since =
                    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            }
        });
    }
}

/// What keeps the daemons of one machine.
#[derive(Debug, Clone)]
pub struct Keeper {
    /// Starts processes.
    pub reaper: Reaper,
    /// Where the state is told.
    pub board: StatusBoard,
    /// Directory of the logs.
    pub logs: PathBuf,
    /// Whether a daemon that dies is started again.
    pub restart: bool,
}

impl Keeper {
    /// Starts a daemon, returns when it is ready, and keeps it from then on.
    pub fn start(&self, daemon: &Daemon) -> Result<(), String> {
        self.board.change(|status| {
            status.daemons.push(DaemonStatus {
                name: daemon.name.clone(),
                state: DaemonState::Starting,
                pid: None,
                restarts: 0,
                since: 0,
                last_exit: None,
            });
        });
        let (sender, first) = channel();
        let (keeper, daemon) = (self.clone(), daemon.clone());
        thread::spawn(move || keeper.keep(&daemon, sender));
        first.recv().unwrap_or_else(|_| Err("its keeper ended".to_owned()))
    }

    /// Path of a daemon's log.
    pub fn log(&self, daemon: &str) -> PathBuf {
        self.logs.join(format!("{daemon}.log"))
    }

    fn keep(&self, daemon: &Daemon, first: Sender<Result<(), String>>) {
        let mut first = Some(first);
        let mut failures = 0;
        loop {
            let started = Instant::now();
            let end = self.run_once(daemon, &mut first);
            failures = if started.elapsed() > STEADY { 1 } else { failures + 1 };
            if let Some(sender) = first.as_ref().filter(|_| failures >= FIRST_TRIES || !self.restart) {
                let _ = sender.send(Err(format!("{end}\n{}", tail(&self.log(&daemon.name), 8))));
                first = None;
            }
            if !self.restart {
                return;
            }
            thread::sleep(LONGEST_DELAY.min(FIRST_DELAY * 2u32.saturating_pow(failures - 1)));
            self.board.daemon(&daemon.name, |status| {
                status.restarts += 1;
                status.state = DaemonState::Starting;
            });
        }
    }

    /// One life of the daemon. Returns how it ended.
    fn run_once(&self, daemon: &Daemon, first: &mut Option<Sender<Result<(), String>>>) -> String {
        let pid = match self.spawn(daemon) {
            Ok(pid) => pid,
            Err(error) => {
                let end = format!("cannot be started: {error}");
                self.board.daemon(&daemon.name, |status| ended(status, &end));
                return end;
            }
        };
        self.board.daemon(&daemon.name, |status| status.pid = Some(pid.as_raw()));
        let exit = match self.await_ready(daemon, pid) {
            Ok(()) => {
                self.board.daemon(&daemon.name, |status| status.state = DaemonState::Up);
                if let Some(sender) = first.take() {
                    let _ = sender.send(Ok(()));
                }
                self.reaper.wait(pid)
            }
            Err(NotReady::Ended(exit)) => exit,
            Err(NotReady::Waiting(why)) => {
                if let Some(sender) = first.take() {
                    let _ = sender.send(Err(format!("{why}\n{}", tail(&self.log(&daemon.name), 8))));
                }
                self.reaper.wait(pid)
            }
        };
        self.board.daemon(&daemon.name, |status| ended(status, &exit.to_string()));
        exit.to_string()
    }

    fn spawn(&self, daemon: &Daemon) -> io::Result<Pid> {
        let log = open_log(&self.log(&daemon.name))?;
        let mut command = command(&daemon.argv);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.reaper.spawn(&mut command)
    }

    fn await_ready(&self, daemon: &Daemon, pid: Pid) -> Result<(), NotReady> {
        let deadline = Instant::now() + daemon.ready.patience;
        let mut asked = Instant::now();
        while !probe_once(&daemon.ready, &self.reaper) {
            // A probe that takes long must not take the processor from the daemon it asks for.
            let pause = asked.elapsed().clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            if let Some(exit) = self.reaper.wait_for(pid, pause) {
                return Err(NotReady::Ended(exit));
            }
            if Instant::now() > deadline {
                return Err(NotReady::Waiting(format!(
                    "waited {:?} for {}",
                    daemon.ready.patience, daemon.ready.what
                )));
            }
            asked = Instant::now();
        }
        daemon.after.iter().try_for_each(|argv| self.follow_up(daemon, argv, pid, deadline))
    }

    /// Runs a command that follows a start, again until it succeeds: what it needs may be on its way back as well.
    fn follow_up(
        &self,
        daemon: &Daemon,
        argv: &[String],
        pid: Pid,
        deadline: Instant,
    ) -> Result<(), NotReady> {
        loop {
            let ended = self.run_beside(daemon, argv).map(|exit| (exit.success(), exit.to_string()));
            let why = match ended {
                Ok((true, _)) => return Ok(()),
                Ok((false, exit)) => format!("ended with {exit}"),
                Err(error) => error.to_string(),
            };
            let line = argv.join(" ");
            if let Ok(mut log) = open_log(&self.log(&daemon.name)) {
                let _ = writeln!(log, "lab: `{line}`: {why}");
            }
            if let Some(exit) = self.reaper.wait_for(pid, FOLLOW_UP_PAUSE) {
                return Err(NotReady::Ended(exit));
            }
            if Instant::now() > deadline {
                return Err(NotReady::Waiting(format!("`{line}`: {why}")));
            }
        }
    }

    /// Runs a command with the daemon's log as its own.
    fn run_beside(&self, daemon: &Daemon, argv: &[String]) -> io::Result<Exit> {
        let log = open_log(&self.log(&daemon.name))?;
        let mut command = command(argv);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(self.reaper.wait(self.reaper.spawn(&mut command)?))
    }
}

enum NotReady {
    Ended(Exit),
    Waiting(String),
}

fn ended(status: &mut DaemonStatus, exit: &str) {
    status.state = DaemonState::Down;
    status.pid = None;
    status.last_exit = Some(exit.to_owned());
}

/// Opens a log for appending.
pub fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// A command in the machine's own environment, nothing of the user's leaking in.
pub fn command(argv: &[String]) -> Command {
    let mut words = argv.iter();
    let mut command = Command::new(words.next().map_or("", String::as_str));
    command.args(words).env_clear().envs(ENVIRONMENT).current_dir("/");
    command
}

/// Environment of everything that runs in a machine.
pub const ENVIRONMENT: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
];
