//! Directories of tests. They are removed when dropped, when the test's process ends, or by the next run.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::owner::Owner;

/// A directory that is removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    directory: TempDir,
}

impl Scratch {
    /// Makes a directory whose name begins with this label. Its path is short enough for Unix sockets in it.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    #[track_caller]
    pub fn new(label: &str) -> Self {
        let made = home().and_then(|home| tempfile::Builder::new().prefix(label).tempdir_in(home));
        match made {
            Ok(directory) => Self { directory },
            Err(error) => panic!("making a directory for the test: {error}"),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A path in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

/// The directory of this process, with its janitor.
fn home() -> io::Result<&'static Path> {
    static HOME: OnceLock<Result<(PathBuf, Child), String>> = OnceLock::new();
    let made = HOME.get_or_init(|| make_home().map_err(|error| error.to_string()));
    made.as_ref().map(|(path, _)| path.as_path()).map_err(|error| io::Error::other(error.clone()))
}

fn make_home() -> io::Result<(PathBuf, Child)> {
    let all = std::env::temp_dir().join("underlay-test");
    fs::create_dir_all(&all)?;
    remove_leftovers(&all);
    let home = all.join(Owner::me().to_string());
    fs::create_dir_all(&home)?;
    let janitor = janitor(&home)?;
    Ok((home, janitor))
}

/// Directories of processes that ended before their janitor could clean up, because both were killed.
fn remove_leftovers(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let owner = entry.file_name().to_str().and_then(|name| name.parse::<Owner>().ok());
        if owner.is_some_and(Owner::is_gone) {
            // Another test process may be at it too: what matters is that it goes.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A process that reads from a pipe only we hold: it gets an answer when we have ended, however we did. The servers
/// that wrote into the directory end at the same moment, so a removal may have to be tried again.
fn janitor(home: &Path) -> io::Result<Child> {
    let script = r#"read -r _; for _ in 1 2 3 4 5; do rm -rf -- "$1" && exit; sleep 0.2; done"#;
    Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(home)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .current_dir("/")
        // Ctrl-C at the terminal ends the test, not its janitor.
        .process_group(0)
        .spawn()
}
