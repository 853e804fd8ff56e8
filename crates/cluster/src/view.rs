//! What people see from outside: whether we work, and what we want.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use underlay_plan::cluster::ClusterPlan;
use underlay_plan::cluster::networks::slices::Step;
use underlay_runtime::admin::Admin;
use underlay_world::Key;

/// Shared between the leader, who tells, and the probes, who ask.
#[derive(Debug, Clone, Default)]
pub struct View(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    leading: bool,
    waiting: Option<String>,
    plan: Arc<ClusterPlan>,
}

impl View {
    /// Another replica leads.
    pub fn stand_by(&self) {
        *self.state() = State::default();
    }

    /// We lead, and may wait for something.
    pub fn lead(&self, waiting: Option<String>) {
        let mut state = self.state();
        state.leading = true;
        state.waiting = waiting;
    }

    /// This is what should be.
    pub fn plan(&self, plan: ClusterPlan) {
        self.state().plan = Arc::new(plan);
    }

    /// This is what should be of endpoint slices.
    pub fn slices(&self, slices: BTreeMap<Key, Step>) {
        Arc::make_mut(&mut self.state().plan).slices = slices;
    }

    /// For probes and people.
    pub fn admin(&self, registry: Registry) -> Admin {
        let (ready, desired) = (self.clone(), self.clone());
        Admin {
            registry: Arc::new(registry),
            ready: Arc::new(move || ready.state().waiting.clone().map_or(Ok(()), Err)),
            desired: Arc::new(move || desired.json()),
            report: None,
        }
    }

    fn json(&self) -> Value {
        let (leading, plan) = {
            let state = self.state();
            (state.leading, state.plan.clone())
        };
        match serde_json::to_value(plan.as_ref()) {
            Ok(plan) => json!({ "leading": leading, "plan": plan }),
            Err(error) => json!({ "leading": leading, "error": error.to_string() }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
