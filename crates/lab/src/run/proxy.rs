//! Makes the API server reachable from the developer's shell: a loopback port outside, a socket in the node inside.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use nix::sched::{CloneFlags, setns};

use crate::error::{Doing, LabError};
use crate::plan::API_PORT;

/// Opens the port on the loopback of the network we are in.
pub fn listen() -> Result<TcpListener, LabError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).doing(|| "opening a port for the API server".to_owned())
}

/// Hands every connection on to the API server in that network namespace, for ever.
pub fn serve(listener: TcpListener, network: &Path) -> Result<(), LabError> {
    let namespace = File::open(network).doing(|| format!("opening {}", network.display()))?;
    let clients = accept_all(listener);
    // A socket belongs to the namespace of the thread that made it: this thread lives inside.
    thread::spawn(move || {
        if let Err(error) = setns(namespace, CloneFlags::CLONE_NEWNET) {
            eprintln!("proxy: entering the control plane's network: {error}");
            return;
        }
        connect_all(&clients, (Ipv4Addr::LOCALHOST, API_PORT).into());
    });
    Ok(())
}

/// Hands every connection on to a server of the network we are in, for ever.
pub fn pass_on(listener: TcpListener, server: SocketAddr) {
    let clients = accept_all(listener);
    thread::spawn(move || connect_all(&clients, server));
}

fn accept_all(listener: TcpListener) -> Receiver<TcpStream> {
    let (sender, clients) = channel();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if sender.send(client).is_err() {
                return;
            }
        }
    });
    clients
}

fn connect_all(clients: &Receiver<TcpStream>, server: SocketAddr) {
    for client in clients {
        match TcpStream::connect(server) {
            Ok(server) => {
                if let Err(error) = join(client, server) {
                    eprintln!("proxy: {error}");
                }
            }
            // The client sees its connection closed, and tries again: the API server is not up yet, or not any more.
            Err(error) => eprintln!("proxy: {error}"),
        }
    }
}

fn join(client: TcpStream, server: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (back, forth) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || copy(client, server));
    thread::spawn(move || copy(back, forth));
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
