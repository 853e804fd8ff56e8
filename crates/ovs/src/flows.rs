//! Flows of a bridge that others use too.
//!
//! A flow is ours by the high half of its cookie; the low half is a hash of what it says, since a switch prints a flow
//! in other words than it was written in.

use std::collections::BTreeSet;
use std::fmt::Write;

use underlay_desired::flow::{Flow, Flows};
use underlay_desired::owner::FLOW_MARK;
use underlay_net::hash::fnv1a64;
use underlay_program::{ProgramError, run};

/// What tells one of our flows on the switch from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Its cookie.
    pub cookie: u64,
}

/// Makes a bridge's flows of ours what they should be. Returns how many changed.
pub async fn sync(bridge: &str, want: &Flows) -> Result<usize, ProgramError> {
    sync_with(&["ovs-ofctl"], bridge, want).await
}

/// Like [`sync`], with the words to call `ovs-ofctl` by.
pub async fn sync_with(command: &[&str], bridge: &str, want: &Flows) -> Result<usize, ProgramError> {
    let ours = format!("cookie={:#x}/{:#x}", u64::from(FLOW_MARK) << 32, 0xffff_ffff_0000_0000_u64);
    let dump = run(&[command, &["-O", "OpenFlow15", "--no-stats", "dump-flows", bridge, &ours]].concat(), "")
        .await?;
    let (bundle, changes) = difference(want, &parse(&dump));
    if changes > 0 {
        run(&[command, &["-O", "OpenFlow15", "--bundle", "add-flows", bridge, "-"]].concat(), &bundle)
            .await?;
    }
    Ok(changes)
}

/// The cookie of a flow.
pub fn cookie(flow: &Flow) -> u64 {
    let text = format!("{}/{}/{}/{}", flow.table, flow.priority, flow.matches, flow.actions);
    u64::from(FLOW_MARK) << 32 | (fnv1a64(&text) & 0xffff_ffff)
}

/// Compares: the text of a bundle, and how many flows it changes. Packets see all of it or nothing.
pub fn difference(want: &Flows, have: &BTreeSet<Held>) -> (String, usize) {
    let held = |flow: &Flow| Held { table: flow.table, priority: flow.priority, cookie: cookie(flow) };
    let wanted: BTreeSet<Held> = want.keys().map(held).collect();
    let (mut bundle, mut changes) = (String::new(), 0);
    for Held { table, cookie, .. } in have.difference(&wanted) {
        let _ = writeln!(bundle, "delete cookie={cookie:#x}/-1,table={table}");
        changes += 1;
    }
    for flow in want.keys().filter(|flow| !have.contains(&held(flow))) {
        let Flow { table, priority, matches, actions } = flow;
        let comma = if matches.is_empty() { "" } else { "," };
        let cookie = cookie(flow);
        let _ = writeln!(
            bundle,
            "add cookie={cookie:#x},table={table},priority={priority}{comma}{matches},actions={actions}"
        );
        changes += 1;
    }
    (bundle, changes)
}

/// Reads the output of `dump-flows`. Lines that are no flows are passed over.
pub fn parse(dump: &str) -> BTreeSet<Held> {
    dump.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Held> {
    let mut held = Held { table: 0, priority: 32768, cookie: 0 };
    let mut found = false;
    for word in line.trim().split([',', ' ']).take_while(|word| !word.starts_with("actions=")) {
        match word.split_once('=') {
            Some(("cookie", value)) => {
                held.cookie = u64::from_str_radix(value.trim_start_matches("0x"), 16).ok()?;
                found = true;
            }
            Some(("table", value)) => held.table = value.parse().ok()?,
            Some(("priority", value)) => held.priority = value.parse().ok()?,
            _ => {}
        }
    }
    found.then_some(held)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use underlay_desired::Why;

    use super::*;

    fn flow(table: u8, priority: u16, matches: &str, actions: &str) -> Flow {
        Flow { table, priority, matches: matches.to_owned(), actions: actions.to_owned() }
    }

    fn held(flow: &Flow) -> Held {
        Held { table: flow.table, priority: flow.priority, cookie: cookie(flow) }
    }

    #[test]
    fn dumps_are_read() {
        let dump = " cookie=0x1, ip,nw_dst=10.0.0.0/8 actions=learn(table=7,priority=9),drop\n \
                    cookie=0x2, table=3, priority=5,in_port=LOCAL actions=drop\nOFPST_FLOW reply:\n";
        let held = |table, priority, cookie| Held { table, priority, cookie };
        assert_eq!(parse(dump), BTreeSet::from([held(0, 0x8000, 1), held(3, 5, 2)]));
    }

    #[test]
    fn the_old_go_before_the_new_come() {
        let (old, new) = (flow(1, 10, "ip", "drop"), flow(1, 10, "", "normal"));
        let want = Flows::from([(new.clone(), Why::default())]);
        let (delete, add) = (cookie(&old), cookie(&new));
        let bundle = format!(
            "delete cookie={delete:#x}/-1,table=1\nadd cookie={add:#x},table=1,priority=10,actions=normal\n"
        );
        assert_eq!(difference(&want, &BTreeSet::from([held(&old)])), (bundle, 2));
    }

    proptest! {
        #[test]
        fn nothing_differs_from_itself_and_all_that_differs_is_told(
            want in proptest::collection::btree_set((0..3u8, 0..3u16, "[ab]", "[cd]"), 0..9),
            have in proptest::collection::btree_set((0..3u8, 0..3u16, "[ab]", "[cd]"), 0..9),
        ) {
            let flows = |all: &BTreeSet<(u8, u16, String, String)>| -> Flows {
                let all = all.iter().map(|(table, priority, matches, actions)| {
                    (flow(*table, *priority, matches, actions), Why::default())
                });
                all.collect()
            };
            let have: BTreeSet<Held> = flows(&have).keys().map(held).collect();
            let want = flows(&want);
            let wanted: BTreeSet<Held> = want.keys().map(held).collect();
            prop_assert_eq!(difference(&want, &wanted), (String::new(), 0));
            prop_assert_eq!(difference(&want, &have).1, have.symmetric_difference(&wanted).count());
        }
    }
}
