//! The agent's side of the CNI plugin: a socket, one request a connection.

mod add;
mod cable;
mod metrics;
mod remove;
mod turns;
mod verify;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tracing::{debug, info, warn};
use underlay_cni::exchange::{DOCUMENT_MAX, Reply, Request};
use underlay_cni::plugin::STATUS_PATIENCE;
use underlay_cni::result::{Failure, code};
use underlay_cni::verb::{Call, Verb};
use underlay_linux::Hands;
use underlay_ovsdb::Client;
use underlay_plan::node::addresses::Placed;

pub use metrics::Metrics;
pub use turns::Turns;

/// How long a pod is waited for: its address, and OVN to carry its packets. Runtimes give up after two minutes.
const PATIENCE: Duration = Duration::from_secs(100);

/// What is needed to answer.
#[derive(Clone)]
pub struct Server {
    /// The pods of the newest plan; nothing before the first.
    pub pods: watch::Receiver<Option<Arc<Placed>>>,
    /// What the node waits for, if it does.
    pub waiting: watch::Receiver<Option<String>>,
    /// Who talks with the kernel.
    pub hands: Hands,
    /// The database of the switch.
    pub switch: Client,
    /// Largest packet of a pod.
    pub mtu: u32,
    /// Who is served.
    pub turns: Turns,
    /// How long that takes.
    pub metrics: Metrics,
}

/// Opens the socket. One that a killed agent left is replaced.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(named)?;
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700)).map_err(named)?;
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(error)),
        _ => {}
    }
    UnixListener::bind(path).map_err(named)
}

/// Serves until the process ends.
pub async fn serve(listener: UnixListener, server: Server) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let server = server.clone();
                tokio::spawn(async move {
                    if let Err(error) = converse(stream, &server).await {
                        debug!(%error, "the plugin went away");
                    }
                });
            }
            Err(error) => {
                warn!(%error, "cannot accept the CNI plugin");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(mut stream: UnixStream, server: &Server) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut text = Vec::new();
    reader.take(DOCUMENT_MAX).read_to_end(&mut text).await?;
    let reply = match serde_json::from_slice::<Request>(&text) {
        Ok(request) => server.answer(&request).await,
        Err(error) => Reply::Failed(Failure::new(code::UNDECODABLE, error.to_string())),
    };
    writer.write_all(&serde_json::to_vec(&reply)?).await
}

impl Server {
    async fn answer(&self, request: &Request) -> Reply {
        let call = match Call::read(request) {
            Ok(call) => call,
            Err(failure) => return Reply::Failed(failure),
        };
        let began = std::time::Instant::now();
        let result = match &call.verb {
            Verb::Add(attachment) => {
                let added = tokio::time::timeout(PATIENCE, self.add(attachment)).await;
                let added = added.unwrap_or_else(|_| Err(self.too_late(attachment)));
                added.map(|success| success.document(&call.version))
            }
            Verb::Del(attachment) => self.remove(attachment).await.map(|()| String::new()),
            Verb::Check(attachment) => self.verify(attachment).await.map(|()| String::new()),
            Verb::Status => self.status().await.map(|()| String::new()),
            Verb::Gc(valid) => self.collect(valid).await.map(|()| String::new()),
        };
        let took = began.elapsed();
        self.metrics.answered(verb_name(&call.verb), result.is_ok(), took);
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match result {
            Ok(text) => {
                // Runtimes ask for the state every few seconds.
                if call.verb != Verb::Status {
                    info!(verb = verb_name(&call.verb), pod = pod_of(&call.verb), millis, "done");
                }
                Reply::Done(text)
            }
            Err(failure) => {
                warn!(verb = verb_name(&call.verb), pod = pod_of(&call.verb), millis, %failure, "not done");
                Reply::Failed(failure)
            }
        }
    }

    /// Whether pods can be given interfaces. A node that has just begun to wait gets a moment: the runtime tells the
    /// kubelet, and the kubelet would call the whole node unfit because its agent was restarted.
    async fn status(&self) -> Result<(), Failure> {
        let mut waiting = self.waiting.clone();
        let ready = waiting.wait_for(Option::is_none);
        if tokio::time::timeout(STATUS_PATIENCE, ready).await.is_ok_and(|ready| ready.is_ok()) {
            return Ok(());
        }
        let what = self.waiting.borrow().clone().unwrap_or_default();
        Err(Failure::new(code::NOT_AVAILABLE, format!("waiting for {what}")))
    }
}

fn verb_name(verb: &Verb) -> &'static str {
    match verb {
        Verb::Add(_) => "ADD",
        Verb::Del(_) => "DEL",
        Verb::Check(_) => "CHECK",
        Verb::Status => "STATUS",
        Verb::Gc(_) => "GC",
    }
}

fn pod_of(verb: &Verb) -> String {
    match verb {
        Verb::Add(attachment) | Verb::Del(attachment) | Verb::Check(attachment) => {
            format!("{}/{}", attachment.pod.namespace, attachment.pod.name)
        }
        Verb::Status | Verb::Gc(_) => String::new(),
    }
}

/// Something of the node did not do as told.
fn broken(error: &dyn std::error::Error) -> Failure {
    Failure::new(code::TRY_AGAIN, underlay_runtime::feed::text_with_sources(error))
}
