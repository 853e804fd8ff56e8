//! Writes who holds egress IPs: one status for each that changes. What changed, and what cannot be, is told as events.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, Node, ObjectReference};
use kube::Api;
use tracing::{info, warn};
use underlay_api::egress_ip::{EgressIPItem, EgressIPStatus};
use underlay_api::network::API_VERSION;
use underlay_api::{ClusterUserDefinedNetwork, EgressIP, RouteAdvertisements, UserDefinedNetwork};
use underlay_plan::cluster::{ClusterPlan, egress};
use underlay_runtime::feed::put;
use underlay_runtime::objects::Basis;
use underlay_world::egress::Item;
use underlay_world::{EgressIp, Key, Kind};

use crate::leader::Leader;
use crate::reach;

/// What was told of each, so that nothing is told twice in a row.
pub type Told = BTreeMap<Key, Vec<(&'static str, String)>>;

/// What has to be known to assign egress IPs.
const NEEDED: [&str; 7] = [
    Node::NAME,
    Namespace::NAME,
    EgressIP::NAME,
    RouteAdvertisements::NAME,
    ClusterUserDefinedNetwork::NAME,
    UserDefinedNetwork::NAME,
    reach::NAME,
];

impl Leader {
    /// Decides who holds what, writes it, and asks the nodes that matter from now on. False if something has to be done
    /// again.
    pub(crate) async fn plan_egress_ips(&mut self, plan: &mut ClusterPlan) -> bool {
        reach::publish(&self.targets, egress::watched(&self.world));
        if !self.feeds.know(&NEEDED) {
            return true;
        }
        plan.egress_ips = egress::plan(&self.world, &self.tools.settings);
        self.write_egress_ips(&plan.egress_ips).await
    }

    /// Writes what differs. False if something has to be done again.
    async fn write_egress_ips(&mut self, plan: &BTreeMap<Key, egress::Told>) -> bool {
        let mut done = true;
        for (key, told) in plan {
            let Some(source) = self.world.egress_ips.get(key).cloned() else { continue };
            if told.news {
                done &= self.assign(&source, &told.items).await;
            }
            let before =
                self.told_of_egress_ips.insert(key.clone(), told.problems.clone()).unwrap_or_default();
            for (reason, message) in told.problems.iter().filter(|problem| !before.contains(problem)) {
                warn!(egress_ip = %key, reason, "{message}");
                let object = ObjectReference { field_path: field(message), ..reference(&source) };
                self.tools.events.warn(&object, "Assign", reason, message).await;
            }
        }
        self.told_of_egress_ips.retain(|key, _| plan.contains_key(key));
        done
    }

    /// Records who holds the addresses of an egress IP.
    async fn assign(&mut self, source: &EgressIp, items: &[Item]) -> bool {
        let api = Api::<EgressIP>::all(self.tools.client.clone());
        let recorded =
            |item: &Item| EgressIPItem { node: item.node.clone(), egress_ip: item.address.to_string() };
        let status = EgressIPStatus { items: items.iter().map(recorded).collect() };
        let still = |now: &EgressIP| EgressIp::read(now.clone()).items == source.items;
        let basis = Basis::version(&source.uid, &source.version, &still);
        match self.tools.writer.apply_status(&api, &source.key.name, basis, &status).await {
            Ok(written) => {
                // Its echo is no news then.
                put::<EgressIP>(&mut self.world, source.key.clone(), written.read());
                self.tell_of_moves(source, items).await;
                true
            }
            Err(error) if error.is_not_found() => true,
            Err(error) => {
                self.complain(&error);
                false
            }
        }
    }

    fn holder(&self, node: &str) -> ObjectReference {
        ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            uid: self.world.node(node).map(|node| node.uid.clone()),
            ..ObjectReference::default()
        }
    }

    async fn tell_of_moves(&self, source: &EgressIp, items: &[Item]) {
        let (events, object) = (&self.tools.events, reference(source));
        for Item { node, address } in source.items.iter().filter(|item| !items.contains(item)) {
            info!(egress_ip = %source.key, %address, node, "a node gives up an egress IP");
            let note = format!("node {node} gives up {address}");
            events.tell_of_both(&object, self.holder(node), "EgressIPUnassigned", &note).await;
        }
        for Item { node, address } in items.iter().filter(|item| !source.items.contains(item)) {
            info!(egress_ip = %source.key, %address, node, "a node holds an egress IP");
            let note = format!("node {node} holds {address}");
            events.tell_of_both(&object, self.holder(node), "EgressIPAssigned", &note).await;
        }
    }
}

/// The field that a sentence begins with. What is said of several is several events then.
fn field(message: &str) -> Option<String> {
    let word = message.split([' ', ':']).next()?;
    word.starts_with("spec.").then(|| word.to_owned())
}

fn reference(source: &EgressIp) -> ObjectReference {
    ObjectReference {
        api_version: Some(API_VERSION.to_owned()),
        kind: Some(EgressIP::NAME.to_owned()),
        name: Some(source.key.name.clone()),
        uid: Some(source.uid.clone()),
        ..ObjectReference::default()
    }
}
