//! Sessions for people.

use std::fmt::Write;

use super::peers::{Overview, PeerRow};
use crate::problem;
use crate::tables::{duration, table, verdict};

/// A table of all sessions, and what is wrong besides.
pub fn text(overview: &Overview) -> String {
    let up = overview.peers.iter().filter(|peer| peer.is_up()).count();
    let (all, well) = (overview.peers.len(), up == overview.peers.len());
    let mut text = format!("{}\n\n", verdict(well, &format!("{up} of {all} sessions established")));
    if all > 0 {
        let mut rows =
            table(&["NODE", "PEER", "VRF", "AS", "STATE", "FOR", "RECEIVED", "SENT", "BFD", "LAST RESET"]);
        for peer in &overview.peers {
            rows.add_row(row(peer));
        }
        let _ = writeln!(text, "{rows}\n");
    }
    text + &problem::text(&overview.problems)
}

fn row(peer: &PeerRow) -> [String; 10] {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let bfd = |bfd: &String| verdict(bfd.eq_ignore_ascii_case("up"), bfd);
    [
        peer.node.clone(),
        peer.peer.clone(),
        peer.vrf.clone(),
        peer.remote_as.map(|asn| asn.to_string()).unwrap_or_default(),
        verdict(peer.is_up(), &peer.state),
        peer.seconds.map(duration).unwrap_or_default(),
        number(peer.received),
        number(peer.sent),
        peer.bfd.as_ref().map_or_else(|| "-".to_owned(), bfd),
        peer.last_reset.clone().unwrap_or_default(),
    ]
}
