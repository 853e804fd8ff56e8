//! The cluster as a whole: networks, what every node is given, and what is told to the speakers.
//!
//! In: the world and the settings. Out: attachment definitions and conditions of networks, their endpoint slices,
//! annotations of nodes, generated FRRConfigurations, a verdict on every advertisement, and what cannot be.
//! Advertisements are judged as if the nodes already had what they are given: whoever writes this writes the nodes
//! first.

pub mod advertise;
pub mod egress;
pub mod fabric;
pub mod imported;
pub mod networks;
pub mod nodes;
pub mod ready;
mod speaker;
pub mod transport;
pub mod verdict;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use underlay_api::{FRRConfiguration, RouteAdvertisements};
use underlay_desired::{ObjectRef, Why};
use underlay_world::{Key, Settings, World};

pub use advertise::Advertised;
pub use fabric::Fabric;
pub use networks::{NetworksPlan, Numbers};
pub use nodes::{Given, NodesPlan};
pub(crate) use speaker::own_addresses;
pub use verdict::Verdict;

/// What the cluster as a whole should have.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ClusterPlan {
    /// What is said of each network, and done to its definition.
    #[serde(serialize_with = "by_object")]
    pub networks: BTreeMap<ObjectRef, networks::Told>,
    /// What is done to attachment definitions.
    #[serde(serialize_with = "by_name")]
    pub attachments: BTreeMap<Key, networks::Change>,
    /// What is done to the endpoint slices of networks.
    #[serde(serialize_with = "by_name")]
    pub slices: BTreeMap<Key, networks::slices::Step>,
    /// Annotations to write, by node.
    pub nodes: BTreeMap<String, Given>,
    /// Who holds egress IPs.
    #[serde(serialize_with = "by_name")]
    pub egress_ips: BTreeMap<Key, egress::Told>,
    /// Generated configurations.
    #[serde(serialize_with = "by_name")]
    pub frr_configurations: BTreeMap<Key, Generated>,
    /// Generated advertisements.
    #[serde(serialize_with = "by_name")]
    pub advertisements: BTreeMap<Key, Generated<RouteAdvertisements>>,
    /// What is said of each RouteAdvertisements.
    pub verdicts: BTreeMap<String, Verdict>,
    /// What cannot be.
    pub problems: Vec<Problem>,
}

/// An object that should be.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(bound = "K: Serialize")]
pub struct Generated<K = FRRConfiguration> {
    /// The object. Where the one that is there is as it should be, it may be that very one: nobody needs two.
    #[serde(serialize_with = "shared")]
    pub object: Arc<K>,
    /// Its reason.
    pub why: Why,
}

/// What cannot be, told to the owner of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The object.
    pub object: ObjectRef,
    /// In one word, for programs.
    pub reason: &'static str,
    /// For people: what it is and what helps.
    pub message: String,
}

/// Whoever reads it does not care who else has it.
fn shared<S: Serializer, T: Serialize>(object: &Arc<T>, serializer: S) -> Result<S::Ok, S::Error> {
    object.as_ref().serialize(serializer)
}

/// Maps of JSON and YAML have texts for keys.
fn by_name<S: Serializer, T: Serialize>(map: &BTreeMap<Key, T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter().map(|(key, value)| (key.to_string(), value)))
}

/// The same for maps by object.
fn by_object<S: Serializer, T: Serialize>(
    map: &BTreeMap<ObjectRef, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter().map(|(object, value)| (object.to_string(), value)))
}

/// Ten digits that follow from these names. Names have no slashes.
fn digest(names: &[&str]) -> String {
    let hash = Sha256::digest(names.join("/"));
    let mut digits = String::new();
    for byte in &hash[..5] {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Plans everything.
pub fn plan(world: &World, settings: &Settings) -> ClusterPlan {
    let NetworksPlan { mut told, mut attachments, parts, numbers, .. } =
        networks::plan(world, settings, &Numbers::default());
    let NodesPlan { given, problems } = nodes::plan(world, settings, Some(&parts));
    let mut world = world.clone();
    for (node, given) in &given {
        given.record(node, &mut world);
    }
    networks::record_labels(&told, &mut world);
    let fabric = fabric::plan(&world, settings, true);
    fabric.record(&mut world);
    let egress_ips = egress::plan(&world, settings);
    egress::record(&egress_ips, &mut world);
    let Advertised { mut configurations, verdicts, advertisers } =
        advertise::plan(&world, settings, &numbers);
    networks::announce(&mut attachments, &world, &advertisers);
    transport::judge(&mut told, &world, settings, Some(&verdicts));
    configurations.extend(fabric.configurations);
    ClusterPlan {
        networks: told,
        attachments,
        slices: networks::slices::plan(&world),
        nodes: given,
        egress_ips,
        frr_configurations: configurations,
        advertisements: fabric.advertisements,
        verdicts,
        problems,
    }
}
