//! `kubectl underlay plan`: what manifests would bring about, before anybody applies them.
//!
//! Manifests are read and checked as the API server would; then the same code that cluster manager and agents run plans
//! with them and without. Nothing is written anywhere.

mod alike;
mod api;
mod compare;
mod desk;
mod files;
mod kinds;
mod live;
mod manifest;
mod node;
mod outlook;
mod schema;
mod screen;
mod settle;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use underlay_api::network::PRIMARY_NETWORK_LABEL;
use underlay_runtime::config;
use underlay_world::{Key, Namespace, Settings, World};

use crate::NO_ANSWER;
use crate::cluster::Access;
use crate::names::some_of;
use crate::tables::bad;
use manifest::Wishes;
use outlook::{Case, Fate, FileObject, Outlook};

/// Changes of a node that a table may show in detail.
const IN_TABLE: usize = 30;

#[derive(Debug, Args)]
pub struct PlanArguments {
    /// A manifest, a directory of manifests, or - for standard input. May be given several times.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-", required = true)]
    files: Vec<PathBuf>,
    /// Lay the files over the live cluster and show what that would change. Without it, the files are all there is.
    #[arg(long)]
    cluster: bool,
    /// Take the objects of the files away from the cluster instead.
    #[arg(long, requires = "cluster")]
    delete: bool,
    /// Namespace of objects that name none. Without it: the kubeconfig's, or default.
    #[arg(short, long)]
    namespace: Option<String>,
    #[arg(short, long, value_enum, default_value_t)]
    output: PlanOutput,
    #[command(flatten)]
    access: Access,
    #[command(flatten, next_help_heading = "Settings of the cluster")]
    settings: config::Flags,
}

/// How the plan is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum PlanOutput {
    /// A summary for people.
    #[default]
    Table,
    /// Every item, with + and -.
    Diff,
    /// For programs.
    Json,
}

/// Plans. Exits with 0 if nothing is refused, with 1 if something is, and with 2 if the files cannot be read.
pub fn run(arguments: &PlanArguments) -> Result<ExitCode> {
    let case = match case(arguments)? {
        Ok(case) => case,
        Err(problems) => {
            for problem in &problems {
                anstream::eprintln!("{} {problem}", bad("error:"));
            }
            return Ok(ExitCode::from(NO_ANSWER));
        }
    };
    let keep = if arguments.output == PlanOutput::Table { IN_TABLE } else { usize::MAX };
    let outlook = Outlook::new(case, keep);
    print(&outlook, arguments.output)?;
    Ok(if outlook.is_refused() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What is to be compared, or what is wrong with the files.
fn case(arguments: &PlanArguments) -> Result<Result<Case, Vec<String>>> {
    let known = kinds::all();
    let documents = match files::read(&arguments.files) {
        Ok(documents) => documents,
        Err(problems) => return Ok(Err(problems)),
    };
    let settings = config::load(&arguments.settings)?.settings;
    let namespace = arguments.namespace.as_deref();
    if !arguments.cluster {
        return match manifest::sort_out(documents, &known, namespace.unwrap_or("default")) {
            Ok(wishes) => Ok(Ok(from_files(wishes, settings)?)),
            Err(problems) => Ok(Err(problems)),
        };
    }
    let given = (arguments.settings != config::Flags::default()).then_some(settings);
    arguments.access.run(async |client| {
        let namespace = namespace.unwrap_or_else(|| client.default_namespace()).to_owned();
        match manifest::sort_out(documents, &known, &namespace) {
            Ok(wishes) => Ok(Ok(live::read(&client, wishes, arguments.delete, given).await?)),
            Err(problems) => Ok(Err(problems)),
        }
    })
}

fn print(outlook: &Outlook, output: PlanOutput) -> Result<()> {
    match output {
        PlanOutput::Json => println!("{}", serde_json::to_string_pretty(outlook)?),
        PlanOutput::Diff => anstream::print!("{}", text::diff(outlook)),
        PlanOutput::Table => anstream::print!("{}", screen::text(outlook)),
    }
    Ok(())
}

/// Files alone: before, there is nothing.
fn from_files(wishes: Wishes<'_>, settings: Settings) -> Result<Case> {
    let mut case = Case { notes: wishes.notes, settings, ..Case::default() };
    for wish in wishes.objects {
        let object = wish.known.reference(&wish.key);
        let broken_rules = broken_rules(&wish, &wish.value, None);
        if broken_rules.is_empty() {
            enter(&mut case.after, &wish, wish.value.clone())?;
        }
        case.objects.push(FileObject { object, fate: Fate::New, broken_rules });
    }
    if case.after.nodes.is_empty() {
        let note = "no Node among the files: only what the cluster manager would write is shown";
        case.notes.push(note.to_owned());
    }
    case.notes.extend(assume_namespaces(&mut case.after));
    Ok(case)
}

/// Namespaces that networks are defined in are there, whether they are written or not.
fn assume_namespaces(world: &mut World) -> Option<String> {
    let wanted = world.networks.keys().map(|key| Key::cluster(&key.namespace));
    let missing: BTreeSet<Key> = wanted.filter(|key| !world.namespaces.contains_key(key)).collect();
    for key in &missing {
        let labels = [(PRIMARY_NETWORK_LABEL.to_owned(), String::new())].into();
        world.namespaces.insert(key.clone(), Arc::new(Namespace { labels, ending: false }));
    }
    let names: Vec<String> = missing.iter().map(|key| key.name.clone()).collect();
    (!names.is_empty()).then(|| {
        let names = some_of(&names);
        format!("not among the files and assumed, with the label {PRIMARY_NETWORK_LABEL}: Namespace {names}")
    })
}

fn broken_rules(
    wish: &manifest::Wish<'_>,
    object: &serde_json::Value,
    before: Option<&serde_json::Value>,
) -> Vec<String> {
    if !wish.known.ours {
        return vec![];
    }
    wish.known.schema().broken_rules(object, before).iter().map(ToString::to_string).collect()
}

fn enter(world: &mut World, wish: &manifest::Wish<'_>, object: serde_json::Value) -> Result<()> {
    let place = || format!("{}: {} {}", wish.origin, wish.known.kind, wish.key);
    wish.known.enter(world, object).with_context(place)
}
