//! The rules inside our schemas, run here as the API server runs them.

use std::collections::BTreeMap;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;
use underlay_api::crds;

use crate::cases::{Case, Verdict, frr_configurations, route_advertisements};
use crate::manifests::{everything, seeds};
use crate::meaning::schema_of;
use crate::networks;

fn violations(manifest: &Value, before: Option<&Value>) -> Vec<String> {
    thread_local! {
        static SCHEMAS: BTreeMap<String, CompiledSchema> = {
            let kinds = crds::all().into_iter().map(|definition| definition.spec.names.kind);
            kinds.map(|kind| (kind.clone(), compile_schema(&schema_of(&kind)))).collect()
        };
    }
    let kind = manifest["kind"].as_str().unwrap();
    let verdict =
        SCHEMAS.with(|schemas| Validator::new().validate_compiled(&schemas[kind], manifest, before));
    match verdict {
        Ok(()) => vec![],
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

#[track_caller]
fn check(cases: &[Case]) {
    for case in cases {
        let violations = violations(&case.manifest, case.before.as_ref());
        match &case.verdict {
            Verdict::Taken => assert!(violations.is_empty(), "{}: {violations:?}", case.name),
            Verdict::Rules(messages) => {
                let sorted = |mut texts: Vec<String>| {
                    texts.sort();
                    texts
                };
                assert_eq!(sorted(violations), sorted(messages.clone()), "{}", case.name);
            }
            // What the schema refuses never comes to the rules.
            Verdict::Schema(_) => {}
        }
    }
}

#[test]
fn of_route_advertisements() {
    check(&route_advertisements());
}

#[test]
fn of_frr_configurations() {
    check(&frr_configurations());
}

#[test]
fn of_networks() {
    // With hundreds of subnets the API server is faster.
    check(&networks::cases().split_off(2));
}

#[test]
fn examples_pass() {
    for (name, manifest) in seeds() {
        assert_eq!(violations(&manifest, None), [""; 0], "{name}");
    }
    assert_eq!(violations(&everything(), None), [""; 0]);
}
