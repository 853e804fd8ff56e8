//! The live cluster: all objects that plans are made from, and what only the agents know. Nothing is written.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use underlay_api::{
    ClusterUserDefinedNetwork, EgressIP, FRRConfiguration, NetworkAttachmentDefinition, RouteAdvertisements,
    UserDefinedNetwork,
};
use underlay_runtime::report::{Inputs, Question};
use underlay_world::{Kind, Settings, World};

use super::kinds::{put, put_attachment, put_pod, put_slice};
use super::manifest::{Wish, Wishes, applied, says_the_same};
use super::outlook::{Case, Fate, FileObject};
use super::settle::settle;
use super::{broken_rules, enter};
use crate::cluster::facts::Agent;
use crate::cluster::{agents, list, patiently, refused};
use crate::names::some_of;
use crate::progress::Steps;

/// How many objects are asked for at once.
const AT_ONCE: usize = 16;
/// Lists, questions to agents, and the objects of the files.
const STEPS: usize = 12;

/// Reads the cluster, and lays the files over it, or takes their objects away. `settings` are those that the admin gave;
/// without them the agents tell theirs.
pub async fn read(
    client: &Client,
    wishes: Wishes<'_>,
    delete: bool,
    settings: Option<Settings>,
) -> Result<Case> {
    let steps = Steps::start("reading the cluster", STEPS);
    let mut case = Case { before: world(client, &steps).await?, notes: wishes.notes, ..Case::default() };
    steps.next("agents");
    let told = ask(client, &mut case).await;
    case.settings = settings.or(told).unwrap_or_else(|| {
        let note =
            "no agent told the settings of the cluster: the usual ones are assumed; give them as flags";
        case.notes.push(note.to_owned());
        Settings::default()
    });
    steps.next("objects of the files");
    let live: Vec<Option<Value>> = stream::iter(&wishes.objects)
        .map(async |wish| get(client, wish).await)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    steps.finish();
    // What the cluster manager has not done yet is none of the files' doing.
    case.before = settle(case.before, &case.settings).world;
    case.after = case.before.clone();
    for (wish, live) in wishes.objects.iter().zip(live) {
        let object = if delete {
            remove(&mut case.after, wish, live.as_ref())
        } else {
            lay(&mut case.after, wish, live.as_ref())?
        };
        case.objects.push(object);
    }
    Ok(case)
}

async fn world(client: &Client, steps: &Steps) -> Result<World> {
    let mut world = World::default();
    each::<Node>(client, steps, |node| put(&mut world, node)).await?;
    each::<Namespace>(client, steps, |namespace| put(&mut world, namespace)).await?;
    each::<Pod>(client, steps, |pod| put_pod(&mut world, pod)).await?;
    each::<Service>(client, steps, |service| put(&mut world, service)).await?;
    each::<EndpointSlice>(client, steps, |slice| put_slice(&mut world, slice)).await?;
    each::<NetworkAttachmentDefinition>(client, steps, |nad| put_attachment(&mut world, nad)).await?;
    each::<ClusterUserDefinedNetwork>(client, steps, |network| put(&mut world, network)).await?;
    each::<UserDefinedNetwork>(client, steps, |network| put(&mut world, network)).await?;
    each::<RouteAdvertisements>(client, steps, |object| put(&mut world, object)).await?;
    each::<EgressIP>(client, steps, |object| put(&mut world, object)).await?;
    each::<FRRConfiguration>(client, steps, |object| put(&mut world, object)).await?;
    Ok(world)
}

/// All objects of a kind; none if the API server does not know it.
async fn each<K>(client: &Client, steps: &Steps, take: impl FnMut(K)) -> Result<()>
where
    K: Kind + Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    steps.next(&K::plural(&()));
    list::<K>(client).await?.unwrap_or_default().into_iter().for_each(take);
    Ok(())
}

/// What agents tell of their nodes; those that do not are named. Returns the settings they were given.
async fn ask(client: &Client, case: &mut Case) -> Option<Settings> {
    let names: Vec<String> = case.before.nodes.values().map(|node| node.name.clone()).collect();
    let question = Question { local: true, ..Question::default() };
    let mut settings: Option<Settings> = None;
    let mut other = vec![];
    for (node, answer) in agents::ask(client, names, &question).await {
        let Agent::Told(report) = answer else { continue };
        let Some(Inputs { local, settings: own }) = report.inputs else { continue };
        if *settings.get_or_insert_with(|| own.clone()) != own {
            other.push(node.clone());
        }
        case.told.insert(node, local);
    }
    if !other.is_empty() {
        case.notes
            .push(format!("agents have different settings: not those of the first on {}", some_of(&other)));
    }
    settings
}

/// An object of the files, as the API server has it.
async fn get(client: &Client, wish: &Wish<'_>) -> Result<Option<Value>> {
    let known = wish.known;
    let kind = GroupVersionKind::gvk(&known.group, &known.version, &known.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &known.plural);
    let api: Api<DynamicObject> = if known.namespaced {
        Api::namespaced_with(client.clone(), &wish.key.namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let what = format!("{} {}", known.kind, wish.key);
    let found = patiently(&what, Box::pin(api.get_opt(&wish.key.name))).await?;
    let object = found.map_err(|error| refused(&what, error))?;
    Ok(object.map(serde_json::to_value).transpose()?)
}

/// Lays an object over a world, unless the API server would not take it.
fn lay(world: &mut World, wish: &Wish<'_>, live: Option<&Value>) -> Result<FileObject> {
    let object = applied(live, &wish.value);
    let broken_rules = broken_rules(wish, &object, live);
    let fate = match live {
        None => Fate::New,
        Some(live) if says_the_same(live, &object) => Fate::Unchanged,
        Some(_) => Fate::Changed,
    };
    if broken_rules.is_empty() {
        enter(world, wish, object)?;
    }
    Ok(FileObject { object: wish.known.reference(&wish.key), fate, broken_rules })
}

fn remove(world: &mut World, wish: &Wish<'_>, live: Option<&Value>) -> FileObject {
    wish.known.leave(world, &wish.key);
    let fate = if live.is_some() { Fate::Deleted } else { Fate::Absent };
    FileObject { object: wish.known.reference(&wish.key), fate, broken_rules: vec![] }
}
