//! What the cluster manager wrote, as the API server's audit counts it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The object by which replicas agree who leads: it is written at intervals, whatever there is to do.
const LEASES: &str = "leases";

/// Writes by verb and resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    /// As in `patch nodes/status`; leases are not among them.
    pub by_kind: BTreeMap<String, usize>,
    /// Writes of leases.
    pub leases: usize,
}

impl Writes {
    /// All but those of leases.
    pub fn count(&self) -> usize {
        self.by_kind.values().sum()
    }

    /// These and those.
    pub fn add(&mut self, other: &Self) {
        for (kind, count) in &other.by_kind {
            *self.by_kind.entry(kind.clone()).or_default() += count;
        }
        self.leases += other.leases;
    }
}

/// The log, and how far it was read.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    read: u64,
}

/// A line of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    object_ref: Option<Object>,
}

#[derive(Debug, Deserialize)]
struct Object {
    resource: String,
    #[serde(default)]
    subresource: String,
}

impl Audit {
    /// Nothing of it is read yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: 0 }
    }

    /// What was written since the last time.
    pub fn take(&mut self) -> Result<Writes> {
        let whole = || format!("reading {}", self.path.display());
        let mut file = File::open(&self.path).with_context(whole)?;
        file.seek(SeekFrom::Start(self.read)).with_context(whole)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(whole)?;
        // A line that is being written is left to the next time.
        let lines = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let writes = count(lines)?;
        self.read += u64::try_from(lines.len())?;
        Ok(writes)
    }
}

fn count(lines: &str) -> Result<Writes> {
    let mut writes = Writes::default();
    for line in lines.lines() {
        let event: Event = serde_json::from_str(line).context("an event of the audit")?;
        let Some(Object { resource, subresource }) = event.object_ref else { continue };
        if resource == LEASES {
            writes.leases += 1;
            continue;
        }
        let below = if subresource.is_empty() { String::new() } else { format!("/{subresource}") };
        *writes.by_kind.entry(format!("{} {resource}{below}", event.verb)).or_default() += 1;
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PATCH: &str =
        r#"{"verb":"patch","objectRef":{"resource":"nodes","name":"n","subresource":"status"}}"#;
    const LEASE: &str = r#"{"verb":"update","objectRef":{"resource":"leases","name":"l"}}"#;

    #[test]
    fn each_write_is_counted_once_by_verb_and_resource() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit.log");
        let half = &PATCH[..20];
        fs::write(&path, format!("{PATCH}\n{LEASE}\n{PATCH}\n{half}")).unwrap();
        let mut audit = Audit::new(path.clone());
        let mut first = audit.take().unwrap();
        assert_eq!(first.by_kind, BTreeMap::from([("patch nodes/status".to_owned(), 2)]));
        assert_eq!((first.count(), first.leases), (2, 1), "leases are apart");
        fs::write(&path, format!("{PATCH}\n{LEASE}\n{PATCH}\n{PATCH}\n")).unwrap();
        let second = audit.take().unwrap();
        assert_eq!(second.count(), 1, "the line that was not whole before");
        first.add(&second);
        assert_eq!(first.count(), 3);
    }
}
