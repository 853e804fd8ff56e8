//! Ways to a real server: TCP, TLS, and what keeps them alive.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use common::server::{HardyServer, Storage};
use common::{LogicalSwitch, config, loaded, start, status_where, synced, within};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use underlay_ovsdb::{Client, Config, NameCheck, Phase, Tls, Transaction};
use underlay_testkit::{OutputExt, Scratch};

mod common;

async fn add_switch(client: &Client, name: &str) {
    let mut txn = Transaction::new();
    txn.insert_row(&LogicalSwitch { name: name.to_owned(), ..LogicalSwitch::default() });
    within("the switch", client.transact(txn)).await.unwrap();
}

/// An authority with a certificate for a server and one for a client, as files.
struct Pki {
    files: Scratch,
}

impl Pki {
    fn new(server_names: &[&str]) -> Self {
        let files = Scratch::new("pki");
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(files.join("ca.pem"), certificate.pem()).unwrap();
        let authority = Issuer::new(params, key);
        for (who, names) in [("server", server_names), ("client", &["underlay"])] {
            let key = KeyPair::generate().unwrap();
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let mut params = CertificateParams::new(names).unwrap();
            // Another name than the authority's: OpenSSL takes a certificate of its issuer's name for self-signed.
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::CommonName, who);
            let certificate = params.signed_by(&key, &authority).unwrap();
            std::fs::write(files.join(&format!("{who}.pem")), certificate.pem()).unwrap();
            std::fs::write(files.join(&format!("{who}.key")), key.serialize_pem()).unwrap();
        }
        Self { files }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.files.join(name)
    }

    fn server(&self) -> HardyServer {
        let argument = |name: &str, file: &str| format!("--{name}={}", self.file(file).display());
        let arguments = [
            argument("private-key", "server.key"),
            argument("certificate", "server.pem"),
            argument("ca-cert", "ca.pem"),
            "--remote=pssl:0:127.0.0.1".to_owned(),
        ];
        HardyServer::start(Storage::Standalone, &arguments.each_ref().map(String::as_str))
    }

    fn client(&self, name: NameCheck) -> Tls {
        Tls {
            authority: self.file("ca.pem"),
            certificate: self.file("client.pem"),
            key: self.file("client.key"),
            name,
        }
    }
}

fn ssl(server: &HardyServer, tls: Option<Tls>) -> Config {
    Config { tls, ..config(&format!("ssl:127.0.0.1:{}", server.port())) }
}

async fn error_of(config: Config) -> String {
    let client = start(config);
    let status = status_where(&client, "a refusal", |status| status.last_error.is_some()).await;
    assert_eq!(status.connections, 0);
    status.last_error.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_with_certificates_of_one_authority() {
    let pki = Pki::new(&["127.0.0.1"]);
    let server = pki.server();
    let client = loaded(ssl(&server, Some(pki.client(NameCheck::Host)))).await;
    add_switch(&client, "encrypted").await;
    assert!(server.ctl(&["ls-list"]).ok().contains("(encrypted)"));
    server.ctl(&["ls-add", "by-another"]).ok();
    let mut updates = client.subscribe();
    common::update_where(&mut updates, "the other switch", |replica| replica.row_count() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_checks_whom_it_talks_to() {
    let (pki, stranger) = (Pki::new(&["ovn"]), Pki::new(&["127.0.0.1"]));
    let server = pki.server();
    // The certificate names somebody else than the address: refused, unless that name or none is asked for.
    let error = error_of(ssl(&server, Some(pki.client(NameCheck::Host)))).await;
    assert!(error.contains("certificate"), "{error}");
    loaded(ssl(&server, Some(pki.client(NameCheck::Name("ovn".to_owned()))))).await;
    loaded(ssl(&server, Some(pki.client(NameCheck::None)))).await;
    // Another authority is refused whatever name is asked for, on either side.
    let wrong_authority = Tls { authority: stranger.file("ca.pem"), ..pki.client(NameCheck::None) };
    let error = error_of(ssl(&server, Some(wrong_authority))).await;
    assert!(error.contains("certificate"), "{error}");
    let wrong_client = Tls { authority: pki.file("ca.pem"), ..stranger.client(NameCheck::None) };
    error_of(ssl(&server, Some(wrong_client))).await;
    // Files that are not there, or none at all.
    let no_key = Tls { key: Path::new("/nowhere/key").into(), ..pki.client(NameCheck::None) };
    let error = error_of(ssl(&server, Some(no_key))).await;
    assert!(error.contains("/nowhere/key"), "{error}");
    let error = error_of(ssl(&server, None)).await;
    assert!(error.contains("no certificate is configured"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_of_the_server_are_answered() {
    let server =
        HardyServer::start(Storage::Standalone, &["--remote=db:OVN_Northbound,NB_Global,connections"]);
    server.ctl(&["--inactivity-probe=1000", "set-connection", "ptcp:0:127.0.0.1"]).ok();
    let port = server.port();
    let mut config = config(&format!("tcp:127.0.0.1:{port}"));
    // Ours are off, so that only the server's keep the connection alive.
    config.tuning.probe = None;
    let client = loaded(config).await;
    // Somebody who does not answer is sent away: the server does probe.
    let mut mute = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let begun = Instant::now();
    let sent_away = tokio::task::spawn_blocking(move || {
        mute.set_read_timeout(Some(common::PATIENCE)).unwrap();
        let mut said = Vec::new();
        mute.read_to_end(&mut said).map(|_| String::from_utf8_lossy(&said).into_owned())
    });
    let said = within("the mute one's end", sent_away).await.unwrap().unwrap();
    assert!(said.contains("echo"), "{said}");
    println!("the mute one was sent away after {:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = synced(&client, 1).await;
    assert_eq!((status.connections, status.last_error), (1, None));
    add_switch(&client, "still-here").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_given_up_and_found_again() {
    let server = HardyServer::start(Storage::Standalone, &[]);
    let mut config = config(&server.remote());
    config.tuning.probe = Some(Duration::from_millis(300));
    let client = loaded(config).await;
    // Idle, but answering: kept.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(synced(&client, 1).await.connections, 1);
    server.freeze();
    let status = status_where(&client, "a wait", |status| status.phase == Phase::Waiting).await;
    assert_eq!(status.last_error.as_deref(), Some("the server is silent and does not answer a probe"));
    server.thaw();
    synced(&client, 2).await;
    add_switch(&client, "awake").await;
    assert!(server.ctl(&["ls-list"]).ok().contains("(awake)"));
}
