//! The rules inside our schemas, run here as the API server runs them.

use kube_cel::Validator;

use crate::cases::{Case, Verdict, frr_configurations, route_advertisements};
use crate::manifests::{everything, seeds};
use crate::meaning::schema_of;

fn violations(manifest: &serde_json::Value) -> Vec<String> {
    let schema = schema_of(manifest["kind"].as_str().unwrap());
    match Validator::new().validate(&schema, manifest, None) {
        Ok(()) => vec![],
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

#[track_caller]
fn check(cases: &[Case]) {
    for case in cases {
        let violations = violations(&case.manifest);
        match &case.verdict {
            Verdict::Taken => assert!(violations.is_empty(), "{}: {violations:?}", case.name),
            Verdict::Rule(message) => assert_eq!(violations, [message.as_str()], "{}", case.name),
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
fn examples_pass() {
    for (name, manifest) in seeds() {
        assert_eq!(violations(&manifest), [""; 0], "{name}");
    }
    assert_eq!(violations(&everything()), [""; 0]);
}
