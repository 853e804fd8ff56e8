//! A stream of bytes between two network namespaces, as fast as it goes.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sched::{CloneFlags, setns};

/// What is written and read at a time.
const PIECE: usize = 256 * 1024;
/// How long one end waits for the other.
const REACHED: Duration = Duration::from_secs(5);

/// What arrived, and in which time.
#[derive(Debug, Clone, Copy)]
pub struct Arrived {
    /// Bytes.
    pub bytes: u64,
    /// From the first to the last.
    pub time: Duration,
}

/// Sends for so long from one namespace to an address of the other.
pub fn send(from: &Path, to: (&Path, SocketAddr), length: Duration) -> Result<Arrived> {
    let (ready, is_ready) = mpsc::channel();
    let (namespace, address) = (to.0.to_owned(), to.1);
    // Threads of their own: they enter these namespaces.
    let receiver = thread::spawn(move || receive(&namespace, address, &ready));
    // Without a word the receiver has failed, and says why at its end.
    let _ = is_ready.recv();
    let from = from.to_owned();
    let sender = thread::spawn(move || write_for(&from, address, length));
    sender.join().map_err(|_| anyhow!("the sender broke"))?.context("sending")?;
    receiver.join().map_err(|_| anyhow!("the receiver broke"))?.context("receiving")
}

fn write_for(namespace: &Path, address: SocketAddr, length: Duration) -> Result<()> {
    setns(File::open(namespace)?, CloneFlags::CLONE_NEWNET)?;
    let mut stream = TcpStream::connect_timeout(&address, REACHED)?;
    let piece = vec![0; PIECE];
    let end = Instant::now() + length;
    while Instant::now() < end {
        stream.write_all(&piece)?;
    }
    Ok(stream.shutdown(Shutdown::Write)?)
}

fn receive(namespace: &Path, address: SocketAddr, ready: &mpsc::Sender<()>) -> Result<Arrived> {
    setns(File::open(namespace)?, CloneFlags::CLONE_NEWNET)?;
    let listener = TcpListener::bind(address)?;
    ready.send(())?;
    let mut stream = accept(&listener)?;
    stream.set_read_timeout(Some(REACHED))?;
    let (mut piece, mut bytes, began) = (vec![0; PIECE], 0, Instant::now());
    loop {
        match stream.read(&mut piece)? {
            0 => return Ok(Arrived { bytes, time: began.elapsed() }),
            more => bytes += u64::try_from(more)?,
        }
    }
}

/// Waits for the sender, but not for ever: it may not reach us.
fn accept(listener: &TcpListener) -> Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let end = Instant::now() + REACHED * 2;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < end => {
                thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error.into()),
        }
    }
}
