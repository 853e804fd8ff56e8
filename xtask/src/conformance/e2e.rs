//! `e2e.test`, Kubernetes' own end-to-end tests in one program.
//!
//! In: which specs, and a lab that is up. Out: the names of the specs, or the report of a run, with progress on
//! standard error meanwhile.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use underlay_lab::Lab;
use underlay_lab::artifacts::Artifacts;
use xtask::interrupt::Interrupt;

use super::follow::Follower;
use super::report::{self, Report};
use super::show::Progress;

/// Root of the source tree.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// How often we look whether the user wants to end the run.
const GLANCE: Duration = Duration::from_millis(100);

/// Which specs.
#[derive(Debug)]
pub struct Selection<'a> {
    /// Names of the specs to run match this.
    pub focus: &'a str,
    /// And do not match this.
    skip: Option<&'a str>,
    /// And do not need what the kernel does not have.
    sctp: bool,
}

/// What the names of specs say that need SCTP.
const SCTP: &str = r"\[Feature:SCTPConnectivity\]";

impl<'a> Selection<'a> {
    /// Blanks around the expressions come from shells and makefiles, not from the user.
    pub fn new(focus: &'a str, skip: Option<&'a str>) -> Self {
        let skip = skip.map(str::trim).filter(|skip| !skip.is_empty());
        Self { focus: focus.trim(), skip, sctp: true }
    }

    /// Leaves out the specs that need SCTP.
    #[must_use]
    pub fn without_sctp(self) -> Self {
        Self { sctp: false, ..self }
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--ginkgo.focus={}", self.focus)];
        flags.extend(self.skip.map(|skip| format!("--ginkgo.skip={skip}")));
        flags.extend((!self.sctp).then(|| format!("--ginkgo.skip={SCTP}")));
        flags
    }
}

/// Whether the kernel speaks SCTP, now or once somebody asks it to.
pub fn kernel_has_sctp() -> bool {
    let known = |text: String| text.lines().any(|line| line.starts_with("SCTP"));
    let loads =
        || Command::new("modprobe").args(["-q", "sctp"]).status().is_ok_and(|status| status.success());
    fs::read_to_string("/proc/net/protocols").is_ok_and(known) || loads()
}

/// The program, and where its output goes.
#[derive(Debug)]
pub struct E2e {
    program: PathBuf,
    directory: PathBuf,
}

impl E2e {
    /// Builds the program if it is not there yet. Its reports go below the build's own directory.
    pub fn build(lab: &Lab) -> Result<Self> {
        let setup = Path::new(SOURCE).join("tools/setup");
        let output = Command::new(&setup).arg("e2e").stdin(Stdio::null()).stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("running {}", setup.display()))?;
        if !output.status.success() {
            bail!("Kubernetes' end-to-end tests could not be built");
        }
        let program = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let us = std::env::current_exe().context("finding this program")?;
        let builds = us.ancestors().nth(2).unwrap_or(Path::new("."));
        let directory = builds.join("conformance").join(lab.name());
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(Self { program, directory })
    }

    /// The program itself.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Everything that the last run printed.
    pub fn log(&self) -> PathBuf {
        self.directory.join("e2e.log")
    }

    fn command(&self, selection: &Selection, report: &Path) -> Command {
        // A report of an earlier run must not be taken for this one's.
        let _ = fs::remove_file(report);
        let mut command = Command::new(&self.program);
        command
            .args(["--provider=skeleton", "--ginkgo.no-color", "--ginkgo.silence-skips"])
            .arg(format!("--ginkgo.json-report={}", report.display()))
            .args(selection.flags())
            .current_dir(&self.directory)
            .stdin(Stdio::null());
        command
    }

    /// Names of the specs that would run. Needs no cluster.
    pub fn preview(&self, selection: &Selection) -> Result<Vec<String>> {
        let path = self.directory.join("preview.json");
        let output = self.command(selection, &path).arg("--ginkgo.dry-run").output();
        let output = output.with_context(|| format!("running {}", self.program.display()))?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            bail!("the tests do not accept this choice: {}", complaint(&String::from_utf8_lossy(&text)));
        }
        let report = read_report(&path)?;
        Ok(report.specs.into_iter().map(|spec| spec.name).collect())
    }

    /// Runs the specs of these names against a lab with this many nodes for pods.
    pub fn run(
        &self,
        selection: &Selection,
        names: &[String],
        lab: &Lab,
        workers: usize,
        interrupt: &Interrupt,
    ) -> Result<Report> {
        let path = self.directory.join("report.json");
        let log = File::create(self.log()).with_context(|| format!("writing {}", self.log().display()))?;
        let mut command = self.command(selection, &path);
        command
            .args(["--ginkgo.v", "--ginkgo.timeout=24h", "--allowed-not-ready-nodes=0"])
            .arg("--non-blocking-taints=node-role.kubernetes.io/control-plane")
            .arg(format!("--num-nodes={workers}"))
            .arg(format!("--kubeconfig={}", lab.kubeconfig("admin").display()))
            .arg(format!("--kubectl-path={}", Artifacts::find()?.program("kubectl").display()))
            .stdout(Stdio::piped())
            .stderr(log.try_clone().context("opening the log")?)
            // Ctrl-C at the terminal reaches us alone; we hand it on once, so that the tests clean up.
            .process_group(0);
        let mut child = command.spawn().with_context(|| format!("running {}", self.program.display()))?;
        watch(&mut child, log, names, interrupt);
        let status = child.wait().context("waiting for the tests")?;
        // It ends with 1 both when a spec failed and when it never got that far; only the report tells.
        read_report(&path)
            .with_context(|| format!("the tests ended with {status}; see {}", self.log().display()))
    }
}

/// Shows progress and keeps the output until the program closes it.
fn watch(child: &mut Child, mut log: File, names: &[String], interrupt: &Interrupt) {
    let Some(output) = child.stdout.take() else { return };
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut follower = Follower::new(names);
    let mut progress = Progress::start(names.len());
    while let Some(line) = next_line(&lines, || hand_on(child, interrupt)) {
        // A full disk costs the log, not the run.
        let _ = writeln!(log, "{line}");
        if let Some(note) = follower.line(&line) {
            progress.note(&note);
        }
    }
    progress.finish();
}

fn next_line(lines: &Receiver<String>, mut meanwhile: impl FnMut()) -> Option<String> {
    loop {
        meanwhile();
        match lines.recv_timeout(GLANCE) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Interrupts the tests if the user interrupted us. They clean up after the first time and end at once after the next.
fn hand_on(child: &Child, interrupt: &Interrupt) {
    if interrupt.take()
        && let Ok(pid) = i32::try_from(child.id())
    {
        eprintln!("interrupted: the tests clean up; once more ends them at once");
        let _ = kill(Pid::from_raw(pid), Signal::SIGINT);
    }
}

fn read_report(path: &Path) -> Result<Report> {
    let text = fs::read(path).with_context(|| format!("there is no report at {}", path.display()))?;
    report::parse(&text).with_context(|| format!("{} is no report of ginkgo", path.display()))
}

/// The line that says what is wrong: that of a panic, or the last one.
fn complaint(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let panic = lines.clone().find_map(|line| line.strip_prefix("panic: "));
    panic.or_else(|| lines.next_back()).unwrap_or("they do not say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_expression_is_named() {
        let text = "panic: regexp: Compile(`a(`): missing closing )\n\ngoroutine 1 [running]:\nmain.main()\n";
        assert_eq!(complaint(text), "regexp: Compile(`a(`): missing closing )");
        assert_eq!(
            complaint("usage\nflag provided but not defined: -x\n"),
            "flag provided but not defined: -x"
        );
        assert_eq!(complaint(""), "they do not say why");
    }

    #[test]
    fn an_empty_skip_is_no_skip() {
        assert_eq!(Selection::new(" a b ", Some(" ")).flags(), ["--ginkgo.focus=a b"]);
        assert_eq!(Selection::new("a", Some("b")).flags(), ["--ginkgo.focus=a", "--ginkgo.skip=b"]);
    }
}
