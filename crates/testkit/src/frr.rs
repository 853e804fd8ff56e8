//! Real FRR of the node image, each in a network, process and file system of its own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::{OutputExt, Scratch, require_artifacts, require_root, wait_for};

/// Prepares the file system, starts FRR and stays. Its first line of output is its process number out here.
const INIT: &str = r#"
set -e
read -r pid _ < /proc/self/stat
root=$1 image=$2
mount --bind "$image" "$root"
for directory in run etc/frr tmp var/tmp var/lib/frr; do mount -t tmpfs tmpfs "$root/$directory"; done
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
cp "$3" "$root/etc/frr/frr.conf"
echo "service integrated-vtysh-config" > "$root/etc/frr/vtysh.conf"
chmod 640 "$root/etc/frr/frr.conf"
ip link set lo up
chroot "$root" sh -c 'install -d -o frr -g frr /run/frr /var/tmp/frr && chown -R frr:frr /etc/frr /var/lib/frr'
for daemon in mgmtd zebra bgpd bfdd; do
    file="-f /etc/frr/frr.conf"
    [ $daemon = mgmtd ] && file=
    chroot "$root" /usr/lib/frr/$daemon -d -A 127.0.0.1 $file --log file:/run/frr/$daemon.log > /dev/null 2>&1
done
exec chroot "$root" sh -c 'echo "$1"; exec sleep infinity' sh "$pid"
"#;

/// A machine with FRR. It ends, with everything in it, when dropped.
pub struct FrrHost {
    init: Child,
    pid: String,
    _scratch: Scratch,
}

impl FrrHost {
    /// Starts FRR with this configuration.
    ///
    /// # Panics
    ///
    /// Without root and the node image, or when FRR does not start.
    #[track_caller]
    pub fn start(name: &str, configuration: &str) -> Self {
        require_root();
        let scratch = Scratch::new(name);
        let (root, file) = (scratch.join("root"), scratch.join("frr.conf"));
        fs::create_dir(&root).expect("making a root");
        fs::write(&file, format!("frr defaults datacenter\nhostname {name}\n{configuration}"))
            .expect("writing a configuration");
        let mut init = Command::new("setpriv");
        init.args(["--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]);
        init.args(["sh", "-c", INIT, "sh"]).arg(&root).arg(require_artifacts().node_image()).arg(&file);
        let mut init = init.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starting a machine");
        let mut pid = String::new();
        let output = init.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut pid).expect("reading its number");
        let this = Self { init, pid: pid.trim().to_owned(), _scratch: scratch };
        assert!(!this.pid.is_empty(), "FRR did not start");
        this
    }

    /// A path in it, as it is seen from outside.
    pub fn path(&self, inside: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{inside}", self.pid))
    }

    /// How to call FRR's own tool in it.
    pub fn vtysh_command(&self) -> Vec<String> {
        self.inside("vtysh").map(str::to_owned).to_vec()
    }

    fn inside<'a>(&'a self, program: &'a str) -> [&'a str; 8] {
        ["nsenter", "--target", &self.pid, "--mount", "--net", "--pid", "--root", program]
    }

    /// Runs a program in it.
    ///
    /// # Panics
    ///
    /// When the program cannot be started.
    #[track_caller]
    pub fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let [first, rest @ ..] = self.inside(program);
        let mut command = Command::new(first);
        command.args(rest).args(arguments).stdin(Stdio::null()).output().expect("running a program")
    }

    /// Asks FRR by its own tool.
    pub fn vtysh(&self, command: &str) -> String {
        self.run("vtysh", &["-c", command]).ok()
    }

    /// Runs `ip` in its network.
    ///
    /// # Panics
    ///
    /// When `ip` fails.
    #[track_caller]
    pub fn ip(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid, "--net", "ip"]).args(arguments);
        command.output().expect("running ip").ok()
    }

    /// Connects two machines; each has the address with its number.
    pub fn connect(&self, other: &Self) {
        self.ip(&["link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", &other.pid]);
        for (machine, number) in [(self, 1), (other, 2)] {
            machine.ip(&["address", "add", &format!("10.0.0.{number}/24"), "dev", "eth0"]);
            machine.ip(&["address", "add", &format!("10.0.1.{number}/24"), "dev", "eth0"]);
            machine.ip(&["address", "add", &format!("fd00::{number}/64"), "dev", "eth0", "nodad"]);
            machine.run("sh", &["-c", "echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad"]).ok();
            machine.ip(&["link", "set", "eth0", "up"]);
        }
    }

    /// What FRR runs with, by its own tool.
    pub fn configuration(&self) -> String {
        self.vtysh("show running-config")
    }

    /// Waits until FRR's own tool shows something.
    pub fn wait_until_shows(&self, command: &str, words: &str) {
        wait_for(&format!("{words:?} in {command:?}"), Duration::from_secs(10), || {
            let text = self.vtysh(command);
            if text.contains(words) { Ok(()) } else { Err(text) }
        });
    }

    /// Waits until FRR's own tool no longer shows something.
    pub fn wait_until_hides(&self, patience: Duration, command: &str, words: &str) {
        wait_for(&format!("no {words:?} in {command:?}"), patience, || {
            let text = self.vtysh(command);
            if text.contains(words) { Err(text) } else { Ok(()) }
        });
    }

    /// How often a session with a peer has come up, by FRR's own tool.
    ///
    /// # Panics
    ///
    /// When FRR does not know the peer.
    #[track_caller]
    pub fn established(&self, peer: &str) -> String {
        let text = self.vtysh(&format!("show bgp neighbors {peer} json"));
        let start = text.find("\"connectionsEstablished\"").unwrap_or_else(|| panic!("{text}"));
        text[start..].lines().next().unwrap_or_default().to_owned()
    }

    /// Ends bgpd without a chance to say goodbye.
    pub fn kill_bgpd(&self) {
        self.run("sh", &["-c", "kill -9 $(cat /run/frr/bgpd.pid) && rm /run/frr/bgpd.pid /run/frr/bgpd.vty"])
            .ok();
    }

    /// Starts bgpd with FRR's file.
    pub fn start_bgpd(&self) {
        let start =
            "/usr/lib/frr/bgpd -d -A 127.0.0.1 -f /etc/frr/frr.conf --log file:/run/frr/bgpd.log >&- 2>&-";
        self.run("sh", &["-c", start]).ok();
    }
}

impl Drop for FrrHost {
    fn drop(&mut self) {
        let _ = self.init.kill();
        let _ = self.init.wait();
    }
}
