//! Commands, told to the daemons they are for, each in its context.

use std::collections::BTreeMap;
use std::path::Path;

use crate::diff::{Command, Daemon, Target};
use crate::leave;
use crate::observe::socket;
use crate::tree::{opens, redact};
use crate::vty::{Answer, Vty, VtyError};

/// Lines that are told at once, at most. Daemons answer into a buffer that we read only then.
const AT_ONCE: usize = 200;

/// A command that did not work out.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A daemon refused a line.
    #[error("FRR refused {:?}: {reason}", redact(&command.line))]
    Refused {
        /// The line.
        command: Box<Command>,
        /// What the daemon said.
        reason: String,
    },
    /// A daemon that should take a line cannot be talked with.
    #[error("{}", .0.name())]
    Unreachable(Daemon, #[source] VtyError),
}

/// Open conversations, each in configuration mode.
pub(crate) struct Conversations<'a> {
    sockets: &'a Path,
    open: BTreeMap<Daemon, Conversation>,
}

struct Conversation {
    vty: Vty,
    /// The context that the daemon is in.
    path: Vec<String>,
}

impl<'a> Conversations<'a> {
    pub fn new(sockets: &'a Path) -> Self {
        Self { sockets, open: BTreeMap::new() }
    }

    /// Tells all commands in order and stops at the first that is refused, or at the end of the lines that were told with
    /// it.
    pub async fn tell(&mut self, commands: &[Command]) -> Result<(), CommandError> {
        let mut rest = commands;
        while let Some(first) = rest.first() {
            let (now, later) = rest.split_at(together(rest).max(1));
            rest = later;
            if now.len() > 1 {
                self.tell_together(now).await?;
                continue;
            }
            if let Some(vrf) = leave::ending(&first.line) {
                let lost = |error| CommandError::Unreachable(Daemon::Zebra, error);
                leave::settled(self.sockets, vrf).await.map_err(lost)?;
            }
            match self.tell_one(first).await {
                Err(CommandError::Refused { reason, .. }) if first.optional => {
                    tracing::debug!(command = ?first, reason, "FRR had nothing to refresh");
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Tells lines of one context to bgpd: many lines would otherwise take many turns of two processes.
    async fn tell_together(&mut self, commands: &[Command]) -> Result<(), CommandError> {
        let lost = |error| CommandError::Unreachable(Daemon::Bgpd, error);
        let Some(context) = commands.first().map(|command| &command.context) else { return Ok(()) };
        let conversation = self.with(Daemon::Bgpd).await.map_err(lost)?;
        let opened = conversation.enter(context).await.map_err(lost)?;
        if let Some((command, answer)) = commands.first().zip(opened) {
            return refusal(command, &answer);
        }
        let lines = commands.iter().map(|command| command.line.as_str());
        let answers = conversation.vty.ask_all(lines).await.map_err(lost)?;
        commands.iter().zip(&answers).try_for_each(|(command, answer)| refusal(command, answer))
    }

    async fn tell_one(&mut self, command: &Command) -> Result<(), CommandError> {
        let mut answer = self.ask_target(command).await?;
        let mut shorter = shortened(command);
        while let Some(command) = shorter.filter(|_| answer.unknown()) {
            answer = self.ask_target(&command).await?;
            shorter = shortened(&command);
        }
        refusal(command, &answer)
    }

    async fn ask_target(&mut self, command: &Command) -> Result<Answer, CommandError> {
        match command.target {
            Target::One(daemon) => self.ask(daemon, command).await,
            Target::Any => self.ask_all(command).await,
        }
    }

    /// Asks every daemon that runs; one that takes the line is enough.
    async fn ask_all(&mut self, command: &Command) -> Result<Answer, CommandError> {
        let mut best: Option<Answer> = None;
        for daemon in Daemon::ALL {
            let answer = match self.ask(daemon, command).await {
                Err(CommandError::Unreachable(_, VtyError::Gone(_))) => continue,
                answer => answer?,
            };
            let better = match &best {
                None => true,
                Some(known) => !known.taken() && (answer.taken() || known.unknown()),
            };
            if better {
                best = Some(answer);
            }
        }
        Ok(best.unwrap_or_else(|| Answer { text: "no daemon of FRR runs".to_owned(), status: 1 }))
    }

    async fn ask(&mut self, daemon: Daemon, command: &Command) -> Result<Answer, CommandError> {
        let lost = |error| CommandError::Unreachable(daemon, error);
        let conversation = self.with(daemon).await.map_err(lost)?;
        conversation.ask(command).await.map_err(lost)
    }

    /// The conversation with a daemon, begun if need be.
    async fn with(&mut self, daemon: Daemon) -> Result<&mut Conversation, VtyError> {
        let conversation = match self.open.remove(&daemon) {
            Some(conversation) => conversation,
            None => Conversation::begin(&socket(self.sockets, daemon)).await?,
        };
        Ok(self.open.entry(daemon).or_insert(conversation))
    }
}

/// How many of the first commands may be told at once: prefixes for bgpd in one context. There may be very many of them.
/// Whatever is about sessions is told line by line, so that bgpd can act on one line before it hears the next.
fn together(commands: &[Command]) -> usize {
    let Some(first) = commands.first() else { return 0 };
    let alike = |command: &&Command| {
        command.target == Target::One(Daemon::Bgpd)
            && command.context == first.context
            && is_about_prefix(&command.line)
    };
    commands.iter().take(AT_ONCE).take_while(alike).count()
}

fn is_about_prefix(line: &str) -> bool {
    let line = line.strip_prefix("no ").unwrap_or(line);
    ["network ", "ip prefix-list ", "ipv6 prefix-list "].iter().any(|word| line.starts_with(word))
}

/// An error if a line was not taken.
fn refusal(command: &Command, answer: &Answer) -> Result<(), CommandError> {
    if answer.taken() {
        return Ok(());
    }
    let said: Vec<String> = answer.text.lines().map(|line| redact(line.trim())).collect();
    let reason = said.into_iter().find(|line| !line.is_empty());
    let reason = reason.unwrap_or_else(|| format!("status {}", answer.status));
    Err(CommandError::Refused { command: Box::new(command.clone()), reason })
}

/// FRR takes some lines back only without their values. Never of a router: there a shorter line means more.
fn shortened(command: &Command) -> Option<Command> {
    let context = command.context.first().filter(|context| !context.starts_with("router "));
    let (line, _) = command.line.rsplit_once(' ').filter(|(line, _)| line.contains(' '))?;
    context.filter(|_| command.line.starts_with("no "))?;
    Some(Command { line: line.to_owned(), ..command.clone() })
}

impl Conversation {
    async fn begin(socket: &Path) -> Result<Self, VtyError> {
        let mut vty = Vty::connect(socket).await?;
        vty.ask("configure terminal").await?;
        Ok(Self { vty, path: Vec::new() })
    }

    /// Goes to a context. Returns the answer to the line that was not taken on the way, if there is one.
    async fn enter(&mut self, context: &[String]) -> Result<Option<Answer>, VtyError> {
        let same = self.path.iter().zip(context).take_while(|(here, there)| here == there).count();
        while self.path.len() > same {
            self.vty.ask("exit").await?;
            self.path.pop();
        }
        for line in &context[same..] {
            let answer = self.vty.ask(line).await?;
            if !answer.taken() {
                return Ok(Some(answer));
            }
            self.path.push(line.clone());
        }
        Ok(None)
    }

    async fn ask(&mut self, command: &Command) -> Result<Answer, VtyError> {
        if let Some(refusal) = self.enter(&command.context).await? {
            return Ok(refusal);
        }
        let answer = self.vty.ask(&command.line).await?;
        if answer.taken() && opens(self.path.last().map(String::as_str), &command.line) {
            self.path.push(command.line.clone());
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(context: &str, line: &str) -> Option<String> {
        let command = Command {
            target: Target::Any,
            context: Some(context).filter(|line| !line.is_empty()).map(str::to_owned).into_iter().collect(),
            line: line.to_owned(),
            optional: false,
        };
        shortened(&command).map(|command| command.line)
    }

    #[test]
    fn only_what_takes_back_a_value_of_a_link_is_said_shorter() {
        assert_eq!(short("interface eth0", "no description a b").as_deref(), Some("no description a"));
        assert_eq!(short("interface eth0", "no description"), None);
        assert_eq!(short("interface eth0", "description a b"), None);
        assert_eq!(short("router bgp 1", "no neighbor 10.0.0.2 nonsense"), None);
        assert_eq!(short("", "no ip route 192.0.2.0/24 blackhole"), None);
    }

    #[test]
    fn only_prefixes_of_one_context_are_told_at_once() {
        let line = |context: &str, line: &str| Command {
            target: Target::One(Daemon::Bgpd),
            context: vec![context.to_owned()],
            line: line.to_owned(),
            optional: false,
        };
        let two = [line("router bgp 1", "network 10.1.0.0/24"), line("router bgp 1", "network 10.2.0.0/24")];
        let and = |other: Command| together(&[&two[..], &[other]].concat());
        assert_eq!(and(line("router bgp 1", "no network 10.3.0.0/24")), 3);
        assert_eq!(and(line("router bgp 2", "network 10.3.0.0/24")), 2, "another context");
        assert_eq!(and(line("router bgp 1", "neighbor 10.0.0.2 shutdown")), 2, "takes bgpd a while");
        let other = Command { target: Target::Any, ..line("router bgp 1", "network 10.3.0.0/24") };
        assert_eq!(and(other), 2, "another daemon");
        assert_eq!(together(&[]), 0);
        let many = vec![two[0].clone(); AT_ONCE + 1];
        assert_eq!(together(&many), AT_ONCE);
    }
}
