//! Every link, broken on purpose: the one that is named is the one that was broken.

mod tenants;

use std::sync::Arc;

use serde_json::json;
use underlay_api::FRRConfiguration;
use underlay_runtime::report::{NextHop, RouteReport};

use super::chain::{Chain, Verdict};
use super::target::{Place, place, service};
use super::{inside, outside};
use crate::cluster::facts::{Agent, Facts, PodFacts};
use crate::cluster::scene::{pod, report, session_is, well};

fn verdicts(chain: &Chain) -> Vec<(&str, Verdict)> {
    chain.links.iter().map(|link| (link.what.as_str(), link.verdict)).collect()
}

/// Breaks something, and tells which link is named and what is said of it.
fn broken_by(change: impl FnOnce(&mut Facts, &mut PodFacts)) -> (String, String) {
    let (mut facts, mut pod) = (well(), pod());
    change(&mut facts, &mut pod);
    let chain = inside::pod(&facts, &pod);
    let link = chain.first_broken().unwrap_or_else(|| panic!("nothing is broken: {chain:?}"));
    assert!(link.hint.is_some(), "no advice: {link:?}");
    assert!(chain.conclusion.contains(&link.detail), "{}", chain.conclusion);
    (link.what.clone(), link.detail.clone())
}

fn tell_only_the_first(configuration: &mut FRRConfiguration) {
    let router = Arc::make_mut(&mut configuration.spec.bgp.routers[0]);
    router.prefixes = router.prefixes.iter().take(1).cloned().collect();
}

fn names(change: impl FnOnce(&mut Facts, &mut PodFacts), what: &str, detail: &str) {
    let (found, said) = broken_by(change);
    assert_eq!(found, what, "{said}");
    assert!(said.contains(detail), "{said}");
}

#[test]
fn a_pod_that_is_well_is_advertised_all_the_way() {
    let chain = inside::pod(&well(), &pod());
    let whole = [
        "Pod",
        "Node",
        "Agent",
        "Addresses",
        "OVN port",
        "Kernel",
        "Advertisement",
        "FRRConfiguration",
        "FRR",
        "BGP session",
        "Peer",
        "Gateway",
    ];
    assert_eq!(verdicts(&chain), whole.map(|what| (what, Verdict::Good)));
    assert_eq!(
        chain.conclusion,
        "it is advertised by one to 172.30.0.1, fd00:172:30::1 and reached at its own addresses"
    );
}

#[test]
fn what_is_wrong_with_the_pod_is_named() {
    names(
        |_, pod| {
            pod.pod.node = String::new();
            pod.unscheduled = Some("no node is large enough".to_owned());
        },
        "Pod",
        "it is on no node yet: no node is large enough",
    );
    names(|_, pod| pod.pod.networks = None, "Addresses", "none is recorded yet");
    names(
        |facts, pod| {
            pod.pod.networks = None;
            let records = report(facts, "one").edges.get_mut("pod-records").unwrap();
            records.error = Some("forbidden".to_owned());
        },
        "Addresses",
        "could not be recorded: forbidden",
    );
    names(
        |facts, _| report(facts, "one").pod.as_mut().unwrap().problem = Some("no address is left".to_owned()),
        "Addresses",
        "no address is left",
    );
    names(
        |_, pod| pod.addresses = vec!["10.88.0.3".parse().unwrap()],
        "Addresses",
        "but its container was given 10.88.0.3",
    );
    names(
        |facts, _| {
            let node = &mut facts.nodes.get_mut("one").unwrap().node;
            node.subnets.0.insert("default".to_owned(), vec!["10.244.9.0/24".parse().unwrap()]);
        },
        "Addresses",
        "10.244.2.5 is recorded, which is in no subnet of node one",
    );
}

#[test]
fn what_is_wrong_with_the_node_is_named() {
    names(|facts, _| drop(facts.nodes.remove("one")), "Node", "there is no node one");
    names(|facts, _| facts.nodes.get_mut("one").unwrap().node.id = None, "Node", "no subnet for pods yet");
    names(
        |facts, _| facts.nodes.get_mut("one").unwrap().node.problems = vec!["odd".to_owned()],
        "Node",
        "node one: odd",
    );
    names(
        |facts, _| drop(facts.agents.insert("one".to_owned(), Agent::Silent("refused".to_owned()))),
        "Agent",
        "the agent of one cannot be reached: refused",
    );
    names(
        |facts, _| report(facts, "one").waiting = Some("the switch".to_owned()),
        "Agent",
        "waits for the switch",
    );
    names(|facts, _| report(facts, "one").pod = None, "OVN port", "has not planned for it");
    names(|_, pod| pod.pod.uid = "other".to_owned(), "OVN port", "knows another pod");
    for (edge, link) in [
        ("northbound", "OVN port"),
        ("switch", "OVN port"),
        ("host", "Kernel"),
        ("filter", "Kernel"),
        ("flows", "Gateway"),
    ] {
        let failed = |facts: &mut Facts, _: &mut PodFacts| {
            report(facts, "one").edges.get_mut(edge).unwrap().error = Some("it broke".to_owned());
        };
        names(failed, link, &format!("{edge} on one failed: it broke"));
        let late =
            |facts: &mut Facts, _: &mut PodFacts| report(facts, "one").edges.get_mut(edge).unwrap().begun = 4;
        names(late, link, &format!("{edge} on one is not done yet"));
    }
}

#[test]
fn what_is_wrong_with_the_advertisement_is_named() {
    names(|facts, _| facts.advertisements[0].status = None, "Advertisement", "was not looked at yet");
    names(
        |facts, _| facts.advertisements[0].metadata.generation = Some(2),
        "Advertisement",
        "was not looked at since it changed",
    );
    names(
        |facts, _| {
            let condition = &mut facts.advertisements[0].status.as_mut().unwrap().conditions[0];
            condition.status = "False".to_owned();
            condition.message = "no nodes selected".to_owned();
        },
        "Advertisement",
        "default is not accepted: no nodes selected",
    );
    names(
        |facts, _| facts.configurations.truncate(1),
        "FRRConfiguration",
        "none was generated from frr/peers",
    );
    names(
        |facts, _| facts.configurations.clear(),
        "FRRConfiguration",
        "none that the RouteAdvertisements selects",
    );
    names(
        |facts, _| tell_only_the_first(&mut facts.configurations[1]),
        "FRRConfiguration",
        "none that was generated for one has fd00:10:244:2::/64",
    );
}

#[test]
fn what_is_wrong_with_the_speaker_is_named() {
    // As long as the peers heard everything, FRR's troubles are with something else.
    let mut troubled = well();
    troubled.speakers.get_mut("one").unwrap().last_reload_result = "no".to_owned();
    let chain = inside::pod(&troubled, &pod());
    assert_eq!(chain.first_broken(), None);
    assert!(verdicts(&chain).contains(&("FRR", Verdict::Note)));
    let unheard = |facts: &mut Facts| report(facts, "one").speaker.told.clear();
    names(
        |facts, _| {
            unheard(facts);
            facts.speakers.clear();
        },
        "FRR",
        "nobody tells how FRR fares on one",
    );
    names(
        |facts, _| {
            unheard(facts);
            facts.speakers.get_mut("one").unwrap().last_conversion_result = "two AS numbers".to_owned();
        },
        "FRR",
        "not all FRRConfigurations are used: two AS numbers",
    );
    names(
        |facts, _| {
            unheard(facts);
            facts.speakers.get_mut("one").unwrap().last_reload_result = "no bgpd".to_owned();
        },
        "FRR",
        "did not take the last change: no bgpd",
    );
    names(|facts, _| session_is(facts, "Active"), "BGP session", "from one to 172.30.0.1 is Active");
    names(
        |facts, _| {
            facts.sessions.clear();
            report(facts, "one").speaker.sessions.remove(0);
        },
        "BGP session",
        "from one to 172.30.0.1 is not there",
    );
    // What FRR says now counts before what was published.
    let mut outdated = well();
    outdated.sessions[0].bgp_status = "Idle".to_owned();
    assert_eq!(inside::pod(&outdated, &pod()).first_broken(), None);
    names(
        |facts, _| {
            facts.agents.insert("one".to_owned(), Agent::Forbidden);
            facts.sessions[0].bgp_status = "Idle".to_owned();
        },
        "BGP session",
        "from one to 172.30.0.1 is Idle",
    );
    names(
        |facts, _| report(facts, "one").speaker.told.clear(),
        "Peer",
        "172.30.0.1 was not told of 10.244.2.0/24",
    );
    names(
        |facts, _| report(facts, "one").plan.as_mut().unwrap().advertised = false,
        "Gateway",
        "still hidden behind its address",
    );
}

#[test]
fn without_an_advertisement_nothing_is_broken_and_nobody_gets_in() {
    let mut facts = well();
    facts.advertisements.clear();
    facts.configurations.truncate(1);
    report(&mut facts, "one").plan.as_mut().unwrap().advertised = false;
    let chain = inside::pod(&facts, &pod());
    assert_eq!(chain.first_broken(), None);
    assert_eq!(
        chain.conclusion,
        "it is not advertised: it leaves with the address of node one (172.30.0.12)"
    );
}

#[test]
fn a_gateway_that_lags_behind_a_withdrawal_is_named() {
    let mut facts = well();
    facts.advertisements.clear();
    facts.configurations.truncate(1);
    let chain = inside::subnet(&facts, "one", "10.244.2.0/24".parse().unwrap());
    assert_eq!(chain.first_broken().map(|link| link.what.as_str()), Some("Gateway"), "{chain:?}");
}

#[test]
fn what_may_not_be_asked_is_unknown_and_not_broken() {
    let mut facts = well();
    facts.agents.insert("one".to_owned(), Agent::Forbidden);
    let chain = inside::pod(&facts, &pod());
    assert_eq!(chain.first_broken(), None);
    let unknown: Vec<&str> = verdicts(&chain)
        .into_iter()
        .filter(|(_, verdict)| *verdict == Verdict::Unknown)
        .map(|(what, _)| what)
        .collect();
    assert_eq!(unknown, ["Agent", "OVN port", "Kernel", "Peer", "Gateway"]);
    assert!(chain.conclusion.ends_with("; 5 links could not be looked at"), "{}", chain.conclusion);
}

#[test]
fn pods_of_the_nodes_network_and_pods_that_ended_are_answers() {
    let mut host = pod();
    host.pod.host_network = true;
    assert!(inside::pod(&well(), &host).conclusion.starts_with("it is reached at its node's addresses"));
    let mut ended = pod();
    ended.pod.state = underlay_world::PodState::Ended;
    assert_eq!(inside::pod(&well(), &ended).conclusion, "it is not on the network any more");
}

#[test]
fn prefixes_are_found_where_they_are() {
    let facts = well();
    for (prefix, want) in [
        ("10.244.2.7/32", Place::Inside("one".to_owned())),
        ("fd00:10:244:3::/64", Place::Inside("two".to_owned())),
        ("10.244.0.0/16", Place::Across(vec!["one".to_owned(), "two".to_owned()])),
        ("172.30.0.13/32", Place::Node("two".to_owned())),
        ("172.30.0.0/24", Place::Outside),
        ("0.0.0.0/0", Place::Outside),
        ("203.0.113.0/24", Place::Outside),
    ] {
        assert_eq!(place(&facts, prefix.parse().unwrap()), want, "{prefix}");
    }
    let services: Vec<k8s_openapi::api::core::v1::Service> = vec![
        serde_json::from_value(json!({
            "metadata": { "namespace": "shop", "name": "till" }, "spec": { "clusterIPs": ["None", "10.96.0.9"] },
        }))
        .unwrap(),
    ];
    assert_eq!(service(&services, "10.96.0.9/32".parse().unwrap()).as_deref(), Some("shop/till"));
    assert_eq!(service(&services, "10.96.0.0/24".parse().unwrap()), None);
}

fn learn(facts: &mut Facts, node: &str, refused: Option<&str>) {
    report(facts, node).routes = vec![RouteReport {
        destination: "203.0.113.0/24".parse().unwrap(),
        next_hops: vec![NextHop { gateway: "172.30.0.1".parse().unwrap(), link: "br-ex".to_owned() }],
        refused: refused.map(str::to_owned),
        from: ["172.30.0.1".to_owned()].into(),
        kept: false,
    }];
}

#[test]
fn a_learned_route_is_followed_into_ovn() {
    let to = "203.0.113.9/32".parse().unwrap();
    let mut facts = well();
    learn(&mut facts, "one", None);
    learn(&mut facts, "two", None);
    let chain = outside::judge(&facts, to);
    let whole = ["BGP session", "Kernel", "OVN"];
    assert_eq!(verdicts(&chain), whole.map(|what| (what, Verdict::Good)));
    assert_eq!(
        chain.conclusion,
        "pods reach 203.0.113.9 by the learned route 203.0.113.0/24 through 172.30.0.1 at br-ex"
    );

    let mut late = facts.clone();
    report(&mut late, "two").edges.get_mut("northbound").unwrap().error = Some("no database".to_owned());
    assert_eq!(
        outside::judge(&late, to).first_broken().unwrap().detail,
        "northbound on two failed: no database"
    );

    let mut lost = facts.clone();
    session_is(&mut lost, "Active");
    assert_eq!(outside::judge(&lost, to).first_broken().unwrap().detail, "from one to 172.30.0.1 is Active");

    let mut dumb = facts.clone();
    dumb.agents.values_mut().for_each(|agent| *agent = Agent::Forbidden);
    let chain = outside::judge(&dumb, to);
    assert_eq!(verdicts(&chain), [("Agent", Verdict::Unknown)], "once, however many agents");
    assert!(chain.conclusion.starts_with("no agent could tell"), "{}", chain.conclusion);

    learn(&mut facts, "two", Some("it lies in the cluster's own range"));
    let chain = outside::judge(&facts, to);
    assert_eq!(chain.first_broken(), None);
    let details: Vec<&str> = chain.links.iter().map(|link| link.detail.as_str()).collect();
    assert!(details.contains(&"does not use it on two: it lies in the cluster's own range"), "{details:?}");
}

#[test]
fn what_was_not_learned_goes_by_the_default_route() {
    let to = "198.51.100.0/24".parse().unwrap();
    let mut facts = well();
    let chain = outside::judge(&facts, to);
    assert!(chain.links.is_empty(), "{chain:?}");
    assert_eq!(
        chain.conclusion,
        "no route to 198.51.100.0/24 was learned: pods leave by their node's default gateway, 172.30.0.1"
    );
    learn(&mut facts, "two", None);
    let chain = outside::judge(&facts, to);
    assert!(chain.links.iter().any(|link| link.detail == "one has learned no route there"), "{chain:?}");
    session_is(&mut facts, "Active");
    let chain = outside::judge(&facts, to);
    assert_eq!(chain.first_broken().unwrap().detail, "on one: 172.30.0.1 is Active");
}
