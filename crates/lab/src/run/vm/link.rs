//! A connection between the host and the virtual machine that carries frames.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use super::frame::{Decoder, Frame, PIECE};

/// The sending half; several threads may share it.
#[derive(Debug, Clone)]
pub struct Sender {
    stream: Arc<Mutex<TcpStream>>,
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver {
    stream: TcpStream,
    decoder: Decoder,
}

/// Makes both halves of a connection.
pub fn halves(stream: TcpStream) -> io::Result<(Sender, Receiver)> {
    // Keystrokes and prompts are small and must not wait for company.
    stream.set_nodelay(true)?;
    let sender = Sender { stream: Arc::new(Mutex::new(stream.try_clone()?)) };
    Ok((sender, Receiver { stream, decoder: Decoder::default() }))
}

impl Sender {
    /// Sends one frame.
    pub fn send(&self, frame: &Frame) -> io::Result<()> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).write_all(&frame.encode())
    }

    /// Sends all there is to read, in frames of one kind.
    pub fn send_all(&self, mut from: impl Read, frame: fn(Vec<u8>) -> Frame) -> io::Result<()> {
        let mut bytes = vec![0; PIECE];
        loop {
            match from.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(read) => self.send(&frame(bytes[..read].to_vec()))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the connection in both directions.
    pub fn close(&self) {
        let _ = self.stream.lock().unwrap_or_else(PoisonError::into_inner).shutdown(Shutdown::Both);
    }
}

impl Receiver {
    /// Waits for the next frame. An end of the stream is an error: the last frame says that it is the last.
    pub fn receive(&mut self) -> io::Result<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(frame);
            }
            let mut bytes = vec![0; PIECE];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => self.decoder.push(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
