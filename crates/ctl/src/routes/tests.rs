//! Every route is a row with a reason, and everything that was not told is a problem.

use underlay_runtime::report::{AdvertisedReport, LearnedReport, NextHop, RouteReport};

use super::list::{Direction, listing};
use super::{prefix, screen, the_nodes};
use crate::cluster::facts::{Agent, Facts};
use crate::cluster::scene::{report, with_tenant};

fn route(destination: &str, refused: Option<&str>) -> RouteReport {
    RouteReport {
        destination: destination.parse().unwrap(),
        next_hops: vec![NextHop { gateway: "172.30.0.1".parse().unwrap(), link: "br-ex".to_owned() }],
        refused: refused.map(str::to_owned),
        from: std::collections::BTreeSet::new(),
        kept: false,
    }
}

/// Node one tells its part of network blue, and has learned three routes of many.
fn scene() -> Facts {
    let mut facts = with_tenant();
    facts.agents.remove("two");
    let one = report(&mut facts, "one");
    one.advertised.push(AdvertisedReport {
        prefix: "10.200.2.0/24".parse().unwrap(),
        vrf: String::new(),
        network: Some("cluster_udn_blue".to_owned()),
        by: ["everything".to_owned()].into(),
        to: Some(["172.30.0.1".to_owned()].into()),
    });
    let mut kept = route("198.51.100.0/24", None);
    kept.kept = true;
    let refused = route("10.244.9.0/24", Some("it lies in the cluster's own range 10.244.0.0/16"));
    let routes = vec![refused, kept, route("203.0.113.0/24", None)];
    one.learned.insert("cluster_udn_blue".to_owned(), LearnedReport { routes, more: 7 });
    facts
}

#[test]
fn every_route_is_a_row_with_its_reason() {
    let listing = listing(&scene(), false);
    assert_eq!(listing.problems, []);
    let [one] = listing.nodes.as_slice() else { panic!("{listing:?}") };
    let rows: Vec<(Direction, String, &str)> =
        one.routes.iter().map(|row| (row.direction, row.prefix.to_string(), row.reason.as_str())).collect();
    assert_eq!(
        rows,
        [
            (Direction::Advertised, "10.200.2.0/24".to_owned(), "RouteAdvertisements everything"),
            (
                Direction::Refused,
                "10.244.9.0/24".to_owned(),
                "it lies in the cluster's own range 10.244.0.0/16"
            ),
            (
                Direction::Imported,
                "198.51.100.0/24".to_owned(),
                "kept for a moment: bgpd lost it while it was starting"
            ),
            (Direction::Imported, "203.0.113.0/24".to_owned(), ""),
        ]
    );
    assert!(one.routes.iter().all(|row| row.network.as_deref() == Some("cudn/blue")), "{one:?}");
    assert_eq!(
        (one.routes[0].via.as_slice(), one.routes[0].vrf.as_deref()),
        (&["172.30.0.1".to_owned()][..], Some("default"))
    );
    assert_eq!(one.routes[3].via, ["172.30.0.1 at br-ex"]);
    let text = screen::text(&listing);
    assert!(text.contains("and 7 more of cudn/blue: --all shows them"), "{text}");
}

#[test]
fn what_is_refused_can_be_asked_for_alone() {
    let rows = &listing(&scene(), true).nodes[0].routes;
    assert!(rows.iter().all(|row| row.direction != Direction::Advertised), "{rows:?}");
}

fn problems(change: impl FnOnce(&mut Facts)) -> Vec<String> {
    let mut facts = scene();
    change(&mut facts);
    let told = listing(&facts, false).problems.into_iter();
    told.map(|problem| format!("{}: {}", problem.about, problem.what)).collect()
}

#[test]
fn what_was_not_told_is_a_problem() {
    let unheard = problems(|facts| report(facts, "one").advertised[0].to = Some([].into()));
    assert_eq!(unheard, ["node one: nobody was told of 10.200.2.0/24"]);
    let deaf = problems(|facts| {
        let one = report(facts, "one");
        one.advertised[0].to = None;
        one.speaker.problem = Some("no bgpd".to_owned());
    });
    assert_eq!(deaf, ["node one: FRR could not be asked: no bgpd"]);
    let silent =
        problems(|facts| drop(facts.agents.insert("one".to_owned(), Agent::Silent("refused".to_owned()))));
    assert_eq!(silent, ["node one: its agent cannot be reached: refused"]);
    let flooded = problems(|facts| {
        let networks = &mut report(facts, "one").plan.as_mut().unwrap().networks;
        let blue = networks.get_mut("cluster_udn_blue").unwrap();
        (blue.learned, blue.imported, blue.dammed) = (30, 20, 10);
    });
    assert_eq!(
        flooded,
        ["node one: network cudn/blue has 20 learned routes, as many as it takes: 10 are left out"]
    );
    let mut stuck = scene();
    let edge =
        underlay_runtime::report::EdgeReport { error: Some("no database".to_owned()), ..Default::default() };
    report(&mut stuck, "one").edges.insert("routes".to_owned(), edge);
    let listing = listing(&stuck, false);
    assert_eq!(listing.problems[0].what, "learned routes do not get into OVN: no database");
    assert_eq!(listing.nodes[0].routes[3].direction, Direction::Learned);
}

#[test]
fn words_are_read_or_refused_with_what_to_write() {
    assert_eq!(prefix("203.0.113.9"), Ok("203.0.113.9/32".parse().unwrap()));
    assert_eq!(prefix("203.0.113.9/24"), Ok("203.0.113.0/24".parse().unwrap()));
    assert!(prefix("nowhere").is_err_and(|error| error.contains("203.0.113.0/24")));
    let error = the_nodes(&scene(), Some("three")).expect_err("no such node").to_string();
    assert_eq!(error, "there is no node three; there are one, two");
}
