//! BFD joins a session that stands.
//!
//! FRR does not even try to reach a neighbour as long as BFD says that it is down, and BFD takes seconds to find out that
//! it is not: packets come slowly until both ends have seen each other, and the change of the local address when the
//! session comes up makes it begin again. So a new neighbour is first talked with, which takes less than a second; BFD
//! is told to watch once there is something to watch. A neighbour that does not answer for some time may be one that BFD
//! watched before, and that does not try either until BFD sees us again: whoever calls knows how long that is.

use std::collections::BTreeSet;

use underlay_desired::frr::Vrf;

use crate::diff::{peer, vrf};
use crate::state::{ESTABLISHED, Session};
use crate::tree::Block;

/// A neighbour that BFD is to watch, and does not yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unwatched {
    router: String,
    peer: String,
}

/// Neighbours that BFD should watch and does not.
pub(crate) fn unwatched(want: &Block, running: Option<&Block>) -> BTreeSet<Unwatched> {
    let mut all = BTreeSet::new();
    for router in want.iter().filter(|entry| entry.line.starts_with("router bgp ")) {
        let known = running.and_then(|running| running.get(&router.line));
        for entry in router.block.iter().filter(|entry| entry.line.ends_with(" bfd")) {
            if let Some(peer) = peer(&entry.line)
                && !known.is_some_and(|known| known.contains(&entry.line))
            {
                all.insert(Unwatched { router: router.line.clone(), peer: peer.to_owned() });
            }
        }
    }
    all
}

/// Leaves BFD out for neighbours whose session does not stand yet; returns how many these are.
pub(crate) fn hold_back(want: &mut Block, unwatched: BTreeSet<Unwatched>, sessions: &[Session]) -> usize {
    let stands = |one: &Unwatched| {
        let vrf = Vrf::new(vrf(&one.router).unwrap_or_default());
        sessions.iter().any(|session| {
            session.vrf == vrf.short() && session.peer == one.peer && session.state == ESTABLISHED
        })
    };
    let waiting: Vec<Unwatched> = unwatched.into_iter().filter(|one| !stands(one)).collect();
    for Unwatched { router, peer } in &waiting {
        let (on, more) = (format!("neighbor {peer} bfd"), format!("neighbor {peer} bfd "));
        want.open(router.clone()).retain(|entry| entry.line != on && !entry.line.starts_with(&more));
    }
    waiting.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse;

    const WANT: &str = "\
router bgp 1 vrf red
 neighbor 10.0.0.2 remote-as 2
 neighbor 10.0.0.2 bfd
 neighbor 10.0.0.2 bfd profile fast
 neighbor 10.0.0.3 remote-as 2
 neighbor 10.0.0.3 bfd
";

    fn session(peer: &str, state: &str) -> Session {
        Session { vrf: "red".to_owned(), peer: peer.to_owned(), state: state.to_owned(), bfd: None }
    }

    #[test]
    fn bfd_waits_for_the_session() {
        let mut want = parse(WANT);
        let sessions = [session("10.0.0.2", "Active"), session("10.0.0.3", ESTABLISHED)];
        let unwatched = unwatched(&want, None);
        assert_eq!(hold_back(&mut want, unwatched, &sessions), 1);
        let left: String =
            WANT.lines().filter(|line| !line.contains("2 bfd")).flat_map(|line| [line, "\n"]).collect();
        assert_eq!(want, parse(&left));
    }

    #[test]
    fn bfd_that_watches_goes_on_when_the_session_goes_down() {
        let want = parse(WANT);
        assert_eq!(unwatched(&want, Some(&want)), BTreeSet::new());
    }
}
