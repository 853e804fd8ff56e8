//! Networks of tenants: pods on them, addresses that several have, and networks as a whole.

use underlay_runtime::report::{LearnedReport, RouteReport};

use super::super::chain::Verdict;
use super::super::target::{Place, owners, place};
use super::super::{inside, tenant};
use super::verdicts;
use crate::cluster::facts::{Facts, PodFacts};
use crate::cluster::scene::{
    pod, report, tenant_pod, tenant_pod_report, with_advertised_tenant, with_tenant,
};

/// A tenant's pod on a node whose agent tells of it.
fn tenants_scene() -> (Facts, PodFacts) {
    let mut facts = with_tenant();
    report(&mut facts, "one").pod = Some(tenant_pod_report());
    (facts, tenant_pod())
}

fn tenant_names(change: impl FnOnce(&mut Facts, &mut PodFacts), what: &str, detail: &str) {
    let (mut facts, mut pod) = tenants_scene();
    change(&mut facts, &mut pod);
    let chain = inside::pod(&facts, &pod);
    let link = chain.first_broken().unwrap_or_else(|| panic!("nothing is broken: {chain:?}"));
    assert_eq!(link.what, what, "{chain:?}");
    assert!(link.detail.contains(detail) && link.hint.is_some(), "{link:?}");
}

#[test]
fn a_tenants_pod_is_followed_on_its_own_network() {
    let (facts, pod) = tenants_scene();
    let chain = inside::pod(&facts, &pod);
    let good = |what| (what, Verdict::Good);
    assert_eq!(
        verdicts(&chain),
        [
            good("Pod"),
            good("Network"),
            good("Node"),
            good("Subnet"),
            good("Agent"),
            good("Carried"),
            good("Addresses"),
            ("Default network", Verdict::Note),
            good("OVN port"),
            good("Kernel"),
            ("Advertisement", Verdict::Note),
            good("Gateway"),
        ]
    );
    let details: Vec<&str> = chain.links.iter().map(|link| link.detail.as_str()).collect();
    assert!(
        details.contains(&"cudn/blue, 10.200.0.0/16; NetworkAttachmentDefinition sea/blue"),
        "{details:?}"
    );
    assert!(details.contains(&"sea.blue_sea_ship on switch cluster_udn_blue_one"), "{details:?}");
    assert!(details.contains(&"10.244.2.7, for probes of its node only"), "{details:?}");
    assert_eq!(
        chain.conclusion,
        "pods of sea reach it at 10.200.2.4; it is not advertised: it leaves with the address of node one (172.30.0.12)"
    );
}

#[test]
fn what_is_wrong_with_a_tenants_pod_is_named() {
    tenant_names(
        |facts, pod| {
            facts.attachments.clear();
            pod.pod.networks = None;
        },
        "Network",
        "namespace sea is labelled for a network of its own and has none",
    );
    tenant_names(
        |facts, _| {
            let created = &mut facts.networks[0].conditions[0];
            (created.status, created.message) = ("False".to_owned(), "it overlaps".to_owned());
        },
        "Network",
        "cudn/blue is refused: it overlaps",
    );
    tenant_names(
        |facts, _| _ = facts.nodes.get_mut("one").unwrap().node.subnets.0.remove("cluster_udn_blue"),
        "Subnet",
        "node one has no subnet of cluster_udn_blue yet",
    );
    tenant_names(
        |facts, _| {
            let networks = &mut report(facts, "one").plan.as_mut().unwrap().networks;
            networks.get_mut("cluster_udn_blue").unwrap().waiting = Some("a number".to_owned());
        },
        "Carried",
        "cluster_udn_blue waits on one for a number",
    );
    tenant_names(
        |facts, _| report(facts, "one").pod.as_mut().unwrap().waiting = Some("network blue".to_owned()),
        "Addresses",
        "it waits for network blue",
    );
    tenant_names(
        |facts, _| {
            report(facts, "one").edges.get_mut("northbound").unwrap().error = Some("it broke".to_owned());
        },
        "OVN port",
        "it broke",
    );
}

#[test]
fn a_pod_that_was_there_before_its_network_stays_where_it_is() {
    let (facts, mut pod) = (with_tenant(), pod());
    pod.pod.key.namespace = "sea".to_owned();
    let chain = inside::pod(&facts, &pod);
    assert_eq!(verdicts(&chain)[1], ("Network", Verdict::Note), "{chain:?}");
    assert!(chain.links[1].detail.contains("it was there before blue came"), "{chain:?}");
}

#[test]
fn addresses_of_tenants_are_found_in_their_networks() {
    let (mut facts, pod) = tenants_scene();
    let prefix = "10.200.2.4/32".parse().unwrap();
    assert_eq!(place(&facts, prefix), Place::Networks(vec!["cudn/blue".to_owned()]));
    let titles = ["cudn/blue".to_owned()];
    let pods = [pod];
    assert_eq!(owners(&facts, &pods, prefix, &titles).len(), 1);
    assert!(owners(&facts, &pods, "10.200.2.5/32".parse().unwrap(), &titles).is_empty());

    let mut other = facts.networks[0].clone();
    other.key.name = "red".to_owned();
    facts.networks.push(other);
    assert_eq!(
        place(&facts, "10.200.0.0/24".parse().unwrap()),
        Place::Networks(vec!["cudn/blue".to_owned(), "cudn/red".to_owned()]),
        "two networks may have the same addresses"
    );
    let chain = tenant::subnet(&facts, &facts.networks[0], "10.200.3.9/32".parse().unwrap());
    assert_eq!(chain.conclusion, "pods of this network on node two get their addresses there");
    assert_eq!(verdicts(&chain)[0], ("Pod", Verdict::Note));
}

#[test]
fn a_network_is_explained_by_name() {
    let (mut facts, _) = tenants_scene();
    for word in ["cudn/blue", "blue", "cluster_udn_blue"] {
        assert_eq!(facts.the_network(word).expect(word).key.name, "blue");
    }
    let error = facts.the_network("cudn/green").expect_err("no such").to_string();
    assert_eq!(error, "there is no network cudn/green; there are cudn/blue");
    let chain = tenant::network(&facts, &facts.networks[0]);
    assert_eq!(chain.first_broken(), None, "{chain:?}");
    let details: Vec<&str> = chain.links.iter().map(|link| link.detail.as_str()).collect();
    assert!(details.contains(&"one 10.200.2.0/24, two 10.200.3.0/24"), "{details:?}");
    assert_eq!(chain.conclusion, "it has 2 pods in 1 namespace");
    let networks = &mut report(&mut facts, "two").plan.as_mut().unwrap().networks;
    networks.get_mut("cluster_udn_blue").unwrap().waiting = Some("a subnet".to_owned());
    let chain = tenant::network(&facts, &facts.networks[0]);
    assert_eq!(chain.first_broken().unwrap().detail, "two waits for a subnet");
}

fn advertised_scene() -> (Facts, PodFacts) {
    let mut facts = with_advertised_tenant(false);
    report(&mut facts, "one").pod = Some(tenant_pod_report());
    (facts, tenant_pod())
}

#[test]
fn a_tenants_pod_that_is_advertised_is_followed_to_the_peers() {
    let (facts, pod) = advertised_scene();
    let chain = inside::pod(&facts, &pod);
    assert_eq!(chain.first_broken(), None, "{chain:?}");
    let after = ["Advertisement", "FRRConfiguration", "FRR", "BGP session", "Peer", "Gateway"];
    let links = verdicts(&chain);
    assert_eq!(links[links.len() - after.len()..], after.map(|what| (what, Verdict::Good)));
    let details: Vec<&str> = chain.links.iter().map(|link| link.detail.as_str()).collect();
    for detail in [
        "RouteAdvertisements tenants: accepted",
        "frr/ovnk-generated-blue-one from peers",
        "172.30.0.1 heard 10.200.2.0/24",
        "pods keep their addresses on the way out, and br-ex lets the world in to them",
    ] {
        assert!(details.contains(&detail), "{detail} in {details:?}");
    }
    assert_eq!(
        chain.conclusion,
        "pods of sea reach it at 10.200.2.4; it is advertised by one to 172.30.0.1 and reached at its own addresses"
    );
}

#[test]
fn what_is_wrong_with_a_tenants_advertisement_is_named() {
    let broken = |change: &dyn Fn(&mut Facts)| {
        let (mut facts, pod) = advertised_scene();
        change(&mut facts);
        let chain = inside::pod(&facts, &pod);
        let link = chain.first_broken().unwrap_or_else(|| panic!("nothing is broken: {chain:?}"));
        (link.what.clone(), link.detail.clone())
    };
    let (what, detail) = broken(&|facts| facts.advertisements[1].status = None);
    assert_eq!(
        (what.as_str(), detail.as_str()),
        ("Advertisement", "RouteAdvertisements tenants was not looked at yet")
    );
    let (what, detail) = broken(&|facts| facts.configurations.truncate(3));
    assert_eq!(
        (what.as_str(), detail.as_str()),
        ("FRRConfiguration", "none was generated from frr/peers for node one")
    );
    let (what, detail) = broken(&|facts| report(facts, "one").advertised[0].to = Some([].into()));
    assert_eq!((what.as_str(), detail.as_str()), ("Peer", "172.30.0.1 was not told of 10.200.2.0/24"));
    let (what, detail) = broken(&|facts| {
        let networks = &mut report(facts, "one").plan.as_mut().unwrap().networks;
        networks.get_mut("cluster_udn_blue").unwrap().advertised = false;
    });
    assert_eq!((what.as_str(), detail.contains("still hidden")), ("Gateway", true), "{detail}");
}

#[test]
fn nodes_without_overlay_that_have_not_heard_of_each_other_are_named() {
    let mut facts = with_advertised_tenant(true);
    let route = |destination: &str, refused: Option<&str>| RouteReport {
        destination: destination.parse().unwrap(),
        next_hops: vec![],
        refused: refused.map(str::to_owned),
        from: std::collections::BTreeSet::new(),
        kept: false,
    };
    let mut learn = |node: &str, routes: Vec<RouteReport>| {
        let learned = LearnedReport { routes, more: 0 };
        report(&mut facts, node).learned.insert("cluster_udn_blue".to_owned(), learned);
        let chain = tenant::network(&facts, &facts.networks[0]);
        chain
            .links
            .iter()
            .filter(|link| link.what == "Routes")
            .map(|link| (link.verdict, link.detail.clone()))
            .collect::<Vec<_>>()
    };
    learn("one", vec![route("10.200.3.0/24", None)]);
    assert_eq!(learn("two", vec![]), [(Verdict::Broken, "two has none to 10.200.2.0/24 of one".to_owned())]);
    let refused = vec![route("10.200.2.0/24", Some("it is not at br-ex"))];
    assert_eq!(
        learn("two", refused),
        [(Verdict::Broken, "two has none to 10.200.2.0/24 of one (it is not at br-ex)".to_owned())]
    );
    assert_eq!(
        learn("two", vec![route("10.200.2.0/24", None)]),
        [(Verdict::Good, "one, two have routes to the parts of all others".to_owned())]
    );
}

#[test]
fn a_network_says_who_tells_of_it() {
    let mut facts = with_advertised_tenant(false);
    let chain = tenant::network(&facts, &facts.networks[0]);
    assert_eq!(chain.first_broken(), None, "{chain:?}");
    let links = verdicts(&chain);
    assert_eq!(links[links.len() - 2..], [("Advertisement", Verdict::Good), ("Advertised", Verdict::Good)]);
    let networks = &mut report(&mut facts, "two").plan.as_mut().unwrap().networks;
    networks.get_mut("cluster_udn_blue").unwrap().advertised = false;
    let chain = tenant::network(&facts, &facts.networks[0]);
    assert_eq!(chain.first_broken().unwrap().detail, "two tell nobody of their part");
}
