//! Whether bgpd was started a short while ago. Pure.
//!
//! In: the socket of bgpd, which is as old as bgpd is. Out: whether bgpd is young. Clocks are set forward and back, so its
//! age counts by our own from when we first saw this socket; what the calendar says of it is believed only then.

use std::time::{Duration, Instant, SystemTime};

/// For how long after its start bgpd may lose routes that it will have again.
const SETTLING: Duration = Duration::from_secs(30);

/// What tells one socket from the next one in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Socket {
    /// Its number in the file system, which may be given again.
    pub number: u64,
    /// When it was made, by the calendar.
    pub made: SystemTime,
}

/// How old bgpd is.
#[derive(Debug, Default)]
pub struct Youth {
    known: Option<(Socket, Instant)>,
}

impl Youth {
    /// Whether bgpd is young, given the socket that is there now.
    pub fn settles(&mut self, socket: Option<Socket>, calendar: SystemTime, now: Instant) -> bool {
        let Some(socket) = socket else { return false };
        let old = match self.known {
            Some((known, until)) if known == socket => return now < until,
            _ => calendar.duration_since(socket.made).unwrap_or_default(),
        };
        let until = now + SETTLING.saturating_sub(old);
        self.known = Some((socket, until));
        now < until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_new_socket_is_young_for_a_while() {
        let (mut youth, calendar, now) = (Youth::default(), SystemTime::now(), Instant::now());
        assert!(!youth.settles(None, calendar, now), "nobody is there");
        let first = Socket { number: 1, made: calendar - 3600 * SECOND };
        assert!(!youth.settles(Some(first), calendar, now));
        let second = Socket { number: 1, made: calendar - 2 * SECOND };
        assert!(youth.settles(Some(second), calendar, now));
        assert!(youth.settles(Some(second), calendar, now + 27 * SECOND));
        assert!(!youth.settles(Some(second), calendar, now + 28 * SECOND));
    }

    #[test]
    fn a_clock_that_is_set_changes_nothing() {
        let (mut youth, calendar, now) = (Youth::default(), SystemTime::now(), Instant::now());
        let socket = Some(Socket { number: 1, made: calendar });
        assert!(youth.settles(socket, calendar, now));
        assert!(youth.settles(socket, calendar + 3600 * SECOND, now + SECOND), "forward");
        assert!(!youth.settles(socket, calendar - 3600 * SECOND, now + 31 * SECOND), "back");
        let later = Some(Socket { number: 2, made: calendar + 3600 * SECOND });
        assert!(youth.settles(later, calendar, now), "made in the future is made now");
    }
}
