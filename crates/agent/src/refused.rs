//! Routes for which a network has no room: what the node's object says of them, and an event when it begins and ends.
//!
//! In: how many routes each network refuses, and what the node's object says. Out: the annotation, where it should say
//! something else, and who is to be told what. There may be a new number every moment while peers tell the whole world,
//! so numbers are passed on with pauses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::watch;
use tracing::{info, warn};
use underlay_api::annotations::{Annotation, RefusedRoutes};
use underlay_runtime::events::Events;
use underlay_world::Node;

/// Between two numbers that are passed on.
const PAUSE: Duration = Duration::from_secs(5);
/// What was attempted, for events.
const ACTION: &str = "ImportRoutes";

/// Numbers by network; nothing before routes were looked at.
pub type Numbers = watch::Receiver<Option<RefusedRoutes>>;

/// Passes numbers on: the first one at once, more after a pause.
pub fn calm(mut numbers: Numbers) -> Numbers {
    let (sender, receiver) = watch::channel(None);
    tokio::spawn(async move {
        while numbers.changed().await.is_ok() {
            let newest = numbers.borrow_and_update().clone();
            sender.send_if_modified(|last| std::mem::replace(last, newest.clone()) != newest);
            tokio::time::sleep(PAUSE).await;
        }
    });
    receiver
}

/// What the annotation should say, if it says something else; nothing removes it.
pub fn annotation(node: &Node, refused: &RefusedRoutes) -> Option<(String, Option<String>)> {
    let wanted = (!refused.is_silent()).then(|| refused.render());
    let key = RefusedRoutes::KEY;
    (node.annotations.get(key) != wanted.as_ref()).then(|| (key.to_owned(), wanted))
}

/// Who was told of. Whoever is started anew knows it from the node's object.
#[derive(Default)]
pub struct Teller {
    told: Option<BTreeSet<String>>,
}

impl Teller {
    /// Tells of networks that begin and cease to refuse routes, each once.
    pub fn tell(&mut self, events: &Events, node: &Node, refused: &RefusedRoutes, limit: usize) {
        for (reason, note) in self.news(&node.refused, refused, limit) {
            let object = ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Node".to_owned()),
                name: Some(node.name.clone()),
                uid: Some(node.uid.clone()),
                ..ObjectReference::default()
            };
            let events = events.clone();
            tokio::spawn(async move {
                if reason == REACHED {
                    warn!("{note}");
                    events.warn(&object, ACTION, reason, &note).await;
                } else {
                    info!("{note}");
                    events.tell(&object, ACTION, reason, &note).await;
                }
            });
        }
    }

    fn news(
        &mut self,
        recorded: &RefusedRoutes,
        now: &RefusedRoutes,
        limit: usize,
    ) -> Vec<(&'static str, String)> {
        let names = |numbers: &BTreeMap<String, usize>| numbers.keys().cloned().collect::<BTreeSet<_>>();
        let (before, now) = (self.told.take().unwrap_or_else(|| names(&recorded.0)), names(&now.0));
        let begun = now.difference(&before).map(|network| {
            let note = format!(
                "network {network} has {limit} learned routes, as many as it takes: more of them are left out, the \
                 narrowest first"
            );
            (REACHED, note)
        });
        let over = before
            .difference(&now)
            .map(|network| (LEFT, format!("network {network} takes all learned routes again")));
        let news = begun.chain(over).collect();
        self.told = Some(now);
        news
    }
}

/// Reason of the event when a network begins to refuse routes.
const REACHED: &str = "RouteLimitReached";
/// Reason of the event when it takes them all again.
const LEFT: &str = "RoutesImported";

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(numbers: &[(&str, usize)]) -> RefusedRoutes {
        RefusedRoutes(numbers.iter().map(|(network, number)| ((*network).to_owned(), *number)).collect())
    }

    #[test]
    fn beginning_and_end_are_told_once() {
        let mut teller = Teller::default();
        let mut news = |recorded: &RefusedRoutes, now: &RefusedRoutes| {
            let news = teller.news(recorded, now, 3);
            news.into_iter().map(|(reason, note)| format!("{reason} {note}")).collect::<Vec<_>>()
        };
        let (nothing, some) = (refused(&[]), refused(&[("default", 5)]));
        assert!(news(&nothing, &nothing).is_empty());
        let told = news(&nothing, &some);
        assert!(
            told.len() == 1 && told[0].starts_with("RouteLimitReached network default has 3"),
            "{told:?}"
        );
        assert!(
            news(&nothing, &refused(&[("default", 6)])).is_empty(),
            "the record may be late, the number another"
        );
        let told = news(&some, &nothing);
        assert_eq!(told, ["RoutesImported network default takes all learned routes again"]);
    }

    #[test]
    fn after_a_restart_the_record_counts() {
        let some = refused(&[("default", 5)]);
        assert!(Teller::default().news(&some, &some, 3).is_empty());
        assert_eq!(Teller::default().news(&some, &refused(&[]), 3).len(), 1);
    }

    #[test]
    fn the_annotation_is_written_only_if_it_says_something_else() {
        let (nothing, some) = (refused(&[]), refused(&[("default", 5)]));
        let mut node = Node::default();
        assert_eq!(annotation(&node, &nothing), None);
        let (key, value) = annotation(&node, &some).unwrap();
        assert_eq!((key.as_str(), value.as_deref()), ("underlay/refused-routes", Some(r#"{"default":5}"#)));
        node.annotations.extend(value.map(|value| (key.clone(), value)));
        assert_eq!(annotation(&node, &some), None);
        assert_eq!(annotation(&node, &nothing), Some((key, None)));
    }
}
