//! States of a replica in the order they came, and what changed between them.
//!
//! In: a state and what changed since the state before. Out: [`Publication`], which readers take whenever they like. A
//! reader that was away gets the sum of what it missed: from the changes still remembered, or, when it missed more than
//! those, by comparing the two states.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::replica::{ChangeSet, Replica};

/// How many changes are remembered at most.
const MAX_CHANGES: usize = 64;
/// How many changed rows are remembered at most, all changes together: old rows cost memory.
const MAX_ROWS: usize = 4096;
/// How many values these rows may have before only the latest changes are remembered: a row that refers to a hundred
/// thousand others is large, and every change of it leaves the old one behind.
const MAX_VALUES: usize = 100_000;
/// So many changes are remembered of whatever size, for readers that are close behind.
const LATEST: usize = 3;

/// A state of the replica.
#[derive(Debug, Clone, Default)]
pub struct Publication {
    generation: u64,
    replica: Arc<Replica>,
    /// What led here, the latest last.
    recent: VecDeque<Arc<ChangeSet>>,
}

impl Publication {
    /// Counts the states. Zero is the state before the first load.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The state.
    pub fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    /// What changed since an earlier state.
    pub fn changes_since(&self, earlier: &Self) -> ChangeSet {
        let missed =
            self.generation.checked_sub(earlier.generation).and_then(|missed| usize::try_from(missed).ok());
        match missed.and_then(|missed| self.recent.len().checked_sub(missed)) {
            Some(first) => {
                let mut sum = ChangeSet::default();
                self.recent.iter().skip(first).for_each(|changes| sum.merge(ChangeSet::clone(changes)));
                sum
            }
            None => self.replica.changes_since(&earlier.replica),
        }
    }

    /// The state that follows.
    #[must_use]
    pub(crate) fn followed_by(&self, replica: Arc<Replica>, changes: ChangeSet) -> Self {
        let mut recent = self.recent.clone();
        recent.push_back(Arc::new(changes));
        let mut rows: usize = recent.iter().map(|changes| changes.len()).sum();
        let mut values: usize = recent.iter().map(|changes| changes.values()).sum();
        while recent.len() > MAX_CHANGES || rows > MAX_ROWS || (values > MAX_VALUES && recent.len() > LATEST)
        {
            let Some(forgotten) = recent.pop_front() else { break };
            rows -= forgotten.len();
            values -= forgotten.values();
        }
        Self { generation: self.generation + 1, replica, recent }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::replica::{Format, TableUpdates};
    use crate::schema::tests::sample;
    use crate::selection::Selection;
    use crate::uuid::Uuid;

    fn switch(number: u128) -> String {
        Uuid::from_bytes(number.to_be_bytes()).to_string()
    }

    fn follow(before: &Publication, rows: &serde_json::Value) -> Publication {
        let layouts = Selection::new().all_columns("Logical_Switch").resolve(&sample()).layouts;
        let mut replica =
            if before.generation == 0 { Replica::new(&layouts) } else { Replica::clone(&before.replica) };
        let json = json!({"Logical_Switch": rows}).to_string();
        let updates = TableUpdates::parse(json.as_bytes(), &layouts, Format::Difference).unwrap();
        let changes = replica.apply(updates).unwrap();
        before.followed_by(Arc::new(replica), changes)
    }

    #[test]
    fn a_reader_that_was_away_gets_the_sum() {
        let start = follow(&Publication::default(), &json!({switch(1): {"insert": {"name": "a"}}}));
        let mut states = vec![start.clone()];
        // More states than are remembered: the oldest readers are served by comparison.
        for number in 2..100 {
            let row = switch(number);
            let next = follow(states.last().unwrap(), &json!({row: {"insert": {"name": "b"}}}));
            states.push(next);
        }
        let last = states.last().unwrap();
        assert_eq!(last.generation(), 99);
        assert_eq!(last.recent.len(), MAX_CHANGES);
        for (missed, state) in states.iter().rev().enumerate() {
            assert_eq!(last.changes_since(state).len(), missed);
            assert_eq!(last.changes_since(state), last.replica.changes_since(&state.replica));
        }
        assert_eq!(last.changes_since(&Publication::default()).len(), 99);
    }

    #[test]
    fn of_large_rows_only_the_latest_changes_are_remembered() {
        let reference = |number: u128| json!(["uuid", switch(number)]);
        let many: Vec<serde_json::Value> = (1..=60_000).map(reference).collect();
        let row = switch(1);
        let mut states = vec![follow(
            &Publication::default(),
            &json!({row.as_str(): {"insert": {"ports": ["set", many]}}}),
        )];
        for number in 1..10 {
            let change = json!({row.as_str(): {"modify": {"ports": reference(number)}}});
            states.push(follow(states.last().unwrap(), &change));
        }
        let last = states.last().unwrap();
        assert_eq!(last.recent.len(), LATEST);
        for state in &states {
            assert_eq!(last.changes_since(state), last.replica.changes_since(&state.replica));
        }
    }

    #[test]
    fn a_large_change_is_not_remembered() {
        let rows: serde_json::Map<String, serde_json::Value> =
            (0..5000).map(|number| (switch(number), json!({"insert": {}}))).collect();
        let loaded = follow(&Publication::default(), &rows.into());
        assert!(loaded.recent.is_empty());
        assert_eq!(loaded.changes_since(&Publication::default()).len(), 5000);
        let next = follow(&loaded, &json!({switch(1): {"delete": null}}));
        assert_eq!(next.recent.len(), 1);
        assert_eq!(next.changes_since(&loaded).len(), 1);
    }
}
