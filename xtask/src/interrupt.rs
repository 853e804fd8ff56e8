//! Interruption by the user: noticed, so that whoever brought a lab up can take it down before ending.
//!
//! In: SIGINT and SIGTERM of this process. Out: a flag that can be asked, and pauses that end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGINT, SIGTERM};

/// How often a pause looks whether it should end.
const GLANCE: Duration = Duration::from_millis(50);

/// Whether the user wants us to end.
#[derive(Debug, Clone)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
}

impl Interrupt {
    /// From here on SIGINT and SIGTERM no longer end this process. Programs it starts are not affected.
    pub fn catch() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&flag)).context("listening to signals")?;
        }
        Ok(Self { flag })
    }

    /// Fails if the user interrupted us.
    pub fn check(&self) -> Result<()> {
        if self.flag.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        Ok(())
    }

    /// Whether the user interrupted us since the last call; for whoever hands each interruption on.
    pub fn take(&self) -> bool {
        self.flag.swap(false, Ordering::Relaxed)
    }

    /// Sleeps. Fails at once when interrupted.
    pub fn pause(&self, length: Duration) -> Result<()> {
        let end = Instant::now() + length;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(GLANCE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_ends_pauses_until_it_is_taken() {
        let interrupt = Interrupt { flag: Arc::new(AtomicBool::new(true)) };
        assert!(interrupt.check().is_err());
        assert!(interrupt.pause(Duration::from_hours(1)).is_err());
        assert!(interrupt.take());
        assert!(!interrupt.take());
        assert!(interrupt.pause(Duration::ZERO).is_ok());
    }
}
