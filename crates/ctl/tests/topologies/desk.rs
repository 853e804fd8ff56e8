//! What the admin's desk tells of a topology that works, checked against FRR and OVN themselves.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;
use underlay_testkit::{LabUnderTest, OutputExt};

use super::cluster::OUTSIDE;
use super::place::Place;

/// The router's addresses.
const TOR: [(&str, &str); 2] = [("ipv4", "172.30.0.1"), ("ipv6", "fd00:172:30::1")];

fn desk(place: &Place, arguments: &[&str]) -> Output {
    let kubeconfig = place.lab.cli(&["kubeconfig"]).ok();
    let mut command = Command::new(LabUnderTest::program());
    command.args(arguments).args(["--kubeconfig", kubeconfig.trim_end()]);
    command.output().expect("kubectl-underlay runs")
}

/// What a verb prints for programs. It must find nothing wrong.
fn told(place: &Place, arguments: &[&str]) -> Value {
    let text = desk(place, &[arguments, &["--output", "json"]].concat()).ok();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn vtysh(place: &Place, question: &str) -> Value {
    let text = place.lab.exec("worker1", &["vtysh", "-c", question]).ok();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn list<'a>(value: &'a Value, what: &str) -> Vec<&'a Value> {
    value[what].as_array().unwrap_or_else(|| panic!("no {what} in {value}")).iter().collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Prefixes of worker1's routes with this direction, of one network or of all.
fn prefixes<'a>(routes: &'a Value, direction: &str, network: Option<&str>) -> BTreeSet<&'a str> {
    let [node] = list(routes, "nodes")[..] else { panic!("not one node: {routes}") };
    let fits = |row: &&&Value| {
        row["direction"] == direction && network.is_none_or(|network| row["network"] == network)
    };
    list(node, "routes").iter().filter(fits).map(|row| text(&row["prefix"])).collect()
}

/// Routes that are said to be advertised are those that FRR tells, and those that are said to be imported are in OVN.
pub fn routes(place: &Place) {
    let told_routes = told(place, &["routes", "--node", "worker1"]);
    let mut frr = BTreeSet::new();
    for (family, tor) in TOR {
        let question = format!("show bgp {family} unicast neighbors {tor} advertised-routes json");
        let answer = vtysh(place, &question);
        frr.extend(
            answer["advertisedRoutes"].as_object().into_iter().flatten().map(|(prefix, _)| prefix.clone()),
        );
    }
    let advertised = prefixes(&told_routes, "advertised", None);
    assert_eq!(advertised, frr.iter().map(String::as_str).collect(), "{told_routes}");
    for (network, router) in [
        ("default", "GR_worker1"),
        ("cudn/blue", "GR_cluster_udn_blue_worker1"),
        ("cudn/green", "GR_cluster_udn_green_worker1"),
    ] {
        let imported = prefixes(&told_routes, "imported", Some(network));
        assert!(imported.contains("203.0.113.0/24"), "{network}: {told_routes}");
        let ovn = place.lab.exec("worker1", &["ovn-nbctl", "lr-route-list", router]).ok();
        let ovn: BTreeSet<&str> = ovn.split_whitespace().collect();
        assert!(imported.is_subset(&ovn), "{network}: {imported:?} in {ovn:?}");
        for refused in prefixes(&told_routes, "refused", Some(network)) {
            assert!(!imported.contains(refused), "{network}: {refused} in {told_routes}");
        }
    }
    let one = told(place, &["routes", "--node", "worker1", "--network", "cudn/blue", "--to", OUTSIDE[0]]);
    assert_eq!(prefixes(&one, "imported", Some("cudn/blue")), ["203.0.113.0/24"].into(), "{one}");
    assert_eq!(prefixes(&one, "advertised", None), [].into(), "{one}");
    let refused = told(place, &["routes", "--node", "worker1", "--refused", "--all"]);
    assert_eq!(prefixes(&refused, "refused", None), prefixes(&told_routes, "refused", None));
    assert_eq!(prefixes(&refused, "imported", None), [].into(), "{refused}");
}

/// Sessions are those that FRR has, with what went over them.
pub fn sessions(place: &Place) {
    let all = told(place, &["bgp", "peers"]);
    assert_eq!(list(&all, "peers").len(), 6, "two families on three nodes: {all}");
    let own = told(place, &["bgp", "peers", "--node", "worker1"]);
    let summary = vtysh(place, "show bgp summary json");
    for (family, tor) in TOR {
        let peers = list(&own, "peers");
        let peer =
            peers.iter().find(|peer| peer["peer"] == tor).unwrap_or_else(|| panic!("no {tor} in {own}"));
        let frr = &summary[format!("{family}Unicast")]["peers"][tor];
        assert_eq!((&peer["state"], &peer["asn"]), (&"Established".into(), &frr["remoteAs"]), "{own}");
        assert_eq!((&peer["received"], &peer["sent"]), (&frr["pfxRcd"], &frr["pfxSnt"]), "{own}");
    }
}

/// All is well, and every network says how it travels.
pub fn status(place: &Place) {
    let status = told(place, &["status"]);
    for (network, transport) in [("cudn/blue", "Geneve"), ("cudn/green", "NoOverlay")] {
        let rows = list(&status, "networks");
        let row = rows.iter().find(|row| row["name"] == network).unwrap_or_else(|| panic!("{status}"));
        assert_eq!((&row["transport"], &row["nodesAdvertised"]), (&transport.into(), &3.into()), "{status}");
        assert!(row["imported"].as_u64() >= Some(3), "every node has the outside's route: {status}");
    }
    let text = desk(place, &["status"]).ok();
    assert!(text.lines().count() <= 24, "more than a screen: {text}");
}

/// Pods of tenants are followed to the peers, destinations by their own network, and networks from node to node.
pub fn explanations(place: &Place) {
    for target in ["default/worker1", "blue/worker1", "green/worker2"] {
        let chain = told(place, &["explain", target]);
        assert!(text(&chain["conclusion"]).contains("it is advertised by worker"), "{chain}");
    }
    let chain = told(place, &["explain", OUTSIDE[0], "--network", "cudn/blue"]);
    let conclusion = text(&chain["conclusion"]);
    assert!(conclusion.contains("by the learned route 203.0.113.0/24 through 172.30.0.1"), "{chain}");
    let chain = told(place, &["explain", "cudn/green"]);
    let links = list(&chain, "links");
    let routes = links.iter().find(|link| link["what"] == "Routes").unwrap_or_else(|| panic!("{chain}"));
    assert_eq!(routes["detail"], "control, worker1, worker2 have routes to the parts of all others");
}
