//! What everybody but the speaker has still to hear.
//!
//! In: that the speaker was told something ahead of the others. Out: the moment to tell them too. They wait a little: more
//! for the speaker may come, and what belongs to it.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How long they wait.
const PUT_OFF: Duration = Duration::from_millis(100);

/// Since when they are owed something.
#[derive(Debug, Default)]
pub struct Owed {
    since: Option<Instant>,
}

impl Owed {
    /// Something was told to the speaker alone. What was owed before does not wait longer for it.
    pub fn note(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// All was told to everybody.
    pub fn settle(&mut self) {
        self.since = None;
    }

    /// Waits for the moment, which comes once. Nothing is lost if this is given up while it waits.
    pub async fn due(&mut self) {
        match self.since {
            Some(since) => sleep_until(since + PUT_OFF).await,
            None => std::future::pending().await,
        }
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_is_owed_something_hears_it_once_and_not_later_for_what_comes_after() {
        let mut owed = Owed::default();
        let is_due = |owed: &mut Owed| owed.due().now_or_never().is_some();
        advance(PUT_OFF).await;
        assert!(!is_due(&mut owed), "nothing is owed");
        owed.note();
        advance(PUT_OFF / 2).await;
        assert!(!is_due(&mut owed), "it is too early");
        owed.note();
        advance(PUT_OFF / 2).await;
        assert!(is_due(&mut owed));
        assert!(!is_due(&mut owed), "it comes once");
        owed.note();
        owed.settle();
        advance(PUT_OFF).await;
        assert!(!is_due(&mut owed), "all was told");
    }
}
