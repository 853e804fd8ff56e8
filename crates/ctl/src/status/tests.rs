//! Everything that can be wrong is a problem, and nothing else is.

use underlay_world::settings::{NoOverlay, Routing};

use super::judge::{Overview, judge};
use super::screen;
use crate::cluster::facts::{Agent, Facts, Readiness};
use crate::cluster::scene::{report, session_is, well, with_advertised_tenant, with_tenant};

fn problems(change: impl FnOnce(&mut Facts)) -> Vec<String> {
    let mut facts = well();
    change(&mut facts);
    judge(&facts).problems.into_iter().map(|problem| format!("{}: {}", problem.about, problem.what)).collect()
}

#[test]
fn a_cluster_that_is_well_has_no_problems() {
    let Overview { nodes, default_network, networks, advertisements, problems } = judge(&well());
    assert_eq!(problems, []);
    assert_eq!(nodes.len(), 2);
    let one = &nodes[0];
    assert_eq!((one.name.as_str(), one.ready, one.id, one.agent.as_str()), ("one", true, Some(2), "ready"));
    assert_eq!((one.advertised, one.sessions_up, one.sessions), (Some(true), 2, 2));
    assert_eq!(one.subnets, ["10.244.2.0/24", "fd00:10:244:2::/64"]);
    assert_eq!(networks, []);
    assert_eq!(default_network.map(|row| (row.transport, row.well)), Some(("Geneve", true)));
    assert_eq!((advertisements[0].name.as_str(), advertisements[0].status.as_str()), ("default", "Accepted"));
}

#[test]
fn what_is_wrong_with_nodes_is_a_problem() {
    let silent =
        problems(|facts| drop(facts.agents.insert("one".to_owned(), Agent::Silent("refused".to_owned()))));
    assert_eq!(silent, ["node one: its agent cannot be reached: refused"]);
    let forbidden = problems(|facts| {
        facts.agents.values_mut().for_each(|agent| *agent = Agent::Forbidden);
    });
    assert_eq!(forbidden, ["agents: you may not ask them"], "one problem, however many agents");
    let waiting = problems(|facts| report(facts, "two").waiting = Some("the switch".to_owned()));
    assert_eq!(waiting, ["node two: its agent waits for the switch"]);
    let failed = problems(|facts| {
        report(facts, "two").edges.get_mut("flows").unwrap().error = Some("no bridge".to_owned());
    });
    assert_eq!(failed, ["node two: flows failed: no bridge"]);
    let full = problems(|facts| {
        report(facts, "two").plan.as_mut().unwrap().address_problem = Some("a/b: none is left".to_owned());
    });
    assert_eq!(full, ["node two: a pod has no address: a/b: none is left"]);
    let unready = problems(|facts| {
        facts.nodes.get_mut("one").unwrap().readiness = Readiness::NotReady("no CNI".to_owned());
    });
    assert_eq!(unready, ["node one: is not ready: no CNI"]);
    let bare = problems(|facts| facts.nodes.get_mut("one").unwrap().node.id = None);
    assert_eq!(bare, ["node one: has no subnet for pods"]);
    assert_eq!(
        problems(|facts| *facts = Facts { missing: vec!["things.example".to_owned()], ..Facts::default() }),
        ["things.example: the API server does not know this resource", "cluster: it has no nodes"]
    );
}

#[test]
fn what_is_wrong_with_advertising_is_a_problem() {
    let down = problems(|facts| session_is(facts, "Active"));
    assert_eq!(down, ["node one: the BGP session to 172.30.0.1 is Active"]);
    let outdated = problems(|facts| facts.sessions[0].bgp_status = "Idle".to_owned());
    assert_eq!(outdated, ["node one: the BGPSessionState to 172.30.0.1 says Idle, but FRR says Established"]);
    let refused =
        problems(|facts| facts.speakers.get_mut("one").unwrap().last_reload_result = "no".to_owned());
    assert_eq!(refused, ["node one: FRR did not take the last change: no"]);
    assert_eq!(
        problems(|facts| facts.advertisements[0].status = None),
        ["RouteAdvertisements default: was not looked at yet"]
    );
    let rejected = problems(|facts| {
        let condition = &mut facts.advertisements[0].status.as_mut().unwrap().conditions[0];
        condition.status = "False".to_owned();
        condition.message = "no".to_owned();
    });
    assert_eq!(rejected, ["RouteAdvertisements default: is not accepted: no"]);
    let uncovered = problems(|facts| {
        let only = facts.configurations[1].spec.node_selector.clone();
        facts.configurations[0].spec.node_selector = only;
    });
    assert_eq!(uncovered, ["RouteAdvertisements default: no FRRConfiguration that it selects is for two"]);
}

#[test]
fn a_default_network_without_overlay_needs_somebody_to_advertise_it() {
    let mut facts = well();
    for node in ["one", "two"] {
        let no_overlay = NoOverlay { outbound_snat: true, routing: Routing::Unmanaged };
        report(&mut facts, node).no_overlay = Some(no_overlay);
    }
    let row = judge(&facts).default_network.unwrap();
    assert_eq!(
        (row.transport, row.state.as_str()),
        ("NoOverlay", "advertised by default (routing unmanaged, outbound SNAT enabled)")
    );
    facts.advertisements.clear();
    let overview = judge(&facts);
    assert!(!overview.default_network.unwrap().well);
    let [problem] = overview.problems.as_slice() else { panic!("{:?}", overview.problems) };
    assert_eq!(problem.about, "default network");
    assert!(problem.what.contains("nobody advertises it"), "{}", problem.what);
}

#[test]
fn networks_say_how_they_travel_who_tells_of_them_and_what_they_learned() {
    let mut facts = with_advertised_tenant(true);
    for (node, dammed) in [("one", 0), ("two", 3)] {
        let plan = report(&mut facts, node).plan.as_mut().unwrap();
        let blue = plan.networks.get_mut("cluster_udn_blue").unwrap();
        (blue.learned, blue.imported, blue.dammed) = (8, 5, dammed);
        (plan.learned, plan.imported) = (2, 1);
    }
    let overview = judge(&facts);
    let blue = &overview.networks[0];
    assert_eq!((blue.transport.as_str(), blue.nodes_advertised), ("NoOverlay", 2));
    assert_eq!((blue.routes.learned, blue.routes.imported, blue.routes.dammed), (16, 10, 3));
    let row = overview.default_network.as_ref().unwrap();
    assert_eq!((row.nodes_advertised, row.routes.learned, row.routes.imported), (2, 4, 2));
    let [problem] = overview.problems.as_slice() else { panic!("{:?}", overview.problems) };
    assert_eq!(
        format!("{}: {}", problem.about, problem.what),
        "node two: network cudn/blue has 5 learned routes, as many as it takes: 3 are left out"
    );
    let text = screen::text(&overview);
    for part in
        ["NoOverlay", "10/16, 3 dammed", "4 of 4 BGP sessions established", "advertised: yes; routes: 2/4"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_small_cluster_is_one_screen() {
    let mut overview = judge(&with_advertised_tenant(false));
    overview.nodes = vec![overview.nodes[0].clone(); 3];
    overview.networks = vec![overview.networks[0].clone(); 5];
    let lines = screen::text(&overview).lines().count();
    assert!(lines <= 24, "{lines} lines");
}

#[test]
fn a_network_that_is_well_is_a_row() {
    let Overview { networks, problems, .. } = judge(&with_tenant());
    assert_eq!(problems, []);
    let [blue] = networks.as_slice() else { panic!("{networks:?}") };
    assert_eq!(
        (blue.name.as_str(), blue.topology.as_str(), blue.role.as_str()),
        ("cudn/blue", "Layer3", "Primary")
    );
    assert_eq!((blue.subnets.as_slice(), blue.id), (&["10.200.0.0/16".to_owned()][..], Some(1)));
    assert_eq!((blue.namespaces, blue.nodes_ready, blue.nodes, blue.state.as_str()), (1, 2, 2, "Ready"));
}

fn tenant_problems(change: impl FnOnce(&mut Facts)) -> Vec<(String, String)> {
    let mut facts = with_tenant();
    change(&mut facts);
    let told = judge(&facts).problems.into_iter();
    told.map(|problem| (format!("{}: {}", problem.about, problem.what), problem.hint)).collect()
}

fn says(facts: &mut Facts, type_: &str, message: &str) {
    let conditions = &mut facts.networks[0].conditions;
    let condition = conditions.iter_mut().find(|condition| condition.type_ == type_).expect(type_);
    (condition.status, condition.message) = ("False".to_owned(), message.to_owned());
}

#[test]
fn what_is_wrong_with_networks_is_a_problem_with_a_hint() {
    let only = |problems: Vec<(String, String)>| {
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        problem.clone()
    };
    let (refused, hint) = only(tenant_problems(|facts| says(facts, "NetworkCreated", "it overlaps")));
    assert_eq!(refused, "ClusterUserDefinedNetwork blue: is refused: it overlaps");
    assert!(hint.starts_with("correct it"), "{hint}");
    let (_, hint) = only(tenant_problems(|facts| {
        says(facts, "NetworkCreated", "no label");
        let labels = [("tenant".to_owned(), "blue".to_owned())].into();
        facts.namespaces.insert("late".to_owned(), underlay_world::Namespace { labels, ending: false });
    }));
    assert_eq!(
        hint,
        "label the namespaces k8s.ovn.org/primary-user-defined-network= before their pods are made: late"
    );
    let (not_carried, _) = only(tenant_problems(|facts| says(facts, "TransportAccepted", "not yet")));
    assert_eq!(not_carried, "ClusterUserDefinedNetwork blue: is not carried: not yet");
    let (waiting, _) = only(tenant_problems(|facts| {
        let networks = &mut report(facts, "two").plan.as_mut().unwrap().networks;
        networks.get_mut("cluster_udn_blue").unwrap().waiting = Some("a subnet".to_owned());
    }));
    assert_eq!(waiting, "ClusterUserDefinedNetwork blue: waits on node two for a subnet");
    let (unheard, _) =
        only(tenant_problems(|facts| report(facts, "one").plan.as_mut().unwrap().networks.clear()));
    assert_eq!(unheard, "ClusterUserDefinedNetwork blue: waits on node one for its agent to hear of it");
    let (unseen, _) = only(tenant_problems(|facts| facts.networks[0].conditions.clear()));
    assert_eq!(unseen, "ClusterUserDefinedNetwork blue: was not looked at yet");
    let (leaving, _) = only(tenant_problems(|facts| facts.networks[0].ending = true));
    assert_eq!(leaving, "ClusterUserDefinedNetwork blue: is deleted and not gone yet");
}

#[test]
fn a_namespace_that_waits_for_its_network_is_a_problem() {
    let problems = tenant_problems(|facts| {
        facts.networks.clear();
        facts.attachments.clear();
    });
    let [(what, hint)] = problems.as_slice() else { panic!("{problems:?}") };
    assert_eq!(what, "namespace sea: is labelled for a network of its own and has none: its pods wait");
    assert!(hint.contains("ClusterUserDefinedNetwork that selects it"), "{hint}");
}
