use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::sync::mpsc;
use underlay_testkit::ApiServer;

use super::*;
use crate::client::connect;

fn seen(holder: Option<&str>, seconds: Option<i32>, since: Instant) -> Seen {
    let holder_identity = holder.map(str::to_owned);
    let spec = LeaseSpec { holder_identity, lease_duration_seconds: seconds, ..LeaseSpec::default() };
    Seen { lease: Lease { spec: Some(spec), ..Lease::default() }, since }
}

#[test]
fn a_lease_is_taken_when_nobody_has_it() {
    let now = Instant::now();
    assert_eq!(decide(None, now), Step::Take);
    assert_eq!(decide(Some(&seen(None, Some(15), now)), now), Step::Take, "it was given back");
    assert_eq!(decide(Some(&seen(Some(""), Some(15), now)), now), Step::Take, "as others give it back");
    assert_eq!(decide(Some(&seen(Some("a"), None, now)), now), Step::Take, "it lasts no time");
    assert_eq!(decide(Some(&seen(Some("a"), Some(-1), now)), now), Step::Take);
}

#[test]
fn a_lease_is_taken_when_it_was_seen_unchanged_for_as_long_as_it_lasts() {
    let now = Instant::now();
    let theirs = seen(Some("a"), Some(15), now);
    assert_eq!(decide(Some(&theirs), now), Step::Wait(Duration::from_secs(15)));
    let later = now + Duration::from_secs(10);
    assert_eq!(decide(Some(&theirs), later), Step::Wait(Duration::from_secs(5)));
    assert_eq!(decide(Some(&theirs), now + Duration::from_secs(15)), Step::Take);
}

proptest! {
    /// Who waits as told never takes the lease of a holder whose last sign of life is younger than the lease lasts.
    #[test]
    fn nobody_is_robbed(lasts in 1i32..60, signs in prop::collection::vec(0u64..90_000, 0..20)) {
        let began = Instant::now();
        let mut record = seen(Some("a"), Some(lasts), began);
        let mut now = began;
        for pause in signs {
            match decide(Some(&record), now) {
                Step::Take => prop_assert!(now - record.since >= Duration::from_secs(lasts.unsigned_abs().into())),
                Step::Wait(wait) => {
                    prop_assert!(wait <= Duration::from_secs(lasts.unsigned_abs().into()));
                    prop_assert_eq!(decide(Some(&record), now + wait), Step::Take);
                    // The holder shows signs of life: the wait begins anew.
                    now += Duration::from_millis(pause).min(wait);
                    record.since = now;
                }
            }
        }
    }
}

/// A replica that leads until it is told to give back, or aborted.
struct Replica {
    task: tokio::task::JoinHandle<()>,
    stop: mpsc::Sender<()>,
}

fn replica(
    client: &Client,
    identity: &'static str,
    leaders: &Arc<AtomicUsize>,
    news: &mpsc::UnboundedSender<&'static str>,
) -> Replica {
    let (lasts, deadline, renews) =
        (Duration::from_secs(2), Duration::from_millis(1800), Duration::from_millis(200));
    let candidate = Candidate::new("kube-system", "test", identity.to_owned());
    let mut elector = Elector::new(client.clone(), Candidate { lasts, deadline, renews, ..candidate });
    let (leaders, news) = (leaders.clone(), news.clone());
    let (stop, mut stopped) = mpsc::channel(1);
    let task = tokio::spawn(async move {
        elector.acquire().await;
        let leading = Leading::begin(leaders);
        news.send(identity).unwrap();
        tokio::select! {
            () = elector.hold() => panic!("{identity} lost the lease"),
            _ = stopped.recv() => {}
        }
        drop(leading);
        elector.release().await;
    });
    Replica { task, stop }
}

/// Counts leaders, and notices two.
struct Leading(Arc<AtomicUsize>);

impl Leading {
    fn begin(leaders: Arc<AtomicUsize>) -> Self {
        assert_eq!(leaders.fetch_add(1, Ordering::SeqCst), 0, "two leaders");
        Self(leaders)
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// An API server that takes connections and never answers. The clock is the test's own: it runs ahead when all wait.
#[tokio::test(start_paused = true)]
async fn a_leader_that_hears_nothing_stops_before_its_lease_is_over() {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let client = Client::try_from(kube::Config::new(url.parse().unwrap())).unwrap();
    let mut elector = Elector::new(client, Candidate::new("kube-system", "test", "a".to_owned()));
    let (began, lasts, deadline) = (Instant::now(), elector.candidate.lasts, elector.candidate.deadline);
    elector.fence.open_until(began + deadline);
    elector.hold().await;
    assert!(began.elapsed() >= deadline && began.elapsed() < lasts, "{:?}", began.elapsed());
    assert_eq!(elector.fence().left(), Duration::ZERO);
}

#[tokio::test]
async fn one_leads_and_the_next_follows() {
    let client = connect(Some(&ApiServer::shared().kubeconfig())).await.unwrap();
    let (leaders, (news, mut heard)) = (Arc::default(), mpsc::unbounded_channel());
    let first = replica(&client, "a", &leaders, &news);
    assert_eq!(heard.recv().await, Some("a"));
    let second = replica(&client, "b", &leaders, &news);
    assert!(timeout(Duration::from_millis(2300), heard.recv()).await.is_err(), "a renews and stays");

    first.task.abort();
    let died = Instant::now();
    assert_eq!(heard.recv().await, Some("b"));
    let took = died.elapsed();
    assert!(took > Duration::from_millis(1500), "{took:?} is too soon: a had just renewed");
    assert!(took < Duration::from_secs(3), "{took:?} is longer than the lease lasts");

    let third = replica(&client, "c", &leaders, &news);
    sleep(Duration::from_millis(300)).await;
    let stopped = Instant::now();
    second.stop.send(()).await.unwrap();
    assert_eq!(heard.recv().await, Some("c"));
    let took = stopped.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?} although b gave it back");
    second.task.await.unwrap();
    third.task.abort();
}
