//! The plugin itself: asks the agent until it answers or the time is up.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::exchange::{DOCUMENT_MAX, Reply, Request};
use crate::result::{Failure, code};
use crate::{VERSION, VERSIONS};

/// How long an agent that is not there is waited for. Runtimes give up after two minutes or more.
pub const PATIENCE: Duration = Duration::from_secs(110);
/// How long the state is waited for. Whoever asks wants it now, but an agent that restarts must not make the kubelet call
/// the whole node unfit.
pub const STATUS_PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two attempts. The agent is back within a second, so it is worth looking often.
const PAUSE: Duration = Duration::from_millis(20);

/// What the plugin prints, and whether that is a success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub text: String,
    /// Whether all went well.
    pub success: bool,
}

/// Does what the runtime asks.
pub fn run(
    environment: BTreeMap<String, String>,
    config: String,
    socket: &Path,
    patience: Duration,
) -> Output {
    let command = environment.get("CNI_COMMAND").map_or("", String::as_str);
    if command == "VERSION" {
        let text = json!({ "cniVersion": VERSION, "supportedVersions": VERSIONS }).to_string();
        return Output { text, success: true };
    }
    let patience = if command == "STATUS" { patience.min(STATUS_PATIENCE) } else { patience };
    let version = version_of(&config);
    match ask(&Request { environment, config }, socket, patience) {
        Ok(Reply::Done(text)) => Output { text, success: true },
        Ok(Reply::Failed(failure)) | Err(failure) => {
            Output { text: failure.document(&version), success: false }
        }
    }
}

fn version_of(config: &str) -> String {
    let config: Option<serde_json::Value> = serde_json::from_str(config).ok();
    let version = config.as_ref().and_then(|config| config.get("cniVersion")?.as_str());
    version.unwrap_or(VERSION).to_owned()
}

/// Asks again and again: every verb may be repeated.
fn ask(request: &Request, socket: &Path, patience: Duration) -> Result<Reply, Failure> {
    let deadline = Instant::now() + patience;
    loop {
        match attempt(request, socket, deadline) {
            Ok(reply) => return Ok(reply),
            Err(error) if Instant::now() + PAUSE >= deadline => {
                let problem =
                    format!("underlay-agent does not answer at {}: {error}: see its log", socket.display());
                return Err(Failure::new(code::NOT_AVAILABLE, problem));
            }
            Err(_) => sleep(PAUSE),
        }
    }
}

fn attempt(request: &Request, socket: &Path, deadline: Instant) -> std::io::Result<Reply> {
    let mut stream = UnixStream::connect(socket)?;
    // An answer that says why it took so long is worth another second.
    let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_secs(1);
    stream.set_read_timeout(Some(left))?;
    stream.write_all(&serde_json::to_vec(request)?)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(DOCUMENT_MAX).read_to_end(&mut answer)?;
    // An agent that ended half-way leaves an answer that cannot be read: ask again.
    Ok(serde_json::from_slice(&answer)?)
}
