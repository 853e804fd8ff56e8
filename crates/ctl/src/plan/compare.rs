//! Two states, item by item: what comes, what goes, what changes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use underlay_desired::Why;

/// What becomes of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was not there.
    Add,
    /// It is there and says something else.
    Change,
    /// It is no longer wanted.
    Remove,
}

impl Action {
    /// In one character.
    pub fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Change => '~',
            Self::Remove => '-',
        }
    }
}

/// An item for people and programs: a name, what it says, and why it is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Item {
    /// Unique in its layer.
    pub name: String,
    /// What it says.
    pub fields: Map<String, Value>,
    /// Why it is there.
    pub why: Vec<String>,
}

/// What becomes of one item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The layer that it is in.
    pub layer: &'static str,
    /// What becomes of it.
    pub action: Action,
    /// Its name.
    pub name: String,
    /// What it said before, of what is no longer so.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub before: Map<String, Value>,
    /// What it says then, of what was not so.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub after: Map<String, Value>,
    /// Why it is, or was, there.
    pub why: Vec<String>,
}

/// How many items of a layer come, change and go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// That come.
    pub added: usize,
    /// That change.
    pub changed: usize,
    /// That go.
    pub removed: usize,
}

impl Counts {
    /// All of them.
    pub fn total(self) -> usize {
        self.added + self.changed + self.removed
    }

    /// As in a table: `+12 ~1 -3`.
    pub fn short(self) -> String {
        let parts = [('+', self.added), ('~', self.changed), ('-', self.removed)];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(sign, count)| format!("{sign}{count}"))
            .collect();
        parts.join(" ")
    }

    fn count(&mut self, action: Action) {
        match action {
            Action::Add => self.added += 1,
            Action::Change => self.changed += 1,
            Action::Remove => self.removed += 1,
        }
    }
}

/// Takes in what changes: counts all, and keeps as many as are wanted. The others are never written out, since of a
/// large cluster there are millions.
#[derive(Debug)]
pub struct Ledger {
    /// By layer.
    pub counts: BTreeMap<&'static str, Counts>,
    /// Those that are kept.
    pub changes: Vec<Change>,
    keep: usize,
}

impl Ledger {
    /// An empty one that keeps so many.
    pub fn new(keep: usize) -> Self {
        Self { counts: BTreeMap::new(), changes: vec![], keep }
    }

    /// Compares two lists of a layer, each in the order of its keys.
    pub fn compare<K: Ord, V>(
        &mut self,
        layer: &'static str,
        before: impl Iterator<Item = (K, V)>,
        after: impl Iterator<Item = (K, V)>,
        same: impl Fn(&V, &V) -> bool,
        show: impl Fn(&K, &V) -> Item,
    ) {
        let (mut before, mut after) = (before.peekable(), after.peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((one, _)), Some((other, _))) => one.cmp(other),
            };
            let old = if order.is_le() { before.next() } else { None };
            let new = if order.is_ge() { after.next() } else { None };
            if let (Some((_, old)), Some((_, new))) = (&old, &new)
                && same(old, new)
            {
                continue;
            }
            let item = |found: &Option<(K, V)>| found.as_ref().map(|(key, value)| show(key, value));
            let action = match (&old, &new) {
                (Some(_), Some(_)) => Action::Change,
                (None, _) => Action::Add,
                (_, None) => Action::Remove,
            };
            self.counts.entry(layer).or_default().count(action);
            if self.changes.len() < self.keep {
                self.changes.push(change(layer, action, item(&old), item(&new)));
            }
        }
    }
}

/// What is told of an item: of one that changes, only what differs.
fn change(layer: &'static str, action: Action, old: Option<Item>, new: Option<Item>) -> Change {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let (mut before, mut after) = (old.fields, new.fields);
    if action == Action::Change {
        let (all, others) = (before.clone(), after.clone());
        before.retain(|name, value| others.get(name) != Some(value));
        after.retain(|name, value| all.get(name) != Some(value));
    }
    let (name, why) = if new.name.is_empty() { (old.name, old.why) } else { (new.name, new.why) };
    Change { layer, action, name, before, after, why }
}

/// The objects of a reason, for people.
pub fn names(why: &Why) -> Vec<String> {
    why.objects().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    type State = BTreeMap<u8, u8>;

    fn compared(before: &State, after: &State, keep: usize) -> Ledger {
        let mut ledger = Ledger::new(keep);
        let show = |key: &u8, value: &u8| Item {
            name: key.to_string(),
            fields: [("value".to_owned(), json!(value))].into_iter().collect(),
            why: vec![],
        };
        let copy = |state: &State| state.clone().into_iter();
        ledger.compare("layer", copy(before), copy(after), |one, other| one == other, show);
        ledger
    }

    /// Carries changes out.
    fn carried_out(before: &State, changes: &[Change]) -> State {
        let mut state = before.clone();
        for change in changes {
            let key = change.name.parse().expect("a number");
            match change.after.get("value").and_then(Value::as_u64) {
                Some(value) => _ = state.insert(key, u8::try_from(value).expect("small")),
                None => _ = state.remove(&key),
            }
        }
        state
    }

    proptest! {
        #[test]
        fn a_state_does_not_differ_from_itself(state: State) {
            prop_assert!(compared(&state, &state, 1).counts.is_empty());
        }

        #[test]
        fn what_is_told_leads_from_one_to_the_other(before: State, after: State) {
            let ledger = compared(&before, &after, usize::MAX);
            prop_assert_eq!(carried_out(&before, &ledger.changes), after.clone());
            let counts = ledger.counts.get("layer").copied().unwrap_or_default();
            prop_assert_eq!(counts.total(), ledger.changes.len());
            prop_assert_eq!(counts.added + before.len(), counts.removed + after.len());
            prop_assert_eq!(compared(&before, &after, 2).counts, ledger.counts, "counted, kept or not");
        }
    }

    #[test]
    fn of_what_changes_only_the_difference_is_told() {
        let item = |port: u16| {
            let fields = json!({ "port": port, "bridge": "br-ex" });
            Item { name: "a".to_owned(), fields: fields.as_object().cloned().unwrap(), why: vec![] }
        };
        let told = change("switch", Action::Change, Some(item(1)), Some(item(2)));
        assert_eq!((json!(told.before), json!(told.after)), (json!({ "port": 1 }), json!({ "port": 2 })));
        assert_eq!(Counts { added: 2, changed: 0, removed: 1 }.short(), "+2 -1");
    }
}
