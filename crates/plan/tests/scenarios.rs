//! The scenarios: `world/*.yaml` is what there is, `settings.yaml` what the cluster was started with, `want/objects.yaml`
//! what the cluster manager makes of it.
//!
//! `BLESS=1` writes what is wanted anew, for those who changed it on purpose.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use serde_json::{Value, json};
use underlay_api::annotations::{Annotation, NetworkId};
use underlay_api::{
    ClusterUserDefinedNetwork, FRRConfiguration, NetworkAttachmentDefinition, RouteAdvertisements,
    UserDefinedNetwork,
};
use underlay_desired::{ObjectRef, Why};
use underlay_plan::cluster::networks::{Step, Told};
use underlay_plan::cluster::{ClusterPlan, plan};
use underlay_world::kind::key_of;
use underlay_world::{AnyAttachment, Kind, Settings, World};

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut scenarios: Vec<PathBuf> = entries.filter(|path| path.join("world").is_dir()).collect();
    scenarios.sort();
    assert!(!scenarios.is_empty(), "no scenarios in {}", folder.display());
    scenarios
}

/// The settings of a scenario's cluster: the usual ones, unless it says otherwise.
fn settings(scenario: &Path) -> Settings {
    let text = fs::read_to_string(scenario.join("settings.yaml")).ok();
    text.map(|text| serde_saphyr::from_str(&text).unwrap()).unwrap_or_default()
}

/// The world of a scenario, whatever the order of its files.
fn world(scenario: &Path) -> World {
    let mut world = World::default();
    for entry in fs::read_dir(scenario.join("world")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for object in serde_saphyr::from_multiple::<Value>(&text).unwrap() {
            match object["kind"].as_str() {
                Some("Node") => put::<Node>(&mut world, object),
                Some("Namespace") => put::<Namespace>(&mut world, object),
                Some("Pod") => put::<Pod>(&mut world, object),
                Some("ClusterUserDefinedNetwork") => put::<ClusterUserDefinedNetwork>(&mut world, object),
                Some("UserDefinedNetwork") => put::<UserDefinedNetwork>(&mut world, object),
                Some("FRRConfiguration") => put::<FRRConfiguration>(&mut world, object),
                Some("RouteAdvertisements") => put::<RouteAdvertisements>(&mut world, object),
                kind => panic!("{}: nobody here knows {kind:?}", scenario.display()),
            }
        }
    }
    world
}

fn put<K: Kind + kube::Resource + serde::de::DeserializeOwned>(world: &mut World, object: Value) {
    let object: K = serde_json::from_value(object).unwrap();
    let key = key_of(object.meta());
    K::store(world).extend(object.read().map(|record| (key, record)));
}

/// What is written, as documents with their reasons.
fn objects(plan: &ClusterPlan) -> String {
    let mut text = String::new();
    for (name, given) in &plan.nodes {
        let metadata = json!({ "name": name, "uid": given.uid, "annotations": given.annotations });
        document(
            &mut text,
            Some(&given.why),
            &json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata }),
        );
    }
    for change in plan.attachments.values() {
        let why = change.of.clone().map(Why::from_object);
        match &change.step {
            Step::Create(made) => document(&mut text, why.as_ref(), &serde_json::to_value(made).unwrap()),
            step => document(&mut text, why.as_ref(), &serde_json::to_value(step).unwrap()),
        }
    }
    for generated in plan.advertisements.values() {
        document(&mut text, Some(&generated.why), &serde_json::to_value(generated.object.as_ref()).unwrap());
    }
    for generated in plan.frr_configurations.values() {
        document(&mut text, Some(&generated.why), &serde_json::to_value(generated.object.as_ref()).unwrap());
    }
    for (object, told) in &plan.networks {
        document(&mut text, None, &network(object, told));
    }
    for (name, verdict) in &plan.verdicts {
        let outcome = verdict.outcome(name, Some(1));
        let condition = json!({
            "type": outcome.type_,
            "status": outcome.verdict.as_str(),
            "reason": outcome.reason,
            "message": outcome.message,
        });
        let status = json!({ "status": verdict.summary(name), "conditions": [condition] });
        let (version, kind) = ("k8s.ovn.org/v1", "RouteAdvertisements");
        let object =
            json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name }, "status": status });
        document(&mut text, None, &object);
    }
    for problem in &plan.problems {
        document(&mut text, None, &serde_json::to_value(problem).unwrap());
    }
    text
}

/// What is said of a network, and recorded on its definition.
fn network(object: &ObjectRef, told: &Told) -> Value {
    let amend = told.amend.as_ref().map(|amend| amend.annotations.clone()).unwrap_or_default();
    let mut metadata = json!({ "name": object.name, "annotations": amend });
    if let Some(labels) = told.amend.as_ref().map(|amend| &amend.labels).filter(|labels| !labels.is_empty()) {
        metadata["labels"] = json!(labels);
    }
    if let Some(namespace) = &object.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let condition = |outcome: &underlay_api::conditions::Outcome| {
        json!({
            "type": outcome.type_,
            "status": outcome.verdict.as_str(),
            "reason": outcome.reason,
            "message": outcome.message,
        })
    };
    let conditions: Vec<Value> = told.outcomes.iter().map(condition).collect();
    let status = json!({ "conditions": conditions });
    json!({ "apiVersion": "k8s.ovn.org/v1", "kind": object.kind, "metadata": metadata, "status": status })
}

fn document(text: &mut String, why: Option<&Why>, object: &Value) {
    if !text.is_empty() {
        text.push_str("---\n");
    }
    if let Some(why) = why {
        let objects: Vec<String> = why.objects().map(ToString::to_string).collect();
        writeln!(text, "# because of {}", objects.join(", ")).unwrap();
    }
    text.push_str(&serde_saphyr::to_string(object).unwrap());
}

#[test]
fn every_scenario_gives_what_is_wanted() {
    for scenario in scenarios() {
        let seen = objects(&plan(&world(&scenario), &settings(&scenario)));
        let path = scenario.join("want/objects.yaml");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &seen).unwrap();
        }
        let want = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(seen, want, "{} differs; BLESS=1 writes it anew", path.display());
    }
}

/// Holds a definition and records its number.
fn hold(world: &mut World, object: &ObjectRef, told: &Told) {
    let store = if object.namespace.is_some() { &mut world.networks } else { &mut world.cluster_networks };
    let mut definitions = store.values_mut().filter(|definition| definition.key.name == object.name);
    let definition = std::sync::Arc::make_mut(definitions.next().unwrap());
    let amend = told.amend.as_ref().unwrap();
    definition.protected = amend.protected;
    amend.relabel(definition);
    definition.id = amend.annotations[NetworkId::KEY].as_deref().map(|text| NetworkId::parse(text).unwrap());
}

/// Once everything is written and heard, there is nothing left to write.
#[test]
fn every_scenario_comes_to_rest() {
    for scenario in scenarios() {
        let mut world = world(&scenario);
        let first = plan(&world, &settings(&scenario));
        for (name, given) in &first.nodes {
            given.record(name, &mut world);
        }
        for change in first.attachments.values() {
            let Step::Create(made) = &change.step else { panic!("{change:?}") };
            put::<NetworkAttachmentDefinition>(&mut world, serde_json::to_value(made).unwrap());
            put::<AnyAttachment>(&mut world, serde_json::to_value(made).unwrap());
        }
        for (object, told) in &first.networks {
            hold(&mut world, object, told);
        }
        for generated in first.advertisements.values() {
            put::<RouteAdvertisements>(&mut world, serde_json::to_value(generated.object.as_ref()).unwrap());
        }
        for generated in first.frr_configurations.values() {
            put::<FRRConfiguration>(&mut world, serde_json::to_value(generated.object.as_ref()).unwrap());
        }
        let second = plan(&world, &settings(&scenario));
        assert!(second.nodes.is_empty(), "{}: {:?}", scenario.display(), second.nodes);
        assert!(second.attachments.is_empty(), "{}: {:?}", scenario.display(), second.attachments);
        for (object, told) in &second.networks {
            assert_eq!(told.amend, None, "{}: {object}", scenario.display());
            assert_eq!(told.outcomes, first.networks[object].outcomes, "{}: {object}", scenario.display());
        }
        assert_eq!(second.frr_configurations, first.frr_configurations, "{}", scenario.display());
        assert_eq!(second.advertisements, first.advertisements, "{}", scenario.display());
        assert_eq!(second.verdicts, first.verdicts, "{}", scenario.display());
    }
}
