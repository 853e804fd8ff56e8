//! BFD joins a session that stands.
//!
//! FRR does not even try to reach a neighbour as long as BFD says that it is down, and BFD takes seconds to find out that
//! it is not: packets come slowly until both ends have seen each other, and the change of the local address when the
//! session comes up makes it begin again. So a new neighbour is first talked with, which takes less than a second; BFD
//! is told to watch once there is something to watch.
//!
//! A neighbour that does not answer may be one that watched us before, and waits for BFD itself; or one that nobody told
//! of BFD, and that waits for us to talk. So it is tried in turns, without BFD and with it. One that BFD watched when its
//! session was lost begins with it: most likely both ends still do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use underlay_desired::frr::Vrf;

use crate::diff::{peer, vrf};
use crate::state::{ESTABLISHED, Session};
use crate::tree::Block;

/// For how long a neighbour is tried without BFD, and then with it. The ends of a session need not begin together: with
/// these two BFD always has a few seconds at both.
const WITHOUT: Duration = Duration::from_secs(5);
const WITH: Duration = Duration::from_secs(10);

/// A neighbour that BFD is to watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    router: String,
    peer: String,
}

impl Watched {
    fn is_in(&self, standing: &BTreeSet<(&str, &str)>) -> bool {
        let vrf = Vrf::new(vrf(&self.router).unwrap_or_default());
        standing.contains(&(vrf.short(), self.peer.as_str()))
    }
}

/// For how long neighbours have been tried.
#[derive(Debug, Default)]
pub struct Patience {
    since: BTreeMap<Watched, Wait>,
    until: Option<Instant>,
}

/// Since when a session is missing.
#[derive(Debug, Clone, Copy)]
struct Wait {
    since: Instant,
    /// Whether BFD watched it then.
    watched: bool,
}

impl Wait {
    /// Whether it is tried without BFD now, and until when.
    fn turn(self, now: Instant) -> (bool, Instant) {
        let ahead = if self.watched { WITHOUT } else { Duration::ZERO };
        let gone = now.saturating_duration_since(self.since) + ahead;
        let whole = (WITHOUT + WITH).as_millis();
        let place = Duration::from_millis(u64::try_from(gone.as_millis() % whole).unwrap_or_default());
        let without = place < WITHOUT;
        let end = if without { WITHOUT } else { WITHOUT + WITH };
        (without, now + end.saturating_sub(place))
    }
}

impl Patience {
    /// When it is another's turn, if anybody is waited for.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Leaves BFD out for neighbours whose session does not stand and that are tried without it; returns how many do not
    /// stand.
    pub(crate) fn hold_back(
        &mut self,
        want: &mut Block,
        running: Option<&Block>,
        sessions: &[Session],
        now: Instant,
    ) -> usize {
        let standing = standing(sessions);
        let missing: BTreeSet<Watched> = watched(want).filter(|one| !one.is_in(&standing)).collect();
        self.since.retain(|one, _| missing.contains(one));
        self.until = None;
        for one in &missing {
            let begin = || Wait { since: now, watched: is_watched(one, running) };
            let (without, until) = self.since.entry(one.clone()).or_insert_with(begin).turn(now);
            self.until = Some(self.until.map_or(until, |other| other.min(until)));
            if without {
                let (on, more) = (line(&one.peer), line(&one.peer) + " ");
                want.open(one.router.clone())
                    .retain(|entry| entry.line != on && !entry.line.starts_with(&more));
            }
        }
        missing.len()
    }
}

/// Whether anybody is to be watched.
pub(crate) fn watches(want: &Block) -> bool {
    watched(want).next().is_some()
}

fn watched(want: &Block) -> impl Iterator<Item = Watched> {
    let routers = want.iter().filter(|entry| entry.line.starts_with("router bgp "));
    routers.flat_map(|router| {
        let lines = router.block.iter().filter(|entry| entry.line.ends_with(" bfd"));
        let peers = lines.filter_map(|entry| peer(&entry.line));
        peers.map(|peer| Watched { router: router.line.clone(), peer: peer.to_owned() })
    })
}

fn is_watched(one: &Watched, running: Option<&Block>) -> bool {
    let router = running.and_then(|running| running.get(&one.router));
    router.is_some_and(|router| router.contains(&line(&one.peer)))
}

fn line(peer: &str) -> String {
    format!("neighbor {peer} bfd")
}

/// VRF and neighbour of all sessions that stand.
fn standing(sessions: &[Session]) -> BTreeSet<(&str, &str)> {
    let up = sessions.iter().filter(|session| session.state == ESTABLISHED);
    up.map(|session| (session.vrf.as_str(), session.peer.as_str())).collect()
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

    fn held_back(patience: &mut Patience, running: Option<&Block>, state: &str, now: Instant) -> bool {
        let mut want = parse(WANT);
        let sessions = [session("10.0.0.2", state), session("10.0.0.3", ESTABLISHED)];
        let waiting = patience.hold_back(&mut want, running, &sessions, now);
        assert_eq!(waiting, usize::from(state != ESTABLISHED));
        assert_eq!(patience.until().is_some(), waiting > 0);
        let without: String =
            WANT.lines().filter(|line| !line.contains("2 bfd")).flat_map(|line| [line, "\n"]).collect();
        assert!(want == parse(WANT) || want == parse(&without), "{}", want.text());
        want != parse(WANT)
    }

    #[test]
    fn bfd_waits_for_the_session_and_is_tried_in_turns() {
        let (mut patience, begin, second) = (Patience::default(), Instant::now(), Duration::from_secs(1));
        let mut held = |state, seconds| held_back(&mut patience, None, state, begin + second * seconds);
        assert!(held("Active", 0) && held("Active", 4), "first without");
        assert!(!held("Active", 5) && !held("Active", 14), "then with");
        assert!(held("Connect", 15) && held("Active", 19) && !held("Active", 20), "and so on");
        assert!(!held(ESTABLISHED, 31), "there is something to watch");
        assert!(held("Active", 32), "counted anew");
    }

    #[test]
    fn bfd_that_watches_goes_on_for_a_while_when_the_session_goes_down() {
        let (mut patience, begin, second) = (Patience::default(), Instant::now(), Duration::from_secs(1));
        let running = parse(WANT);
        let mut held = |seconds| held_back(&mut patience, Some(&running), "Active", begin + second * seconds);
        assert!(!held(0) && !held(9) && held(10) && held(14) && !held(15));
    }

    #[test]
    fn the_next_turn_is_known() {
        let (mut patience, begin) = (Patience::default(), Instant::now());
        held_back(&mut patience, None, "Active", begin);
        assert_eq!(patience.until(), Some(begin + WITHOUT));
        held_back(&mut patience, None, "Active", begin + WITHOUT);
        assert_eq!(patience.until(), Some(begin + WITHOUT + WITH));
    }
}
