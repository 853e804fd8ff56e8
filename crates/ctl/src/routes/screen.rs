//! Routes for people.

use std::fmt::Write;

use owo_colors::OwoColorize;

use super::list::{Direction, Listing, NodeRoutes, RouteRow};
use crate::names::some_of;
use crate::problem;
use crate::tables::{bad, good, table};

/// A table a node, and what is wrong.
pub fn text(listing: &Listing) -> String {
    let mut text = String::new();
    for node in &listing.nodes {
        let _ = writeln!(text, "{}", of_node(node));
    }
    text + &problem::text(&listing.problems)
}

fn of_node(node: &NodeRoutes) -> String {
    let mut text = format!("{}\n", node.node.bold());
    if node.routes.is_empty() {
        text += " no such routes\n";
    } else {
        let mut rows = table(&["DIRECTION", "PREFIX", "VIA", "NETWORK", "VRF", "REASON"]);
        for route in &node.routes {
            rows.add_row(row(route));
        }
        let _ = writeln!(text, "{rows}");
    }
    for (network, more) in &node.more {
        let _ = writeln!(text, " and {more} more of {network}: --all shows them");
    }
    text
}

fn row(route: &RouteRow) -> [String; 6] {
    let word = route.direction.word();
    [
        match route.direction {
            Direction::Advertised if route.via.is_empty() => bad(word),
            Direction::Advertised | Direction::Imported => good(word),
            Direction::Learned | Direction::Refused => word.yellow().to_string(),
        },
        route.prefix.to_string(),
        if route.via.is_empty() { "-".to_owned() } else { some_of(&route.via) },
        route.network.clone().unwrap_or_else(|| "-".to_owned()),
        route.vrf.clone().unwrap_or_default(),
        route.reason.clone(),
    ]
}
