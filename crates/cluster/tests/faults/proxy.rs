//! A way to the API server that a test can cut or clog. It copies bytes and understands none of them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use underlay_testkit::{ApiServer, Scratch};

/// How long the server's answer to what was held back is waited for after the asker has gone.
const AFTERMATH: Duration = Duration::from_secs(3);

pub struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whether what clients say is held back.
    held: bool,
    /// Bytes that were held back.
    late: usize,
    links: Vec<(TcpStream, TcpStream)>,
}

impl Proxy {
    pub fn start(server: &ApiServer, scratch: &Scratch) -> Self {
        // The server's certificate is for its address, whatever the port.
        let listener = TcpListener::bind((server.address().ip(), 0)).unwrap();
        let way = format!("https://{}", listener.local_addr().unwrap());
        let kubeconfig = scratch.join("proxy.kubeconfig");
        let direct = std::fs::read_to_string(server.kubeconfig()).unwrap();
        assert!(direct.contains(&server.url()));
        std::fs::write(&kubeconfig, direct.replace(&server.url(), &way)).unwrap();
        let shared = Arc::<Shared>::default();
        let (serving, target) = (shared.clone(), server.address());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                serving.connect(client, target);
            }
        });
        Self { shared, kubeconfig }
    }

    /// The kubeconfig that leads through it.
    pub fn kubeconfig(&self) -> &PathBuf {
        &self.kubeconfig
    }

    /// Cuts all connections. Returns how many there were.
    pub fn cut(&self) -> usize {
        let links = std::mem::take(&mut self.shared.state.lock().unwrap().links);
        for (client, server) in &links {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        links.len()
    }

    /// Holds back what clients say from now on; they still hear the server.
    pub fn hold(&self) {
        self.shared.state.lock().unwrap().held = true;
    }

    /// Lets go what was held back. Returns how many bytes that is.
    pub fn release(&self) -> usize {
        let mut state = self.shared.state.lock().unwrap();
        state.held = false;
        self.shared.changed.notify_all();
        state.late
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: TcpStream, target: SocketAddr) {
        let Ok(server) = TcpStream::connect(target) else { return };
        let twin = |stream: &TcpStream| stream.try_clone().unwrap();
        let link = (twin(&client), twin(&server));
        self.state.lock().unwrap().links.push(link);
        let (asks, answers, shared) = ((twin(&client), twin(&server)), (server, client), self.clone());
        thread::spawn(move || shared.carry_questions(asks.0, asks.1));
        thread::spawn(move || carry_answers(answers.0, answers.1));
    }

    fn carry_questions(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut bytes = [0; 16384];
        let mut was_late = false;
        while let Ok(count @ 1..) = client.read(&mut bytes) {
            let mut state = self.state.lock().unwrap();
            if state.held {
                state.late += count;
                was_late = true;
            }
            let state = self.changed.wait_while(state, |state| state.held).unwrap();
            drop(state);
            if server.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        if was_late {
            thread::sleep(AFTERMATH);
        }
        let _ = server.shutdown(Shutdown::Write);
    }
}

/// Carries answers, also to nobody: a server that cannot answer would give up.
fn carry_answers(mut server: TcpStream, mut client: TcpStream) {
    let mut bytes = [0; 16384];
    while let Ok(count @ 1..) = server.read(&mut bytes) {
        let _ = client.write_all(&bytes[..count]);
    }
    let _ = client.shutdown(Shutdown::Write);
}
