//! Sessions that should be there are rows, whether FRR has them or not.

use underlay_runtime::report::PeerReport;

use super::peers::{Overview, overview};
use super::screen;
use crate::cluster::facts::{Agent, Facts};
use crate::cluster::scene::{report, well};

fn scene() -> Facts {
    let mut facts = well();
    facts.agents.remove("two");
    let peer = |peer: &str| PeerReport {
        peer: peer.to_owned(),
        remote_as: 64513,
        state: "Established".to_owned(),
        seconds: Some(61),
        received: 2,
        sent: 1,
        bfd: Some("up".to_owned()),
        ..PeerReport::default()
    };
    report(&mut facts, "one").speaker.peers = ["172.30.0.1", "fd00:172:30::1"].map(peer).to_vec();
    facts
}

fn states(overview: &Overview) -> Vec<(&str, &str)> {
    overview.peers.iter().map(|peer| (peer.peer.as_str(), peer.state.as_str())).collect()
}

#[test]
fn sessions_that_stand_are_rows() {
    let overview = overview(&scene());
    assert_eq!(states(&overview), [("172.30.0.1", "Established"), ("fd00:172:30::1", "Established")]);
    assert_eq!(overview.problems, []);
    assert!(overview.peers.iter().all(super::peers::PeerRow::is_up));
    let text = screen::text(&overview);
    assert!(text.contains("2 of 2 sessions established") && text.contains("1m1s"), "{text}");
}

#[test]
fn why_a_session_was_lost_is_told_if_it_ever_was() {
    let mut facts = scene();
    let peers = &mut report(&mut facts, "one").speaker.peers;
    for peer in peers.iter_mut() {
        peer.last_reset = Some("it was waiting".to_owned());
    }
    (peers[1].state, peers[1].dropped) = ("Connect".to_owned(), 0);
    let reasons: Vec<Option<String>> =
        overview(&facts).peers.into_iter().map(|peer| peer.last_reset).collect();
    assert_eq!(reasons, [None, Some("it was waiting".to_owned())]);
}

#[test]
fn what_is_configured_and_not_in_frr_is_a_row() {
    let mut facts = scene();
    report(&mut facts, "one").speaker.peers.remove(0);
    assert_eq!(states(&overview(&facts))[0], ("172.30.0.1", "not in FRR"));
}

#[test]
fn where_frr_cannot_be_asked_what_was_published_counts() {
    let mut facts = scene();
    facts.agents.insert("one".to_owned(), Agent::Silent("refused".to_owned()));
    facts.sessions[0].bgp_status = "Active".to_owned();
    let found = overview(&facts);
    assert_eq!(states(&found), [("172.30.0.1", "Active"), ("fd00:172:30::1", "Established")]);
    assert_eq!(found.problems[0].what, "its agent cannot be reached: refused");
    let mut facts = scene();
    report(&mut facts, "one").speaker.problem = Some("no bgpd".to_owned());
    assert_eq!(overview(&facts).problems[0].what, "FRR could not be asked: no bgpd");
}
