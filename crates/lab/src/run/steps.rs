//! Carries out a machine's steps, and looks whether something is there.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::events::{Event, EventLog};
use super::keeper::{Keeper, command, open_log};
use super::reaper::Reaper;
use crate::plan::{Probe, ProbeHow, Step};

/// What carries out steps in one machine.
#[derive(Debug, Clone)]
pub struct Runner {
    /// Name of the machine.
    pub machine: String,
    /// Starts and keeps its daemons.
    pub keeper: Keeper,
    /// Where progress is told.
    pub events: EventLog,
}

impl Runner {
    /// Carries out steps in order; stops at the first that fails.
    pub fn carry_out(&self, steps: &[Step]) -> Result<(), String> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&self, step: &Step) -> Result<(), String> {
        match step {
            Step::Write { path, mode, content } => write_file(Path::new(path), *mode, content)
                .map_err(|error| format!("writing {path}: {error}")),
            Step::Run(argv) => self.run(argv, None),
            Step::Feed { argv, input } => self.run(argv, Some(input)),
            Step::Start(daemon) => {
                self.keeper.start(daemon).map_err(|error| format!("{}: {error}", daemon.name))?;
                self.events.write(&Event::Up { machine: self.machine.clone(), daemon: daemon.name.clone() });
                Ok(())
            }
            Step::Wait(probe) => self.wait(probe),
            Step::Together(chains) => thread::scope(|scope| {
                let running: Vec<_> =
                    chains.iter().map(|chain| scope.spawn(move || self.carry_out(chain))).collect();
                running.into_iter().try_for_each(|thread| {
                    thread.join().unwrap_or_else(|_| Err("a thread of the machine ended".to_owned()))
                })
            }),
        }
    }

    fn run(&self, argv: &[String], input: Option<&str>) -> Result<(), String> {
        let log = self.keeper.log("steps");
        let line = argv.join(" ");
        let start = || -> io::Result<_> {
            let mut output = open_log(&log)?;
            writeln!(output, "+ {line}")?;
            let mut command = command(argv);
            command.stdout(output.try_clone()?).stderr(output);
            // A file, not a pipe: the command may be slower to read than we are to write.
            command.stdin(match input {
                None => Stdio::null(),
                Some(text) => input_file(text)?.into(),
            });
            self.keeper.reaper.spawn(&mut command)
        };
        let pid = start().map_err(|error| format!("`{line}`: {error}"))?;
        let exit = self.keeper.reaper.wait(pid);
        if exit.success() { Ok(()) } else { Err(format!("`{line}` ended with {exit}\n{}", tail(&log, 8))) }
    }

    fn wait(&self, probe: &Probe) -> Result<(), String> {
        let deadline = Instant::now() + probe.patience;
        while !probe_once(probe, &self.keeper.reaper) {
            if Instant::now() > deadline {
                return Err(format!("waited {:?} for {}", probe.patience, probe.what));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn input_file(text: &str) -> io::Result<fs::File> {
    let mut file = tempfile::tempfile_in("/tmp")?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn write_file(path: &Path, mode: u32, content: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    // A file of the image may be a link to somewhere else, and may have other permissions.
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().create(true).truncate(true).write(true).mode(mode).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(content.as_bytes())
}

/// Looks once.
pub fn probe_once(probe: &Probe, reaper: &Reaper) -> bool {
    match &probe.how {
        ProbeHow::Socket(path) => UnixStream::connect(path).is_ok(),
        ProbeHow::Tcp(address) => address.to_socket_addrs().is_ok_and(|mut addresses| {
            addresses.any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok())
        }),
        ProbeHow::Command(argv) => {
            let mut command = command(argv);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            reaper.spawn(&mut command).is_ok_and(|pid| reaper.wait(pid).success())
        }
    }
}

/// Bytes read from the end of a log: enough for any few lines, and no more however long the lab is up.
const TAIL_BYTES: u64 = 64 << 10;

/// The last lines of a text file.
pub fn tail(path: &Path, lines: usize) -> String {
    let read_end = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut text = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut text)?;
        Ok(text)
    };
    let text = read_end().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
