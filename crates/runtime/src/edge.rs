//! The loop of one edge: it makes what is planned so, and keeps it so.
//!
//! In: the newest plan, and hints that the world the edge writes to has changed. Out: that world as planned, and a
//! state that tells which plan it has reached. Only the newest plan counts; what came in between is skipped.

use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::pace::Pace;

/// A plan with its number: later plans have higher ones.
#[derive(Debug)]
pub struct Planned<D> {
    /// The number, from 1.
    pub generation: u64,
    /// The plan.
    pub plan: Arc<D>,
}

// By hand: the plan itself need not be cloned.
impl<D> Clone for Planned<D> {
    fn clone(&self) -> Self {
        Self { generation: self.generation, plan: self.plan.clone() }
    }
}

/// Where plans come from; nothing before the first one.
pub type Plans<D> = watch::Receiver<Option<Planned<D>>>;

/// Hands plans to an edge.
#[derive(Debug)]
pub struct Publisher<D>(watch::Sender<Option<Planned<D>>>);

impl<D> Default for Publisher<D> {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl<D: PartialEq> Publisher<D> {
    /// Hands out a plan and returns its number. One that says the same as the last one has the same number and wakes
    /// nobody.
    pub fn publish(&self, plan: D) -> u64 {
        let mut generation = 0;
        self.0.send_if_modified(|last| {
            generation = last.as_ref().map_or(0, |last| last.generation);
            if last.as_ref().is_some_and(|last| *last.plan == plan) {
                return false;
            }
            generation += 1;
            *last = Some(Planned { generation, plan: Arc::new(plan) });
            true
        });
        generation
    }
}

impl<D> Publisher<D> {
    /// Where an edge takes the plans from.
    pub fn plans(&self) -> Plans<D> {
        self.0.subscribe()
    }

    /// The last plan.
    pub fn last(&self) -> Option<Planned<D>> {
        self.0.borrow().clone()
    }
}

/// What one pass has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Report {
    /// How many things it changed.
    pub changes: usize,
}

/// How far an edge is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EdgeState {
    /// Number of the plan that was last set out for; 0 is none.
    pub begun: u64,
    /// Number of the plan that was reached last; 0 is none.
    pub applied: u64,
    /// Why the last pass failed, if it did.
    pub error: Option<String>,
}

/// Waits until an edge has reached a plan or a later one. False if the edge has ended without.
pub async fn reached(state: &mut watch::Receiver<EdgeState>, generation: u64) -> bool {
    state.wait_for(|state| state.applied >= generation).await.is_ok()
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EdgeLabels {
    edge: &'static str,
}

/// Counters of all edges of a daemon.
#[derive(Debug, Clone)]
pub struct EdgeMetrics {
    passes: Family<EdgeLabels, Counter>,
    changing: Family<EdgeLabels, Counter>,
    changes: Family<EdgeLabels, Counter>,
    errors: Family<EdgeLabels, Counter>,
    failing: Family<EdgeLabels, Gauge>,
    seconds: Family<EdgeLabels, Histogram>,
}

impl EdgeMetrics {
    /// Registers them.
    pub fn register(registry: &mut Registry) -> Self {
        let seconds = || Histogram::new([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0]);
        let metrics = Self {
            passes: Family::default(),
            changing: Family::default(),
            changes: Family::default(),
            errors: Family::default(),
            failing: Family::default(),
            seconds: Family::new_with_constructor(seconds),
        };
        registry.register("underlay_edge_passes", "Passes of an edge", metrics.passes.clone());
        let changing = metrics.changing.clone();
        registry.register("underlay_edge_changing_passes", "Passes that changed something", changing);
        registry.register("underlay_edge_changes", "Things that an edge changed", metrics.changes.clone());
        registry.register("underlay_edge_errors", "Passes that failed", metrics.errors.clone());
        registry.register("underlay_edge_failing", "Whether the last pass failed", metrics.failing.clone());
        registry.register("underlay_edge_seconds", "Duration of a pass", metrics.seconds.clone());
        metrics
    }
}

/// One edge.
#[derive(Debug)]
pub struct Edge<D> {
    name: &'static str,
    plans: Plans<D>,
    wake: Arc<Notify>,
    resync: Option<Duration>,
    metrics: EdgeMetrics,
    state: watch::Sender<EdgeState>,
}

impl<D> Edge<D> {
    /// An edge that runs for every new plan.
    pub fn new(name: &'static str, plans: Plans<D>, metrics: &EdgeMetrics) -> Self {
        let (wake, metrics) = (Arc::new(Notify::new()), metrics.clone());
        Self { name, plans, wake, resync: None, metrics, state: watch::Sender::default() }
    }

    /// That looks again after this long, even if nothing seems to have happened. Zero is never.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.resync = (!every.is_zero()).then_some(every);
        self
    }

    /// What wakes it when the world it writes to has changed.
    pub fn waker(&self) -> Arc<Notify> {
        self.wake.clone()
    }

    /// How far it is.
    pub fn state(&self) -> watch::Receiver<EdgeState> {
        self.state.subscribe()
    }

    /// Runs until nobody plans any more. `sync` makes a plan so; what it began is never cut off.
    pub async fn run<S, E>(mut self, mut sync: S)
    where
        S: AsyncFnMut(Arc<D>) -> Result<Report, E>,
        E: Display,
    {
        let mut pace = Pace::near();
        loop {
            let newest = self.plans.borrow_and_update().clone();
            let failed = match newest {
                Some(planned) => !self.pass(&planned, &mut sync).await,
                None => false,
            };
            let goes_on = if failed {
                self.wait_to_retry(pace.wait()).await
            } else {
                pace.rest();
                self.wait_for_news().await
            };
            if !goes_on {
                return;
            }
        }
    }

    async fn pass<S, E>(&self, planned: &Planned<D>, sync: &mut S) -> bool
    where
        S: AsyncFnMut(Arc<D>) -> Result<Report, E>,
        E: Display,
    {
        let labels = EdgeLabels { edge: self.name };
        let began = Instant::now();
        // Nobody waits for a beginning, so nobody is woken.
        self.state.send_if_modified(|state| {
            state.begun = planned.generation;
            false
        });
        let result = sync(planned.plan.clone()).await;
        self.metrics.seconds.get_or_create(&labels).observe(began.elapsed().as_secs_f64());
        self.metrics.passes.get_or_create(&labels).inc();
        self.metrics.failing.get_or_create(&labels).set(i64::from(result.is_err()));
        match result {
            Ok(Report { changes }) => {
                debug!(edge = self.name, generation = planned.generation, changes, "as planned");
                self.metrics.changing.get_or_create(&labels).inc_by(u64::from(changes > 0));
                self.metrics.changes.get_or_create(&labels).inc_by(changes as u64);
                self.succeed(planned.generation);
                true
            }
            Err(error) => {
                self.metrics.errors.get_or_create(&labels).inc();
                self.fail(error.to_string());
                false
            }
        }
    }

    fn succeed(&self, generation: u64) {
        self.state.send_if_modified(|state| {
            let next = EdgeState { begun: generation, applied: generation, error: None };
            if state.error.is_some() {
                info!(edge = self.name, "works again");
            }
            let news = *state != next;
            *state = next;
            news
        });
    }

    /// Tells a failure once: the same again is no news.
    fn fail(&self, error: String) {
        self.state.send_if_modified(|state| {
            if state.error.as_ref() == Some(&error) {
                return false;
            }
            warn!(edge = self.name, error, "a pass failed; trying again");
            state.error = Some(error);
            true
        });
    }

    /// A new plan may be what helps, so it does not wait. Hints do: a failing pass may cause them itself.
    async fn wait_to_retry(&mut self, wait: Duration) -> bool {
        tokio::select! {
            changed = self.plans.changed() => changed.is_ok(),
            () = sleep(wait) => true,
        }
    }

    async fn wait_for_news(&mut self) -> bool {
        let resync = async {
            match self.resync {
                Some(every) => sleep(every).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.plans.changed() => changed.is_ok(),
            () = self.wake.notified() => true,
            () = resync => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Bench {
        publisher: Publisher<u32>,
        wake: Arc<Notify>,
        state: watch::Receiver<EdgeState>,
        seen: Arc<Mutex<Vec<u32>>>,
        task: tokio::task::JoinHandle<()>,
    }

    /// An edge that fails for odd plans, `failures` times.
    fn start(mut failures: u32, resync: Duration) -> Bench {
        let publisher = Publisher::default();
        let metrics = EdgeMetrics::register(&mut Registry::default());
        let edge = Edge::new("test", publisher.plans(), &metrics).resync(resync);
        let (wake, state) = (edge.waker(), edge.state());
        let seen = Arc::new(Mutex::new(vec![]));
        let log = seen.clone();
        let task = tokio::spawn(edge.run(async move |plan: Arc<u32>| {
            log.lock().unwrap().push(*plan);
            if *plan % 2 == 1 && failures > 0 {
                failures -= 1;
                return Err("odd");
            }
            Ok(Report { changes: 1 })
        }));
        Bench { publisher, wake, state, seen, task }
    }

    #[tokio::test(start_paused = true)]
    async fn every_plan_and_every_hint_is_a_pass_and_the_same_plan_is_none() {
        let mut bench = start(0, Duration::ZERO);
        assert_eq!(bench.publisher.publish(2), 1);
        assert!(reached(&mut bench.state, 1).await);
        assert_eq!(bench.publisher.publish(2), 1);
        assert_eq!(bench.publisher.publish(4), 2);
        assert!(reached(&mut bench.state, 2).await);
        bench.wake.notify_one();
        sleep(Duration::from_mins(1)).await;
        assert_eq!(*bench.seen.lock().unwrap(), [2, 4, 4]);
        drop(bench.publisher);
        bench.task.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_tried_again_and_shows() {
        let mut bench = start(3, Duration::ZERO);
        bench.publisher.publish(1);
        bench.state.wait_for(|state| state.error.as_deref() == Some("odd")).await.unwrap();
        let began = tokio::time::Instant::now();
        assert!(reached(&mut bench.state, 1).await);
        assert_eq!(began.elapsed().as_millis(), 50 + 100 + 200);
        assert_eq!(bench.state.borrow().error, None);
        assert_eq!(*bench.seen.lock().unwrap(), [1, 1, 1, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_plan_does_not_wait_for_the_old_one_to_work() {
        let mut bench = start(u32::MAX, Duration::ZERO);
        bench.publisher.publish(1);
        sleep(Duration::from_mins(1)).await;
        let began = tokio::time::Instant::now();
        assert!(reached(&mut bench.state, bench.publisher.publish(2)).await);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn it_looks_again_from_time_to_time() {
        let bench = start(0, Duration::from_secs(10));
        bench.publisher.publish(2);
        sleep(Duration::from_secs(35)).await;
        assert_eq!(*bench.seen.lock().unwrap(), [2, 2, 2, 2]);
    }
}
