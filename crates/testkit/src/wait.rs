//! Waiters: they look again and again, and when they give up they say for what, how long, and what they saw last.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Nothing came in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedOut {
    /// What was waited for.
    pub what: String,
    /// For how long.
    pub patience: Duration,
    /// How often it was looked for.
    pub looks: u32,
    /// What was there instead, the last time.
    pub last: String,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, patience, looks, last } = self;
        write!(f, "waited {patience:?} for {what} and looked {looks} times; seen last: {last}")
    }
}

/// Waits until `look` finds something. `look` says in its error what it saw instead.
///
/// # Panics
///
/// When it is not found in time.
#[track_caller]
pub fn wait_for<T>(what: &str, patience: Duration, look: impl FnMut() -> Result<T, String>) -> T {
    match try_wait_for(what, patience, look) {
        Ok(found) => found,
        Err(error) => panic!("{error}"),
    }
}

/// Like [`wait_for`], for those who have more to say when nothing comes.
pub fn try_wait_for<T>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<T, String>,
) -> Result<T, TimedOut> {
    let deadline = Instant::now() + patience;
    let mut looks = 0;
    loop {
        // The look that decides begins after the deadline: a slow machine gets at least one more after its pause.
        let late = Instant::now() >= deadline;
        looks += 1;
        match look() {
            Ok(found) => return Ok(found),
            Err(last) if late => return Err(TimedOut { what: what.to_owned(), patience, looks, last }),
            Err(_) => thread::sleep(PAUSE.min(patience)),
        }
    }
}
