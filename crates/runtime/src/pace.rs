//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use kube::runtime::utils::Backoff;

/// Waits that double from the first to the longest, until something succeeds.
#[derive(Debug, Clone)]
pub struct Pace {
    first: Duration,
    longest: Duration,
    next: Duration,
    spread: bool,
}

impl Pace {
    /// For what is on the same machine.
    pub const fn near() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// For what many others ask too: each waits a little longer or less than the others.
    pub const fn far() -> Self {
        Self { spread: true, ..Self::new(Duration::from_millis(200), Duration::from_secs(5)) }
    }

    const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first, spread: false }
    }

    /// How long to wait this time.
    pub fn wait(&mut self) -> Duration {
        let wait = self.next;
        self.next = (wait * 2).min(self.longest);
        if self.spread { wait.mul_f32(0.75 + 0.5 * chance()) } else { wait }
    }

    /// Begins anew: something succeeded.
    pub fn rest(&mut self) {
        self.next = self.first;
    }
}

/// A number from 0 to 1 that other processes do not get.
fn chance() -> f32 {
    let [byte, ..] = RandomState::new().hash_one(()).to_le_bytes();
    f32::from(byte) / f32::from(u8::MAX)
}

impl Iterator for Pace {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.wait())
    }
}

impl Backoff for Pace {
    fn reset(&mut self) {
        self.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew() {
        let mut pace = Pace::near();
        let waits: Vec<u128> = (0..9).map(|_| pace.wait().as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        pace.rest();
        assert_eq!(pace.wait().as_millis(), 50);
    }

    #[test]
    fn waits_for_the_far_are_spread_around_the_same() {
        let mut pace = Pace::far();
        let wait = pace.wait().as_millis();
        assert!((150..=250).contains(&wait), "{wait}");
    }
}
