//! Watches of single secrets: those that somebody names, and no others.

use std::collections::BTreeSet;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::ready;
use futures::stream::{BoxStream, StreamExt, once, select_all};
use k8s_openapi::api::core;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watch_object};
use kube::{Api, Client};
use tokio::sync::watch;
use underlay_world::{Key, Kind, Secret, World};

use super::{Edit, Update, explain, put, reason};
use crate::pace::Pace;

const KIND: &str = <core::v1::Secret as Kind>::NAME;

/// Watches the secrets that are wanted at the moment. Nobody waits for them: what was not looked at yet is not in the
/// world, and what is not there is in it as missing.
pub fn secrets(client: &Client, wanted: watch::Receiver<BTreeSet<Key>>) -> BoxStream<'static, Update> {
    let (tell, updates) = unbounded();
    tokio::spawn(follow(client.clone(), wanted, tell));
    let nothing_to_wait_for = Update::Listed { kind: KIND, edit: Box::new(|_| false) };
    once(ready(nothing_to_wait_for)).chain(updates).boxed()
}

/// Looks at what is wanted, and anew whenever something else is. Who wants secrets wants the same ones for long.
async fn follow(client: Client, mut wanted: watch::Receiver<BTreeSet<Key>>, tell: UnboundedSender<Update>) {
    let mut known = BTreeSet::new();
    loop {
        let now = wanted.borrow_and_update().clone();
        for gone in known.difference(&now).cloned() {
            let edit = |key| -> Edit { Box::new(move |world| put::<core::v1::Secret>(world, key, None)) };
            let _ = tell.unbounded_send(change(gone.clone(), edit(gone)));
        }
        let mut watches = select_all(now.iter().map(|key| one(&client, key)));
        known = now;
        loop {
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Some(update) = watches.next() => if tell.unbounded_send(update).is_err() {
                    return;
                },
            }
        }
    }
}

fn one(client: &Client, key: &Key) -> BoxStream<'static, Update> {
    let api: Api<core::v1::Secret> = Api::namespaced(client.clone(), &key.namespace);
    let key = key.clone();
    watch_object(api, &key.name)
        .backoff(Pace::far())
        .map(move |seen| match seen {
            Ok(object) => {
                let secret = object.map_or_else(Secret::missing, Secret::read);
                let at = key.clone();
                let edit = move |world: &mut World| put::<core::v1::Secret>(world, at, Some(secret));
                change(key.clone(), Box::new(edit))
            }
            Err(error) if is_forbidden(&error) => {
                let secret = Secret::forbidden(&explain(&error));
                let at = key.clone();
                change(key.clone(), Box::new(move |world| put_unless_known(world, at, secret)))
            }
            Err(error) => Update::Fault { kind: KIND, error: explain(&error), unknown: false },
        })
        .boxed()
}

fn change(key: Key, edit: Edit) -> Update {
    Update::Change { kind: KIND, namespace: key.namespace, edit }
}

/// A password that was read once is not forgotten when the right to read it is lost: that would end a session.
fn put_unless_known(world: &mut World, key: Key, secret: Secret) -> bool {
    let new = world.secrets.get(&key).is_none_or(|known| known.password().is_err() && *known != secret);
    if new {
        world.secrets.insert(key, secret);
    }
    new
}

fn is_forbidden(error: &watcher::Error) -> bool {
    matches!(reason(error), Some(kube::Error::Api(status)) if status.code == 403)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_right_that_is_lost_takes_no_password_along() {
        let (mut world, key) = (World::default(), Key::new("frr", "tor"));
        let forbidden = || Secret::forbidden("no right");
        assert!(put_unless_known(&mut world, key.clone(), forbidden()));
        assert!(!put_unless_known(&mut world, key.clone(), forbidden()), "the same again is no news");
        let object = json!({ "type": "kubernetes.io/basic-auth", "data": { "password": "aHVudGVyMg==" } });
        let secret = Secret::read(serde_json::from_value(object).unwrap());
        assert!(put::<core::v1::Secret>(&mut world, key.clone(), Some(secret.clone())));
        assert!(!put_unless_known(&mut world, key.clone(), forbidden()));
        assert_eq!(world.secrets.get(&key), Some(&secret));
    }
}
