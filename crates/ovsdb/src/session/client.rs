//! What the rest of a program holds of a session.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::Status;
use crate::publication::Publication;
use crate::replica::{ChangeSet, Replica};
use crate::txn::{Committed, TransactError, Transaction};

/// A transaction on its way to the session's task.
#[derive(Debug)]
pub(super) struct Command {
    pub transaction: Transaction,
    reply: oneshot::Sender<Result<Committed, TransactError>>,
}

impl Command {
    /// Takes what is needed to answer later.
    pub fn split(self) -> (Transaction, Asker) {
        (self.transaction, Asker(self.reply))
    }

    pub fn answer(self, result: Result<Committed, TransactError>) {
        self.split().1.answer(result);
    }
}

/// Whoever waits for a transaction.
#[derive(Debug)]
pub(super) struct Asker(oneshot::Sender<Result<Committed, TransactError>>);

impl Asker {
    /// Whether nobody waits any more.
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }

    pub fn answer(self, result: Result<Committed, TransactError>) {
        // Whoever stopped waiting does not want to know.
        let _ = self.0.send(result);
    }
}

/// A handle on a session. Copies are for the same session, which ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    publications: watch::Receiver<Publication>,
    status: watch::Receiver<Status>,
}

impl Client {
    pub(super) fn new(
        commands: mpsc::Sender<Command>,
        publications: watch::Receiver<Publication>,
        status: watch::Receiver<Status>,
    ) -> Self {
        Self { commands, publications, status }
    }

    /// Does all operations of a transaction, or none. Once it returns, [`Self::replica`] has the changes.
    ///
    /// Without a connection it fails at once. Whoever stops waiting for the answer does not undo the transaction; one
    /// that the server still holds back, because of a `wait`, is cancelled within seconds.
    pub async fn transact(&self, transaction: Transaction) -> Result<Committed, TransactError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(Command { transaction, reply }).await;
        sent.map_err(|_| TransactError::Ended)?;
        // The task answers every transaction it takes, unless it is dropped while it has some.
        answer.await.unwrap_or(Err(TransactError::OutcomeUnknown))
    }

    /// The latest state. Before the first load it has no tables.
    pub fn replica(&self) -> Arc<Replica> {
        Arc::clone(self.publications.borrow().replica())
    }

    /// The latest state, with the memory of what led to it.
    pub fn publication(&self) -> Publication {
        self.publications.borrow().clone()
    }

    /// Waits for the first load. Fails when the session has ended.
    pub async fn loaded(&self) -> Result<Arc<Replica>, TransactError> {
        let mut publications = self.publications.clone();
        let loaded = publications.wait_for(|publication| publication.generation() > 0).await;
        loaded.map(|publication| Arc::clone(publication.replica())).map_err(|_| TransactError::Ended)
    }

    /// All changes from the empty state on.
    pub fn subscribe(&self) -> Subscription {
        let mut publications = self.publications.clone();
        publications.mark_changed();
        Subscription { publications, seen: Publication::default(), _client: self.clone() }
    }

    /// How the session is doing, now and whenever that changes.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.clone()
    }
}

/// States of the replica as they come. A slow reader skips states but never misses a change.
#[derive(Debug)]
pub struct Subscription {
    publications: watch::Receiver<Publication>,
    seen: Publication,
    /// Keeps the session alive.
    _client: Client,
}

/// A state, and what changed since the one before it that the reader saw.
#[derive(Debug, Clone)]
pub struct Update {
    /// Counts the states.
    pub generation: u64,
    /// The state.
    pub replica: Arc<Replica>,
    /// What changed.
    pub changes: ChangeSet,
}

impl Subscription {
    /// Waits for a state that the reader did not see. None when the session has ended. It may be given up and called
    /// again without losing anything.
    pub async fn next(&mut self) -> Option<Update> {
        loop {
            self.publications.changed().await.ok()?;
            let latest = self.publications.borrow_and_update().clone();
            if latest.generation() == self.seen.generation() {
                continue;
            }
            let changes = latest.changes_since(&self.seen);
            let update =
                Update { generation: latest.generation(), replica: Arc::clone(latest.replica()), changes };
            self.seen = latest;
            return Some(update);
        }
    }
}
