//! One connection, from the first request to its end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tracing::{debug, info, warn};

use super::client::{Asker, Command};
use super::monitor::{Digested, Method, digest_notification, digest_reply};
use super::pace::{Silence, Silences};
use super::remote::Stream;
use super::{Config, Phase, SessionError, Store};
use crate::replica::Replica;
use crate::schema::Schema;
use crate::selection::Layouts;
use crate::txn::{Committed, DbError, DbErrorKind, Expected, TransactError, outcomes};
use crate::uuid::Uuid;
use crate::wire::{Decoder, Message, write_reply, write_request};

/// Text from this size on is read on a thread of its own: a large dump takes long enough to hold up other tasks.
const LARGE: usize = 256 * 1024;
/// While more than this waits to be written, no transaction is taken.
const OUTGOING_FULL: usize = 1 << 20;
/// A server that lets this much wait, echoes of its own probes included, reads nothing at all.
const OUTGOING_STUCK: usize = 256 << 20;
/// How often silences and abandoned transactions are looked at, at the least.
const LOOK_AROUND: Duration = Duration::from_secs(1);

/// How far a connection is.
enum Stage {
    /// It waits for the schema.
    Schema { id: u64 },
    /// It waits for the rows.
    Rows { id: u64, monitor: Monitor },
    /// It follows the changes.
    Steady(Monitor),
}

/// How and of what the server tells.
#[derive(Clone)]
struct Monitor {
    method: Method,
    layouts: Arc<Layouts>,
}

/// A transaction that was sent.
struct Pending {
    expected: Vec<Expected>,
    asker: Asker,
}

struct Connection<'a> {
    config: &'a Config,
    store: &'a mut Store,
    decoder: Decoder,
    outgoing: BytesMut,
    stage: Stage,
    pending: BTreeMap<u64, Pending>,
    last_id: u64,
}

/// Serves a connection until it breaks, or until there are no clients any more.
pub(super) async fn serve(
    stream: Box<dyn Stream>,
    config: &Config,
    store: &mut Store,
    commands: &mut mpsc::Receiver<Command>,
) -> Result<(), SessionError> {
    let mut connection = Connection {
        decoder: Decoder::new(config.tuning.max_message),
        config,
        store,
        outgoing: BytesMut::new(),
        stage: Stage::Schema { id: 1 },
        pending: BTreeMap::new(),
        last_id: 0,
    };
    let end = connection.run(stream, commands).await;
    if matches!(connection.stage, Stage::Steady(_)) {
        // What came before the end is complete in itself.
        connection.store.publish();
    }
    for (_, pending) in connection.pending {
        pending.asker.answer(Err(TransactError::OutcomeUnknown));
    }
    end
}

impl Connection<'_> {
    async fn run(
        &mut self,
        stream: Box<dyn Stream>,
        commands: &mut mpsc::Receiver<Command>,
    ) -> Result<(), SessionError> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut silences = Silences::new(Instant::now());
        let mut ticks = tokio::time::interval(self.look_around_every());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unflushed = false;
        let id = self.request("get_schema", &[&self.config.database])?;
        self.stage = Stage::Schema { id };
        loop {
            let takes_commands = self.takes_commands();
            tokio::select! {
                read = reader.read_buf(self.decoder.space()) => {
                    if read? == 0 {
                        return Err(SessionError::Closed);
                    }
                    self.handle_all().await?;
                    // Taken after the work, so that the time we needed ourselves is not held against the server.
                    silences.heard(Instant::now());
                }
                written = write_some(&mut writer, &mut self.outgoing), if unflushed || !self.outgoing.is_empty() => {
                    unflushed = written?;
                }
                command = commands.recv(), if takes_commands => match command {
                    Some(command) => self.start(command)?,
                    None => return Ok(()),
                },
                _ = ticks.tick() => self.look_around(&mut silences)?,
            }
        }
    }

    /// Often enough to see a silence soon after it has lasted its interval.
    fn look_around_every(&self) -> Duration {
        let interval = self.config.tuning.probe.map_or(LOOK_AROUND, |probe| probe / 2);
        interval.clamp(Duration::from_millis(10), LOOK_AROUND)
    }

    fn takes_commands(&self) -> bool {
        let room = self.pending.len() < self.config.tuning.in_flight && self.outgoing.len() < OUTGOING_FULL;
        // Before the replica is complete, transactions are taken only to be refused.
        room || !matches!(self.stage, Stage::Steady(_))
    }

    fn request<P: serde::Serialize>(&mut self, method: &str, params: &P) -> Result<u64, SessionError> {
        self.last_id += 1;
        write_request(&mut self.outgoing, Some(self.last_id), method, params)?;
        Ok(self.last_id)
    }

    /// Sends a transaction.
    fn start(&mut self, command: Command) -> Result<(), SessionError> {
        let (transaction, asker) = command.split();
        if !matches!(self.stage, Stage::Steady(_)) {
            asker.answer(Err(TransactError::NotConnected));
        } else if !asker.is_gone() {
            let id = self.request("transact", &transaction.params(&self.config.database))?;
            self.pending.insert(id, Pending { expected: transaction.expected(), asker });
        }
        Ok(())
    }

    /// Looks whether the server is silent, and whether transactions are held back that nobody waits for.
    fn look_around(&mut self, silences: &mut Silences) -> Result<(), SessionError> {
        let abandoned: Vec<u64> =
            self.pending.iter().filter(|(_, pending)| pending.asker.is_gone()).map(|(id, _)| *id).collect();
        for id in abandoned {
            debug!(id, "cancelling a transaction that nobody waits for");
            write_request(&mut self.outgoing, None, "cancel", &[id])?;
            self.pending.remove(&id);
        }
        let Some(interval) = self.config.tuning.probe else { return Ok(()) };
        match silences.judge(Instant::now(), interval) {
            Silence::Fine => Ok(()),
            Silence::Ask => self.request("echo", &[(); 0]).map(drop),
            Silence::Gone => Err(SessionError::Silent),
        }
    }

    /// Handles all messages that arrived in full. Changes that came together are handed out together.
    async fn handle_all(&mut self) -> Result<(), SessionError> {
        while let Some(frame) = self.decoder.next_frame()? {
            match Message::parse(&frame)? {
                Message::Request { id, method, params } => self.answer(&id, &method, &params)?,
                Message::Notification { method, params } => self.notified(&method, params).await?,
                Message::Reply { id, result } => self.replied(id, result).await?,
            }
        }
        if matches!(self.stage, Stage::Steady(_)) {
            self.store.publish();
        }
        Ok(())
    }

    fn answer(&mut self, id: &Bytes, method: &str, params: &Bytes) -> Result<(), SessionError> {
        let result = if method == "echo" { Ok(params) } else { Err("unknown method") };
        write_reply(&mut self.outgoing, id, result)?;
        if self.outgoing.len() > OUTGOING_STUCK { Err(SessionError::Stuck) } else { Ok(()) }
    }

    async fn notified(&mut self, method: &str, params: Bytes) -> Result<(), SessionError> {
        match method {
            "update" | "update2" | "update3" => {
                let monitor = match &self.stage {
                    Stage::Steady(monitor) if monitor.method.notification() == method => monitor.clone(),
                    _ => return Err(SessionError::Unexpected(format!("{method} that no monitor asked for"))),
                };
                let digested = self.digest(digest_notification, monitor, params).await?;
                self.store.accept(digested);
                Ok(())
            }
            "monitor_canceled" => Err(SessionError::Unexpected("the server ended the monitor".to_owned())),
            other => {
                debug!(method = other, "a notification that means nothing to us");
                Ok(())
            }
        }
    }

    async fn replied(&mut self, id: Option<u64>, result: Result<Bytes, Bytes>) -> Result<(), SessionError> {
        match (&self.stage, id) {
            (Stage::Schema { id: wanted }, Some(id)) if *wanted == id => self.schema_came(result),
            (Stage::Rows { id: wanted, monitor }, Some(id)) if *wanted == id => {
                let monitor = monitor.clone();
                self.rows_came(monitor, result).await
            }
            (_, Some(id)) => {
                if let Some(pending) = self.pending.remove(&id) {
                    self.finish(pending, result);
                }
                Ok(())
            }
            // An answer to an echo or to a cancelled transaction has an id of ours; this is neither.
            (_, None) => Err(SessionError::Unexpected("a reply to nothing".to_owned())),
        }
    }

    /// Reads what the server tells and puts it onto the replica; the replica that others may hold stays as it is.
    async fn digest(&self, digest: Digest, monitor: Monitor, json: Bytes) -> Result<Digested, SessionError> {
        let large = json.len() >= LARGE;
        let replica = Replica::clone(&self.store.replica);
        let work = move || digest(replica, &monitor.layouts, monitor.method, &json);
        if !large {
            return work();
        }
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => Err(SessionError::Unexpected(error.to_string())),
        }
    }

    /// The first answer: what the server can tell. Asks it to tell what we want of that.
    fn schema_came(&mut self, result: Result<Bytes, Bytes>) -> Result<(), SessionError> {
        let schema = result.map_err(|error| refused("get_schema", &error))?;
        let schema = Schema::parse(&schema)?;
        let resolved = self.config.selection.resolve(&schema);
        let news = self.store.statuses.borrow().absent != resolved.absent;
        for absent in resolved.absent.iter().filter(|_| news) {
            warn!(
                database = schema.name,
                version = schema.version,
                "the server has no {absent}; going on without"
            );
        }
        self.store.statuses.send_modify(|status| {
            status.schema_version = Some(schema.version);
            status.absent = resolved.absent;
        });
        self.ask_for_rows(Monitor { method: Method::CondSince, layouts: Arc::new(resolved.layouts) })
    }

    fn ask_for_rows(&mut self, monitor: Monitor) -> Result<(), SessionError> {
        // What we missed can only be put onto records that have the columns it is told in.
        let fits = self.store.replica.has_layouts(&monitor.layouts);
        let since = if fits { self.store.last_transaction } else { Uuid::ZERO };
        let params = monitor.method.params(&self.config.database, &monitor.layouts, since);
        let id = self.request(monitor.method.name(), &params)?;
        self.stage = Stage::Rows { id, monitor };
        Ok(())
    }

    /// The second answer: the rows. From here on the replica follows the server.
    async fn rows_came(
        &mut self,
        monitor: Monitor,
        result: Result<Bytes, Bytes>,
    ) -> Result<(), SessionError> {
        let method = monitor.method;
        let rows = match result {
            Ok(rows) => rows,
            Err(error) => {
                let known = DbError::parse(&error).kind() != DbErrorKind::UnknownMethod;
                let Some(fallback) = method.fallback().filter(|_| !known) else {
                    return Err(refused(method.name(), &error));
                };
                info!(
                    method = method.name(),
                    instead = fallback.name(),
                    "the server is too old for a method"
                );
                return self.ask_for_rows(Monitor { method: fallback, ..monitor });
            }
        };
        let digested = self.digest(digest_reply, monitor.clone(), rows).await?;
        let (resumed, changes) = (digested.resumed, digested.changes.len());
        self.store.accept(digested);
        self.stage = Stage::Steady(monitor);
        self.store.publish();
        let rows = self.store.replica.row_count();
        info!(
            database = self.config.database,
            method = method.name(),
            resumed,
            rows,
            changes,
            "in step with OVSDB"
        );
        self.store.statuses.send_modify(|status| {
            status.phase = Phase::Synced;
            status.monitor = Some(method.name());
            status.connections += 1;
            status.resumptions += u64::from(resumed);
        });
        Ok(())
    }

    /// Hands on the outcome of a transaction. Its changes came before; they are handed out first.
    fn finish(&mut self, pending: Pending, result: Result<Bytes, Bytes>) {
        let generation = self.store.publish();
        let Pending { expected, asker } = pending;
        asker.answer(match result {
            Ok(result) => {
                outcomes(&expected, &result).map(|outcomes| Committed::new(&expected, outcomes, generation))
            }
            Err(error) => Err(TransactError::Refused(DbError::parse(&error))),
        });
    }
}

type Digest = fn(Replica, &Layouts, Method, &[u8]) -> Result<Digested, SessionError>;

fn refused(method: &'static str, error: &[u8]) -> SessionError {
    SessionError::Refused { method, error: DbError::parse(error) }
}

/// Writes a piece of what waits, or, when nothing waits, sees to it that it is sent. Says whether that is still to do.
async fn write_some(
    writer: &mut (impl AsyncWrite + Unpin),
    outgoing: &mut BytesMut,
) -> std::io::Result<bool> {
    if outgoing.is_empty() {
        writer.flush().await?;
        return Ok(false);
    }
    let written = writer.write(outgoing).await?;
    if written == 0 {
        return Err(std::io::ErrorKind::WriteZero.into());
    }
    outgoing.advance(written);
    Ok(true)
}
