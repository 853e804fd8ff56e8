//! Everything that passes a machine's uplink and fits a filter.

use std::io::Read;
use std::process::{Child, Stdio};

use underlay_testkit::{LabUnderTest, OutputExt};

/// Everything that passes a machine's uplink and fits a filter, until it is asked for.
pub struct Listener {
    child: Child,
    machine: String,
    /// A file that ends it.
    stop: String,
}

impl Listener {
    /// Begins to listen; returns once it does.
    pub fn start(lab: &LabUnderTest, machine: &str, filter: &str) -> Self {
        let stop =
            format!("/tmp/stop-{}", filter.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"));
        let script = format!(
            "rm -f {stop}; timeout 60 tcpdump --immediate-mode -n -l -U -i eth0 '{filter}' 2>&1 & \
             while [ ! -e {stop} ]; do sleep 0.05; done; kill -TERM $!; wait $!; true"
        );
        let mut child = lab
            .command()
            .args(["exec", machine, "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("running the lab's command");
        let (mut said, mut byte) = (String::new(), [0]);
        let output = child.stdout.as_mut().expect("a pipe");
        while !said.contains("listening on") && output.read(&mut byte).expect("reading") == 1 {
            said.push(char::from(byte[0]));
        }
        assert!(said.contains("listening on"), "{said}");
        Self { child, machine: machine.to_owned(), stop }
    }

    /// What passed, a line of tcpdump each.
    pub fn packets(mut self, lab: &LabUnderTest) -> Vec<String> {
        // What has passed is printed at once, but by another process than the one that saw the answer.
        std::thread::sleep(std::time::Duration::from_millis(300));
        lab.exec(&self.machine, &["touch", &self.stop]).ok();
        let mut text = String::new();
        self.child.stdout.as_mut().expect("a pipe").read_to_string(&mut text).expect("reading");
        let _ = self.child.wait();
        text.lines().filter(|line| line.contains(" IP")).map(str::to_owned).collect()
    }
}
