//! Commands, told to the daemons they are for, each in its context.

use std::collections::BTreeMap;
use std::path::Path;

use crate::diff::{Command, Daemon, Target};
use crate::observe::socket;
use crate::tree::{opens, redact};
use crate::vty::{Answer, Vty, VtyError};

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

    /// Tells all commands in order and stops at the first that is refused.
    pub async fn tell(&mut self, commands: &[Command]) -> Result<(), CommandError> {
        for command in commands {
            match self.tell_one(command).await {
                Err(CommandError::Refused { reason, .. }) if command.optional => {
                    tracing::debug!(?command, reason, "FRR had nothing to refresh");
                }
                other => other?,
            }
        }
        Ok(())
    }

    async fn tell_one(&mut self, command: &Command) -> Result<(), CommandError> {
        let mut answer = self.ask_target(command).await?;
        let mut shorter = shortened(command);
        while let Some(command) = shorter.filter(|_| answer.unknown()) {
            answer = self.ask_target(&command).await?;
            shorter = shortened(&command);
        }
        if answer.taken() {
            return Ok(());
        }
        let said: Vec<String> = answer.text.lines().map(|line| redact(line.trim())).collect();
        let reason = said.into_iter().find(|line| !line.is_empty());
        let reason = reason.unwrap_or_else(|| format!("status {}", answer.status));
        Err(CommandError::Refused { command: Box::new(command.clone()), reason })
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
        let conversation = match self.open.remove(&daemon) {
            Some(conversation) => conversation,
            None => Conversation::begin(&socket(self.sockets, daemon)).await.map_err(lost)?,
        };
        let conversation = self.open.entry(daemon).or_insert(conversation);
        conversation.ask(command).await.map_err(lost)
    }
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

    async fn ask(&mut self, command: &Command) -> Result<Answer, VtyError> {
        let same = self.path.iter().zip(&command.context).take_while(|(here, there)| here == there).count();
        while self.path.len() > same {
            self.vty.ask("exit").await?;
            self.path.pop();
        }
        for line in &command.context[same..] {
            let answer = self.vty.ask(line).await?;
            if !answer.taken() {
                return Ok(answer);
            }
            self.path.push(line.clone());
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
}
