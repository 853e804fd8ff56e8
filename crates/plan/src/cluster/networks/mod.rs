//! Networks that tenants have for themselves: what comes of ClusterUserDefinedNetworks and UserDefinedNetworks.
//!
//! In: definitions, namespaces, attachment definitions, the pods that use them, and what nodes have on record. Out: the
//! attachment definitions to make, mend and remove, every node's part of every network, and what is said of each
//! definition. All of it follows from what is recorded: whoever plans again, or begins anew, comes to the same.
//!
//! A definition that cannot be as written leaves what was made of it before as it is. One that goes stays until no pod
//! uses it, until its attachments are gone and until no node has a part of it.

mod announce;
mod attachments;
mod carried;
pub(super) mod check;
mod namespaces;
mod numbers;
mod said;
pub mod slices;
mod subnets;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use underlay_api::annotations::{Annotation, NetworkId};
use underlay_api::conditions::Outcome;
use underlay_api::network::{Network, Subnet, Topology};
use underlay_desired::ObjectRef;
use underlay_net::alloc::SubnetRange;
use underlay_world::{Attachment, Definition, Key, Scope, Settings, World};

use super::fabric;

pub use announce::announce;
pub use attachments::{Change, Step};
pub use numbers::Numbers;
pub(super) use said::outcome;
pub use said::{CONDITIONS, not_written};
pub use subnets::{NodeChanges, Parts};

/// What should become of all networks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetworksPlan {
    /// What is said of each definition, and done to it.
    pub told: BTreeMap<ObjectRef, Told>,
    /// What is done to attachment definitions.
    pub attachments: BTreeMap<Key, Change>,
    /// The nodes' parts.
    pub parts: Parts,
    /// The numbers of networks.
    pub numbers: Numbers,
    /// Whether something can only go once its pods have: before that, pods are no news.
    pub waits_for_pods: bool,
}

/// What is said of a definition, and done to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// The name of its network.
    pub network: String,
    /// The number of its network.
    pub number: Option<u16>,
    /// Its conditions.
    #[serde(serialize_with = "said::serialize")]
    pub outcomes: Vec<Outcome>,
    /// What is told as events when the conditions change: a reason and a sentence each.
    pub events: Vec<(&'static str, String)>,
    /// What is done to the definition itself.
    pub amend: Option<Amend>,
    /// Whether nodes reach its pods by routes that are advertised. Whether they do is not said here, but once it is
    /// known what became of the advertisements: see [`super::transport`].
    #[serde(skip)]
    pub routed: bool,
}

/// What is done to a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Amend {
    /// The identity of the definition that is meant.
    pub uid: String,
    /// Whether it is to stay until we let it go.
    pub protected: bool,
    /// Annotations to set.
    pub annotations: BTreeMap<String, Option<String>>,
    /// Labels to set, and (nothing) to remove.
    pub labels: BTreeMap<String, Option<String>>,
}

/// A network on its way to a plan.
struct Tenant<'a> {
    definition: &'a Definition,
    /// The name of the network.
    name: Arc<str>,
    /// The network as it can be made, or what is wrong with it.
    network: Result<&'a Network, String>,
    /// Its number.
    number: Option<u16>,
    /// The key of its router between nodes.
    router: Option<u32>,
    /// Namespaces that are to have it.
    wanted: BTreeSet<&'a str>,
    /// Namespaces that are to have it and cannot; what was made there stays.
    refused: BTreeSet<&'a str>,
    /// What is wrong.
    problems: Vec<String>,
    /// Attachments that are there and were made from it.
    made: Vec<&'a Attachment>,
}

impl<'a> Tenant<'a> {
    fn new(definition: &'a Definition, settings: &Settings) -> Self {
        Self {
            definition,
            name: definition.network_name().into(),
            network: check::check(definition, settings),
            number: None,
            router: None,
            wanted: BTreeSet::new(),
            refused: BTreeSet::new(),
            problems: Vec::new(),
            made: Vec::new(),
        }
    }

    /// Whether the network is to be: its definition stays and makes sense.
    fn stays(&self) -> Option<&'a Network> {
        self.network.as_ref().ok().copied().filter(|_| !self.definition.ending)
    }

    fn object(&self) -> ObjectRef {
        object(self.definition)
    }
}

/// How plans name a definition.
pub fn object(definition: &Definition) -> ObjectRef {
    let Key { namespace, name } = &definition.key;
    match definition.scope() {
        Scope::Cluster => ObjectRef::cluster(Scope::Cluster.kind(), name),
        Scope::Namespace => ObjectRef::namespaced(Scope::Namespace.kind(), namespace, name),
    }
}

/// Plans all networks. `known` are the numbers of the last plan: they count before their echo is heard.
pub fn plan(world: &World, settings: &Settings, known: &Numbers) -> NetworksPlan {
    let mut tenants: Vec<Tenant<'_>> =
        world.definitions().map(|definition| Tenant::new(definition, settings)).collect();
    tenants.sort_by(|one, other| one.name.cmp(&other.name));
    let by_network = by_network(world);
    let numbers = numbers::assign(&mut tenants, &by_network, known);
    namespaces::choose(&mut tenants, world);
    let (attachments, waits_for_pods) = attachments::plan(&mut tenants, world, settings);
    let wishes = wishes(&tenants, &by_network);
    let parts = subnets::plan(world, &wishes);
    let told = tenants.iter().map(|tenant| (tenant.object(), tell(tenant, &parts, settings))).collect();
    NetworksPlan { told, attachments, parts, numbers, waits_for_pods }
}

/// Attachments by the network they name.
fn by_network(world: &World) -> BTreeMap<&str, Vec<&Attachment>> {
    let mut index: BTreeMap<&str, Vec<&Attachment>> = BTreeMap::new();
    for attachment in world.attachments.values() {
        if let Some(network) = &attachment.network {
            index.entry(network).or_default().push(attachment);
        }
    }
    index
}

/// What nodes are to have of each network: of one that stays, a part each; of one that goes or cannot be as written,
/// what they have, for as long as somebody can be attached to it; of any other nothing.
fn wishes<'a>(
    tenants: &[Tenant<'a>],
    by_network: &BTreeMap<&'a str, Vec<&'a Attachment>>,
) -> BTreeMap<Arc<str>, subnets::Wish> {
    let mut wishes: BTreeMap<Arc<str>, subnets::Wish> =
        by_network.keys().map(|name| (Arc::from(*name), subnets::Wish::AsItIs)).collect();
    for tenant in tenants {
        let attached = !tenant.wanted.is_empty() || by_network.contains_key(tenant.name.as_ref());
        if let Some(Topology::Layer3(layer3)) = tenant.stays().map(|network| &network.topology)
            && attached
            && tenant.number.is_some()
        {
            // Lengths that do not fit were refused before.
            let range = |subnet: &Subnet| SubnetRange::new(subnet.cidr, subnet.host_length()).ok();
            let ranges = layer3.subnets.iter().filter_map(range).collect();
            wishes.insert(tenant.name.clone(), subnets::Wish::Parts(ranges));
        }
    }
    wishes
}

fn tell(tenant: &Tenant<'_>, parts: &Parts, settings: &Settings) -> Told {
    let failures = parts.failures.get(&tenant.name).map_or(&[][..], Vec::as_slice);
    Told {
        network: tenant.name.to_string(),
        number: tenant.number,
        outcomes: said::outcomes(tenant, failures),
        events: said::events(tenant, failures),
        amend: amend(tenant, parts, settings),
        routed: tenant.stays().is_some_and(carried::is_routed),
    }
}

/// A definition stays until we let it go, and has the number of its network on record.
fn amend(tenant: &Tenant<'_>, parts: &Parts, settings: &Settings) -> Option<Amend> {
    let definition = tenant.definition;
    let uid = definition.uid.clone();
    if definition.ending {
        let gone = tenant.made.is_empty() && !parts.leaving.contains(&tenant.name);
        let (annotations, labels) = (BTreeMap::new(), BTreeMap::new());
        let amend = Amend { uid, protected: false, annotations, labels };
        return (definition.protected && gone).then_some(amend);
    }
    tenant.stays()?;
    let number = tenant.number.map(NetworkId);
    let mut annotations = BTreeMap::new();
    if let Some(number) = number.filter(|number| definition.id != Some(*number)) {
        annotations.insert(NetworkId::KEY.to_owned(), Some(number.render()));
    }
    let mut labels = BTreeMap::new();
    let mark = fabric::mark(definition, settings);
    if definition.labels.get(fabric::MARK) != mark.as_ref() {
        labels.insert(fabric::MARK.to_owned(), mark);
    }
    let differs = !definition.protected || !annotations.is_empty() || !labels.is_empty();
    differs.then_some(Amend { uid, protected: true, annotations, labels })
}

/// Puts the labels that definitions are given on record in a world, as if they had been written and heard.
pub fn record_labels(told: &BTreeMap<ObjectRef, Told>, world: &mut World) {
    for (object, Told { amend, .. }) in told {
        let Some(amend) = amend.as_ref().filter(|amend| !amend.labels.is_empty()) else { continue };
        if let Some(definition) = world.cluster_networks.get_mut(&Key::cluster(&object.name)) {
            amend.relabel(Arc::make_mut(definition));
        }
    }
}

impl Amend {
    /// Gives a definition its labels.
    pub fn relabel(&self, definition: &mut Definition) {
        for (key, value) in &self.labels {
            match value {
                Some(value) => definition.labels.insert(key.clone(), value.clone()),
                None => definition.labels.remove(key),
            };
        }
    }
}

#[cfg(test)]
mod tests;
