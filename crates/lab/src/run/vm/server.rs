//! Takes commands in the virtual machine: every connection is one command, run with its input and output sent along.

use std::fs::File;
use std::io::{self, Read, Write, pipe};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::pty::{OpenptyResult, openpty};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::frame::{Frame, PIECE, Request, Terminal};
use super::link::{self, Receiver, Sender};
use crate::run::keeper::ENVIRONMENT;
use crate::run::reaper::{Exit, Reaper};

/// This program: the first process of the machine never ends, and its file stays even if its path goes.
const PROGRAM: &str = "/proc/1/exe";
/// Time between the polite and the other signal for a command whose user is gone.
const GRACE: Duration = Duration::from_secs(2);
/// How long output may stay away, once the command has ended, before nobody waits for it any more: in steps of 10 ms.
const QUIET: u32 = 50;

/// What the server needs to know.
#[derive(Debug)]
pub struct Server {
    /// Name of the lab.
    pub lab: String,
    /// Environment of the commands, beside the usual.
    pub environment: Vec<(String, String)>,
    /// Starts them.
    pub reaper: Reaper,
}

impl Server {
    /// Serves for ever.
    pub fn serve(self, listener: &TcpListener) {
        let server = Arc::new(self);
        for stream in listener.incoming().flatten() {
            let server = Arc::clone(&server);
            thread::spawn(move || {
                if let Err(error) = server.one(stream) {
                    eprintln!("lab: a command's connection ended: {error}");
                }
            });
        }
    }

    /// One connection.
    fn one(&self, stream: TcpStream) -> io::Result<()> {
        let (sender, mut receiver) = link::halves(stream)?;
        let Frame::Request(request) = receiver.receive()? else {
            return Err(io::Error::other("it asked for nothing"));
        };
        let code = self.run(&request, &sender, receiver).unwrap_or_else(|error| {
            let text = format!("error: running a command in the virtual machine: {error}\n");
            let _ = sender.send(&Frame::Errors(text.into_bytes()));
            1
        });
        sender.send(&Frame::Exit(code))?;
        sender.close();
        Ok(())
    }

    fn run(&self, request: &Request, sender: &Sender, receiver: Receiver) -> io::Result<u8> {
        let running = match &request.terminal {
            Some(terminal) => self.start_in_terminal(request, terminal)?,
            None => self.start(request)?,
        };
        let pid = running.pid;
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        thread::spawn(move || feed(receiver, running.input, pid, &ended));
        let copies: Vec<Copy> = running
            .outputs
            .into_iter()
            .map(|(from, frame)| Copy::start(from, frame, sender.clone()))
            .collect();
        let exit = self.reaper.wait(pid);
        over.store(true, Ordering::SeqCst);
        drain(&copies);
        Ok(match exit {
            Exit::Code(code) => u8::try_from(code).unwrap_or(1),
            Exit::Signal(_) => 1,
        })
    }

    /// The verb, in the machine's own environment.
    fn command(&self, program: &str, request: &Request) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(ENVIRONMENT).envs(self.environment.iter().cloned()).current_dir("/");
        if request.colour {
            command.env("CLICOLOR_FORCE", "1");
        }
        command
    }

    fn start(&self, request: &Request) -> io::Result<Running> {
        let (input, to) = pipe()?;
        let (from_output, output) = pipe()?;
        let (from_errors, errors) = pipe()?;
        let mut command = self.command(PROGRAM, request);
        command.args(["lab", "--name", &self.lab]).args(&request.arguments);
        // A group of its own, so that the whole of it can be ended.
        command.stdin(input).stdout(output).stderr(errors).process_group(0);
        let pid = self.reaper.spawn(&mut command)?;
        let file = |end: OwnedFd| File::from(end);
        let outputs: Vec<Stream> =
            vec![(file(from_output.into()), Frame::Output), (file(from_errors.into()), Frame::Errors)];
        Ok(Running { pid, input: file(to.into()), outputs })
    }

    fn start_in_terminal(&self, request: &Request, terminal: &Terminal) -> io::Result<Running> {
        let OpenptyResult { master, slave } = openpty(None, None)?;
        if let Some((rows, columns)) = terminal.size.split_once(' ') {
            let mut size = self.command("stty", request);
            size.args(["rows", rows, "cols", columns]).stdin(slave.try_clone()?).stderr(Stdio::null());
            self.reaper.wait(self.reaper.spawn(&mut size)?);
        }
        // `setsid` makes it the command's controlling terminal, so that its keys for signals work.
        let mut command = self.command("setsid", request);
        command.env("TERM", &terminal.kind);
        command.args(["--ctty", PROGRAM, "lab", "--name", &self.lab]).args(&request.arguments);
        command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
        let pid = self.reaper.spawn(&mut command)?;
        let keeper = File::from(master);
        Ok(Running { pid, input: keeper.try_clone()?, outputs: vec![(keeper, Frame::Output)] })
    }
}

/// An output of a command, and how its bytes are framed.
type Stream = (File, fn(Vec<u8>) -> Frame);

/// A command that was started, and our ends of its input and output.
struct Running {
    pid: Pid,
    input: File,
    outputs: Vec<Stream>,
}

/// Hands input on to the command. Ends the command if whoever asked for it goes away.
fn feed(mut receiver: Receiver, input: File, pid: Pid, over: &AtomicBool) {
    let mut input = Some(input);
    loop {
        match receiver.receive() {
            Ok(Frame::Input(bytes)) => {
                // A command need not read its input.
                if input.as_mut().is_some_and(|input| input.write_all(&bytes).is_err()) {
                    input = None;
                }
            }
            Ok(Frame::InputEnd) => input = None,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    for signal in [Signal::SIGHUP, Signal::SIGKILL] {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let _ = killpg(pid, signal);
        thread::sleep(GRACE);
    }
}

/// A thread that sends output on.
struct Copy {
    sending: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Copy {
    fn start(mut from: File, frame: fn(Vec<u8>) -> Frame, sender: Sender) -> Self {
        let sending = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&sending);
        let thread = thread::spawn(move || {
            let mut bytes = vec![0; PIECE];
            while let Ok(read @ 1..) = from.read(&mut bytes) {
                flag.store(true, Ordering::SeqCst);
                if sender.send(&frame(bytes[..read].to_vec())).is_err() {
                    return;
                }
                flag.store(false, Ordering::SeqCst);
            }
        });
        Self { sending, thread }
    }
}

/// Waits until all output of a command that has ended is sent. What it left running in the background may keep the
/// pipes open for ever: then a pause is taken for the end.
fn drain(copies: &[Copy]) {
    let mut quiet = 0;
    while quiet < QUIET && !copies.iter().all(|copy| copy.thread.is_finished()) {
        let sending = copies.iter().any(|copy| copy.sending.load(Ordering::SeqCst));
        quiet = if sending { 0 } else { quiet + 1 };
        thread::sleep(Duration::from_millis(10));
    }
}
