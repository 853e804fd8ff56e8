//! RouteAdvertisements that make no sense: refused, or told so, and what was advertised stays.

use serde_json::{Value, json};
use underlay_testkit::{LabUnderTest, OutputExt, wait_for};

use crate::ADVERTISEMENT;
use crate::cluster::{PATIENCE, apply, get};
use crate::snapshot::Snapshot;
use crate::traffic::Background;

pub fn changes_nothing(lab: &LabUnderTest) {
    let before = Snapshot::of(lab, "worker1");
    let routes = Background::start(lab, "tor", "ip monitor route");
    for (field, value, message) in [
        ("nodeSelector", json!({ "matchLabels": { "a": "b" } }), "a 'nodeSelector' can't be specified"),
        (
            "networkSelectors",
            json!([{ "networkSelectionType": "ClusterUserDefinedNetworks" }]),
            "clusterUserDefinedNetworkSelector have to be set or neither",
        ),
        (
            "networkSelectors",
            json!([{ "networkSelectionType": "SecondaryUserDefinedNetworks",
                     "secondaryUserDefinedNetworkSelector": { "namespaceSelector": {}, "networkSelector": {} } }]),
            "Only DefaultNetwork or ClusterUserDefinedNetworks can be selected",
        ),
        ("advertisements", json!([]), "spec.advertisements"),
        ("advertisements", json!(["Everything"]), "Unsupported value: \"Everything\""),
    ] {
        let refusal = patch(lab, field, &value).expect_err("an invalid change");
        assert!(refusal.contains(message), "{field}: {refusal}");
    }
    for (invalid, message) in [
        (json!({ "targetVRF": "nosuch" }), "no VRF matching the RouteAdvertisements target VRF"),
        (
            json!({ "targetVRF": "auto", "advertisements": ["PodNetwork", "EgressIP"] }),
            "advertising EgressIP not supported with TargetVRF set to 'auto'",
        ),
    ] {
        patch_all(lab, &invalid).expect("a change that is valid by itself");
        wait_for_condition(lab, "False", message);
        patch_all(lab, &json!({ "targetVRF": null, "advertisements": ["PodNetwork"] })).expect("a change");
        wait_for_condition(lab, "True", "");
    }
    let routes = routes.stop(lab);
    assert!(!routes.contains("Deleted"), "{routes}");
    assert_eq!(Snapshot::of(lab, "worker1").since(&before), [] as [&str; 0]);
    apply(lab, "advertisement.yaml", ADVERTISEMENT);
}

fn patch(lab: &LabUnderTest, field: &str, value: &Value) -> Result<String, String> {
    patch_all(lab, &json!({ field: value }))
}

fn patch_all(lab: &LabUnderTest, fields: &Value) -> Result<String, String> {
    let patch = json!({ "spec": fields }).to_string();
    lab.kubectl(&["patch", "routeadvertisements", "default", "--type=merge", "--patch", &patch]).result()
}

fn wait_for_condition(lab: &LabUnderTest, status: &str, message: &str) {
    wait_for("a condition", PATIENCE, || {
        let object = get(lab, &["routeadvertisements", "default"]);
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let accepted = conditions.into_iter().find(|condition| condition["type"] == "Accepted");
        let told = accepted.is_some_and(|condition| {
            condition["status"] == status
                && condition["observedGeneration"] == object["metadata"]["generation"]
                && condition["message"].as_str().is_some_and(|text| text.contains(message))
        });
        if told { Ok(()) } else { Err(object["status"].to_string()) }
    });
}
