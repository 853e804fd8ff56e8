//! Where a server is, and the way there.
//!
//! In: addresses as OVN writes them (`unix:`, `tcp:`, `ssl:`). Out: a stream of bytes.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::SessionError;
use super::tls::{self, Tls};

/// Address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// A socket on this machine.
    Unix(PathBuf),
    /// A host, by address or name, and a port.
    Tcp(String, u16),
    /// The same, with TLS.
    Ssl(String, u16),
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")]
pub struct NotARemote(String);

impl FromStr for Remote {
    type Err = NotARemote;

    fn from_str(text: &str) -> Result<Self, NotARemote> {
        let parsed = match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Some(Self::Unix(path.into())),
            Some(("tcp", rest)) => host_and_port(rest).map(|(host, port)| Self::Tcp(host, port)),
            Some(("ssl", rest)) => host_and_port(rest).map(|(host, port)| Self::Ssl(host, port)),
            _ => None,
        };
        parsed.ok_or_else(|| NotARemote(text.to_owned()))
    }
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Self::Unix(path) => return write!(f, "unix:{}", path.display()),
            Self::Tcp(host, port) => ("tcp", host, port),
            Self::Ssl(host, port) => ("ssl", host, port),
        };
        if host.contains(':') {
            write!(f, "{scheme}:[{host}]:{port}")
        } else {
            write!(f, "{scheme}:{host}:{port}")
        }
    }
}

/// A connection, whatever it is made of.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl Remote {
    /// Connects.
    pub(super) async fn connect(
        &self,
        tls: Option<&Tls>,
        patience: Duration,
    ) -> Result<Box<dyn Stream>, SessionError> {
        match tokio::time::timeout(patience, self.open(tls)).await {
            Ok(result) => result,
            Err(_) => Err(self.failed(io::ErrorKind::TimedOut.into())),
        }
    }

    async fn open(&self, tls: Option<&Tls>) -> Result<Box<dyn Stream>, SessionError> {
        match self {
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(|error| self.failed(error))?;
                Ok(Box::new(stream))
            }
            Self::Tcp(host, port) => Ok(Box::new(self.open_tcp(host, *port).await?)),
            Self::Ssl(host, port) => {
                let tls = tls.ok_or(SessionError::NoTls)?;
                let stream = self.open_tcp(host, *port).await?;
                Ok(Box::new(tls::wrap(tls, host, stream).await?))
            }
        }
    }

    async fn open_tcp(&self, host: &str, port: u16) -> Result<TcpStream, SessionError> {
        let stream = TcpStream::connect((host, port)).await.map_err(|error| self.failed(error))?;
        // Requests are small and waited for.
        stream.set_nodelay(true).map_err(|error| self.failed(error))?;
        Ok(stream)
    }

    fn failed(&self, source: io::Error) -> SessionError {
        SessionError::Connect { remote: self.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_the_addresses_of_ovn() {
        for (text, remote) in [
            ("unix:/run/ovn/ovnnb_db.sock", Remote::Unix("/run/ovn/ovnnb_db.sock".into())),
            ("tcp:192.0.2.1:6641", Remote::Tcp("192.0.2.1".into(), 6641)),
            ("ssl:[2001:db8::1]:6641", Remote::Ssl("2001:db8::1".into(), 6641)),
            ("ssl:db.example:6641", Remote::Ssl("db.example".into(), 6641)),
        ] {
            assert_eq!(text.parse(), Ok(remote.clone()));
            assert_eq!(remote.to_string(), text);
        }
        for text in ["", "unix:", "tcp:6641", "tcp::6641", "tcp:host:port", "udp:1.2.3.4:5", "ssl:host:70000"]
        {
            assert!(text.parse::<Remote>().is_err(), "{text}");
        }
    }
}
