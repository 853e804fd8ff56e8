//! What holds whatever happens.

use proptest::prelude::*;

use super::*;

/// Something that happens.
#[derive(Debug, Clone)]
enum Event {
    Node { number: u8, labelled: bool, ready: bool },
    Silence(u8, bool),
    Ask(u8, Vec<u8>),
    Drop(u8),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (1u8..6, prop::bool::weighted(0.8), prop::bool::weighted(0.8))
            .prop_map(|(number, labelled, ready)| Event::Node { number, labelled, ready }),
        (1u8..6, any::<bool>()).prop_map(|(number, silent)| Event::Silence(number, silent)),
        (0u8..5, prop::collection::vec(100u8..112, 1..5)).prop_map(|(name, asked)| Event::Ask(name, asked)),
        (0u8..5).prop_map(Event::Drop),
    ]
}

fn happen(world: &mut World, event: &Event) {
    match event {
        Event::Node { number, labelled, ready } => put_node(world, node(*number, *labelled, *ready)),
        Event::Silence(number, true) => _ = world.unreachable.insert(format!("n{number}")),
        Event::Silence(number, false) => _ = world.unreachable.remove(&format!("n{number}")),
        Event::Ask(name, asked) => {
            let texts: Vec<String> = asked.iter().map(|last| format!("172.30.0.{last}")).collect();
            ask(world, &format!("e{name}"), &texts.iter().map(String::as_str).collect::<Vec<_>>());
        }
        Event::Drop(name) => _ = world.egress_ips.remove(&Key::cluster(&format!("e{name}"))),
    }
}

/// Every address has one holder, and every holder one address of an egress IP, among those it asks for.
fn check(world: &World, told: &BTreeMap<Key, Told>) -> Result<(), TestCaseError> {
    let mut addresses = BTreeSet::new();
    for (key, told) in told {
        let asked: Vec<IpAddr> = world.egress_ips[key].addresses().collect();
        let mut nodes = BTreeSet::new();
        for item in &told.items {
            prop_assert!(addresses.insert(item.address), "{} is held twice", item.address);
            prop_assert!(nodes.insert(&item.node), "{key} twice on {}", item.node);
            prop_assert!(asked.contains(&item.address));
            let node = world.node(&item.node).expect("a node that is there");
            prop_assert!(node.ready && node.labels.contains_key(ASSIGNABLE_LABEL));
        }
        let complains =
            told.problems.iter().any(|(reason, _)| [NO_NODE, UNASSIGNED, TAKEN, INVALID].contains(reason));
        let all = asked.iter().collect::<BTreeSet<_>>().len() == told.items.len();
        prop_assert!(all || complains, "{key} lacks something and nobody says so");
    }
    Ok(())
}

/// Whatever can stay where it is does.
fn check_stability(before: &World, after: &World, told: &BTreeMap<Key, Told>) -> Result<(), TestCaseError> {
    let usable = |world: &World, name: &str| {
        let node = world.node(name);
        node.is_some_and(|node| node.ready && node.labels.contains_key(ASSIGNABLE_LABEL))
            && !world.unreachable.contains(name)
    };
    for (key, source) in &before.egress_ips {
        let Some(told) = told.get(key) else { continue };
        let asked: BTreeSet<IpAddr> = after.egress_ips[key].addresses().collect();
        for item in source.items.iter().filter(|item| asked.contains(&item.address)) {
            prop_assert!(!usable(after, &item.node) || told.items.contains(item), "{key}: {item:?} moved");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_address_never_has_two_holders_and_stays_where_it_can(events in prop::collection::vec(any_event(), 1..30)) {
        let mut world = world(2);
        for event in &events {
            let before = world.clone();
            happen(&mut world, event);
            let told = plan(&world, &Settings::default());
            check(&world, &told)?;
            check_stability(&before, &world, &told)?;
            record(&told, &mut world);
            prop_assert!(plan(&world, &Settings::default()).values().all(|told| !told.news));
        }
    }

    #[test]
    fn the_order_in_which_it_was_heard_does_not_matter(
        events in prop::collection::vec(any_event(), 1..20).prop_shuffle(),
    ) {
        // The last word on every object counts, whenever the others are heard.
        let last: BTreeMap<String, &Event> = events.iter().map(|event| (subject(event), event)).collect();
        let told = |order: &mut dyn Iterator<Item = &&Event>| {
            let mut world = world(3);
            order.for_each(|event| happen(&mut world, event));
            plan(&world, &Settings::default())
        };
        prop_assert_eq!(told(&mut last.values()), told(&mut last.values().rev()));
    }

    #[test]
    fn load_is_even_where_all_nodes_can_hold_all(count in 1u8..20, nodes in 1u8..6) {
        let mut world = world(nodes);
        for number in 0..count {
            ask(&mut world, &format!("e{number:02}"), &[&format!("172.30.0.{}", 100 + number)]);
        }
        let told = plan(&world, &Settings::default());
        let load = |node: &str| told.values().flat_map(|told| &told.items).filter(|item| item.node == node).count();
        let loads: Vec<usize> = world.nodes.values().map(|node| load(&node.name)).collect();
        let (least, most) = (loads.iter().min().unwrap(), loads.iter().max().unwrap());
        prop_assert!(most - least <= 1, "{loads:?}");
        prop_assert_eq!(loads.iter().sum::<usize>(), usize::from(count));
    }
}

fn subject(event: &Event) -> String {
    match event {
        Event::Node { number, .. } => format!("node {number}"),
        Event::Silence(number, _) => format!("silence {number}"),
        Event::Ask(name, _) | Event::Drop(name) => format!("egress {name}"),
    }
}
