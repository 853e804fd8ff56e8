//! The agent as a whole: what it watches, how it plans, and whom it hands the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher;
use kube::{Api, Client};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};
use underlay_api::annotations::DEFAULT_NETWORK;
use underlay_api::{EgressIP, FRRConfiguration, NetworkAttachmentDefinition};
use underlay_desired::flow::Announcement;
use underlay_desired::owner::AGENT_MANAGER;
use underlay_frr::Frr;
use underlay_linux::{Hands, Kernel};
use underlay_ovsdb::{Config, Selection};
use underlay_plan::node::addresses::{Placed, PlacedPod};
use underlay_plan::node::imports::Policy;
use underlay_plan::node::{NodePlan, egress};
use underlay_runtime::admin::{self, Admin};
use underlay_runtime::edge::{EdgeMetrics, reached};
use underlay_runtime::events::Events;
use underlay_runtime::objects::Writer;
use underlay_runtime::turn::Feeds;
use underlay_runtime::{client, config, elsewhere, feed};
use underlay_world::local::Assigned;
use underlay_world::{Key, Kind, Local, Settings, World};

use crate::args::Args;
use crate::concern::{Concern, For};
use crate::edges::{Edges, Targets};
use crate::metrics::NetworkMetrics;
use crate::owed::Owed;
use crate::records::NodeRecord;
use crate::report::{Outline, Reporter};
use crate::speaker::{Place, Speaker};
use crate::surroundings::{self, Seen};
use crate::{announce, cni, importer, install, refused, remembered};

/// Threads that give pods their interfaces. More would only stand in line for the same lock of the kernel.
const HANDS: usize = 4;

/// What a plan is made from comes in crowds: networks with their namespaces, pods with their states, and every node's
/// part. The runtime takes longer than this to ask for a pod's network. Speakers do not wait.
const LULL: Duration = Duration::from_millis(10);
const CROWDS: [&str; 7] = [
    Node::NAME,
    Namespace::NAME,
    Pod::NAME,
    elsewhere::NAME,
    Service::NAME,
    EndpointSlice::NAME,
    NetworkAttachmentDefinition::NAME,
];

/// Seconds that a turn may take, from a plan of little to one of very much.
const TURNS: [f64; 6] = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];

/// Runs until it is told to stop.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = settings(&args)?;
    let client = client::connect(args.kubeconfig.as_deref()).await?;
    let mut registry = Registry::default();
    let metrics = EdgeMetrics::register(&mut registry);
    let turns = Histogram::new(TURNS);
    registry.register("underlay_turn_seconds", "Duration of a turn, without what edges do", turns.clone());
    let writer = Writer::register(AGENT_MANAGER, &mut registry);
    let networks = NetworkMetrics::register(&mut registry);

    let targets = targets(&args, client.clone(), writer)?;
    let (northbound, switch) = (targets.northbound.clone(), targets.switch.clone());
    let seen = see(switch.clone())?;
    let place = Place {
        node: &args.node_name,
        namespace: &args.frr_namespace,
        api: client.clone(),
        writer: targets.writer.clone(),
    };
    let speaker = Speaker::start(args.bgp_speaker, place, Frr::default(), &metrics);
    let (policies, newest) = watch::channel(None);
    let sockets = Frr::default().sockets;
    let kernel = Kernel::open().context("opening netlink")?;
    let routes = importer::start(kernel, northbound.clone(), &sockets, newest, &mut registry);
    let refused = refused::calm(routes.refused());
    let edges = Edges::start(targets, &metrics);
    let (pods, placed) = watch::channel(None);
    let (waiting, waits) = watch::channel(Some("the API server".to_owned()));
    let (outline, outlined) = watch::channel(None);
    let reporter = Reporter {
        node: args.node_name.clone(),
        waiting: waits.clone(),
        placed: placed.clone(),
        outline: outlined,
        edges: edges
            .states()
            .into_iter()
            .chain([("routes", routes.state())])
            .chain(speaker.as_ref().map(|own| ("frr", own.state())))
            .collect(),
        routes,
        frr_sockets: sockets,
        seen: seen.clone(),
        settings: settings.clone(),
    };
    let server = cni::Server {
        pods: placed,
        waiting: waits.clone(),
        hands: Hands::new(HANDS).context("starting threads")?,
        switch,
        mtu: settings.mtu,
        turns: cni::Turns::default(),
        metrics: cni::Metrics::register(&mut registry),
    };
    tokio::spawn(cni::serve(cni::listen(&args.cni_socket)?, server));
    let admin = Admin {
        registry: Arc::new(registry),
        ready: readiness(waits),
        desired: edges.desired(),
        report: Some(reporter.serve()),
    };
    admin::start(&args.metrics_bind_address, admin).await?;

    let (announced, announcing) = watch::channel(BTreeSet::new());
    tokio::spawn(announce::run(announcing));
    let (namespaces, wanted) = watch::channel(BTreeSet::new());
    let agent = Agent {
        feeds: feeds(&client, &args.node_name, speaker.as_ref(), wanted),
        namespaces,
        announced,
        edges,
        speaker,
        settings,
        seen,
        pods,
        outline,
        policies,
        refused,
        teller: refused::Teller::default(),
        events: Events::new(client, AGENT_MANAGER),
        waiting,
        opened: Arc::default(),
        networks,
        told: BTreeMap::new(),
        assigned: BTreeMap::new(),
        registered: false,
        ahead: None,
        owed: Owed::default(),
        concern: Concern::default(),
        turns,
        args,
    };
    agent.run(northbound).await
}

fn settings(args: &Args) -> anyhow::Result<Settings> {
    let config = config::load(&args.settings)?;
    for key in &config.unknown {
        warn!(key, "the configuration file has a key that is not known; it is passed over");
    }
    config.unused.iter().for_each(|note| warn!("{note}"));
    Ok(config.settings)
}

/// Everything that the edges write to.
fn targets(args: &Args, api: Client, writer: Writer) -> anyhow::Result<Targets> {
    Ok(Targets {
        northbound: database(&args.northbound, "OVN_Northbound", underlay_ovn::northbound())?,
        southbound: database(&args.southbound, "OVN_Southbound", underlay_ovn::southbound())?,
        switch: database(&args.switch, "Open_vSwitch", underlay_ovs::selection())?,
        kernel: Arc::new(Kernel::open().context("opening netlink")?),
        api,
        writer,
        node: args.node_name.clone(),
    })
}

/// What the node sees of itself, from now on.
fn see(switch: underlay_ovsdb::Client) -> anyhow::Result<watch::Receiver<Option<Seen>>> {
    let (seen, receiver) = watch::channel(None);
    let kernel = Kernel::open().context("opening netlink")?;
    tokio::spawn(surroundings::watch(kernel, switch, seen));
    Ok(receiver)
}

fn database(remote: &str, name: &str, selection: Selection) -> anyhow::Result<underlay_ovsdb::Client> {
    let remote = remote.parse().with_context(|| format!("the address {remote:?} of {name}"))?;
    let (client, session) = underlay_ovsdb::open(Config::new(remote, name, selection));
    tokio::spawn(session.run());
    Ok(client)
}

/// The watches. These are the namespaces whose pods on other nodes matter.
fn feeds(
    client: &Client,
    node: &str,
    speaker: Option<&Speaker>,
    namespaces: watch::Receiver<BTreeSet<String>>,
) -> Feeds {
    let own = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
    let mut feeds = Feeds::new()
        .with(Node::NAME, feed::everything::<Node>(client))
        .with(Namespace::NAME, feed::everything::<Namespace>(client))
        .with(Pod::NAME, feed::watch::<Pod>(Api::all(client.clone()), own))
        .with(elsewhere::NAME, elsewhere::watch(client.clone(), format!("spec.nodeName!={node}"), namespaces))
        .with_optional(EgressIP::NAME, feed::everything::<EgressIP>(client))
        .with(Service::NAME, feed::everything::<Service>(client))
        .with(EndpointSlice::NAME, feed::everything::<EndpointSlice>(client))
        .with_optional(
            NetworkAttachmentDefinition::NAME,
            feed::everything::<NetworkAttachmentDefinition>(client),
        )
        .with_optional(FRRConfiguration::NAME, feed::everything::<FRRConfiguration>(client));
    if let Some(speaker) = speaker {
        feeds = feeds.with(Secret::NAME, feed::secrets(client, speaker.secrets()));
    }
    feeds.wait_for_lull(&CROWDS, LULL);
    feeds
}

fn readiness(waiting: watch::Receiver<Option<String>>) -> admin::Readiness {
    Arc::new(move || match &*waiting.borrow() {
        Some(what) => Err(format!("waiting for {what}")),
        None => Ok(()),
    })
}

/// The task that plans.
struct Agent {
    args: Args,
    settings: Settings,
    feeds: Feeds,
    /// Namespaces whose pods on other nodes matter: those of the egress IPs that the node holds.
    namespaces: watch::Sender<BTreeSet<String>>,
    /// Addresses that neighbours are told of.
    announced: watch::Sender<BTreeSet<Announcement>>,
    edges: Edges,
    /// Nothing where frr-k8s does its work.
    speaker: Option<Speaker>,
    seen: watch::Receiver<Option<Seen>>,
    /// For the CNI server; nothing before the first plan.
    pods: watch::Sender<Option<Arc<Placed>>>,
    /// For those who ask how things are; nothing before the first plan.
    outline: watch::Sender<Option<Outline>>,
    /// Which learned routes networks take; nothing before the first plan.
    policies: watch::Sender<Option<Arc<Vec<Policy>>>>,
    /// How many learned routes networks have no room for; nothing before the first look.
    refused: refused::Numbers,
    /// Tells of it.
    teller: refused::Teller,
    events: Events,
    /// What the node waits for.
    waiting: watch::Sender<Option<String>>,
    /// Whether the container runtime was told that pods can start.
    opened: Arc<AtomicBool>,
    /// Counts user-defined networks.
    networks: NetworkMetrics,
    /// What user-defined networks wait for, as it was told last.
    told: BTreeMap<String, String>,
    /// Addresses that pods were given, kept until the pods are gone.
    assigned: BTreeMap<Key, Assigned>,
    /// Whether the node has been in the cluster since the agent started.
    registered: bool,
    /// The number of what the speaker was told ahead of all others.
    ahead: Option<u64>,
    /// What the others have still to hear.
    owed: Owed,
    /// Tells whom news are for.
    concern: Concern,
    /// How long turns take.
    turns: Histogram,
}

impl Agent {
    async fn run(mut self, northbound: underlay_ovsdb::Client) -> anyhow::Result<()> {
        install::plugin(&self.args.cni_plugin, &self.args.cni_bin_dir).await?;
        let mut stop = Box::pin(stopped()?);
        self.wait_for("the node's northbound database");
        tokio::select! {
            loaded = northbound.loaded() => self.assigned = remembered::read(&*loaded?),
            () = &mut stop => return Ok(()),
        }
        let (mut world, mut last) = (World::default(), Seen::default());
        loop {
            let heard = tokio::select! {
                news = self.feeds.next(&mut world) => {
                    let node = world.node(&self.args.node_name).map(AsRef::as_ref);
                    self.concern.of(&news, node, &world)
                }
                changed = self.seen.changed() => {
                    changed.context("the node cannot be seen any more")?;
                    For::Nobody
                }
                Ok(()) = self.refused.changed() => For::Everybody,
                // Should it be too early for a turn, whatever it waits for brings one.
                () = self.owed.due() => For::Everybody,
                () = &mut stop => return Ok(()),
            };
            let Some(seen) = self.seen.borrow_and_update().clone() else {
                self.wait_for("the switch's database");
                continue;
            };
            self.wake_edges(&last, &seen);
            if !self.feeds.is_ready() {
                let waiting = self.feeds.waiting().unwrap_or_else(|| "the API server".to_owned());
                self.wait_for(waiting.trim_start_matches("waiting for "));
            } else if let Some(namespace) = self.lacks_pods(&world) {
                self.wait_for(&format!("pods of namespace {namespace}, whose egress IP the node holds"));
            } else if heard == For::Speaker {
                self.ahead = self.tell_speaker(&world, &seen.local).or(self.ahead);
                self.owed.note();
            } else if heard != For::Nobody || last.local != seen.local {
                // Whatever else happened is for edges alone to look at.
                let began = Instant::now();
                self.turn(&world, &seen).await;
                self.turns.observe(began.elapsed().as_secs_f64());
                self.feeds.rest_after(began.elapsed());
            }
            last = seen;
        }
    }

    /// Sees to it that the pods are known whose egress IPs the node holds. Before the first plan they must be: without
    /// them it would undo what was done for them.
    fn lacks_pods(&self, world: &World) -> Option<String> {
        let wanted = egress::namespaces(&self.args.node_name, world);
        let lacking = wanted.iter().find(|name| !world.elsewhere.contains_key(*name)).cloned();
        self.namespaces.send_if_modified(|namespaces| {
            let news = *namespaces != wanted;
            *namespaces = wanted;
            news
        });
        lacking.filter(|_| self.pods.borrow().is_none())
    }

    fn wake_edges(&self, last: &Seen, seen: &Seen) {
        if last.kernel != seen.kernel {
            self.edges.kernel_changed();
        }
        if last.links != seen.links {
            self.edges.links_changed();
        }
    }

    /// One turn: plan, remember what was given, hand it out. Peers come first: addresses that nobody outside knows the way
    /// to are better not shown yet, and what OVN has to do for many networks takes the processor from everybody.
    async fn turn(&mut self, world: &World, seen: &Seen) {
        let mut local = seen.local.clone();
        local.assigned.clone_from(&self.assigned);
        let node = world.node(&self.args.node_name);
        self.registered |= node.is_some();
        self.owed.settle();
        let told = self.tell_speaker(world, &local).or(self.ahead.take());
        let (name, all) = (&self.args.node_name, BTreeSet::new());
        let NodePlan { mut annotations, zone, waiting, .. } =
            underlay_plan::node::plan_rest(name, world, &self.settings, &local, &all);
        if let Some((speaker, number)) = self.speaker.as_ref().zip(told) {
            speaker.reach(number).await;
        }
        if let Some(node) = node {
            if let Some(refused) = self.refused.borrow_and_update().as_ref() {
                annotations.extend(refused::annotation(node, refused));
                self.teller.tell(&self.events, node, refused, self.settings.imported_routes_limit);
            }
            self.edges.publish_node(NodeRecord { uid: node.uid.clone(), annotations });
        }
        let Some(mut zone) = zone else {
            self.wait_for(&waiting.map(|what| what.to_string()).unwrap_or_default());
            return;
        };
        self.tell_waiting(&zone.waiting);
        self.networks.count(zone.carried.len(), zone.waiting.len());
        let announced = std::mem::take(&mut zone.announced);
        self.announced.send_if_modified(|before| {
            let news = *before != announced;
            *before = announced;
            news
        });
        let placed = Arc::new(zone.pods.clone());
        self.assigned = assigned(&placed);
        let node = world.node(&self.args.node_name);
        self.outline.send_replace(Some(Outline {
            subnets: node.map(|node| node.subnets_in(DEFAULT_NETWORK).to_vec()).unwrap_or_default(),
            advertised: zone.advertised,
            originated: std::mem::take(&mut zone.originated),
            carried: std::mem::take(&mut zone.carried),
            waiting: std::mem::take(&mut zone.waiting),
        }));
        let imports = std::mem::take(&mut zone.imports);
        self.policies.send_if_modified(|policies| {
            let news = policies.as_deref() != Some(&imports);
            *policies = Some(Arc::new(imports));
            news
        });
        self.edges.publish(zone);
        let first = self.pods.send_replace(Some(placed)).is_none();
        if first {
            self.open_for_pods();
        } else if self.opened.load(Ordering::Relaxed) {
            self.waiting.send_if_modified(|waiting| waiting.take().is_some());
        }
    }

    /// Hands the speaker its part; returns its number if it is new. A node that is taken out of the cluster tells nobody
    /// anything: its subnets may be another's already. One that never was in it touches nothing, also not FRR: it may have
    /// another's name by mistake.
    fn tell_speaker(&self, world: &World, local: &Local) -> Option<u64> {
        let speaker = self.speaker.as_ref().filter(|_| self.registered)?;
        speaker.publish(underlay_plan::node::speaker(&self.args.node_name, world, local))
    }

    fn wait_for(&self, what: &str) {
        wait_for(&self.waiting, what);
    }

    /// Says what user-defined networks wait for, each thing once.
    fn tell_waiting(&mut self, waiting: &BTreeMap<String, String>) {
        for (network, what) in waiting.iter().filter(|(network, what)| self.told.get(*network) != Some(*what))
        {
            info!(network, "the network waits for {what}");
        }
        self.told.clone_from(waiting);
    }

    /// Once everything is in place the container runtime is told, and the node turns ready.
    fn open_for_pods(&self) {
        let (states, waiting, opened) = (self.edges.needed(), self.waiting.clone(), self.opened.clone());
        let directory = self.args.cni_conf_dir.clone();
        tokio::spawn(async move {
            for (edge, mut state) in states {
                if state.borrow().applied == 0 {
                    wait_for(&waiting, &format!("the first plan to be carried out: {edge}"));
                    reached(&mut state, 1).await;
                }
            }
            if let Err(error) = install::config(&directory).await {
                warn!(%error, "the container runtime cannot be told");
                return;
            }
            opened.store(true, Ordering::Relaxed);
            waiting.send_replace(None);
            info!("ready for pods");
        });
    }
}

/// Says what is waited for, and tells it once.
fn wait_for(waiting: &watch::Sender<Option<String>>, what: &str) {
    waiting.send_if_modified(|waiting| {
        if waiting.as_deref() == Some(what) {
            return false;
        }
        info!("waiting for {what}");
        *waiting = Some(what.to_owned());
        true
    });
}

fn assigned(placed: &Placed) -> BTreeMap<Key, Assigned> {
    let entry = |(key, pod): (&Key, &PlacedPod)| {
        let of_default = (DEFAULT_NETWORK.to_owned(), &pod.network);
        let of_own = pod.primary.iter().map(|own| (own.attachment.clone(), &own.part));
        let networks = std::iter::once(of_default).chain(of_own).map(|(name, part)| {
            let addresses = part.addresses.iter().map(ipnet::IpNet::addr).collect();
            (name, addresses)
        });
        let (uid, networks) = (pod.uid.clone(), networks.collect());
        (key.clone(), Assigned { uid, networks, locked: pod.locked() })
    };
    placed.pods.iter().map(entry).collect()
}

/// Ends when the process is told to.
fn stopped() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("stopping");
    })
}
