//! One thing at a time for each container: an addition may still be at work when the runtime has given it up and asks
//! for the removal. The removal ends the addition's waiting, lets it finish what it has begun, and then takes
//! everything away; otherwise the two could pass each other and leave half an interface behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedMutexGuard, watch};
use underlay_cni::result::{Failure, code};

/// The containers that something is done for.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<Mutex<BTreeMap<String, Weak<Place>>>>);

#[derive(Debug, Default)]
struct Place {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Counts removals.
    removals: watch::Sender<u64>,
}

/// The turn of a removal.
#[derive(Debug)]
pub struct Removal {
    _turn: OwnedMutexGuard<()>,
    _place: Arc<Place>,
}

/// The turn of an addition.
#[derive(Debug)]
pub struct Addition {
    removals: watch::Receiver<u64>,
    _turn: Removal,
}

impl Turns {
    /// Waits for the turn to add.
    pub async fn to_add(&self, container: &str) -> Addition {
        let place = self.place(container);
        let removals = place.removals.subscribe();
        Addition { removals, _turn: place.turn().await }
    }

    /// Ends the waiting of additions, and waits for the turn to remove.
    pub async fn to_remove(&self, container: &str) -> Removal {
        let place = self.place(container);
        place.removals.send_modify(|count| *count += 1);
        place.turn().await
    }

    fn place(&self, container: &str) -> Arc<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(container).and_then(Weak::upgrade) {
            return place;
        }
        places.retain(|_, place| place.strong_count() > 0);
        let place = Arc::new(Place::default());
        places.insert(container.to_owned(), Arc::downgrade(&place));
        place
    }
}

impl Place {
    async fn turn(self: Arc<Self>) -> Removal {
        let turn = self.turn.clone().lock_owned().await;
        Removal { _turn: turn, _place: self }
    }
}

impl Addition {
    /// Waits for something, unless the container is removed meanwhile.
    pub async fn unless_removed<T>(
        &mut self,
        waiting: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            _ = self.removals.changed() => {
                Err(Failure::new(code::TRY_AGAIN, "the container is removed before it had its interface"))
            }
            result = waiting => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_removal_ends_the_waiting_and_comes_after_the_work() {
        let turns = Turns::default();
        let mut addition = turns.to_add("c1").await;
        assert!(addition.unless_removed(ready(Ok(()))).await.is_ok());
        let mut removal = Box::pin(turns.to_remove("c1"));
        assert!(removal.as_mut().now_or_never().is_none(), "the addition is at work");
        assert!(addition.unless_removed(pending::<Result<(), _>>()).await.is_err());
        assert!(turns.to_remove("c2").now_or_never().is_some(), "others need not wait");
        drop(addition);
        drop(removal.await);
        let mut again = turns.to_add("c1").await;
        assert!(again.unless_removed(ready(Ok(()))).await.is_ok(), "the next one is not concerned");
    }

    #[tokio::test]
    async fn nothing_is_remembered_of_containers_that_are_done() {
        let turns = Turns::default();
        for number in 0..9 {
            drop(turns.to_remove(&number.to_string()).await);
        }
        assert_eq!(turns.0.lock().unwrap().len(), 1);
    }
}
