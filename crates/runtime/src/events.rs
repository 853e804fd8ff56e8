//! Events on users' objects: what went wrong, what is well again and what was done, where `kubectl describe` shows it.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use tracing::debug;

use crate::fault::text;

/// Longest note the API server takes, in bytes.
const NOTE_MAX: usize = 1024;

/// Writes events. Losing one is no fault: what it tells is also in a condition, a metric or the log.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    /// Events in the name of a program.
    pub fn new(client: Client, program: &str) -> Self {
        let instance = std::env::var("HOSTNAME").ok();
        Self(Recorder::new(client, Reporter { controller: program.to_owned(), instance }))
    }

    /// Something is wrong with an object. `action` is what was attempted, in one word.
    pub async fn warn(&self, object: &ObjectReference, action: &str, reason: &str, note: &str) {
        self.publish(&event(EventType::Warning, action, reason, note), object).await;
    }

    /// Something is well with an object, and was not before.
    pub async fn tell(&self, object: &ObjectReference, action: &str, reason: &str, note: &str) {
        self.publish(&event(EventType::Normal, action, reason, note), object).await;
    }

    /// Something was done to an object and another one that the owner wants to know.
    pub async fn tell_of_both(
        &self,
        object: &ObjectReference,
        other: ObjectReference,
        reason: &str,
        note: &str,
    ) {
        let event = Event { secondary: Some(other), ..event(EventType::Normal, reason, reason, note) };
        self.publish(&event, object).await;
    }

    async fn publish(&self, event: &Event, object: &ObjectReference) {
        if let Err(error) = self.0.publish(event, object).await {
            debug!(error = text(&error), "an event was not written");
        }
    }
}

fn event(type_: EventType, action: &str, reason: &str, note: &str) -> Event {
    let (action, reason, note) = (action.to_owned(), reason.to_owned(), Some(cut(note)));
    Event { type_, reason, note, action, secondary: None }
}

/// How events name an object.
pub fn reference<K: Resource<DynamicType: Default>>(object: &K) -> ObjectReference {
    object.object_ref(&Default::default())
}

fn cut(note: &str) -> String {
    note[..note.floor_char_boundary(NOTE_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = format!("a{}", "ü".repeat(NOTE_MAX));
        assert_eq!(cut(&long).len(), NOTE_MAX - 1);
    }
}
