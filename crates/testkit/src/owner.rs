//! Who made a thing that has a name outside our process: a mark by which a later run can see that its maker is gone.
//!
//! A process number alone is not enough, since numbers come back; together with the start time it is unique.

use std::fmt;
use std::fs;
use std::str::FromStr;

/// A process, alive or not. As text, `<number>-<start time>`, fit for file and lab names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    started: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Panics
    ///
    /// When there is no `/proc`.
    pub fn me() -> Self {
        Self::of(std::process::id()).expect("finding this process in /proc")
    }

    /// The process that has this number now.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, started: start_time(pid)? })
    }

    /// Its process number.
    pub fn pid(self) -> u32 {
        self.pid
    }

    /// Whether it has ended.
    pub fn is_gone(self) -> bool {
        start_time(self.pid) != Some(self.started)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.started)
    }
}

/// The text is no owner's mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoOwner;

impl FromStr for Owner {
    type Err = NoOwner;

    fn from_str(text: &str) -> Result<Self, NoOwner> {
        let (pid, started) = text.split_once('-').ok_or(NoOwner)?;
        let pid = pid.parse().map_err(|_| NoOwner)?;
        let started = started.parse().map_err(|_| NoOwner)?;
        Ok(Self { pid, started })
    }
}

/// When a process began, in ticks since the machine's start; nothing if it is gone. Dead is gone, even if its parent
/// has not noticed yet.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything. Behind it come the state and, as the 20th, the start time.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields.first()?, &"Z" | &"X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_survives_being_written() {
        let me = Owner::me();
        assert!(!me.is_gone());
        assert_eq!(me.to_string().parse(), Ok(me));
    }

    #[test]
    fn the_same_number_with_another_start_is_somebody_else() {
        let me = Owner::me();
        assert!(Owner { started: me.started + 1, ..me }.is_gone());
    }

    #[test]
    fn other_text_is_no_owner() {
        for text in ["", "1", "a-1", "1-a", "1-2-3"] {
            assert_eq!(text.parse::<Owner>(), Err(NoOwner), "{text:?}");
        }
    }
}
