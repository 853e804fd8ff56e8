//! Networks of tenants: pods on them, addresses that several have, and networks as a whole.

use super::super::chain::Verdict;
use super::super::target::{Place, owners, place};
use super::super::{inside, tenant, the_network};
use super::verdicts;
use crate::cluster::facts::{Facts, PodFacts};
use crate::cluster::scene::{pod, report, tenant_pod, tenant_pod_report, with_tenant};

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
        "pods of sea reach it at 10.200.2.4; it leaves with the address of node one (172.30.0.12)"
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
        assert_eq!(the_network(&facts, word).expect(word).key.name, "blue");
    }
    let error = the_network(&facts, "cudn/green").expect_err("no such").to_string();
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
