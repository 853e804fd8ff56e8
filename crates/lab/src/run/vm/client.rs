//! Runs a verb in the virtual machine of a lab, with our own input and output.

use std::io::{self, IsTerminal, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread;

use super::frame::{Frame, LONGEST, Request};
use super::link::{self, Receiver, Sender};
use super::{network, terminal};
use crate::error::LabError;
use crate::run::machine::describe;
use crate::run::status::half_made;
use crate::run::steps::tail;
use crate::state::Lab;

/// Lines of the console that a failure shows.
const CONSOLE_LINES: usize = 20;

/// Runs a verb in the lab's virtual machine; returns its exit code. With `interactive` the command gets a terminal if
/// we have one.
pub fn forward(lab: &Lab, arguments: Vec<String>, interactive: bool) -> Result<u8, LabError> {
    let terminal = if interactive { terminal::ours() } else { None };
    let raw = terminal.is_some();
    let request = Request { arguments, colour: io::stdout().is_terminal(), terminal };
    let (sender, mut receiver) = ask(lab, &request)?;
    let raw = if raw { terminal::Raw::enter() } else { None };
    // Nobody waits for this thread: a read from a terminal cannot be called off, and we may end before it.
    thread::spawn(move || {
        let sent = sender.send_all(io::stdin().lock(), Frame::Input);
        sent.and_then(|()| sender.send(&Frame::InputEnd))
    });
    let code = copy_output(&mut receiver, &mut io::stdout(), &mut io::stderr());
    drop(raw);
    code.map_err(|error| lost(lab, &error.to_string()))
}

/// Runs a verb in the lab's virtual machine and returns what it printed, whatever its exit code.
pub fn output(lab: &Lab, arguments: &[&str]) -> Result<Vec<u8>, LabError> {
    let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
    let (sender, mut receiver) = ask(lab, &Request { arguments, colour: false, terminal: None })?;
    let mut printed = Vec::new();
    let ended = sender
        .send(&Frame::InputEnd)
        .and_then(|()| copy_output(&mut receiver, &mut printed, &mut io::stderr()));
    ended.map(|_| printed).map_err(|error| lost(lab, &error.to_string()))
}

/// Sends a request to the machine of a lab that is up.
fn ask(lab: &Lab, request: &Request) -> Result<(Sender, Receiver), LabError> {
    if lab.first_process().is_none() {
        return Err(LabError::failed(half_made(lab).to_string(), tail(&console_path(lab), CONSOLE_LINES)));
    }
    let stream = network::connect(lab).map_err(|error| lost(lab, &describe(&error)))?;
    send_request(stream, request).map_err(|error| lost(lab, &error.to_string()))
}

/// Asks for a command on a new connection.
pub fn send_request(stream: TcpStream, request: &Request) -> io::Result<(Sender, Receiver)> {
    let request = Frame::Request(request.clone());
    if request.encode().len() > LONGEST {
        return Err(io::Error::other("the command is too long"));
    }
    let (sender, receiver) = link::halves(stream)?;
    sender.send(&request)?;
    Ok((sender, receiver))
}

/// Copies a command's output until it ends.
fn copy_output(receiver: &mut Receiver, out: &mut impl Write, errors: &mut impl Write) -> io::Result<u8> {
    loop {
        match receiver.receive()? {
            Frame::Output(bytes) => out.write_all(&bytes).and_then(|()| out.flush())?,
            Frame::Errors(bytes) => errors.write_all(&bytes)?,
            Frame::Exit(code) => return Ok(code),
            _ => {}
        }
    }
}

fn lost(lab: &Lab, why: &str) -> LabError {
    let what = format!("the virtual machine of lab {:?} does not answer: {why}{}", lab.name(), console(lab));
    let (what, detail) = what.split_once('\n').unwrap_or((&what, ""));
    LabError::failed(what, detail)
}

/// Where the machine's console is written to.
pub fn console_path(lab: &Lab) -> PathBuf {
    lab.directory().join("console.log")
}

/// What the machine said last, to go after a text that says what is wrong.
pub fn console(lab: &Lab) -> String {
    let text = tail(&console_path(lab), CONSOLE_LINES);
    if !text.is_empty() {
        return format!("; its console ends with\n{text}");
    }
    // It has not even started: then the emulator has said why.
    format!("\n{}", tail(&lab.directory().join("init.log"), CONSOLE_LINES)).trim_end().to_owned()
}
