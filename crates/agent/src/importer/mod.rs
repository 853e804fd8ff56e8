//! The edge that brings learned routes into OVN.
//!
//! In: what the kernel tells of BGP's routes, and the newest plan's policies. Out: static routes of the gateway routers.
//! A withdrawn route must be gone at once, however many others there are: so only what changed is looked at, in the
//! kernel as in the database. After a restart, or when the kernel had more to tell than we could hear, that is everything.

mod shares;
mod youth;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use futures::{FutureExt, Stream, StreamExt};
use ipnet::IpNet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::watch;
use tracing::warn;
use underlay_api::annotations::RefusedRoutes;
use underlay_linux::observe::names_by_number;
use underlay_linux::{BgpChange, Event, Fault, Kernel};
use underlay_net::names::is_host_interface;
use underlay_ovn::imports;
use underlay_ovsdb::Client;
use underlay_plan::node::imports::Policy;
use underlay_runtime::edge::EdgeState;
use underlay_runtime::pace::Pace;

use shares::Shares;
pub use shares::{Count, Learned};
use youth::{Socket, Youth};

use crate::refused::Numbers;

/// Places that one transaction changes. A larger one keeps the database from everybody else, and takes memory that is not
/// needed again.
const MOST: usize = 4_000;
/// What happens in the kernel comes in crowds. It is looked at once for all of it.
const CROWD: Duration = Duration::from_millis(5);

/// Newest policies; nothing before the first plan.
pub type Policies = watch::Receiver<Option<Arc<Vec<Policy>>>>;

/// What there is to be known of learned routes. Copies share it.
#[derive(Debug, Clone)]
pub struct Routes {
    shares: Arc<Mutex<Shares>>,
    state: watch::Receiver<EdgeState>,
    refused: Numbers,
}

impl Routes {
    /// How far the edge is.
    pub fn state(&self) -> watch::Receiver<EdgeState> {
        self.state.clone()
    }

    /// How many routes each network has no room for.
    pub fn refused(&self) -> Numbers {
        self.refused.clone()
    }

    /// How many routes each network has, by name.
    pub fn counts(&self) -> BTreeMap<String, Count> {
        self.lock().counts().into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// The routes that a network has heard of and that the caller asks for.
    pub fn learned(&self, network: &str, asks: impl Fn(&IpNet) -> bool) -> Vec<Learned> {
        self.lock().learned(network, asks).collect()
    }

    /// The first of the routes that a network has heard of and that the caller asks for, in order, and how many more
    /// there are.
    pub fn page(
        &self,
        network: &str,
        most: usize,
        leads: impl Fn(&IpNet) -> bool,
        asks: impl Fn(&Learned) -> bool,
    ) -> (Vec<Learned>, usize) {
        let shares = self.lock();
        let mut routes = shares.learned(network, leads).filter(asks);
        let page: Vec<Learned> = routes.by_ref().take(most).collect();
        let more = routes.count();
        (page, more)
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the edge.
pub fn start(
    kernel: Kernel,
    northbound: Client,
    sockets: &Path,
    policies: Policies,
    registry: &mut Registry,
) -> Routes {
    let (state, states) = watch::channel(EdgeState::default());
    let (refused, numbers) = watch::channel(None);
    let routes = Routes { shares: Arc::default(), state: states, refused: numbers };
    let importer = Importer {
        kernel,
        northbound,
        bgpd: sockets.join("bgpd.vty"),
        youth: Youth::default(),
        policies,
        routes: routes.clone(),
        state,
        refused,
        metrics: Metrics::register(registry),
        pace: Pace::near(),
    };
    tokio::spawn(importer.run());
    routes
}

struct Importer {
    kernel: Kernel,
    northbound: Client,
    /// The socket of bgpd: as old as bgpd is.
    bgpd: std::path::PathBuf,
    youth: Youth,
    policies: Policies,
    routes: Routes,
    state: watch::Sender<EdgeState>,
    refused: watch::Sender<Option<RefusedRoutes>>,
    metrics: Metrics,
    pace: Pace,
}

impl Importer {
    async fn run(mut self) {
        while !self.state.is_closed() {
            match self.follow().await {
                Ok(()) => return,
                Err(problem) => {
                    warn!(problem, "cannot bring learned routes into OVN; trying again");
                    self.state.send_modify(|state| state.error = Some(problem));
                    tokio::time::sleep(self.pace.wait()).await;
                }
            }
        }
    }

    /// Listens first and looks then, so nothing is missed. Ends without an error when nobody needs it any more.
    async fn follow(&mut self) -> Result<(), String> {
        let events = self.kernel.watch_without(is_host_interface).await.map_err(|fault| fault.to_string())?;
        let mut events = Box::pin(events);
        let mut database = self.northbound.subscribe();
        if self.policies.wait_for(Option::is_some).await.is_err() {
            return Ok(());
        }
        // All that is known first: who writes before would take away what is right.
        self.take_policies();
        self.look().await.map_err(|fault| fault.to_string())?;
        let replica = self.northbound.loaded().await.map_err(|error| error.to_string())?;
        self.routes.lock().touch(imports::places(&replica));
        self.write().await?;
        loop {
            let deadline = self.routes.lock().deadline();
            tokio::select! {
                event = events.next() => {
                    let Some(event) = event else { return Err("the kernel tells nothing any more".to_owned()) };
                    self.hear(event, &mut events).await.map_err(|fault| fault.to_string())?;
                }
                update = database.next() => {
                    let Some(update) = update else { return Ok(()) };
                    let mut shares = self.routes.lock();
                    shares.touch(imports::touched(&update.changes));
                    for router in imports::new_routers(&update.changes) {
                        shares.touch_router(&router);
                    }
                }
                changed = self.policies.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                    self.take_policies();
                }
                () = until(deadline) => self.routes.lock().give_up(Instant::now()),
            }
            self.write().await?;
        }
    }

    fn take_policies(&mut self) {
        let policies = self.policies.borrow_and_update().clone();
        self.routes.lock().set_policies(policies.as_deref().map(Vec::as_slice).unwrap_or_default());
    }

    /// Takes in everything that happened until now.
    async fn hear(
        &mut self,
        event: Event,
        events: &mut (impl Stream<Item = Event> + Unpin),
    ) -> Result<(), Fault> {
        let mut all = vec![event];
        if !matches!(all[0], Event::Bgp(_)) {
            tokio::time::sleep(CROWD).await;
        }
        while let Some(Some(event)) = events.next().now_or_never() {
            all.push(event);
        }
        // Of what goes with a link, the kernel does not tell.
        if all.iter().any(|event| matches!(event, Event::Links | Event::Overrun)) {
            return self.look().await;
        }
        for event in all {
            let Event::Bgp(changes) = event else { continue };
            if !self.apply(&changes).await? {
                self.look().await?;
            }
        }
        Ok(())
    }

    /// Looks at all routes.
    async fn look(&mut self) -> Result<(), Fault> {
        let routes = self.kernel.bgp_table().await?;
        let settles = self.settles();
        self.routes.lock().look(routes, settles, Instant::now());
        Ok(())
    }

    /// Takes changes in. False if it is not clear what there is now.
    async fn apply(&mut self, changes: &[BgpChange]) -> Result<bool, Fault> {
        let links = self.kernel.links().await?;
        let names = names_by_number(&links);
        let places = changes.iter().map(|change| (change.table, change.destination));
        let settles = self.settles();
        let applied = self.routes.lock().change(places, settles, Instant::now(), |table| {
            changes.iter().try_for_each(|change| table.apply(change, &names))
        });
        Ok(applied.is_ok())
    }

    /// Whether bgpd was started a short while ago.
    fn settles(&mut self) -> bool {
        let there = std::fs::metadata(&self.bgpd).ok();
        let socket = there.and_then(|file| Some(Socket { number: file.ino(), made: file.modified().ok()? }));
        self.youth.settles(socket, SystemTime::now(), Instant::now())
    }

    /// Writes what changed, some of it at a time.
    async fn write(&mut self) -> Result<(), String> {
        loop {
            let wanted = self.routes.lock().take(MOST);
            if wanted.is_empty() {
                break;
            }
            let replica = self.northbound.loaded().await.map_err(|error| error.to_string())?;
            let transaction = imports::difference(&wanted, &replica);
            if transaction.is_empty() {
                continue;
            }
            if let Err(error) = self.northbound.transact(transaction).await {
                self.routes.lock().touch(wanted.into_iter().map(|wanted| wanted.place));
                return Err(error.to_string());
            }
        }
        self.pace.rest();
        self.state.send_if_modified(|state| state.error.take().is_some());
        let counts = self.routes.counts();
        self.metrics.set(&counts);
        let refused = counts.into_iter().filter(|(_, count)| count.dammed > 0);
        let refused = RefusedRoutes(refused.map(|(network, count)| (network, count.dammed)).collect());
        self.refused.send_if_modified(|last| last.replace(refused.clone()) != Some(refused));
        Ok(())
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NetworkLabel {
    network: String,
}

/// How many routes each network has.
#[derive(Debug, Clone, Default)]
struct Metrics {
    learned: Family<NetworkLabel, Gauge>,
    imported: Family<NetworkLabel, Gauge>,
    dammed: Family<NetworkLabel, Gauge>,
}

impl Metrics {
    fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let each = [
            ("underlay_learned_routes", "Routes that BGP brought, by network", &metrics.learned),
            ("underlay_imported_routes", "Learned routes that are in OVN, by network", &metrics.imported),
            (
                "underlay_dammed_routes",
                "Learned routes that are not in OVN because the network has as many as it takes",
                &metrics.dammed,
            ),
        ];
        for (name, help, family) in each {
            registry.register(name, help, family.clone());
        }
        metrics
    }

    fn set(&self, counts: &BTreeMap<String, Count>) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for family in [&self.learned, &self.imported, &self.dammed] {
            family.clear();
        }
        for (network, count) in counts {
            let label = NetworkLabel { network: network.clone() };
            self.learned.get_or_create(&label).set(number(count.learned));
            self.imported.get_or_create(&label).set(number(count.imported));
            self.dammed.get_or_create(&label).set(number(count.dammed));
        }
    }
}
