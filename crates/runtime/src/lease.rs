//! Which of several replicas leads: the one that holds a Lease and keeps renewing it.
//!
//! In: a Lease of the Kubernetes API that all replicas know. Out: one leader at a time. Every write names the version it
//! replaces, so of two who take the lease at once one is refused. Clocks of machines are never compared: a holder counts
//! as gone when *we* have seen its record unchanged for as long as the lease lasts, and a leader stops earlier than
//! that, counted from when it sent its last renewal.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::watch_object;
use kube::{Client, ResourceExt};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};

use crate::fault::{text, text_with_sources};
use crate::fence::Fence;
use crate::pace::Pace;

/// Who competes, for what, and how patiently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Namespace of the lease.
    pub namespace: String,
    /// Its name, which all replicas share.
    pub name: String,
    /// Ours alone, even after a restart.
    pub identity: String,
    /// For how long a record that nobody renews counts. Whole seconds.
    pub lasts: Duration,
    /// How long after its last renewal a leader stops; less than `lasts`.
    pub deadline: Duration,
    /// How often a leader renews; much less than `deadline`.
    pub renews: Duration,
}

impl Candidate {
    /// With the usual patience.
    pub fn new(namespace: &str, name: &str, identity: String) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity,
            lasts: Duration::from_secs(10),
            deadline: Duration::from_millis(6600),
            renews: Duration::from_secs(2),
        }
    }
}

/// A lease as it was seen, and since when it has looked like that.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    lease: Lease,
    since: Instant,
}

/// What a candidate does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nobody holds the lease: take it.
    Take,
    /// Somebody holds it: look again after this long, unless it changes before.
    Wait(Duration),
}

/// Decides what a candidate does, from what it has seen and when.
fn decide(seen: Option<&Seen>, now: Instant) -> Step {
    let Some(Seen { lease, since }) = seen else { return Step::Take };
    let spec = lease.spec.as_ref();
    let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let unchanged = now.saturating_duration_since(*since);
    match lasts.checked_sub(unchanged) {
        Some(left) if !holder.is_empty() && !left.is_zero() => Step::Wait(left),
        _ => Step::Take,
    }
}

/// One replica.
pub struct Elector {
    candidate: Candidate,
    api: Api<Lease>,
    seen: Option<Seen>,
    fence: Fence,
}

impl Elector {
    /// A replica that does not lead yet.
    pub fn new(client: Client, candidate: Candidate) -> Self {
        let api = Api::namespaced(client, &candidate.namespace);
        Self { candidate, api, seen: None, fence: Fence::default() }
    }

    /// Open while we lead.
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Waits until we lead. May be given up at any time.
    pub async fn acquire(&mut self) {
        let mut changes = self.watch();
        self.look().await;
        loop {
            let wait = match decide(self.seen.as_ref(), Instant::now()) {
                Step::Take => {
                    if self.write(Some(self.candidate.identity.clone())).await {
                        info!(lease = self.candidate.name, identity = self.candidate.identity, "leading");
                        return;
                    }
                    // Somebody was faster, or the API server does not answer: look before the next attempt.
                    sleep(self.candidate.renews.min(Duration::from_millis(200))).await;
                    self.look().await;
                    continue;
                }
                Step::Wait(wait) => wait,
            };
            tokio::select! {
                () = sleep(wait) => {}
                change = changes.next() => match change {
                    Some(Ok(lease)) => self.see(lease),
                    Some(Err(error)) => debug!(error = text_with_sources(&error), "watching the lease failed"),
                    None => changes = self.watch(),
                },
            }
        }
    }

    /// Renews the lease. Returns when we do not lead any more; nothing may be written after that.
    pub async fn hold(&mut self) {
        loop {
            sleep(self.candidate.renews.min(self.fence.left())).await;
            if timeout(self.fence.left(), self.write(Some(self.candidate.identity.clone()))).await == Ok(true)
            {
                continue;
            }
            let looked = timeout(self.fence.left(), self.look()).await.is_ok();
            if self.fence.left().is_zero() || looked && self.is_taken() {
                break;
            }
        }
        self.fence.close();
        warn!(lease = self.candidate.name, "the lease is lost");
    }

    /// Gives the lease back, so that another replica need not wait.
    pub async fn release(mut self) {
        self.fence.close();
        if self.write(None).await {
            info!(lease = self.candidate.name, "the lease is given back");
        }
    }

    fn watch(&self) -> BoxStream<'static, kube::runtime::watcher::Result<Option<Lease>>> {
        watch_object(self.api.clone(), &self.candidate.name).backoff(Pace::far()).boxed()
    }

    fn is_taken(&self) -> bool {
        let spec = self.seen.as_ref().and_then(|seen| seen.lease.spec.as_ref());
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref());
        holder != Some(&self.candidate.identity)
    }

    async fn look(&mut self) {
        match timeout(self.candidate.deadline, self.api.get_opt(&self.candidate.name)).await {
            Ok(Ok(lease)) => self.see(lease),
            Ok(Err(error)) => debug!(error = text(&error), "reading the lease failed"),
            Err(_) => debug!("reading the lease took too long"),
        }
    }

    /// Takes note of a lease; what looks as before is as old as before.
    fn see(&mut self, lease: Option<Lease>) {
        let same = match (&self.seen, &lease) {
            (Some(seen), Some(lease)) => seen.lease.resource_version() == lease.resource_version(),
            _ => false,
        };
        if !same {
            self.seen = lease.map(|lease| Seen { lease, since: Instant::now() });
        }
    }

    /// Writes the lease over the version we have seen. False if that is not what is there, or there is no answer.
    async fn write(&mut self, holder: Option<String>) -> bool {
        let params = PostParams { field_manager: Some(self.candidate.name.clone()), ..PostParams::default() };
        let lease = self.next_lease(holder);
        let began = Instant::now();
        let request = async {
            match &self.seen {
                Some(_) => self.api.replace(&self.candidate.name, &params, &lease).await,
                None => self.api.create(&params, &lease).await,
            }
        };
        match timeout(self.candidate.deadline, request).await {
            Ok(Ok(written)) => {
                if lease.spec.is_some_and(|spec| spec.holder_identity.is_some()) {
                    self.fence.open_until(began + self.candidate.deadline);
                }
                self.see(Some(written));
                return true;
            }
            Ok(Err(error)) => debug!(error = text(&error), "writing the lease failed"),
            Err(_) => debug!("writing the lease took too long"),
        }
        false
    }

    fn next_lease(&self, holder: Option<String>) -> Lease {
        let old = self.seen.as_ref().map(|seen| &seen.lease);
        let spec = old.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let now = MicroTime(Timestamp::now());
        let same = spec.holder_identity == holder;
        let transitions = spec.lease_transitions.unwrap_or_default() + i32::from(!same && holder.is_some());
        let seconds = i32::try_from(self.candidate.lasts.as_secs()).unwrap_or(i32::MAX);
        Lease {
            metadata: ObjectMeta {
                name: Some(self.candidate.name.clone()),
                resource_version: old.and_then(ResourceExt::resource_version),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                acquire_time: if same { spec.acquire_time } else { Some(now.clone()) },
                renew_time: Some(now),
                lease_duration_seconds: Some(seconds.max(1)),
                lease_transitions: Some(transitions),
                holder_identity: holder,
                ..LeaseSpec::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests;
