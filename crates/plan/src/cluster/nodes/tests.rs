use proptest::prelude::*;
use serde_json::json;
use underlay_net::alloc::SubnetRange;

use super::*;

/// A plan for nodes alone.
fn plan(world: &World, settings: &Settings) -> NodesPlan {
    super::plan(world, settings, None)
}

fn settings(ranges: &[(&str, u8)]) -> Settings {
    let range = |(range, length): &(&str, u8)| SubnetRange::new(range.parse().unwrap(), *length).unwrap();
    Settings { cluster_subnets: ranges.iter().map(range).collect(), ..Settings::default() }
}

fn node(name: &str, annotations: &[(&str, &str)]) -> Node {
    let annotations: BTreeMap<&str, &str> = annotations.iter().copied().collect();
    let metadata = json!({ "name": name, "uid": format!("uid-{name}"), "annotations": annotations });
    Node::read(&serde_json::from_value(json!({ "metadata": metadata })).unwrap())
}

fn world(nodes: impl IntoIterator<Item = Node>) -> World {
    let entry = |node: Node| (Key::cluster(&node.name), Arc::new(node));
    World { nodes: nodes.into_iter().map(entry).collect(), ..World::default() }
}

/// What a node has after the plan, as texts.
fn after(world: &World, settings: &Settings, node: &str) -> (Option<u16>, String, String) {
    let mut world = world.clone();
    for (name, given) in plan(&world, settings).given {
        given.record(&name, &mut world);
        assert!(given.is_on(world.node(&name).unwrap()));
    }
    let node = world.node(node).unwrap();
    (node.id.map(|NodeId(id)| id), node.subnets.render(), node.transit.render())
}

const IDS: &str = NodeId::KEY;
const SUBNETS: &str = NodeSubnets::KEY;
const TRANSIT: &str = TransitAddresses::KEY;

#[test]
fn new_nodes_are_given_everything_in_order_of_their_names() {
    let world = world([node("b", &[]), node("a", &[])]);
    let given = plan(&world, &settings(&[("10.244.0.0/16", 24), ("fd00:10:244::/48", 64)])).given;
    let text = |node: &str, key: &str| given[node].annotations[key].clone().unwrap();
    assert_eq!(text("a", IDS), "2");
    assert_eq!(text("a", SUBNETS), r#"{"default":["10.244.0.0/24","fd00:10:244:1::/64"]}"#);
    assert_eq!(text("a", TRANSIT), r#"{"ipv4":"100.88.0.2/16","ipv6":"fd97::2/64"}"#);
    assert_eq!(text("b", IDS), "3");
    assert_eq!(text("b", SUBNETS), r#"{"default":["10.244.1.0/24","fd00:10:244:2::/64"]}"#);
    assert_eq!(given["a"].uid, "uid-a");
    assert_eq!(given["a"].why, Why::from_object(ObjectRef::cluster("Node", "a")));
}

#[test]
fn what_is_recorded_and_valid_stays() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    let kept = [
        (IDS, "7"),
        (SUBNETS, r#"{"default":["10.244.9.0/24"],"blue":["10.10.1.0/24"]}"#),
        (TRANSIT, r#"{"ipv4":"100.88.0.7/16"}"#),
    ];
    let world = world([node("a", &[]), node("z", &kept)]);
    let plan = plan(&world, &settings);
    assert_eq!(plan.given.keys().collect::<Vec<_>>(), ["a"]);
    assert_eq!(plan.problems, []);
}

#[test]
fn what_is_not_valid_is_replaced_and_other_networks_stay() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    for (recorded, want) in [
        // Outside the range, of another length, of a family that pods do not have, one too many.
        (
            r#"{"default":["10.1.0.0/24"],"blue":"10.10.1.0/24"}"#,
            r#"{"blue":["10.10.1.0/24"],"default":["10.244.0.0/24"]}"#,
        ),
        (r#"{"default":["10.244.0.0/23"]}"#, r#"{"default":["10.244.0.0/24"]}"#),
        (r#"{"default":["10.244.5.0/24","fd00::/64"]}"#, r#"{"default":["10.244.5.0/24"]}"#),
        (r#"{"default":["10.244.5.0/24","10.244.6.0/24"]}"#, r#"{"default":["10.244.5.0/24"]}"#),
        ("nonsense", r#"{"default":["10.244.0.0/24"]}"#),
    ] {
        let world = world([node("a", &[(IDS, "2"), (SUBNETS, recorded)])]);
        assert_eq!(after(&world, &settings, "a").1, want, "{recorded}");
    }
    let world = world([node("a", &[(IDS, "1"), (TRANSIT, r#"{"ipv4":"100.88.0.9/16"}"#)])]);
    let (id, _, transit) = after(&world, &settings, "a");
    assert_eq!((id, transit.as_str()), (Some(2), r#"{"ipv4":"100.88.0.2/16"}"#));
}

#[test]
fn a_second_family_is_added_and_an_order_stays() {
    let both = settings(&[("10.244.0.0/16", 24), ("fd00:10:244::/48", 64)]);
    let one = world([node("a", &[(SUBNETS, r#"{"default":["10.244.3.0/24"]}"#)])]);
    assert_eq!(after(&one, &both, "a").1, r#"{"default":["10.244.3.0/24","fd00:10:244:1::/64"]}"#);
    let reverse = r#"{"default":["fd00:10:244:1::/64","10.244.3.0/24"]}"#;
    let world = world([node("a", &[(SUBNETS, reverse)])]);
    assert!(!plan(&world, &both).given["a"].annotations.contains_key(SUBNETS));
}

/// A node that was made in this year.
fn of(year: u16, node: Node) -> Node {
    Node { created: Some(format!("{year}-01-01T00:00:00Z").parse().unwrap()), ..node }
}

#[test]
fn a_damaged_record_is_found_again_before_a_newcomer_is_served() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    let kept = |id: &'static str, subnets: &'static str| [(IDS, id), (SUBNETS, subnets)];
    for damaged in ["nonsense", "{}"] {
        let world = world([
            of(2026, node("a-new", &[])),
            of(2025, node("b", &kept("2", damaged))),
            of(2024, node("c", &kept("3", r#"{"default":["10.244.1.0/24"]}"#))),
        ]);
        assert_eq!(after(&world, &settings, "b").1, r#"{"default":["10.244.0.0/24"]}"#, "{damaged}");
        assert_eq!(after(&world, &settings, "a-new").1, r#"{"default":["10.244.2.0/24"]}"#);
    }
}

#[test]
fn what_is_replaced_is_told() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    let kept = |id: &'static str, subnets: &'static str| [(IDS, id), (SUBNETS, subnets)];
    let world = world([
        of(2026, node("a", &kept("2", r#"{"default":["10.244.1.0/24"]}"#))),
        of(2025, node("b", &kept("2", r#"{"default":["10.244.1.0/24"]}"#))),
        of(2026, node("c", &kept("4", r#"{"default":["10.1.0.0/24"]}"#))),
        of(2026, node("d", &kept("5", "nonsense"))),
    ]);
    let problems = plan(&world, &settings).problems;
    let told: Vec<(&str, &str)> =
        problems.iter().map(|problem| (problem.object.name.as_str(), problem.reason)).collect();
    let want = [
        ("a", "NodeIdReplaced"),
        ("a", "SubnetReplaced"),
        ("c", "SubnetReplaced"),
        ("d", "UnreadableAnnotation"),
    ];
    assert_eq!(told, want, "the older one keeps what two have");
    assert_eq!(
        problems[2].message,
        "network default: 10.1.0.0/24 is another node's or not of the network; the node has 10.244.2.0/24 now, and its \
         pods keep their addresses until they are made anew"
    );
}

#[test]
fn of_two_with_the_same_the_first_by_name_keeps_it() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    let same = [(IDS, "2"), (SUBNETS, r#"{"default":["10.244.0.0/24"]}"#)];
    let world = world([node("b", &same), node("a", &same)]);
    assert_eq!(after(&world, &settings, "a").0, Some(2));
    let (id, subnets, _) = after(&world, &settings, "b");
    assert_eq!((id, subnets.as_str()), (Some(3), r#"{"default":["10.244.1.0/24"]}"#));
}

#[test]
fn who_goes_without_is_told_and_the_others_are_served() {
    let full = settings(&[("10.244.0.0/23", 24)]);
    let world = world([node("a", &[]), node("b", &[]), node("c", &[])]);
    let plan = plan(&world, &full);
    assert!(!plan.given["c"].annotations.contains_key(SUBNETS));
    assert_eq!(plan.given["b"].annotations[SUBNETS].as_deref(), Some(r#"{"default":["10.244.1.0/24"]}"#));
    let [problem] = plan.problems.as_slice() else { panic!("{:?}", plan.problems) };
    assert_eq!(problem.object, ObjectRef::cluster("Node", "c"));
    assert_eq!(problem.message, "no IPv4 subnet is left: add a range to cluster-subnets");
}

#[test]
fn a_taken_subnet_leaves_the_record_even_when_there_is_no_other() {
    let full = settings(&[("10.244.0.0/24", 24)]);
    let same = [(SUBNETS, r#"{"default":["10.244.0.0/24"]}"#)];
    let plan = plan(&world([node("a", &same), node("b", &same)]), &full);
    assert_eq!(plan.given["b"].annotations[SUBNETS], None, "two nodes must not have one subnet");
    assert!(!plan.given["a"].annotations.contains_key(SUBNETS));
}

#[test]
fn a_transit_range_that_is_too_small_is_told() {
    let mut small = settings(&[("10.244.0.0/16", 24)]);
    small.transit.v4 = "100.88.0.0/31".parse().unwrap();
    let plan = plan(&world([node("a", &[])]), &small);
    assert_eq!(
        plan.problems[0].message,
        "node number 2 is outside the transit range 100.88.0.0/31: widen it"
    );
}

#[test]
fn an_echo_is_told_from_news() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    let old = node("a", &[]);
    let given = plan(&world([old.clone()]), &settings).given.remove("a").unwrap();
    let texts: Vec<(&str, &str)> =
        given.annotations.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?))).collect();
    let echo = node("a", &texts);
    assert!(given.made(&old, &echo));
    assert!(!given.made(&old, &old), "it is not there yet");
    let more = [&texts[..], &[("k8s.ovn.org/node-primary-ifaddr", r#"{"ipv4":"172.18.0.2/16"}"#)]].concat();
    assert!(!given.made(&old, &node("a", &more)), "the node tells something new");
    assert!(!given.made(&old, &Node { uid: "another".to_owned(), ..echo }), "it is another one");
}

#[test]
fn another_node_of_the_same_name_is_not_meant() {
    let mut world = world([node("a", &[])]);
    let mut given = plan(&world, &settings(&[("10.244.0.0/16", 24)])).given.remove("a").unwrap();
    given.uid = "another".to_owned();
    given.record("a", &mut world);
    assert_eq!(world.node("a").unwrap().id, None);
}

#[test]
fn what_is_not_heard_of_yet_adds_up() {
    let settings = settings(&[("10.244.0.0/16", 24)]);
    let parts = |network: &str, subnet: &str| {
        let change: NodeChanges = vec![(Arc::from(network), vec![subnet.parse().unwrap()])];
        Parts { changes: BTreeMap::from([("a".to_owned(), change)]), ..Parts::default() }
    };
    let silent = world([node("a", &[])]);
    let first = super::plan(&silent, &settings, Some(&parts("blue", "10.10.0.0/24"))).given["a"].after(None);
    let mut known = silent.clone();
    first.record("a", &mut known);
    let given =
        super::plan(&known, &settings, Some(&parts("red", "10.20.0.0/24"))).given.remove("a").unwrap();
    let want = r#"{"blue":["10.10.0.0/24"],"default":["10.244.0.0/24"],"red":["10.20.0.0/24"]}"#;
    assert_eq!(given.annotations[SUBNETS].as_deref(), Some(want), "all of it in one write");
    let both = given.after(Some(first));
    let mut known = silent;
    both.record("a", &mut known);
    assert_eq!(known.node("a").unwrap().subnets.render(), want);
    assert!(both.is_on(known.node("a").unwrap()));
}

/// Nodes with records that may be missing, doubled, outside or nonsense.
fn any_nodes() -> impl Strategy<Value = Vec<Node>> {
    let subnet = prop_oneof![
        Just(String::new()),
        Just("nonsense".to_owned()),
        (0u8..12).prop_map(|number| format!(r#"{{"default":["10.0.{number}.0/24"],"x":["10.9.0.0/24"]}}"#)),
        (0u8..4).prop_map(|number| format!(r#"{{"default":["fd00:0:0:{number}::/64","10.0.1.0/24"]}}"#)),
    ];
    let id = prop_oneof![Just(String::new()), (0u16..12).prop_map(|id| id.to_string())];
    prop::collection::btree_map("[a-f]{1,2}", (subnet, id), 0..14).prop_map(|nodes| {
        let read = |(name, (subnet, id)): (String, (String, String))| {
            let all = [(SUBNETS, subnet.as_str()), (IDS, id.as_str())];
            let said: Vec<_> = all.into_iter().filter(|(_, text)| !text.is_empty()).collect();
            node(&name, &said)
        };
        nodes.into_iter().map(read).collect()
    })
}

proptest! {
    /// Nobody shares anything, what was free to stay stays, and there is nothing left to do afterwards.
    #[test]
    fn plans_hold(nodes in any_nodes()) {
        let settings = settings(&[("10.0.0.0/21", 24), ("fd00::/62", 64)]);
        let mut after = world(nodes.clone());
        let first = plan(&after, &settings);
        for (name, given) in &first.given {
            given.record(name, &mut after);
        }
        let (mut subnets, mut ids) = (BTreeSet::new(), BTreeSet::new());
        for node in after.nodes.values() {
            for subnet in node.subnets_in(DEFAULT_NETWORK) {
                prop_assert!(subnets.insert(*subnet), "{subnet} twice");
            }
            prop_assert!(ids.insert(node.id));
        }
        let second = plan(&after, &settings);
        prop_assert_eq!(&second.given, &BTreeMap::new());
        // What was replaced is told once; what is missing, for as long as it is.
        let lasts = |problem: &&Problem| ["NoNodeId", "NoSubnet"].contains(&problem.reason);
        let name = |problem: &Problem| (problem.object.name.clone(), problem.reason);
        let missing = |plan: &NodesPlan| plan.problems.iter().filter(lasts).map(name).collect::<BTreeSet<_>>();
        prop_assert_eq!(missing(&second), missing(&first));
        let replaced = |problem: &Problem| problem.reason.ends_with("Replaced");
        prop_assert!(!second.problems.iter().any(replaced));
    }

    /// The order in which nodes were heard of does not matter.
    #[test]
    fn order_does_not_matter(nodes in any_nodes()) {
        let settings = settings(&[("10.0.0.0/21", 24), ("fd00::/62", 64)]);
        let forth = plan(&world(nodes.clone()), &settings);
        let back = plan(&world(nodes.into_iter().rev()), &settings);
        prop_assert_eq!(forth, back);
    }
}
