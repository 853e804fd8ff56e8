//! Conditions: what a status says about its object, one condition for each thing that is judged.
//!
//! In: what is to be said, and the time. Out: the conditions with it, and whether anything is new: what is not new need
//! not be written.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Longest message the API server takes, in characters.
pub const MESSAGE_MAX: usize = 32768;

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell yet.
    Unknown,
}

impl Verdict {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// From how it is written; anything else says nothing.
    pub fn read(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// What is to be said about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What was judged.
    pub type_: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why, in one word, for programs.
    pub reason: String,
    /// Why, for people. What is longer than the API server takes is cut.
    pub message: String,
    /// The generation of the object that was looked at, where conditions of this type say so.
    pub observed_generation: Option<i64>,
}

/// Says it: replaces the condition of this type or adds it. The time of the last transition moves only when the verdict
/// does. Returns whether anything changed.
pub fn set(conditions: &mut Vec<Condition>, outcome: Outcome, now: Time) -> bool {
    let mut condition = Condition {
        type_: outcome.type_,
        status: outcome.verdict.as_str().to_owned(),
        reason: outcome.reason,
        message: cut(outcome.message),
        observed_generation: outcome.observed_generation,
        last_transition_time: now,
    };
    let Some(old) = conditions.iter_mut().find(|old| old.type_ == condition.type_) else {
        conditions.push(condition);
        return true;
    };
    if old.status == condition.status {
        condition.last_transition_time = old.last_transition_time.clone();
    }
    let changed = *old != condition;
    *old = condition;
    changed
}

/// The condition of this type.
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of this type holds. One that is not there does not.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(|condition| condition.status == Verdict::True.as_str())
}

fn cut(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE_MAX) {
        message.truncate(end);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(verdict: Verdict, message: &str) -> Outcome {
        Outcome {
            type_: "Accepted".to_owned(),
            verdict,
            reason: "Because".to_owned(),
            message: message.to_owned(),
            observed_generation: Some(1),
        }
    }

    fn at(text: &str) -> Time {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn the_time_moves_with_the_verdict_only() {
        let (first, second, third) =
            (at("2026-01-01T00:00:01Z"), at("2026-01-01T00:00:02Z"), at("2026-01-01T00:00:03Z"));
        let mut conditions = vec![];
        assert!(set(&mut conditions, outcome(Verdict::False, "one"), first.clone()));
        assert!(set(&mut conditions, outcome(Verdict::False, "two"), second.clone()), "the message is new");
        assert_eq!(conditions[0].last_transition_time, first);
        assert_eq!(conditions[0].message, "two");
        assert!(!set(&mut conditions, outcome(Verdict::False, "two"), second), "nothing is new");
        assert!(set(&mut conditions, outcome(Verdict::True, "two"), third.clone()));
        assert_eq!(conditions[0].last_transition_time, third);
        assert_eq!(conditions.len(), 1);
        assert!(is_true(&conditions, "Accepted") && !is_true(&conditions, "Ready"));
    }

    #[test]
    fn conditions_of_others_stay() {
        let mut conditions = vec![];
        set(&mut conditions, outcome(Verdict::True, ""), at("2026-01-01T00:00:01Z"));
        let other = Outcome { type_: "Ready".to_owned(), ..outcome(Verdict::Unknown, "") };
        set(&mut conditions, other, at("2026-01-01T00:00:02Z"));
        assert!(is_true(&conditions, "Accepted"));
        assert_eq!(get(&conditions, "Ready").map(|ready| ready.status.as_str()), Some("Unknown"));
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let mut conditions = vec![];
        set(
            &mut conditions,
            outcome(Verdict::False, &"ü".repeat(MESSAGE_MAX + 1)),
            at("2026-01-01T00:00:01Z"),
        );
        assert_eq!(conditions[0].message.chars().count(), MESSAGE_MAX);
    }
}
