//! A connection to the kernel of one network namespace: dumps and changes.

use std::io;
use std::path::Path;

use futures::StreamExt;
use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::sys::TokioSocket;
use tokio::runtime::Handle;

use crate::fault::Fault;
use crate::socket::{Namespace, open_socket};

/// How often a dump is begun again because something changed meanwhile. Whoever changes that often will be told about
/// by [`Kernel::watch`], so the last answer is good enough.
const DUMPS: usize = 5;

/// A connection to the kernel. Copies share it; it ends with the last one.
#[derive(Debug, Clone)]
pub struct Kernel {
    handle: rtnetlink::Handle,
    namespace: Namespace,
}

impl Kernel {
    /// Connects to the kernel in our own network namespace. The current runtime serves the connection.
    pub fn open() -> Result<Self, Fault> {
        Handle::try_current().map_err(|_| Fault::NoRuntime)?;
        let socket = open_socket().map_err(Fault::Socket)?;
        Ok(Self::serve(socket, Namespace::Own))
    }

    /// Connects to the kernel in the network namespace that this path stands for.
    pub async fn open_in(netns: &Path) -> Result<Self, Fault> {
        let namespace = Namespace::at(netns)?;
        let socket = namespace.socket().await.map_err(|fault| match fault {
            Fault::Socket(source) => Fault::Namespace { path: netns.to_owned(), source },
            other => other,
        })?;
        Ok(Self::serve(socket, namespace))
    }

    fn serve(socket: TokioSocket, namespace: Namespace) -> Self {
        let (mut connection, handle, _) = rtnetlink::from_socket(socket);
        // Otherwise a connection that broke looks like an answer that ended.
        connection.set_forward_ack(true);
        connection.set_forward_done(true);
        tokio::spawn(connection);
        Self { handle, namespace }
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Asks for all of a kind and keeps what `take` makes of the answers.
    pub(crate) async fn dump<T>(
        &self,
        message: RouteNetlinkMessage,
        mut take: impl FnMut(RouteNetlinkMessage) -> Option<T>,
    ) -> io::Result<Vec<T>> {
        let mut found = Vec::new();
        for _ in 0..DUMPS {
            found.clear();
            if self.dump_once(message.clone(), &mut |answer| found.extend(take(answer))).await? {
                break;
            }
        }
        Ok(found)
    }

    /// Whether nothing changed during the dump.
    async fn dump_once(
        &self,
        message: RouteNetlinkMessage,
        take: &mut impl FnMut(RouteNetlinkMessage),
    ) -> io::Result<bool> {
        let mut answers = self.send(message, NLM_F_DUMP)?;
        let mut whole = true;
        while let Some(answer) = answers.next().await {
            whole &= answer.header.flags & NLM_F_DUMP_INTR == 0;
            match answer.payload {
                NetlinkPayload::InnerMessage(inner) => take(inner),
                NetlinkPayload::Done(done) if done.code == 0 => return Ok(whole),
                NetlinkPayload::Done(done) => return Err(io::Error::from_raw_os_error(done.code.abs())),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
        }
        Err(ended())
    }

    /// Asks for one thing; none if it is not there.
    pub(crate) async fn get(&self, message: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
        let mut answers = self.send(message, 0)?;
        while let Some(answer) = answers.next().await {
            match answer.payload {
                NetlinkPayload::InnerMessage(inner) => return Ok(Some(inner)),
                NetlinkPayload::Error(error) if is_absence(&error.to_io()) => return Ok(None),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
        }
        Err(ended())
    }

    /// Changes something and waits until it is done.
    pub(crate) async fn change(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut answers = self.send(message, NLM_F_ACK | flags)?;
        while let Some(answer) = answers.next().await {
            if let NetlinkPayload::Error(error) = answer.payload {
                return if error.code.is_none() { Ok(()) } else { Err(error.to_io()) };
            }
        }
        Err(ended())
    }

    /// Removes something; that it is gone already is just as well.
    pub(crate) async fn remove(&self, message: RouteNetlinkMessage) -> io::Result<()> {
        match self.change(message, 0).await {
            Err(error) if is_absence(&error) => Ok(()),
            result => result,
        }
    }

    fn send(
        &self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<impl futures::Stream<Item = NetlinkMessage<RouteNetlinkMessage>> + use<>> {
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        self.handle.clone().request(request).map_err(|_| ended())
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the netlink connection has ended")
}

/// Whether the kernel says that what was named is not there.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let absence = [Errno::ENODEV, Errno::ENOENT, Errno::ESRCH, Errno::EADDRNOTAVAIL];
    error.raw_os_error().is_some_and(|code| absence.contains(&Errno::from_raw(code)))
}
