//! Objects that somebody deletes.

use underlay_testkit::wait_for;

use crate::cluster::{PATIENCE, get};
use crate::flows::Flows;
use crate::looks::{ROUTERS, wait_for_condition, wait_for_routes, wait_until_all_is_well};
use crate::place::Place;

/// What is generated for one of the two advertisements.
const GENERATED: &str = "k8s.ovn.org/route-advertisements=most";

/// All that is generated for some networks is deleted by hand. Until it is back nobody is told of them, which their
/// connections with the outside may not survive; the other networks do not notice.
pub fn generated_ones_come_back(place: &Place) {
    let flows = Flows::with_outside(place, &["green"]).and_between_pods(place, &["default", "blue", "red"]);
    let names = || {
        let list = get(&place.lab, &["frrconfigurations", "--all-namespaces", "--selector", GENERATED]);
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<(String, String)> = items
            .iter()
            .map(|item| (item["metadata"]["name"].to_string(), item["metadata"]["uid"].to_string()))
            .collect();
        names.sort();
        names
    };
    let before = names();
    assert!(!before.is_empty(), "nothing is generated");
    place.kubectl(&["delete", "frrconfigurations", "--namespace=frr-k8s-system", "--selector", GENERATED]);
    wait_for("others of the same names", PATIENCE, || {
        let now = names();
        let same = now.len() == before.len()
            && now.iter().zip(&before).all(|(now, old)| now.0 == old.0 && now.1 != old.1);
        if same { Ok(()) } else { Err(format!("{now:?}")) }
    });
    wait_until_all_is_well(place);
    flows.stop_without_loss(&place.lab);
    for network in ["default", "blue"] {
        place.reached_from_outside(network);
        place.seen_outside(network);
    }
}

/// Users' configurations are deleted: nobody is told anything any more, and pods leave with their node's address.
pub fn without_peers(place: &Place) {
    let flows = Flows::with_outside(place, &[]).and_between_pods(place, &["default", "red"]);
    place.kubectl(&["delete", "frrconfiguration", "one", "two", "--namespace=frr-k8s-system"]);
    for name in ["most", "green"] {
        let told = wait_for_condition(&place.lab, &["routeadvertisements", name], "Accepted", |told| {
            told.status == "False" && told.message.contains("no FRRConfigurations selected")
        });
        println!("      {name}: {} {}", told.reason, told.message);
    }
    for (router, _) in ROUTERS {
        wait_for_routes(&place.lab, router, |routes| !routes.contains("10."));
    }
    for network in ["default", "blue"] {
        wait_for(&format!("{network} with its node's address"), PATIENCE, || {
            let seen = place.source_seen_outside(&place.pod(network, "worker1"), "203.0.113.10");
            if seen == "172.30.0.11" { Ok(()) } else { Err(seen) }
        });
    }
    place.apply(&["peers.yaml"]);
    wait_until_all_is_well(place);
    for network in ["default", "blue"] {
        place.seen_outside(network);
    }
    flows.stop(&place.lab);
}

/// The advertisement of a network without overlay is deleted, and made again.
pub fn an_advertisement_toggles(place: &Place) {
    let flows = Flows::with_outside(place, &["default", "blue"]).and_between_pods(place, &["blue", "red"]);
    place.kubectl(&["delete", "routeadvertisements", "green"]);
    let told = wait_for_condition(
        &place.lab,
        &["clusteruserdefinednetwork", "green"],
        "TransportAccepted",
        |told| told.status == "False" && told.reason == "NoOverlayRouteAdvertisementsIsMissing",
    );
    println!("      {}", told.message);
    for (router, _) in ROUTERS {
        wait_for_routes(&place.lab, router, |routes| !routes.contains("10.20."));
    }
    place.apply(&["advertisements.yaml"]);
    wait_for_condition(&place.lab, &["clusteruserdefinednetwork", "green"], "TransportAccepted", |told| {
        told.status == "True"
    });
    wait_until_all_is_well(place);
    flows.stop_without_loss(&place.lab);
}
