//! Until when a leader may write.
//!
//! In: every renewal of the lease. Out: how much time is left before another replica may think that nobody leads. It is
//! asked right before a request is sent, so that a process that was stopped, or starved, in the middle of its work sends
//! nothing more when it wakes up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Shared between the one who holds the lease and those who write. It is closed until it is opened.
#[derive(Debug, Clone, Default)]
pub struct Fence(Arc<Mutex<Option<Instant>>>);

impl Fence {
    /// Writes may be sent until then.
    pub fn open_until(&self, time: Instant) {
        *self.until() = Some(time);
    }

    /// Nothing may be sent any more.
    pub fn close(&self) {
        *self.until() = None;
    }

    /// How much time is left; none when it is closed.
    pub fn left(&self) -> Duration {
        self.until().map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    fn until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_closes_by_itself() {
        let fence = Fence::default();
        assert_eq!(fence.left(), Duration::ZERO, "nobody has opened it");
        fence.open_until(Instant::now() + Duration::from_secs(3));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(fence.left(), Duration::from_secs(1));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(fence.left(), Duration::ZERO);
        fence.open_until(Instant::now() + Duration::from_secs(3));
        fence.close();
        assert_eq!(fence.left(), Duration::ZERO);
    }
}
