//! A real switch in a namespace: its database, its daemon and its programs, all of the node image.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use underlay_desired::{ObjectRef, Why};
use underlay_ovs::selection;
use underlay_ovsdb::{Client, Config, open};
use underlay_testkit::{Netns, OutputExt, OvsdbServer, Schema, require_artifacts};

pub fn why() -> Why {
    Why::from_object(ObjectRef::cluster("Node", "one"))
}

/// A switch whose packets are handled by its own process, so that no kernel module is needed.
pub struct OvsSwitch {
    daemon: Child,
    database: OvsdbServer,
    pub netns: Netns,
}

impl OvsSwitch {
    /// Starts a switch with these bridges.
    pub fn start(bridges: &[&str]) -> Self {
        let netns = Netns::new();
        let database = OvsdbServer::start(Schema::OpenVswitch);
        database.ctl(&["init"]).ok();
        let remote = database.remote();
        let home = home(&database);
        // Killed with the thread of the test, should that not get to drop it.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", "nsenter"])
            .arg(format!("--net={}", netns.path().display()));
        command.args(program("usr/lib/openvswitch-switch/ovs-vswitchd", &home)).arg(remote);
        command.arg("--disable-system").arg(format!("--unixctl={}", home.join("switch").display()));
        command.args(["-vconsole:off", "-vsyslog:off", "-vfile:off"]).stdin(Stdio::null());
        let daemon = command.spawn().unwrap();
        let this = Self { daemon, database, netns };
        for bridge in bridges {
            // Without `--no-wait` it returns when the switch has made the bridge.
            let set = ["--", "set", "bridge", bridge, "datapath_type=netdev"];
            this.vsctl(&[&["add-br", bridge], &set[..]].concat());
        }
        this
    }

    /// Runs `ovs-vsctl`, waits for the switch to follow, and returns what it printed.
    pub fn vsctl(&self, arguments: &[&str]) -> String {
        let database = format!("--db={}", self.database.remote());
        self.run("usr/bin/ovs-vsctl", &[&["--timeout=20", &database], arguments].concat()).ok()
    }

    /// Runs `ovs-ofctl` and returns what it printed.
    pub fn ofctl(&self, arguments: &[&str]) -> String {
        self.run("usr/bin/ovs-ofctl", &[&["-O", "OpenFlow15"], arguments].concat()).ok()
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Output {
        let command = program(name, &home(&self.database));
        Command::new(&command[0]).args(&command[1..]).args(arguments).output().unwrap()
    }

    /// The words to call `ovs-ofctl` by, for the edge under test.
    pub fn edge_ofctl(&self) -> Vec<String> {
        program("usr/bin/ovs-ofctl", &home(&self.database))
    }

    /// A client of its database, loaded.
    pub async fn client(&self) -> Client {
        let remote = self.database.remote().parse().unwrap();
        let (client, session) = open(Config::new(remote, "Open_vSwitch", selection()));
        tokio::spawn(session.run());
        client.loaded().await.unwrap();
        client
    }
}

impl Drop for OvsSwitch {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Where all of the switch's files are: beside the database's socket.
fn home(database: &OvsdbServer) -> PathBuf {
    database.socket().parent().unwrap().to_owned()
}

/// A program of the node image, run by the image's own loader.
fn program(name: &str, home: &Path) -> Vec<String> {
    let image = require_artifacts().node_image();
    let (loader, libraries) = match std::env::consts::ARCH {
        "aarch64" => ("usr/lib/ld-linux-aarch64.so.1", "usr/lib/aarch64-linux-gnu"),
        _ => ("usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"),
    };
    let path = |relative: &str| image.join(relative).display().to_string();
    let variable = |name: &str| format!("OVS_{name}={}", home.display());
    ["env".to_owned()]
        .into_iter()
        .chain(["RUNDIR", "LOGDIR", "DBDIR", "SYSCONFDIR"].map(variable))
        .chain([path(loader), "--library-path".to_owned(), path(libraries), path(name)])
        .collect()
}
