//! The whole of what would happen: two worlds come to rest, every node of both is planned, and the differences are told.
//!
//! In: a world before and after, what agents told of their nodes, and the settings. Out: an [`Outlook`]. Pure: whoever
//! asks twice is told the same.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use underlay_api::conditions;
use underlay_desired::ObjectRef;
use underlay_plan::cluster::Verdict;
use underlay_plan::node::networks::{self, Networks};
use underlay_plan::node::{NodePlan, plan_without};
use underlay_world::{Key, Local, Settings, World};

use super::compare::Change;
use super::node::{NodeDifference, compare};
use super::settle::{Settled, settle};
use super::{alike, api, desk};
use crate::names::some_of;

/// What is to be compared.
#[derive(Debug, Clone, Default)]
pub struct Case {
    /// How things are.
    pub before: World,
    /// How they would be, with the files.
    pub after: World,
    /// The objects of the files.
    pub objects: Vec<FileObject>,
    /// What agents told of their nodes.
    pub told: BTreeMap<String, Local>,
    /// The settings of the cluster.
    pub settings: Settings,
    /// What has to be said of it.
    pub notes: Vec<String>,
}

/// An object of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileObject {
    /// Which.
    pub object: ObjectRef,
    /// What becomes of it.
    pub fate: Fate,
    /// Rules that it breaks: the API server would not take it.
    pub broken_rules: Vec<String>,
}

/// What becomes of an object of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It is not there yet.
    New,
    /// It is there and says something else.
    Changed,
    /// It is there as it is written.
    Unchanged,
    /// It is deleted.
    Deleted,
    /// It should be deleted and is not there.
    Absent,
}

/// What would happen.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outlook {
    /// Objects of the files, with what would be said of them.
    pub objects: Vec<Judged>,
    /// Others of which something new would be said.
    pub others: Vec<Judged>,
    /// Changes in the API.
    pub api: Vec<Change>,
    /// Changes on nodes.
    pub nodes: Vec<NodeDifference>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// An object and what would be said of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// Which.
    pub object: ObjectRef,
    /// What becomes of it; nothing if it is not in the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
    /// Whether it is refused, as a whole or in part.
    pub refused: bool,
    /// What is said of it, besides that all is well.
    pub said: Vec<String>,
}

/// What is said of an object: whether it is refused, and the sentence.
type Said = BTreeMap<ObjectRef, BTreeSet<(bool, String)>>;

impl Outlook {
    /// Works it out, with so many changes a node in detail.
    pub fn new(case: Case, keep: usize) -> Self {
        let Case { before, after, objects, told, settings, mut notes } = case;
        let (before, after) = (settle(before, &settings), settle(after, &settings));
        let nodes = nodes(&before, &after, &told, &settings, keep);
        notes.extend(unasked(&after.world, &told));
        let (known, mut said) = (said_of_all(&before), said_of_all(&after));
        for node in &nodes {
            said_on(node, &mut said);
        }
        let objects = objects.into_iter().map(|object| judge(object, &mut said)).collect();
        let others = said.into_iter().filter_map(|(object, said)| news(object, said, &known)).collect();
        let nodes = nodes.into_iter().filter(|node| node.total() > 0 || node.waiting.is_some()).collect();
        Self { objects, others, api: api::compare(&before, &after), nodes, notes }
    }

    /// Whether something in it is refused.
    pub fn is_refused(&self) -> bool {
        self.objects.iter().chain(&self.others).any(|judged| judged.refused)
    }

    /// How many items change on nodes.
    pub fn on_nodes(&self) -> usize {
        self.nodes.iter().map(NodeDifference::total).sum()
    }
}

/// Plans every node twice and compares, on all processors.
fn nodes(
    before: &Settled,
    after: &Settled,
    told: &BTreeMap<String, Local>,
    settings: &Settings,
    keep: usize,
) -> Vec<NodeDifference> {
    let sides = [before, after].map(|side| (side, networks::find(&side.world, settings)));
    let [before, after] = &sides;
    let alike = alike::networks((&before.0.world, &before.1), (&after.0.world, &after.1));
    let names: BTreeSet<&str> = [before, after]
        .into_iter()
        .flat_map(|(side, _)| side.world.nodes.keys().map(|key| key.name.as_str()))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    let one = |name: &&str| {
        let (old, new) =
            (node_plan(name, before, told, settings, &alike), node_plan(name, after, told, settings, &alike));
        compare(name, &old, new, keep)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = names.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(share)
            .map(|part| scope.spawn(move || part.iter().map(one).collect::<Vec<_>>()))
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

/// The plan of a node in a world at rest, without what is of these networks alone.
pub fn node_plan(
    name: &str,
    (side, networks): &(&Settled, Networks),
    told: &BTreeMap<String, Local>,
    settings: &Settings,
    alike: &BTreeSet<String>,
) -> NodePlan {
    let Some(node) = side.world.node(name) else { return NodePlan::default() };
    let local = desk::local(node, &side.world, networks, told.get(name));
    plan_without(name, &side.world, settings, &local, alike)
}

/// What is not known of nodes whose agents were not asked, or did not tell.
fn unasked(world: &World, told: &BTreeMap<String, Local>) -> Option<String> {
    let names = world.nodes.values().map(|node| node.name.clone());
    let names: Vec<String> = names.filter(|name| !told.contains_key(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "only annotations are known of {}: links that are large enough, port numbers and VRF devices are assumed",
            some_of(&names)
        )
    })
}

/// What the cluster manager says.
fn said_of_all(settled: &Settled) -> Said {
    let mut said = Said::new();
    let mut say = |object: &ObjectRef, refused: bool, sentence: String| {
        said.entry(object.clone()).or_default().insert((refused, sentence));
    };
    for (object, told) in &settled.networks {
        for outcome in told.outcomes.iter().filter(|outcome| outcome.verdict == conditions::Verdict::False) {
            say(object, true, format!("{} ({}): {}", outcome.type_, outcome.reason, outcome.message));
        }
    }
    for (name, verdict) in &settled.verdicts {
        let object = ObjectRef::cluster("RouteAdvertisements", name);
        match verdict {
            Verdict::Accepted { uncovered } if uncovered.is_empty() => {}
            Verdict::Accepted { .. } | Verdict::Pending(_) => say(&object, false, verdict.message(name)),
            Verdict::Error(_) | Verdict::Internal(_) => say(&object, true, verdict.message(name)),
        }
    }
    for problem in &settled.problems {
        say(&problem.object, true, format!("{}: {}", problem.reason, problem.message));
    }
    said
}

/// What a node's plan says of objects.
fn said_on(node: &NodeDifference, said: &mut Said) {
    for conflict in &node.conflicts {
        let sentence = format!("{}: {}", conflict.field, conflict.reason);
        said.entry(conflict.object.clone()).or_default().insert((true, sentence));
    }
    for (Key { namespace, name }, problem) in &node.pods {
        let object = ObjectRef::namespaced("Pod", namespace, name);
        said.entry(object).or_default().insert((true, problem.clone()));
    }
}

fn judge(FileObject { object, fate, broken_rules }: FileObject, said: &mut Said) -> Judged {
    let found = said.remove(&object).unwrap_or_default();
    let rules =
        broken_rules.into_iter().map(|rule| (true, format!("the API server would not take it: {rule}")));
    let all: Vec<(bool, String)> = rules.chain(found).collect();
    let refused = all.iter().any(|(refused, _)| *refused);
    Judged {
        object,
        fate: Some(fate),
        refused,
        said: all.into_iter().map(|(_, sentence)| sentence).collect(),
    }
}

/// What is said of an object of which it was not said before.
fn news(object: ObjectRef, said: BTreeSet<(bool, String)>, known: &Said) -> Option<Judged> {
    let known = known.get(&object);
    let new: Vec<(bool, String)> =
        said.into_iter().filter(|one| known.is_none_or(|known| !known.contains(one))).collect();
    let refused = new.iter().any(|(refused, _)| *refused);
    let said: Vec<String> = new.into_iter().map(|(_, sentence)| sentence).collect();
    (!said.is_empty()).then_some(Judged { object, fate: None, refused, said })
}
