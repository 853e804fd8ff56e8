//! What holds whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;
use underlay_world::{Key, World};

use super::super::{Step, plan, plan_within};
use super::{SOURCES, Server, endpoint, merge};

const NAMESPACES: [&str; 3] = ["blue", "red", "white"];

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    /// A namespace has or has not a primary network, of one family or both.
    Network(usize, bool, bool),
    Pod(usize, u8, u8, bool),
    Gone(usize, u8),
    Source(usize, u8, bool, Vec<u8>),
    SourceGone(usize, u8),
    Foreign(usize, u8),
    Edit(usize, u8),
    Turn,
}

fn any_event() -> impl Strategy<Value = Event> {
    let namespace = || 0usize..3;
    prop_oneof![
        (namespace(), any::<bool>(), any::<bool>())
            .prop_map(|(n, there, both)| Event::Network(n, there, both)),
        (namespace(), 0u8..4, 0u8..3, any::<bool>())
            .prop_map(|(n, pod, at, own)| Event::Pod(n, pod, at, own)),
        (namespace(), 0u8..4).prop_map(|(n, pod)| Event::Gone(n, pod)),
        (namespace(), 0u8..3, any::<bool>(), prop::collection::vec(0u8..4, 0..4))
            .prop_map(|(n, name, v6, pods)| Event::Source(n, name, v6, pods)),
        (namespace(), 0u8..3).prop_map(|(n, name)| Event::SourceGone(n, name)),
        (namespace(), 0u8..3).prop_map(|(n, name)| Event::Foreign(n, name)),
        (0usize..8, 0u8..4).prop_map(|(which, what)| Event::Edit(which, what)),
        Just(Event::Turn),
    ]
}

fn happen(server: &mut Server, event: &Event) {
    let key = |n: usize, prefix: &str, number: u8| format!("{}/{prefix}{number}", NAMESPACES[n]);
    match event {
        Event::Network(n, false, _) => _ = server.attachments.remove(&key(*n, "net", 0)),
        Event::Network(n, true, both) => {
            let subnets = if *both { "10.10.0.0/16/24,fd10::/48/64" } else { "10.10.0.0/16/24" };
            server.network(&key(*n, "net", 0), &format!("net-{n}"), subnets);
        }
        Event::Pod(n, pod, at, own) => {
            let addresses = [format!("10.10.{pod}.{}/24", at + 2), format!("fd10::{pod}:{}/64", at + 2)];
            let attachment = if *own { key(*n, "net", 0) } else { key(*n, "other", 0) };
            server.pod(&key(*n, "p", *pod), &attachment, &[&addresses[0], &addresses[1]]);
        }
        Event::Gone(n, pod) => _ = server.pods.remove(&key(*n, "p", *pod)),
        Event::Source(n, name, v6, pods) => {
            let (family, at) = if *v6 { ("IPv6", "fd00::5") } else { ("IPv4", "10.244.0.5") };
            let endpoints = pods.iter().map(|pod| endpoint(&key(*n, "p", *pod), at)).collect();
            server.slice(&key(*n, "web", *name), SOURCES[usize::from(*name % 2)], family, endpoints);
        }
        Event::SourceGone(n, name) => _ = server.slices.remove(&key(*n, "web", *name)),
        Event::Foreign(n, name) => server.slice(&key(*n, "own", *name), "me", "IPv4", json!([])),
        Event::Edit(which, what) => {
            let ours: Vec<String> = server
                .world()
                .any_slices
                .values()
                .filter(|slice| slice.is_ours())
                .map(|slice| slice.key.to_string())
                .collect();
            let Some(name) = ours.get(*which) else { return };
            let patch = match what {
                0 => json!({ "endpoints": [] }),
                1 => json!({ "metadata": { "labels": { "kubernetes.io/service-name": "web" } } }),
                2 => json!({ "metadata": { "annotations": null, "ownerReferences": null } }),
                _ => json!({ "addressType": "FQDN", "ports": null }),
            };
            merge(server.slices.get_mut(name).unwrap(), &patch);
        }
        Event::Turn => _ = server.turn(),
    }
}

/// Slices that are not ours, as they are stored.
fn others(server: &Server) -> BTreeMap<String, serde_json::Value> {
    let world = server.world();
    let ours = |name: &str| {
        let (namespace, name) = name.split_once('/').unwrap();
        world.any_slices.get(&Key::new(namespace, name)).is_some_and(|slice| slice.is_ours())
    };
    server
        .slices
        .iter()
        .filter(|(name, _)| !ours(name))
        .map(|(name, one)| (name.clone(), one.clone()))
        .collect()
}

/// The same objects, heard of in the opposite order and some of them twice.
fn in_another_order(world: &World) -> World {
    let mut other = World::default();
    for _ in 0..2 {
        other
            .any_slices
            .extend(world.any_slices.iter().rev().map(|(key, slice)| (key.clone(), slice.clone())));
        other.attached.extend(world.attached.iter().rev().map(|(key, pod)| (key.clone(), pod.clone())));
        other.attachments.extend(world.attachments.iter().rev().map(|(key, one)| (key.clone(), one.clone())));
    }
    other
}

proptest! {
    #[test]
    fn it_comes_to_rest_and_touches_nothing_foreign(events in prop::collection::vec(any_event(), 1..40)) {
        let mut server = Server::default();
        for event in &events {
            happen(&mut server, event);
        }
        let (world, before) = (server.world(), others(&server));
        let steps = plan(&world);
        prop_assert_eq!(&plan(&in_another_order(&world)), &steps);
        prop_assert_eq!(&plan_within(&world, NAMESPACES), &steps, "a namespace needs no other");
        let mut pairs = BTreeSet::new();
        for (key, step) in &steps {
            prop_assert!(!before.contains_key(&key.to_string()), "{key} is foreign");
            if let Step::Create(object) = step {
                let annotations = object.metadata.annotations.clone().unwrap();
                prop_assert!(pairs.insert((key.namespace.clone(), annotations)), "one twin a source");
                prop_assert!(!object.metadata.labels.as_ref().unwrap().contains_key("kubernetes.io/service-name"));
            }
        }
        server.turn();
        // One whose kind of address somebody changed takes two: it goes and comes.
        server.turn();
        prop_assert_eq!(plan(&server.world()), BTreeMap::new());
        prop_assert_eq!(others(&server), before);
    }
}
