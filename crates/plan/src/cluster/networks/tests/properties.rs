//! What holds whatever happens.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::super::{Numbers, plan};
use super::server::Server;
use super::{layer2, layer3};

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    Namespace(u8, u8),
    Network(u8, u8, u8),
    Own(u8, u8),
    Delete(u8),
    DeleteAttachment(usize),
    EditNumber(usize, u16),
    Node(u8),
    EditPart(usize, u8),
    Restart,
    Turn,
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0u8..4, 0u8..3).prop_map(|(name, team)| Event::Namespace(name, team)),
        (0u8..5, 0u8..3, 0u8..4).prop_map(|(name, team, kind)| Event::Network(name, team, kind)),
        (0u8..4, 0u8..3).prop_map(|(namespace, kind)| Event::Own(namespace, kind)),
        (0u8..5).prop_map(Event::Delete),
        (0usize..8).prop_map(Event::DeleteAttachment),
        (0usize..8, 0u16..6).prop_map(|(which, number)| Event::EditNumber(which, number)),
        (0u8..6).prop_map(Event::Node),
        (0usize..6, 0u8..8).prop_map(|(node, part)| Event::EditPart(node, part)),
        Just(Event::Restart),
        Just(Event::Turn),
    ]
}

fn network(kind: u8) -> serde_json::Value {
    match kind {
        0 => layer3("10.10.0.0/22", 24),
        1 => layer3("10.10.0.0/16", 24),
        2 => layer2("10.60.0.0/16"),
        _ => layer3("10.128.0.0/16", 24),
    }
}

fn happen(server: &mut Server, event: &Event) {
    let nth = |server: &Server, which: usize| server.attachments.keys().nth(which).cloned();
    match event {
        Event::Namespace(name, team) => server.namespace(&format!("ns{name}"), &format!("t{team}")),
        Event::Network(name, team, kind) => {
            let name = format!("net{name}");
            if !server.definitions.contains_key(&format!("ClusterUserDefinedNetwork {name}")) {
                server.cluster_network(&name, &format!("t{team}"), network(*kind));
            }
        }
        Event::Own(namespace, kind) => {
            let namespace = format!("ns{namespace}");
            if server.namespaces.contains_key(&namespace)
                && !server.definitions.contains_key(&format!("UserDefinedNetwork {namespace}/own"))
            {
                server.network(&namespace, "own", network(*kind));
            }
        }
        Event::Delete(name) => {
            let name = format!("ClusterUserDefinedNetwork net{name}");
            if server.definitions.contains_key(&name) {
                server.delete(&name);
            }
        }
        Event::DeleteAttachment(which) => {
            if let Some(name) = nth(server, *which) {
                server.delete(&name);
            }
        }
        Event::EditNumber(which, number) => {
            if let Some(name) = nth(server, *which) {
                let number = json!({ "k8s.ovn.org/network-id": number.to_string() });
                server.edit(&name, &json!({ "metadata": { "annotations": number } }));
            }
        }
        Event::Node(number) => {
            let name = format!("n{number}");
            let metadata = json!({ "name": name, "uid": format!("node-{number}") });
            server.nodes.entry(name).or_insert_with(|| json!({ "metadata": metadata }));
        }
        Event::EditPart(node, part) => {
            if let Some(node) = server.nodes.values_mut().nth(*node) {
                let text = format!(r#"{{"cluster_udn_net0":["10.10.{part}.0/24"],"gone":["10.9.0.0/24"]}}"#);
                node["metadata"]["annotations"]["k8s.ovn.org/node-subnets"] = text.into();
            }
        }
        Event::Restart => server.known = Numbers::default(),
        Event::Turn => {
            server.turn();
        }
    }
}

/// What everybody has, by name.
fn state(server: &Server) -> (Vec<String>, BTreeMap<String, Option<u16>>, Vec<String>) {
    let planned = plan(&server.world(), &server.settings, &Numbers::default());
    let numbers = planned.told.values().map(|told| (told.network.clone(), told.number)).collect();
    let parts = server.nodes.values().map(|node| node["metadata"]["annotations"].to_string()).collect();
    (server.attachments.keys().cloned().collect(), numbers, parts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever happens, nothing is handed out twice, it comes to rest, and a restart changes nothing.
    #[test]
    fn plans_hold(events in prop::collection::vec(any_event(), 0..30)) {
        let mut server = Server::new(&["n1", "n2"]);
        for event in &events {
            happen(&mut server, event);
        }
        let planned = server.settle();
        let mut numbers = BTreeSet::new();
        for told in planned.told.values() {
            if let Some(number) = told.number {
                prop_assert!((1..=4095).contains(&number) && numbers.insert(number), "{number} twice");
            }
        }
        let world = server.world();
        let mut parts = BTreeSet::new();
        for node in world.nodes.values() {
            for (network, subnets) in &node.subnets.0 {
                for subnet in subnets {
                    prop_assert!(parts.insert((network.as_str(), *subnet)), "{network} {subnet} twice");
                }
            }
        }
        for (name, attachment) in &world.attachments {
            let network = attachment.network.as_deref().unwrap_or_default();
            let told = planned.told.values().find(|told| told.network == network);
            let number = told.and_then(|told| told.number);
            prop_assert_eq!(attachment.id.map(|id| id.0), number, "{} has another number", name);
        }
        let before = state(&server);
        server.known = Numbers::default();
        prop_assert!(!server.turn(), "a restart writes nothing");
        prop_assert_eq!(state(&server), before);
    }
}
