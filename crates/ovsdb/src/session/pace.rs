//! When to try again, and when silence means that the server is gone. No clock here: time comes in as an argument.

use std::time::{Duration, Instant};

/// Waiting times between attempts: each twice the one before, up to a limit.
#[derive(Debug)]
pub(super) struct Backoff {
    shortest: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    pub fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, next: shortest }
    }

    /// How long to wait now. `spread`, from 0 to 255, moves it by up to a quarter, so that the clients of a server
    /// that restarts do not all come at the same moment.
    pub fn next(&mut self, spread: u8) -> Duration {
        let wait = self.next;
        self.next = (self.next * 2).min(self.longest);
        wait * 3 / 4 + wait * u32::from(spread) / 512
    }

    /// An attempt succeeded.
    pub fn reset(&mut self) {
        self.next = self.shortest;
    }
}

/// What a server's silence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// Nothing yet.
    Fine,
    /// Ask whether it is there.
    Ask,
    /// It was asked and did not answer.
    Gone,
}

/// Watches how long a server says nothing. Anything it says counts, not only answers.
#[derive(Debug)]
pub(super) struct Silences {
    silent: Duration,
    last_look: Instant,
    asked: bool,
}

impl Silences {
    pub fn new(now: Instant) -> Self {
        Self { silent: Duration::ZERO, last_look: now, asked: false }
    }

    pub fn heard(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// Judges the silence. One interval of it is asked about, a second one is not forgiven. To be called at least twice
    /// in an interval: of a longer time only half an interval counts, because then it was we who were held up, and an
    /// answer may be there that we did not get to read.
    pub fn judge(&mut self, now: Instant, interval: Duration) -> Silence {
        self.silent += now.saturating_duration_since(self.last_look).min(interval / 2);
        self.last_look = now;
        if self.silent >= interval * 2 && self.asked {
            Silence::Gone
        } else if self.silent >= interval && !self.asked {
            self.asked = true;
            Silence::Ask
        } else {
            Silence::Fine
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_longer_each_time_up_to_a_limit() {
        let mut backoff = Backoff::new(SECOND, SECOND * 5);
        let waits: Vec<u128> = (0..5).map(|_| backoff.next(128).as_millis()).collect();
        assert_eq!(waits, [1000, 2000, 4000, 5000, 5000]);
        backoff.reset();
        assert_eq!(backoff.next(0), Duration::from_millis(750));
        assert!(backoff.next(255) < Duration::from_millis(2500));
    }

    #[test]
    fn asks_once_and_gives_up_after_a_second_interval() {
        let start = Instant::now();
        let mut silences = Silences::new(start);
        let judged: Vec<Silence> =
            (1..=10).map(|after| silences.judge(start + SECOND * after, SECOND * 5)).collect();
        let mut expected = [Silence::Fine; 10];
        (expected[4], expected[9]) = (Silence::Ask, Silence::Gone);
        assert_eq!(judged, expected);
        silences.heard(start + SECOND * 11);
        assert_eq!(silences.judge(start + SECOND * 12, SECOND * 5), Silence::Fine);
    }

    #[test]
    fn the_time_we_were_held_up_is_not_held_against_the_server() {
        let start = Instant::now();
        let mut silences = Silences::new(start);
        let mut judge = |after: u32| silences.judge(start + SECOND * after, SECOND * 4);
        assert_eq!([judge(2), judge(4)], [Silence::Fine, Silence::Ask]);
        // A minute later there may be an answer to read; without one, two more looks end it.
        assert_eq!([judge(64), judge(66)], [Silence::Fine, Silence::Gone]);
    }
}
