//! Makes FRR do what it should: compares, tells it the difference, takes everything back when it refuses, and writes down
//! what it runs with, so that a daemon that ended in any way comes back with the same.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use tokio::io::AsyncWriteExt;
use tokio::process::Command as Process;
use underlay_desired::ObjectRef;
use underlay_desired::frr::Config;

use crate::blame::Texts;
use crate::converse::{CommandError, Conversations};
use crate::diff::{Command, Daemon, Running, difference, surplus};
use crate::file;
use crate::implied::Profile;
use crate::ledger::Ledger;
use crate::observe::running;
use crate::render::{Rendered, render};
use crate::state::{SessionReader, StateError};
use crate::tree::{Block, parse, redact};
use crate::vty::VtyError;
use crate::watch::{Patience, watches};

/// FRR on a node.
#[derive(Debug, Clone)]
pub struct Frr {
    /// Directory of the daemons' sockets.
    pub sockets: PathBuf,
    /// How to call `vtysh`: the program, after whatever leads to where FRR runs.
    pub vtysh: Vec<String>,
    /// The file that daemons read at their start.
    pub file: PathBuf,
}

impl Default for Frr {
    fn default() -> Self {
        Self {
            sockets: PathBuf::from("/run/frr"),
            vtysh: vec!["vtysh".to_owned()],
            file: PathBuf::from("/etc/frr/frr.conf"),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// Lines that FRR was told.
    pub commands: usize,
    /// Whether FRR's file was written.
    pub written: bool,
    /// Neighbours that BFD is to watch and whose sessions do not stand: it is worth coming back when one does.
    pub waiting: usize,
}

/// FRR does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// A daemon cannot be talked with.
    #[error("{} cannot be talked with", .0.name())]
    Unreachable(Daemon, #[source] VtyError),
    /// FRR does not take the text of a user. All is as it was before.
    #[error("{object}: FRR refuses its text: {reason}")]
    Text {
        /// Where the text is written.
        object: ObjectRef,
        /// What FRR says.
        reason: String,
    },
    /// FRR refused a line. All is as it was before.
    #[error("{0}; all is as it was before")]
    Refused(#[source] CommandError),
    /// FRR refused a line, and then another one on the way back.
    #[error("{refused}; on the way back: {stuck}")]
    Stuck {
        /// The first.
        refused: Box<Self>,
        /// The second.
        #[source]
        stuck: Box<Self>,
    },
    /// It is not known how sessions fare.
    #[error(transparent)]
    State(#[from] StateError),
    /// FRR took lines that it does not run with.
    #[error("FRR took but does not run with: {}", .0.join("; "))]
    NotKept(Vec<String>),
    /// A program or a file failed.
    #[error("{0}")]
    Io(&'static str, #[source] io::Error),
}

impl SyncError {
    /// The object whose text is to blame and why, if one is. Without it there is nothing in the way of the rest, also when
    /// the way back was not clear.
    pub fn blamed(self) -> Result<(ObjectRef, String), Self> {
        match self {
            Self::Text { object, reason } => Ok((object, reason)),
            Self::Stuck { refused, stuck } => match *refused {
                Self::Text { object, reason } => Ok((object, reason)),
                refused => Err(Self::Stuck { refused: Box::new(refused), stuck }),
            },
            other => Err(other),
        }
    }
}

/// Something that failed, for those who read the error.
fn failed(what: &'static str) -> impl FnOnce(io::Error) -> SyncError {
    move |error| SyncError::Io(what, error)
}

impl Frr {
    /// Makes FRR do this. When nothing differs, nothing is told and nothing is written.
    pub async fn sync(&self, config: &Config, patience: &mut Patience) -> Result<Report, SyncError> {
        let (mut rendered, texts) = (render(config), Texts::of(config));
        let before = self.running().await?;
        let waiting = self.hold_bfd_back(&mut rendered.ours, &before, patience).await?;
        let ledger = Ledger::read(&self.ledger()).map_err(failed("reading what texts brought"))?;
        let want = wanted(&rendered, &ledger, &before);
        let commands = difference(&want, &before, &ledger.lent());
        let after = if commands.is_empty() {
            before
        } else {
            self.change(&rendered, &texts, &ledger, &before, &commands).await?
        };
        let written = self.write_down(&after)?;
        Ok(Report { commands: commands.len(), written, waiting })
    }

    /// Leaves out BFD where it would only be in the way.
    async fn hold_bfd_back(
        &self,
        want: &mut Block,
        running: &Running,
        patience: &mut Patience,
    ) -> Result<usize, SyncError> {
        let sessions =
            if watches(want) { SessionReader::new(&self.sockets).read().await? } else { Vec::new() };
        Ok(patience.hold_back(want, running.get(&Daemon::Bgpd), &sessions, Instant::now()))
    }

    /// Applies a difference, or takes it back. Returns what FRR runs with afterwards.
    async fn change(
        &self,
        rendered: &Rendered,
        texts: &Texts<'_>,
        ledger: &Ledger,
        before: &Running,
        commands: &[Command],
    ) -> Result<Running, SyncError> {
        for text in texts.news(ledger) {
            self.check(text.object, &text.block).await?;
        }
        let expecting = ledger.expecting(&rendered.raw);
        if expecting != *ledger {
            expecting.write(&self.ledger()).map_err(failed("writing down what texts brought"))?;
        }
        tracing::info!(?commands, "changing FRR");
        if let Err(error) = Conversations::new(&self.sockets).tell(commands).await {
            return Err(self.take_back(error, texts, ledger, &expecting, before).await);
        }
        let after = self.running().await?;
        let settled =
            settle(rendered, ledger, before, &after).map_err(|error| match texts.newest(ledger) {
                // What is left of it goes when the rest is applied without it.
                Some(object) => SyncError::Text { object: object.clone(), reason: error.to_string() },
                None => error,
            })?;
        if settled != expecting {
            settled.write(&self.ledger()).map_err(failed("writing down what texts brought"))?;
        }
        Ok(after)
    }

    /// Brings back what was before a change that FRR refused.
    async fn take_back(
        &self,
        error: CommandError,
        texts: &Texts<'_>,
        ledger: &Ledger,
        expecting: &Ledger,
        before: &Running,
    ) -> SyncError {
        let refused = match error {
            CommandError::Unreachable(daemon, error) => SyncError::Unreachable(daemon, error),
            CommandError::Refused { command, reason } => match texts.author(&command, ledger) {
                Some(object) => {
                    let reason = CommandError::Refused { command, reason }.to_string();
                    SyncError::Text { object: object.clone(), reason }
                }
                None => SyncError::Refused(CommandError::Refused { command, reason }),
            },
        };
        match self.bring_back(ledger, expecting, before).await {
            Ok(()) => refused,
            Err(stuck) => SyncError::Stuck { refused: Box::new(refused), stuck: Box::new(stuck) },
        }
    }

    async fn bring_back(
        &self,
        ledger: &Ledger,
        expecting: &Ledger,
        before: &Running,
    ) -> Result<(), SyncError> {
        let mut want = Block::default();
        for block in before.values() {
            want.unite(block);
        }
        let commands = difference(&want, &self.running().await?, &expecting.lent());
        Conversations::new(&self.sockets).tell(&commands).await.map_err(SyncError::Refused)?;
        ledger.write(&self.ledger()).map_err(failed("writing down what texts brought"))
    }

    /// What the daemons run with.
    pub async fn running(&self) -> Result<Running, SyncError> {
        running(&self.sockets).await.map_err(|(daemon, error)| SyncError::Unreachable(daemon, error))
    }

    /// All that FRR runs with, as one text. It may hold passwords.
    pub async fn running_config(&self) -> Result<String, SyncError> {
        Ok(together(&self.running().await?).text())
    }

    /// Lets FRR read a text without doing anything.
    async fn check(&self, object: &ObjectRef, text: &Block) -> Result<(), SyncError> {
        let output = self.vtysh(&["-C", "-f", "/dev/stdin"], &text.text()).await?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = said.lines().next().map(redact).unwrap_or_default();
        Err(SyncError::Text { object: object.clone(), reason })
    }

    async fn vtysh(&self, arguments: &[&str], input: &str) -> Result<std::process::Output, SyncError> {
        let doing = "running vtysh";
        let (program, leading) = self.vtysh.split_first().ok_or_else(|| {
            failed(doing)(io::Error::new(io::ErrorKind::InvalidInput, "no program is given"))
        })?;
        let mut command = Process::new(program);
        command.args(leading).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed(doing))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input says why itself.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await.map_err(failed(doing))
    }

    /// Writes FRR's file after a change, and when an earlier change did not get that far.
    fn write_down(&self, running: &Running) -> Result<bool, SyncError> {
        let old = file::read(&self.file).map_err(failed("reading FRR's file"))?;
        if same(&parse(old.as_deref().unwrap_or_default()), running) {
            return Ok(false);
        }
        let text = for_file(&together(running).text());
        file::replace(&self.file, &text, 0o640).map_err(failed("writing FRR's file"))?;
        Ok(true)
    }

    /// Where it is written down what texts brought.
    fn ledger(&self) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("/")).join("underlay-raw.json")
    }
}

/// Whether a file has the routers, filters and profiles that FRR runs with.
fn same(file: &Block, running: &Running) -> bool {
    let mut want = Block::default();
    for daemon in [Daemon::Bgpd, Daemon::Bfdd] {
        want.unite(running.get(&daemon).unwrap_or(&Block::default()));
    }
    let as_running = Running::from([(Daemon::Bgpd, file.clone()), (Daemon::Bfdd, file.clone())]);
    surplus(&want, &as_running).is_empty() && surplus(file, running).is_empty()
}

/// What all daemons run with. What they say before that is no line of it, and of what each says of itself bgpd's word
/// counts: it is the first.
fn together(running: &Running) -> Block {
    let about_itself = |line: &str| line.starts_with("frr ") || line.starts_with("hostname ");
    let mut all = Block::default();
    for block in running.values() {
        let mut block = block.clone();
        let first = all.is_empty();
        block.retain(|entry| {
            let line = entry.line.as_str();
            let said_before = ["Building configuration...", "Current configuration:"].contains(&line);
            !said_before && (first || !about_itself(line))
        });
        all.unite(&block);
    }
    all
}

/// A configuration as every daemon can read it. Daemons read the whole file, also what is for others: one that does not
/// know a context would take the `exit` at its end for its own, and stop reading.
fn for_file(text: &str) -> String {
    let kept = text.lines().filter(|line| !["exit", "end"].contains(&line.trim()));
    kept.flat_map(|line| [line, "\n"]).collect()
}

/// All that should be, as FRR prints it.
fn wanted(rendered: &Rendered, ledger: &Ledger, running: &Running) -> Block {
    let mut want = rendered.ours.clone();
    want.unite(&ledger.printed(&rendered.raw));
    running.get(&Daemon::Bgpd).map_or(Profile::Traditional, Profile::of).printed(want)
}

/// Looks at what FRR made of a change: all of ours must be there; what it made of texts is remembered.
fn settle(
    rendered: &Rendered,
    ledger: &Ledger,
    before: &Running,
    after: &Running,
) -> Result<Ledger, SyncError> {
    let there = |path: &Vec<String>| after.values().any(|block| block.contains_path(path));
    let want = wanted(rendered, ledger, after);
    let raw: BTreeSet<Vec<String>> = rendered.raw.leaves().into_iter().collect();
    let lacking = want.leaves().into_iter().filter(|path| !there(path) && !raw.contains(path));
    let mut wrong: Vec<String> = lacking.map(|path| shown(&path)).collect();
    let mut became = surplus(&want, after);
    let changed: BTreeSet<Vec<String>> = raw.into_iter().filter(|path| !there(path)).collect();
    if changed.is_empty() {
        wrong.extend(became.iter().map(|path| format!("no {}", shown(path))));
    } else {
        let new = |path: &Vec<String>| !before.values().any(|block| block.contains_path(path));
        let others = after.values().flat_map(Block::leaves).filter(|path| new(path));
        became.extend(others.filter(|path| !want.contains_path(path)));
        became.extend(ledger.became(&rendered.raw).into_iter().filter(there));
    }
    if wrong.is_empty() {
        Ok(Ledger::settled(&rendered.raw, changed, became))
    } else {
        Err(SyncError::NotKept(wrong))
    }
}

fn shown(path: &[String]) -> String {
    path.iter().map(|line| redact(line)).collect::<Vec<_>>().join(" / ")
}
