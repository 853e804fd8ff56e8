//! `underlay-cni`: the plugin that the container runtime calls, installed as `ovn-k8s-cni-overlay`.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use underlay_cni::exchange::DOCUMENT_MAX;
use underlay_cni::result::{Failure, code};
use underlay_cni::{SOCKET, VERSION, plugin};

fn main() -> ExitCode {
    let environment = std::env::vars().filter(|(name, _)| name.starts_with("CNI_")).collect();
    let mut config = Vec::new();
    if let Err(error) = std::io::stdin().take(DOCUMENT_MAX).read_to_end(&mut config) {
        let failure = Failure::new(code::IO, format!("reading the network configuration: {error}"));
        println!("{}", failure.document(VERSION));
        return ExitCode::FAILURE;
    }
    // What is no text makes no sense in any case, and is told so like any other nonsense.
    let config = String::from_utf8_lossy(&config).into_owned();
    // For tests and for nodes that keep their sockets elsewhere.
    let socket = std::env::var_os("UNDERLAY_CNI_SOCKET").map_or_else(|| SOCKET.into(), PathBuf::from);
    let output = plugin::run(environment, config, &socket, plugin::PATIENCE);
    let written = std::io::stdout().write_all(output.text.as_bytes());
    if output.success && written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
