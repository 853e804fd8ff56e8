//! The edges of a node: each takes its part of the newest plan, compares it with what is there, and applies the
//! difference.

use std::sync::Arc;
use std::time::Duration;

use kube::Client as KubeClient;
use serde_json::json;
use tokio::sync::{Notify, watch};
use underlay_desired::flow::Flows;
use underlay_desired::linux::Host;
use underlay_desired::nft::Ruleset;
use underlay_desired::ovn::Rows;
use underlay_desired::switch::Switch;
use underlay_linux::Kernel;
use underlay_nft::Nft;
use underlay_ovsdb::Client;
use underlay_plan::node::Zone;
use underlay_runtime::admin::Desired;
use underlay_runtime::edge::{Edge, EdgeMetrics, EdgeState, Publisher, Report};
use underlay_runtime::objects::Writer;

use crate::records::{self, NodeRecord, PodRecords};

/// After this long an edge looks again although nothing seems to have happened: nobody tells when a flow or a rule of
/// the packet filter is removed by hand.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Where each edge gets its part of the plan.
pub struct Edges {
    northbound: Publisher<Rows>,
    southbound: Publisher<Rows>,
    switch: Publisher<Switch>,
    flows: Publisher<(String, Flows)>,
    host: Publisher<Host>,
    filter: Publisher<Ruleset>,
    node_record: Publisher<NodeRecord>,
    pod_records: Publisher<PodRecords>,
    /// Edges that the node's pods need.
    states: Vec<(&'static str, watch::Receiver<EdgeState>)>,
    /// Edges that write to the API server: pods can do without for a while.
    records: Vec<(&'static str, watch::Receiver<EdgeState>)>,
    /// Wakes the edges that write to the kernel.
    kernel_changed: Vec<Arc<Notify>>,
    /// Wakes the edges that write to what loses everything when its links go.
    links_changed: Vec<Arc<Notify>>,
}

/// What the edges write to.
pub struct Targets {
    /// The northbound database.
    pub northbound: Client,
    /// The southbound database.
    pub southbound: Client,
    /// The switch's database.
    pub switch: Client,
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// The API server.
    pub api: KubeClient,
    /// Counts what is written there.
    pub writer: Writer,
    /// The node's name.
    pub node: String,
}

impl Edges {
    /// Starts them all. They wait for their first plan.
    pub fn start(targets: Targets, metrics: &EdgeMetrics) -> Self {
        let mut edges = Self {
            northbound: Publisher::default(),
            southbound: Publisher::default(),
            switch: Publisher::default(),
            flows: Publisher::default(),
            host: Publisher::default(),
            filter: Publisher::default(),
            node_record: Publisher::default(),
            pod_records: Publisher::default(),
            states: Vec::new(),
            records: Vec::new(),
            kernel_changed: Vec::new(),
            links_changed: Vec::new(),
        };
        edges.start_databases(&targets, metrics);
        edges.start_node(&targets, metrics);
        edges.start_records(targets, metrics);
        edges
    }

    fn start_databases(&mut self, targets: &Targets, metrics: &EdgeMetrics) {
        let databases = [
            ("northbound", &self.northbound, targets.northbound.clone()),
            ("southbound", &self.southbound, targets.southbound.clone()),
        ];
        for (name, publisher, client) in databases {
            let edge = Edge::new(name, publisher.plans(), metrics);
            self.states.push((name, edge.state()));
            tokio::spawn(wake_by(client.clone(), edge.waker()));
            tokio::spawn(edge.run(async move |rows: Arc<Rows>| {
                let difference = underlay_ovn::sync(&client, &rows).await.map_err(text)?;
                let changes = difference.inserted + difference.updated + difference.deleted;
                Ok::<_, String>(Report { changes })
            }));
        }
        let (client, edge) = (targets.switch.clone(), Edge::new("switch", self.switch.plans(), metrics));
        self.states.push(("switch", edge.state()));
        tokio::spawn(wake_by(client.clone(), edge.waker()));
        tokio::spawn(edge.run(async move |switch: Arc<Switch>| {
            let changes = underlay_ovs::sync(&client, &switch).await.map_err(text)?;
            Ok::<_, String>(Report { changes })
        }));
    }

    fn start_node(&mut self, targets: &Targets, metrics: &EdgeMetrics) {
        let edge = Edge::new("flows", self.flows.plans(), metrics).resync(LOOK_AGAIN);
        self.states.push(("flows", edge.state()));
        // A switch that was restarted has lost its flows; the kernel tells that its devices came again.
        self.links_changed.push(edge.waker());
        tokio::spawn(edge.run(async move |plan: Arc<(String, Flows)>| {
            let changes = underlay_ovs::flows::sync(&plan.0, &plan.1).await.map_err(text)?;
            Ok::<_, String>(Report { changes })
        }));

        let (kernel, edge) = (targets.kernel.clone(), Edge::new("host", self.host.plans(), metrics));
        let edge = edge.resync(LOOK_AGAIN);
        self.states.push(("host", edge.state()));
        self.kernel_changed.push(edge.waker());
        tokio::spawn(edge.run(async move |host: Arc<Host>| {
            let report = kernel.sync(&host).await.map_err(text)?;
            Ok::<_, String>(Report { changes: report.changes.len() })
        }));

        let edge = Edge::new("filter", self.filter.plans(), metrics).resync(LOOK_AGAIN);
        self.states.push(("filter", edge.state()));
        tokio::spawn(edge.run(async move |rules: Arc<Ruleset>| {
            let changes = Nft::default().sync(&rules).await.map_err(text)?;
            Ok::<_, String>(Report { changes })
        }));
    }

    fn start_records(&mut self, targets: Targets, metrics: &EdgeMetrics) {
        let Targets { api, writer, node, .. } = targets;
        let edge = Edge::new("node-record", self.node_record.plans(), metrics);
        self.records.push(("node-record", edge.state()));
        let (client, counter) = (api.clone(), writer.clone());
        tokio::spawn(edge.run(async move |record: Arc<NodeRecord>| {
            records::write_node(&client, &counter, &node, &record).await.map_err(text)
        }));
        let edge = Edge::new("pod-records", self.pod_records.plans(), metrics);
        self.records.push(("pod-records", edge.state()));
        let mut written = PodRecords::new();
        tokio::spawn(edge.run(async move |pods: Arc<PodRecords>| {
            records::write_pods(&api, &writer, &pods, &mut written).await.map_err(text)
        }));
    }

    /// Hands every edge its part.
    pub fn publish(&self, zone: Zone) {
        self.pod_records.publish(records::of_pods(&zone.pods));
        self.northbound.publish(zone.northbound);
        self.southbound.publish(zone.southbound);
        self.switch.publish(zone.switch);
        for (bridge, flows) in zone.flows {
            self.flows.publish((bridge, flows));
        }
        self.host.publish(zone.host);
        self.filter.publish(zone.filter);
    }

    /// Tells the newest plan, for people.
    pub fn desired(&self) -> Desired {
        let (northbound, southbound) = (self.northbound.plans(), self.southbound.plans());
        let (switch, filter, flows) = (self.switch.plans(), self.filter.plans(), self.flows.plans());
        Arc::new(move || {
            let flows = flows.borrow().as_ref().map(|planned| {
                let (bridge, flows) = &*planned.plan;
                json!({ "bridge": bridge, "flows": flows.iter().collect::<Vec<_>>() })
            });
            json!({
                "northbound": northbound.borrow().as_ref().map(|planned| planned.plan.iter().collect::<Vec<_>>()),
                "southbound": southbound.borrow().as_ref().map(|planned| planned.plan.iter().collect::<Vec<_>>()),
                "switch": switch.borrow().as_ref().map(|planned| json!(*planned.plan)),
                "filter": filter.borrow().as_ref().map(|planned| json!(*planned.plan)),
                "flows": flows,
            })
        })
    }

    /// Hands out what the node tells of itself.
    pub fn publish_node(&self, record: NodeRecord) {
        self.node_record.publish(record);
    }

    /// Lets the edges that write to the kernel look again.
    pub fn kernel_changed(&self) {
        self.kernel_changed.iter().for_each(|edge| edge.notify_one());
    }

    /// Lets the edges look again that lose everything when links go.
    pub fn links_changed(&self) {
        self.links_changed.iter().for_each(|edge| edge.notify_one());
    }

    /// How far each edge is that the node's pods need, by name.
    pub fn needed(&self) -> Vec<(&'static str, watch::Receiver<EdgeState>)> {
        self.states.clone()
    }

    /// How far each edge is, by name.
    pub fn states(&self) -> Vec<(&'static str, watch::Receiver<EdgeState>)> {
        self.states.iter().chain(&self.records).cloned().collect()
    }
}

/// Wakes an edge whenever its database changes, whoever changed it. What the edge itself did makes it look once more
/// and find nothing to do.
async fn wake_by(client: Client, waker: Arc<Notify>) {
    let mut changes = client.subscribe();
    while changes.next().await.is_some() {
        waker.notify_one();
    }
}

fn text(error: impl std::error::Error) -> String {
    underlay_runtime::feed::text_with_sources(&error)
}
