//! A real OVSDB server with one database, on a Unix socket.
//!
//! In: the node image, whose programs run here with the image's own libraries, and a [`Schema`]. Out: a socket, and the
//! command-line clients that belong to the schema. No root is needed.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::OutputExt;
use crate::process::{Server, mortal};
use crate::require::require_artifacts;
use crate::scratch::Scratch;
use crate::wait::try_wait_for;

/// What kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// OVN's northbound database.
    OvnNorthbound,
    /// OVN's southbound database.
    OvnSouthbound,
    /// Open vSwitch's own.
    OpenVswitch,
}

impl Schema {
    /// Its schema file in the node image.
    fn file(self) -> &'static str {
        match self {
            Self::OvnNorthbound => "usr/share/ovn/ovn-nb.ovsschema",
            Self::OvnSouthbound => "usr/share/ovn/ovn-sb.ovsschema",
            Self::OpenVswitch => "usr/share/openvswitch/vswitch.ovsschema",
        }
    }

    /// The client made for it. A switch's client would wait for the switch that nobody runs here.
    fn client(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::OvnNorthbound => ("usr/bin/ovn-nbctl", &[]),
            Self::OvnSouthbound => ("usr/bin/ovn-sbctl", &[]),
            Self::OpenVswitch => ("usr/bin/ovs-vsctl", &["--no-wait"]),
        }
    }
}

/// An OVSDB server. It ends when dropped.
#[derive(Debug)]
pub struct OvsdbServer {
    // Dropped before its files.
    server: Server,
    image: Image,
    schema: Schema,
    scratch: Scratch,
}

impl OvsdbServer {
    /// Starts a server with an empty database and waits until it accepts clients.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[track_caller]
    pub fn start(schema: Schema) -> Self {
        let image = Image { root: require_artifacts().node_image() };
        let scratch = Scratch::new("ovsdb");
        let file = scratch.join("database");
        let mut create = image.command(Command::new(image.loader()), "usr/bin/ovsdb-tool", scratch.path());
        create.arg("create").arg(&file).arg(image.root.join(schema.file()));
        create.output().unwrap_or_else(|error| panic!("running ovsdb-tool: {error}")).ok();
        let mut command = image.command(mortal(&image.loader()), "usr/sbin/ovsdb-server", scratch.path());
        command
            .arg(&file)
            .arg(format!("--remote=p{}", remote(&scratch)))
            .arg(format!("--unixctl={}", scratch.join("ctl").display()))
            .args(["-vconsole:warn", "-vsyslog:off", "-vfile:off"]);
        let server = Server::start("ovsdb-server", command, &scratch.join("log"));
        let mut this = Self { server, image, schema, scratch };
        this.wait_until_ready();
        this
    }

    #[track_caller]
    fn wait_until_ready(&mut self) {
        let socket = self.socket();
        let ready = try_wait_for("ovsdb-server to accept", Duration::from_secs(30), || {
            self.server.must_live();
            UnixStream::connect(&socket).map(drop).map_err(|error| format!("{}: {error}", socket.display()))
        });
        if let Err(error) = ready {
            panic!("{error}\nlast words of ovsdb-server:\n{}", self.server.last_words());
        }
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.scratch.join("sock")
    }

    /// The same as OVSDB clients write it: `unix:PATH`.
    pub fn remote(&self) -> String {
        remote(&self.scratch)
    }

    /// Runs the client that belongs to the schema: `ovn-nbctl`, `ovn-sbctl` or `ovs-vsctl`.
    ///
    /// # Panics
    ///
    /// When it cannot be run at all.
    #[track_caller]
    pub fn ctl(&self, arguments: &[&str]) -> Output {
        let (program, options) = self.schema.client();
        let mut command = self.image.command(Command::new(self.image.loader()), program, self.scratch.path());
        command.arg(format!("--db={}", self.remote())).arg("--timeout=20").args(options).args(arguments);
        command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("running {program}: {error}"))
    }
}

fn remote(scratch: &Scratch) -> String {
    format!("unix:{}", scratch.join("sock").display())
}

/// The node image, whose programs are made for other libraries than this machine's.
#[derive(Debug)]
struct Image {
    root: PathBuf,
}

impl Image {
    /// A program of the image, to be started by the image's own loader with its own libraries. All that the program
    /// would look for in fixed places is looked for in `home`.
    fn command(&self, mut loader: Command, program: &str, home: &Path) -> Command {
        let libraries = match std::env::consts::ARCH {
            "aarch64" => "usr/lib/aarch64-linux-gnu",
            _ => "usr/lib/x86_64-linux-gnu",
        };
        loader.arg("--library-path").arg(self.root.join(libraries)).arg(self.root.join(program));
        for variable in ["RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR"] {
            loader.env(format!("OVS_{variable}"), home).env(format!("OVN_{variable}"), home);
        }
        // Somebody's shell may name a daemon that clients would ask instead of the server.
        loader.env_remove("OVN_NB_DAEMON").env_remove("OVN_SB_DAEMON");
        loader
    }

    /// Path of the loader of this machine's kind.
    fn loader(&self) -> PathBuf {
        self.root.join(match std::env::consts::ARCH {
            "aarch64" => "usr/lib/ld-linux-aarch64.so.1",
            _ => "usr/lib64/ld-linux-x86-64.so.2",
        })
    }
}
