//! The part that does IO: one task owns the connection and the replica.
//!
//! In: a [`Config`], transactions from [`Client`]s, and what the server says. Out: states of the replica for all who
//! listen, and outcomes of transactions. Messages are handled in the order they arrive, and the server tells of a
//! transaction's changes before it confirms it: whoever has the confirmation finds the changes in the replica.
//!
//! Whatever goes wrong with a connection ends it, and the next one begins with what the replica has: a server that knows
//! our last transaction tells what we missed, any other tells everything, and only the differences count as changes.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use crate::publication::Publication;
use crate::replica::{ChangeSet, Inconsistent, Replica};
use crate::schema::SchemaError;
use crate::selection::{Absent, Selection};
use crate::txn::{DbError, TransactError};
use crate::uuid::Uuid;
use crate::wire::DecodeError;

mod client;
mod connection;
mod monitor;
mod pace;
mod remote;
mod tls;

pub use client::{Client, Subscription, Update};
pub use remote::{NotARemote, Remote};
pub use tls::{NameCheck, Tls};

use client::Command;
use pace::Backoff;

/// What a session is for.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the server is. Of several, the next is tried when one fails; without any, the session
    /// ends at once.
    pub remotes: Vec<Remote>,
    /// Which of its databases.
    pub database: String,
    /// What to replicate.
    pub selection: Selection,
    /// For remotes that ask for it.
    pub tls: Option<Tls>,
    /// Times and sizes.
    pub tuning: Tuning,
}

impl Config {
    /// A session with one server, with ordinary times and sizes.
    pub fn new(remote: Remote, database: &str, selection: Selection) -> Self {
        let database = database.to_owned();
        Self { remotes: vec![remote], database, selection, tls: None, tuning: Tuning::default() }
    }
}

/// Times and sizes.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// How long to wait for a connection.
    pub connect_timeout: Duration,
    /// The first and the longest wait between two attempts.
    pub backoff: (Duration, Duration),
    /// After how long a silence the server is asked whether it is there; after twice that it is given up. None to wait
    /// for ever.
    pub probe: Option<Duration>,
    /// The largest message to accept. A first dump is one message.
    pub max_message: usize,
    /// How many transactions may wait to be sent. Whoever has one more waits until there is room.
    pub queue: usize,
    /// How many transactions may be sent and not yet answered.
    pub in_flight: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            backoff: (Duration::from_millis(100), Duration::from_secs(8)),
            probe: Some(Duration::from_secs(5)),
            max_message: 512 << 20,
            queue: 64,
            in_flight: 64,
        }
    }
}

/// How a session is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Where it stands.
    pub phase: Phase,
    /// The server it is, was or will be connected to.
    pub remote: Option<Remote>,
    /// Version of the server's schema.
    pub schema_version: Option<String>,
    /// Selected tables and columns that the server does not have.
    pub absent: Vec<Absent>,
    /// How the server tells of changes.
    pub monitor: Option<&'static str>,
    /// How often a connection was made whose replica became complete.
    pub connections: u64,
    /// How many of them began with what we had, because the server knew our last transaction.
    pub resumptions: u64,
    /// Why the last connection ended, or could not be made.
    pub last_error: Option<String>,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// It connects, and loads or completes the replica.
    #[default]
    Connecting,
    /// The replica follows the server, and its state was handed out.
    Synced,
    /// It waits before the next attempt. The replica is as it was.
    Waiting,
}

/// Why a connection ended, or could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is nobody there.
    #[error("connecting to {remote}")]
    Connect {
        /// Where.
        remote: Remote,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The remote wants TLS, and there are no files for it.
    #[error("the remote is ssl:, but no certificate is configured")]
    NoTls,
    /// TLS does not come about.
    #[error("TLS: {what}")]
    Tls {
        /// What failed.
        what: String,
        /// Why.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The connection broke.
    #[error("the connection broke")]
    Io(#[from] io::Error),
    /// The server ended the connection.
    #[error("the server closed the connection")]
    Closed,
    /// The server says nothing, not even when asked.
    #[error("the server is silent and does not answer a probe")]
    Silent,
    /// The server takes nothing that we send.
    #[error("the server does not read what we send")]
    Stuck,
    /// What the server says is not in the words of the protocol.
    #[error("the server's words")]
    Decode(#[from] DecodeError),
    /// What the server tells about rows cannot be read.
    #[error("reading what the server tells about rows")]
    Rows(#[from] serde_json::Error),
    /// What the server tells about rows does not fit what it told before.
    #[error(transparent)]
    Inconsistent(#[from] Inconsistent),
    /// The server's schema cannot be read.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The server refuses a request without which there is no session.
    #[error("the server refuses {method}")]
    Refused {
        /// Which request.
        method: &'static str,
        /// Why.
        #[source]
        error: DbError,
    },
    /// The server says something that nobody asked for.
    #[error("unexpected: {0}")]
    Unexpected(String),
}

impl SessionError {
    /// The error with its causes, in one line.
    fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

/// Makes a session. It does nothing until [`Session::run`] is polled, and ends when the last client is dropped.
pub fn open(config: Config) -> (Client, Session) {
    let (commands, received) = mpsc::channel(config.tuning.queue.max(1));
    let (publications, published) = watch::channel(Publication::default());
    let (statuses, status) = watch::channel(Status::default());
    let store = Store {
        publications,
        statuses,
        replica: Arc::default(),
        unpublished: ChangeSet::default(),
        last_transaction: Uuid::ZERO,
    };
    (Client::new(commands, published, status), Session { config, commands: received, store })
}

/// The task that owns the connection.
#[derive(Debug)]
pub struct Session {
    config: Config,
    commands: mpsc::Receiver<Command>,
    store: Store,
}

impl Session {
    /// Connects, again and again, until the last client is dropped.
    pub async fn run(mut self) {
        let (shortest, longest) = self.config.tuning.backoff;
        let mut backoff = Backoff::new(shortest, longest);
        let remotes = self.config.remotes.clone();
        for remote in remotes.iter().cycle() {
            let before = self.store.statuses.borrow().connections;
            let Err(error) = self.connect_and_serve(remote).await else { return };
            if self.store.statuses.borrow().connections > before {
                backoff.reset();
            }
            if matches!(error, SessionError::Inconsistent(_) | SessionError::Rows(_)) {
                // What we have, or what the server remembers of us, is not to be trusted: everything is loaded anew.
                self.store.last_transaction = Uuid::ZERO;
            }
            let text = error.chain();
            let wait = backoff.next(random_byte());
            warn!(%remote, database = self.config.database, error = text, ?wait, "no OVSDB session; trying again");
            self.store.statuses.send_modify(|status| {
                status.phase = Phase::Waiting;
                status.last_error = Some(text);
            });
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = refuse(&mut self.commands) => return,
            }
        }
    }

    /// One connection, from its making to its end. Succeeds when there are no clients any more.
    async fn connect_and_serve(&mut self, remote: &Remote) -> Result<(), SessionError> {
        self.store.statuses.send_modify(|status| {
            status.phase = Phase::Connecting;
            status.remote = Some(remote.clone());
        });
        let connecting = remote.connect(self.config.tls.as_ref(), self.config.tuning.connect_timeout);
        let stream = tokio::select! {
            stream = connecting => stream?,
            () = refuse(&mut self.commands) => return Ok(()),
        };
        info!(%remote, database = self.config.database, "connected to OVSDB");
        connection::serve(stream, &self.config, &mut self.store, &mut self.commands).await
    }
}

/// Answers transactions while there is no connection. Returns when there are no clients any more.
async fn refuse(commands: &mut mpsc::Receiver<Command>) {
    while let Some(command) = commands.recv().await {
        command.answer(Err(TransactError::NotConnected));
    }
}

/// Every `RandomState` has other keys; for spreading reconnects that is random enough.
fn random_byte() -> u8 {
    RandomState::new().hash_one(0).to_le_bytes()[0]
}

/// What outlives a connection.
#[derive(Debug)]
struct Store {
    publications: watch::Sender<Publication>,
    statuses: watch::Sender<Status>,
    /// As of the last message; maybe newer than what is published.
    replica: Arc<Replica>,
    /// What changed since the last publication.
    unpublished: ChangeSet,
    /// The last transaction in the replica; zero when the server does not tell.
    last_transaction: Uuid,
}

impl Store {
    /// Takes over what a message brought.
    fn accept(&mut self, digested: monitor::Digested) {
        self.replica = Arc::new(digested.replica);
        self.unpublished.merge(digested.changes);
        self.last_transaction = digested.transaction.unwrap_or(Uuid::ZERO);
    }

    /// Hands out the replica if it changed, or for the first time. Gives the generation.
    fn publish(&mut self) -> u64 {
        let published = self.publications.borrow().generation();
        if published > 0 && self.unpublished.is_empty() {
            return published;
        }
        let changes = std::mem::take(&mut self.unpublished);
        self.publications.send_modify(|last| *last = last.followed_by(Arc::clone(&self.replica), changes));
        published + 1
    }
}
