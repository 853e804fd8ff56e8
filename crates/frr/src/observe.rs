//! What FRR's daemons run with.

use std::path::Path;

use crate::diff::{Daemon, Running};
use crate::tree::{Block, parse};
use crate::vty::{Vty, VtyError};

/// Asks every daemon that runs. Without bgpd there is nothing to be done.
pub(crate) async fn running(sockets: &Path) -> Result<Running, (Daemon, VtyError)> {
    let mut running = Running::new();
    for daemon in Daemon::ALL {
        match configuration(sockets, daemon).await {
            Ok(block) => {
                running.insert(daemon, block);
            }
            Err(VtyError::Gone(_)) if daemon != Daemon::Bgpd => {}
            Err(error) => return Err((daemon, error)),
        }
    }
    Ok(running)
}

async fn configuration(sockets: &Path, daemon: Daemon) -> Result<Block, VtyError> {
    let mut vty = Vty::connect(&socket(sockets, daemon)).await?;
    Ok(parse(&vty.ask("show running-config").await?.text))
}

/// The socket of a daemon.
pub(crate) fn socket(sockets: &Path, daemon: Daemon) -> std::path::PathBuf {
    sockets.join(format!("{}.vty", daemon.name()))
}
