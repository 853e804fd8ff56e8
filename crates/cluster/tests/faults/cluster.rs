//! A cluster for a story: nodes, tenants, an advertisement, things of others, and the judge of it all.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use underlay_testkit::{ApiServer, Scratch, wait_for};

use crate::common::daemon::{Daemon, apply, get};
use crate::common::objects::{condition, namespace, network, prepare};
use crate::state::{State, difference};

/// Longer than anything takes on a machine that runs several stories at once.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// Looks that have to find the same before nothing happens any more, and the pause between two.
const LOOKS: usize = 3;
const PAUSE: Duration = Duration::from_millis(150);

pub struct Cluster {
    pub server: ApiServer,
    pub scratch: Scratch,
    theirs: BTreeMap<String, Value>,
    started: AtomicUsize,
}

impl Cluster {
    pub fn new(label: &str) -> Self {
        let (server, scratch) = (ApiServer::start(), Scratch::new(label));
        prepare(&server, &scratch);
        apply(&server, &scratch, &of_others());
        let theirs = State::of(&server).theirs();
        Self { server, scratch, theirs, started: AtomicUsize::new(0) }
    }

    /// A manager with a short lease.
    pub fn start(&self, name: &str) -> Daemon {
        Daemon::start(&self.server, &self.scratch, name)
    }

    /// A manager with the lease that users have.
    pub fn start_as_users_do(&self, name: &str) -> Daemon {
        Daemon::start_with(&self.server.kubeconfig(), &self.scratch, name, &[])
    }

    /// Defines networks with these numbers, each for a namespace of its own.
    pub fn roll_out(&self, numbers: Range<usize>) {
        let namespaces: Vec<Value> =
            numbers.clone().map(|number| namespace(&tenant(number), &tenant(number))).collect();
        apply(&self.server, &self.scratch, &namespaces);
        let networks: Vec<Value> = numbers.map(tenants_network).collect();
        apply(&self.server, &self.scratch, &networks);
    }

    /// Waits until so many networks are there as they should be.
    #[track_caller]
    pub fn has_networks(&self, count: usize, daemon: &Daemon) {
        wait_for(&format!("{count} networks"), PATIENCE, || {
            let list = get(&self.server, &["cudn"]);
            let items = list["items"].as_array().unwrap();
            let is_there = |item: &&Value| {
                ["NetworkCreated", "NetworkAllocationSucceeded", "TransportAccepted"]
                    .iter()
                    .all(|type_| condition(item, type_).starts_with("True"))
            };
            let there = items.iter().filter(is_there).count();
            let ok = there == count && items.len() == count;
            ok.then_some(()).ok_or_else(|| format!("{there} of {}\n{}", items.len(), daemon.log()))
        });
    }

    /// Waits until nothing happens any more.
    #[track_caller]
    fn is_quiet(&self, daemon: &Daemon) -> State {
        let mut last = BTreeMap::new();
        let mut same = 0;
        wait_for("nothing to happen", PATIENCE, || {
            let ready =
                daemon.leads() && daemon.look("/readyz").is_ok_and(|answer| answer.contains("200 OK"));
            let state = State::of(&self.server);
            let planned =
                daemon.count("underlay_networks").unwrap_or_default() > 0 || state.definitions() == 0;
            let versions = state.versions();
            let finished = daemon.count("underlay_unfinished") == Some(0);
            same = if ready && planned && finished && versions == last { same + 1 } else { 0 };
            last = versions;
            thread::sleep(PAUSE);
            if same >= LOOKS { Ok(state) } else { Err(daemon.log()) }
        })
    }

    /// The judge: what is there is what a fresh start computes, so that one writes nothing; nothing was handed out
    /// twice; and nothing of others' is touched. Returns the fresh one.
    #[track_caller]
    pub fn judge(&self, daemon: Daemon) -> Daemon {
        let before = self.is_quiet(&daemon);
        assert_eq!(before.doubles(), [] as [String; 0], "{}", daemon.log());
        same("others' things are untouched", &self.theirs, &before.theirs(), &daemon);
        daemon.stop();
        let fresh = self.start(&format!("fresh-{}", self.started.fetch_add(1, Ordering::Relaxed)));
        let after = self.is_quiet(&fresh);
        same("it is what a fresh start computes", &before.ours(), &after.ours(), &fresh);
        same("a fresh start writes nothing", &before.versions(), &after.versions(), &fresh);
        assert_eq!(fresh.count("underlay_writes_total"), Some(0), "{}", fresh.log());
        fresh
    }
}

/// Says what differs, if anything.
#[track_caller]
pub fn same(what: &str, before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>, daemon: &Daemon) {
    let difference = difference(before, after);
    assert!(difference.is_empty(), "not so: {what}\n{}\n{}", difference.join("\n"), daemon.log());
}

/// The namespace, the team and the network with this number.
pub fn tenant(number: usize) -> String {
    format!("t{number:03}")
}

pub fn tenants_network(number: usize) -> Value {
    network(&tenant(number), &tenant(number), &format!("10.{}.0.0/16", 20 + number))
}

/// What others have: labels and annotations on nodes, an attachment definition for another plugin, and peers.
fn of_others() -> Vec<Value> {
    let mut objects: Vec<Value> = [("n1", 1), ("n2", 2), ("n3", 3)]
        .into_iter()
        .map(|(name, number)| {
            let primary = format!(r#"{{"ipv4":"172.18.0.{number}/16"}}"#);
            let annotations = json!({ "k8s.ovn.org/node-primary-ifaddr": primary, "example.com/rack": "7" });
            let labels = json!({ "kubernetes.io/hostname": name, "example.com/zone": "north" });
            let metadata = json!({ "name": name, "labels": labels, "annotations": annotations });
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })
        })
        .collect();
    objects.push(json!({
        "apiVersion": "k8s.cni.cncf.io/v1",
        "kind": "NetworkAttachmentDefinition",
        "metadata": { "name": "theirs", "namespace": "a", "annotations": { "example.com/by": "hand" } },
        "spec": { "config": r#"{"cniVersion":"0.3.1","type":"macvlan"}"# },
    }));
    objects.push(json!({
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": { "name": "peers", "namespace": "a", "labels": { "use": "advertise" } },
        "spec": { "bgp": { "routers": [{
            "asn": 64512, "neighbors": [{ "address": "172.18.0.100", "asn": 64512 }],
        }] } },
    }));
    objects.push(json!({
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": { "name": "default" },
        "spec": {
            "networkSelectors": [{ "networkSelectionType": "DefaultNetwork" }],
            "nodeSelector": {},
            "frrConfigurationSelector": { "matchLabels": { "use": "advertise" } },
            "advertisements": ["PodNetwork"],
        },
    }));
    objects
}
