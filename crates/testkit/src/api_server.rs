//! A real API server with its etcd, for tests that need Kubernetes' API but no nodes.
//!
//! In: the artifacts. Out: an address that nobody else uses, the kubeconfigs of an admin and of the cluster manager, the
//! faults that such a server can have, and on request a log of what the cluster manager writes.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use underlay_lab::artifacts::Artifacts;
use underlay_lab::pki::{Actor, Pki};

use crate::process::{Server, mortal};
use crate::require::require_artifacts;
use crate::scratch::Scratch;
use crate::wait::try_wait_for;

/// Port of the first server of a process; the next ones take the next.
const FIRST_PORT: u16 = 16443;
/// What goes into the log of an audited server: every write of the cluster manager, once it is done.
const AUDIT: &str = r#"{
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "users": ["underlay:cluster"],
            "verbs": ["create", "update", "patch", "delete", "deletecollection"]
        },
        { "level": "None" }
    ]
}"#;
/// A busy machine may take several times the two or three seconds of an idle one.
const PATIENCE: Duration = Duration::from_mins(1);

/// etcd and kube-apiserver on this machine's loopback. They end when dropped.
#[derive(Debug)]
pub struct ApiServer {
    // Fields are dropped in order: the API server before its etcd, both before their files.
    controllers: Mutex<Option<Server>>,
    server: Mutex<Server>,
    etcd: Mutex<Server>,
    artifacts: Artifacts,
    address: SocketAddr,
    audited: bool,
    startup: Duration,
    scratch: Scratch,
}

impl ApiServer {
    /// The one server of this test binary, started by whoever asks first. Tests keep apart by namespaces and names.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[track_caller]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ApiServer> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts a server and waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or is not ready in time.
    #[track_caller]
    pub fn start() -> Self {
        Self::launch(false)
    }

    /// As [`Self::start`], with a log of what the cluster manager writes.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or is not ready in time.
    #[track_caller]
    pub fn audited() -> Self {
        Self::launch(true)
    }

    #[track_caller]
    fn launch(audited: bool) -> Self {
        let artifacts = require_artifacts();
        let started = Instant::now();
        let scratch = Scratch::new("api");
        let address = own_address();
        write_keys(&scratch, address);
        let etcd = Mutex::new(start_etcd(&artifacts, &scratch));
        let server = Mutex::new(start_server(&artifacts, &scratch, address, audited));
        let (controllers, startup) = (Mutex::default(), Duration::ZERO);
        let mut this = Self { controllers, server, etcd, artifacts, address, audited, startup, scratch };
        this.wait_until_ready();
        this.startup = started.elapsed();
        this
    }

    #[track_caller]
    fn wait_until_ready(&self) {
        let ready = try_wait_for("the API server to be ready", PATIENCE, || {
            lock(&self.etcd).must_live();
            lock(&self.server).must_live();
            // kubectl is slow to start: first see whether there is anybody to ask.
            TcpStream::connect(self.address).map_err(|error| format!("{}: {error}", self.address))?;
            let output = self.kubectl(&["get", "--raw", "/readyz"]);
            if output.status.success() {
                return Ok(());
            }
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        });
        if let Err(error) = ready {
            panic!("{error}\nlast words of the API server:\n{}", lock(&self.server).last_words());
        }
    }

    /// It hangs: who is connected stays so and hears nothing, until [`resume`](Self::resume).
    #[track_caller]
    pub fn pause(&self) {
        lock(&self.server).signal(Signal::SIGSTOP);
    }

    /// It goes on where it was.
    #[track_caller]
    pub fn resume(&self) {
        lock(&self.server).signal(Signal::SIGCONT);
    }

    /// It is killed, and there is nobody to connect to, until [`revive`](Self::revive).
    pub fn crash(&self) {
        lock(&self.server).end();
    }

    /// Starts it again on the same etcd, and waits until it is ready.
    ///
    /// # Panics
    ///
    /// When it cannot be started, or is not ready in time.
    #[track_caller]
    pub fn revive(&self) {
        *lock(&self.server) = start_server(&self.artifacts, &self.scratch, self.address, self.audited);
        self.wait_until_ready();
    }

    /// Starts Kubernetes' own controllers of these names, separated by commas, for as long as the server lives. They
    /// begin to work some seconds later.
    #[track_caller]
    pub fn run_controllers(&self, names: &str) {
        let mut command = mortal(&self.artifacts.program("kube-controller-manager"));
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .arg(format!("--controllers={names}"))
            .args(["--leader-elect=false", "--secure-port=0"]);
        let log = self.scratch.join("kube-controller-manager.log");
        *lock(&self.controllers) = Some(Server::start("kube-controller-manager", command, &log));
    }

    /// Where it serves.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The same, for who connects without a name.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kubeconfig of an admin, valid as long as the server.
    pub fn kubeconfig(&self) -> PathBuf {
        self.scratch.join("kubeconfig")
    }

    /// Kubeconfig of the cluster manager. What it may do is for the test to say.
    pub fn manager_kubeconfig(&self) -> PathBuf {
        self.scratch.join("kubeconfig-cluster")
    }

    /// What the cluster manager wrote, an event of Kubernetes' audit a line; only of an audited server.
    pub fn audit_log(&self) -> PathBuf {
        self.scratch.join("audit.log")
    }

    /// How long it took from nothing to ready.
    pub fn startup(&self) -> Duration {
        self.startup
    }

    /// Runs kubectl as the admin.
    ///
    /// # Panics
    ///
    /// When kubectl cannot be run at all.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.artifacts.program("kubectl"));
        command.arg("--kubeconfig").arg(self.kubeconfig()).args(arguments).stdin(Stdio::null());
        // Its cache of the API's shape must not outlive the API.
        command.env("KUBECACHEDIR", self.scratch.join("kubectl-cache"));
        command.output().unwrap_or_else(|error| panic!("running kubectl: {error}"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address nobody else picks: our process number, which is unique on this machine and has 22 bits, in the upper
/// quarter of the loopback network. So a port on it cannot be taken between the choice and the server's start.
fn own_address() -> SocketAddr {
    static STARTED: AtomicU16 = AtomicU16::new(0);
    let host = u32::from(Ipv4Addr::new(127, 192, 0, 0)) | (std::process::id() & 0x3f_ffff);
    let port = FIRST_PORT + STARTED.fetch_add(1, Ordering::Relaxed);
    SocketAddr::from((Ipv4Addr::from(host), port))
}

#[track_caller]
fn write_keys(scratch: &Scratch, address: SocketAddr) {
    let names = vec!["localhost".to_owned(), address.ip().to_string()];
    let wanted = [(Actor::Admin, vec![]), (Actor::ClusterManager, vec![]), (Actor::ApiServer, names)];
    let pki = match Pki::issue(&wanted) {
        Ok(pki) => pki,
        Err(error) => panic!("{error}"),
    };
    let server = pki.of(Actor::ApiServer);
    let url = format!("https://{address}");
    let (admin, manager) = (pki.kubeconfig(Actor::Admin, &url), pki.kubeconfig(Actor::ClusterManager, &url));
    for (name, text) in [
        ("ca.crt", &pki.authority.certificate),
        ("server.crt", &server.certificate),
        ("server.key", &server.key),
        ("sa.pub", &pki.service_accounts.certificate),
        ("sa.key", &pki.service_accounts.key),
        ("kubeconfig", &admin),
        ("kubeconfig-cluster", &manager),
        ("audit.json", &AUDIT.to_owned()),
    ] {
        let path = scratch.join(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
    }
}

/// etcd on Unix sockets: no port to choose, and nobody else can reach it.
#[track_caller]
fn start_etcd(artifacts: &Artifacts, scratch: &Scratch) -> Server {
    let (clients, peers) = (socket_url(scratch, "etcd"), socket_url(scratch, "peer"));
    let mut command = mortal(&artifacts.program("etcd"));
    command
        .args(["--name=test", "--unsafe-no-fsync", "--log-level=warn"])
        .arg(format!("--data-dir={}", scratch.join("data").display()))
        .arg(format!("--listen-client-urls={clients}"))
        .arg(format!("--advertise-client-urls={clients}"))
        .arg(format!("--listen-peer-urls={peers}"))
        .arg(format!("--initial-advertise-peer-urls={peers}"))
        .arg(format!("--initial-cluster=test={peers}"));
    Server::start("etcd", command, &scratch.join("etcd.log"))
}

#[track_caller]
fn start_server(artifacts: &Artifacts, scratch: &Scratch, address: SocketAddr, audited: bool) -> Server {
    let file = |flag: &str, name: &str| format!("--{flag}={}", Path::display(&scratch.join(name)));
    let mut command = mortal(&artifacts.program("kube-apiserver"));
    command
        .arg(format!("--etcd-servers={}", socket_url(scratch, "etcd")))
        .arg(format!("--bind-address={}", address.ip()))
        .arg(format!("--secure-port={}", address.port()))
        .arg(file("client-ca-file", "ca.crt"))
        .arg(file("tls-cert-file", "server.crt"))
        .arg(file("tls-private-key-file", "server.key"))
        .arg(file("service-account-key-file", "sa.pub"))
        .arg(file("service-account-signing-key-file", "sa.key"))
        .args(["--service-account-issuer=https://kubernetes.default.svc", "--allow-privileged=true"])
        .args(["--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112", "--authorization-mode=RBAC"])
        // Nobody makes service accounts' tokens here, and nobody looks for the server by its Service.
        .args(["--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none"])
        // Only needed for a host without a default route: the server insists on an address to advertise.
        .args(["--advertise-address=192.0.2.1", "--profiling=false"]);
    if audited {
        command.arg(file("audit-policy-file", "audit.json")).arg(file("audit-log-path", "audit.log"));
    }
    Server::start("kube-apiserver", command, &scratch.join("kube-apiserver.log"))
}

fn socket_url(scratch: &Scratch, name: &str) -> String {
    format!("unix://{}", scratch.join(&format!("{name}.sock")).display())
}
