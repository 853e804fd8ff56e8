use std::sync::Arc;

use serde_json::{Value, json};
use underlay_api::ClusterUserDefinedNetwork;
use underlay_world::settings::{NoOverlay, Routing, Topology};

use super::super::networks;
use super::*;
use crate::cluster::Numbers;

/// A world with network blue, without overlay.
fn world(routing: &str) -> World {
    let mut world = World::default();
    let object = json!({
        "metadata": { "name": "blue", "uid": "u", "labels": { "network": "blue" } },
        "spec": { "namespaceSelector": {}, "network": {
            "topology": "Layer3", "layer3": { "role": "Primary", "subnets": [{ "cidr": "10.10.0.0/16" }] },
            "transport": "NoOverlay", "noOverlayOptions": { "outboundSNAT": "Disable", "routing": routing },
        } },
    });
    let object: ClusterUserDefinedNetwork = serde_json::from_value(object).unwrap();
    world.cluster_networks.insert(Key::cluster("blue"), Arc::new(Definition::of_cluster(object)));
    world
}

/// Adds advertisements of networks with this label.
fn advertise(world: &mut World, name: &str, label: &str) {
    put(
        world,
        name,
        &json!({
            "networkSelectors": [{
                "networkSelectionType": "ClusterUserDefinedNetwork",
                "clusterUserDefinedNetworkSelector": { "networkSelector": { "matchLabels": { "network": label } } },
            }],
            "advertisements": ["PodNetwork"],
        }),
    );
}

fn put(world: &mut World, name: &str, spec: &Value) {
    let object = json!({ "metadata": { "name": name }, "spec": spec });
    world.advertisements.insert(Key::cluster(name), Arc::new(serde_json::from_value(object).unwrap()));
}

fn accepted(uncovered: &[&str]) -> Verdict {
    Verdict::Accepted { uncovered: uncovered.iter().map(|name| (*name).to_owned()).collect() }
}

fn verdicts(all: &[(&str, Verdict)]) -> Verdicts {
    all.iter().map(|(name, verdict)| ((*name).to_owned(), verdict.clone())).collect()
}

/// The condition of network blue as `status reason message`, and its events.
fn said(world: &World, settings: &Settings, verdicts: Option<&Verdicts>) -> (String, usize) {
    let mut told = networks::plan(world, settings, &Numbers::default()).told;
    judge(&mut told, world, settings, verdicts);
    let blue = &told[&ObjectRef::cluster("ClusterUserDefinedNetwork", "blue")];
    let outcomes: Vec<&Outcome> =
        blue.outcomes.iter().filter(|outcome| outcome.type_ == TRANSPORT_ACCEPTED).collect();
    let [outcome] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    (format!("{} {} {}", outcome.verdict.as_str(), outcome.reason, outcome.message), blue.events.len())
}

#[track_caller]
fn says(world: &World, all: &[(&str, Verdict)], want: &str) {
    let (text, events) = said(world, &Settings::default(), Some(&verdicts(all)));
    assert_eq!(text, want);
    assert_eq!(events == 0, want.starts_with("True"), "what is wrong is an event too");
}

const MISSING: &str =
    "False NoOverlayRouteAdvertisementsIsMissing No RouteAdvertisements CR is advertising the pod networks.";
const ACCEPTED: &str = "True NoOverlayTransportAccepted No-overlay transport has been configured.";

#[test]
fn a_network_is_accepted_when_somebody_advertises_it() {
    let mut world = world("Unmanaged");
    says(&world, &[], MISSING);
    advertise(&mut world, "red", "red");
    says(&world, &[("red", accepted(&[]))], MISSING);
    advertise(&mut world, "blue", "blue");
    let pending = Verdict::Pending("no FRRConfigurations selected".to_owned());
    says(
        &world,
        &[("red", accepted(&[])), ("blue", pending.clone())],
        "False NoOverlayRouteAdvertisementsNotAccepted RouteAdvertisements CR blue advertises the pod subnets, but its \
         status is not accepted.",
    );
    says(&world, &[("red", pending.clone()), ("blue", accepted(&[]))], ACCEPTED);
    advertise(&mut world, "again", "blue");
    says(&world, &[("again", pending), ("blue", accepted(&[]))], ACCEPTED);
}

#[test]
fn a_node_that_is_left_out_is_named() {
    let mut world = world("Unmanaged");
    advertise(&mut world, "one", "blue");
    advertise(&mut world, "two", "blue");
    says(
        &world,
        &[("one", accepted(&["n1", "n2"])), ("two", accepted(&["n2", "n3"]))],
        "False NoOverlayRouteAdvertisementsNotAccepted RouteAdvertisements CR one, two advertises the pod subnets, but \
         no FRRConfiguration that it selects is for node n2.",
    );
    says(&world, &[("one", accepted(&["n1"])), ("two", accepted(&["n3"]))], ACCEPTED);
}

#[test]
fn advertisements_of_egress_addresses_carry_no_pods() {
    let mut world = world("Unmanaged");
    let all = json!({ "networkSelector": {} });
    let selectors = json!([{
        "networkSelectionType": "ClusterUserDefinedNetworks", "clusterUserDefinedNetworkSelector": all,
    }]);
    put(&mut world, "egress", &json!({ "networkSelectors": selectors, "advertisements": ["EgressIP"] }));
    says(&world, &[("egress", accepted(&[]))], MISSING);
}

#[test]
fn managed_routing_without_a_topology_says_what_is_missing() {
    let world = world("Managed");
    let (text, _) = said(&world, &Settings::default(), Some(&Verdicts::new()));
    assert_eq!(
        text,
        format!(
            "{MISSING} Routing is Managed, and the setting topology is missing: write topology = full-mesh in \
             [bgp.managed], or --bgp-topology=full-mesh, for the cluster manager."
        )
    );
}

#[test]
fn the_advertisement_that_is_made_for_a_network_is_for_it_at_once() {
    let mut world = world("Managed");
    let mut settings = Settings::default();
    settings.managed.topology = Some(Topology::FullMesh);
    fabric::plan(&world, &settings, true).record(&mut world);
    let name = fabric::name_of("cluster_udn_blue");
    let (text, _) = said(&world, &settings, Some(&verdicts(&[(&name, accepted(&[]))])));
    assert_eq!(text, ACCEPTED);
}

#[test]
fn what_was_said_holds_until_it_is_known_what_is_advertised() {
    let mut world = world("Unmanaged");
    let settings = Settings::default();
    let (text, _) = said(&world, &settings, None);
    assert!(text.starts_with("Unknown NoOverlayRouteAdvertisementsUnknown waiting for"), "{text}");
    let definition = Arc::make_mut(world.cluster_networks.get_mut(&Key::cluster("blue")).unwrap());
    definition.conditions = serde_json::from_value(json!([{
        "type": TRANSPORT_ACCEPTED, "status": "True", "reason": "NoOverlayTransportAccepted",
        "message": "No-overlay transport has been configured.", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]))
    .unwrap();
    assert_eq!(said(&world, &settings, None), (ACCEPTED.to_owned(), 0));
}

#[test]
fn the_default_network_stands_as_it_is_advertised() {
    let mut world = World::default();
    let mut settings = Settings::default();
    let stands = |world: &World, settings: &Settings, all: &[(&str, Verdict)]| {
        of_default_network(world, settings, &verdicts(all)).map(|standing| standing.event().0)
    };
    assert_eq!(stands(&world, &settings, &[]), None, "it has its overlay");
    settings.no_overlay = Some(NoOverlay { outbound_snat: false, routing: Routing::Unmanaged });
    assert_eq!(stands(&world, &settings, &[]), Some("NoRouteAdvertisements"));
    let selectors = json!([{ "networkSelectionType": "DefaultNetwork" }]);
    put(&mut world, "all", &json!({ "networkSelectors": selectors, "advertisements": ["PodNetwork"] }));
    let wrong = Verdict::Error("x".to_owned());
    assert_eq!(stands(&world, &settings, &[("all", wrong)]), Some("RouteAdvertisementsNotAccepted"));
    assert_eq!(
        stands(&world, &settings, &[("all", accepted(&["n1"]))]),
        Some("RouteAdvertisementsNotAccepted")
    );
    assert_eq!(stands(&world, &settings, &[("all", accepted(&[]))]), Some("NoOverlayConfigurationReady"));
}
