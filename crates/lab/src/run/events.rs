//! What happens while a lab comes up: written by its processes, read by whoever waits for it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// One line of the events file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub enum Event {
    /// How many daemons there will be.
    Planned {
        /// All of them.
        daemons: usize,
    },
    /// A daemon is up for the first time.
    Up {
        /// Where.
        machine: String,
        /// Which.
        daemon: String,
    },
    /// A machine has done all its steps.
    Ready {
        /// Which.
        machine: String,
    },
    /// Something that must work did not; the lab will not come up.
    Failed {
        /// What, with the last words of whoever failed.
        text: String,
    },
    /// All machines are ready.
    Complete,
}

/// Appends events. Each is one short write, so that several processes can share the file.
#[derive(Debug, Clone)]
pub struct EventLog {
    path: PathBuf,
}

impl EventLog {
    /// The log at this path.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Appends one event. A full disk must not stop a lab that works, so a failed write only goes unseen.
    pub fn write(&self, event: &Event) {
        let Ok(mut line) = serde_json::to_vec(event) else { return };
        line.push(b'\n');
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(&self.path) {
            let _ = file.write_all(&line);
        }
    }
}

/// Reads events as they are written.
#[derive(Debug, Default)]
pub struct EventReader {
    file: Option<BufReader<File>>,
    partial: String,
}

impl EventReader {
    /// Events since the last call.
    pub fn read(&mut self, path: &Path) -> Vec<Event> {
        if self.file.is_none() {
            self.file = File::open(path).ok().map(BufReader::new);
        }
        let Some(file) = &mut self.file else { return vec![] };
        let mut events = Vec::new();
        while file.read_line(&mut self.partial).is_ok_and(|read| read > 0) {
            if self.partial.ends_with('\n') {
                events.extend(serde_json::from_str(&self.partial));
                self.partial.clear();
            }
        }
        events
    }
}
