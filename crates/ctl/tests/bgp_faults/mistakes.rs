//! FRRConfigurations that cannot be as written, beside others that can.

use serde_json::json;
use underlay_testkit::wait_for;

use crate::cluster::{PATIENCE, apply, get};
use crate::flows::Flows;
use crate::looks::{NODES, ROUTERS, session, times_established, wait_for_condition, wait_for_session};
use crate::place::Place;

const NAMESPACE: &str = "frr-k8s-system";

/// A neighbour that is not who it should be: its sessions fall, those of the other router stay, and the advertisement
/// names the sessions that are missing.
pub fn a_wrong_neighbor_is_alone(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "blue"]);
    let before = times_established(&place.lab, "tor1", "worker1");
    let (one, two) = (ROUTERS[0].1, ROUTERS[1].1);
    for (field, value) in [("password", json!("not-the-right-one")), ("asn", json!(64999))] {
        let field_path = format!("/spec/bgp/routers/0/neighbors/0/{field}");
        let patch = json!([{ "op": "add", "path": field_path, "value": value }]).to_string();
        place.kubectl(&[
            "patch",
            "frrconfiguration",
            "two",
            "-n",
            NAMESPACE,
            "--type=json",
            "--patch",
            &patch,
        ]);
        wait_for_session(&place.lab, "worker1", two, false);
        assert_eq!(session(&place.lab, "worker1", one).0, "Established", "the other session");
        let told = wait_for_condition(&place.lab, &["routeadvertisements", "most"], "Ready", |told| {
            told.message.contains("node worker1 has no session with 172.30.0.2")
        });
        println!("      {field}: {}", told.message);
        place.kubectl(&["delete", "frrconfiguration", "two", "--namespace", NAMESPACE]);
        place.apply(&["peers.yaml"]);
        for node in NODES {
            wait_for_session(&place.lab, node, two, true);
        }
    }
    assert_eq!(times_established(&place.lab, "tor1", "worker1"), before, "the other session was never reset");
    flows.stop(&place.lab);
}

/// One object is no use, by itself or beside others: it is named with the reason, and nothing else changes.
pub fn one_object_is_left_out(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "blue"]);
    let established = || ROUTERS.map(|(router, _)| times_established(&place.lab, router, "worker1"));
    let before = established();
    let garbage = json!({ "raw": { "rawConfig": "router bgp 64512\n neighbour of nobody\n" } });
    let neighbor = json!({ "address": ROUTERS[1].1, "asn": 64999 });
    let contrary = json!({ "bgp": { "routers": [{ "asn": 64512, "neighbors": [neighbor] }] } });
    for (name, spec, reason) in
        [("zz-garbage", garbage, "neighbour of nobody"), ("zz-contrary", contrary, "64999")]
    {
        let object = json!({
            "apiVersion": "frrk8s.metallb.io/v1beta1", "kind": "FRRConfiguration",
            "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
        });
        apply(&place.lab, "mistake.json", &object.to_string());
        let told = wait_for(&format!("word of {name}"), PATIENCE, || {
            let state = get(&place.lab, &["frrnodestates", "worker1"]);
            let told = state["status"]["lastConversionResult"].as_str().unwrap_or_default().to_owned();
            if told.contains(name) && told.contains(reason) {
                Ok(told)
            } else {
                Err(state["status"].to_string())
            }
        });
        println!("      {told}");
        place.kubectl(&["delete", "frrconfiguration", name, "--namespace", NAMESPACE]);
        wait_for("no more word of it", PATIENCE, || {
            let state = get(&place.lab, &["frrnodestates", "worker1"]);
            let told = state["status"]["lastConversionResult"].clone();
            if told == "success" { Ok(()) } else { Err(told.to_string()) }
        });
    }
    assert_eq!(established(), before, "no session was reset");
    flows.stop_without_loss(&place.lab);
}
