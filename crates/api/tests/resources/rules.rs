//! The rules inside our schemas, run here as the API server runs them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::cases::{Case, Verdict, egress_ips, frr_configurations, route_advertisements};
use crate::manifests::{everything, seeds};
use crate::meaning::schema_of;
use crate::networks;

fn violations(manifest: &Value, before: Option<&Value>) -> Vec<String> {
    thread_local! {
        static COMPILED: RefCell<BTreeMap<String, CompiledSchema>> = RefCell::default();
    }
    let kind = manifest["kind"].as_str().unwrap();
    let verdict = COMPILED.with_borrow_mut(|compiled| {
        let schema = compiled.entry(kind.to_owned()).or_insert_with(|| compile_schema(schema_of(kind)));
        Validator::new().validate_compiled(schema, manifest, before)
    });
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
fn of_egress_ips() {
    check(&egress_ips());
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
