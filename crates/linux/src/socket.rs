//! Netlink sockets, in our own network namespace or in another.
//!
//! A socket belongs for ever to the namespace in which it was opened, so one short-lived thread enters the namespace,
//! opens the socket and hands it back. The threads of the runtime never leave theirs.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{setsockopt, sockopt};
use rtnetlink::sys::{AsyncSocket, SocketAddr, TokioSocket, protocols::NETLINK_ROUTE};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::fault::Fault;

/// Room for what multicast brings while the reader is busy: some ten thousand routes.
const RECEIVE_BUFFER: usize = 8 << 20;

/// A network namespace: our own, or one that an open file holds.
#[derive(Debug, Clone)]
pub(crate) enum Namespace {
    Own,
    Other(Arc<File>),
}

impl Namespace {
    pub fn at(path: &Path) -> Result<Self, Fault> {
        let file = File::open(path).map_err(|source| Fault::Namespace { path: path.to_owned(), source })?;
        Ok(Self::Other(Arc::new(file)))
    }

    /// Does work inside. The work must be short: in our own namespace it is done at once.
    pub async fn enter<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let Self::Other(file) = self else { return work() };
        let file = Arc::clone(file);
        let (sender, answer) = oneshot::channel();
        thread::Builder::new().name("netns".to_owned()).spawn(move || {
            let result =
                setns(&file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from).and_then(|()| work());
            // Whoever stopped waiting does not want to know.
            let _ = sender.send(result);
        })?;
        answer.await.unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace ended early")))
    }

    /// Opens a socket for requests.
    pub async fn socket(&self) -> Result<TokioSocket, Fault> {
        self.open(open_socket).await
    }

    /// Opens a socket that hears what these multicast groups tell.
    pub async fn listener(&self, groups: Vec<u32>) -> Result<TokioSocket, Fault> {
        self.open(move || open_listener(&groups)).await
    }

    async fn open(
        &self,
        open: impl FnOnce() -> io::Result<TokioSocket> + Send + 'static,
    ) -> Result<TokioSocket, Fault> {
        let runtime = Handle::try_current().map_err(|_| Fault::NoRuntime)?;
        let opened = self.enter(move || {
            let _runtime = runtime.enter();
            open()
        });
        opened.await.map_err(Fault::Socket)
    }
}

/// A socket for requests.
pub(crate) fn open_socket() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    socket.socket_mut().bind(&SocketAddr::new(0, 0))?;
    // Without it the kernel ignores what a dump asks for and answers with everything.
    socket.socket_ref().set_netlink_get_strict_chk(true)?;
    Ok(socket)
}

fn open_listener(groups: &[u32]) -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
    socket.socket_mut().bind(&SocketAddr::new(0, 0))?;
    // Beyond the machine's limit only root may go; whoever is not makes do with the limit.
    if setsockopt(socket.socket_ref(), sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        setsockopt(socket.socket_ref(), sockopt::RcvBuf, &RECEIVE_BUFFER)?;
    }
    for group in groups {
        socket.socket_ref().add_membership(*group)?;
    }
    Ok(socket)
}
