//! The replica against what a server tells.

use std::collections::BTreeMap;

use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::datum::{Atom, Datum};
use crate::schema::tests::sample;
use crate::selection::{Index, Selection};
use crate::txn::string_map;

const A: &str = "00000000-0000-0000-0000-00000000000a";
const B: &str = "00000000-0000-0000-0000-00000000000b";
const C: &str = "00000000-0000-0000-0000-00000000000c";

fn uuid(text: &str) -> Uuid {
    text.parse().unwrap()
}

fn selection() -> Selection {
    Selection::new()
        .all_columns("Logical_Switch")
        .all_columns("Logical_Switch_Port")
        .index("Logical_Switch", Index::map_key("external_ids", "owner"))
        .index("Logical_Switch_Port", Index::column("name"))
        .index("Logical_Switch_Port", Index::column("addresses"))
}

fn layouts() -> Layouts {
    selection().resolve(&sample()).layouts
}

fn told(format: Format, json: &Value) -> TableUpdates {
    TableUpdates::parse(json.to_string().as_bytes(), &layouts(), format).unwrap()
}

fn differences(json: &Value) -> TableUpdates {
    told(Format::Difference, json)
}

fn two_switches() -> Replica {
    let mut replica = Replica::new(&layouts());
    let dump = differences(&json!({
        "Logical_Switch": {
            A: {"initial": {"name": "a", "external_ids": ["map", [["owner", "x"], ["k", "v"]]]}},
            B: {"initial": {"name": "b", "external_ids": ["map", [["owner", "y"]]], "ports": ["uuid", C]}}},
        "Logical_Switch_Port": {C: {"initial": {"name": "p", "tag": 5, "addresses": ["set", ["m1", "m2"]]}}},
        "Not_Selected": {A: {"initial": {"anything": [1, 2, {}]}}}}));
    assert_eq!(replica.apply(dump).unwrap().len(), 3);
    replica
}

fn names<'a>(records: impl Iterator<Item = &'a Record>) -> Vec<String> {
    records.map(|record| record.read::<String>("name").unwrap()).collect()
}

#[test]
fn unwritten_columns_have_their_defaults() {
    let replica = two_switches();
    let a = replica.table("Logical_Switch").unwrap().get(uuid(A)).unwrap();
    assert_eq!(a.get("ports"), Some(&Datum::empty_set()));
    let port = replica.table("Logical_Switch_Port").unwrap().get(uuid(C)).unwrap();
    assert_eq!(port.read::<Option<bool>>("up").unwrap(), None);
    assert_eq!(port.read::<Option<i64>>("tag").unwrap(), Some(5));
}

#[test]
fn only_the_difference_is_told_and_the_rest_stays() {
    let mut replica = two_switches();
    let changes = replica
        .apply(differences(&json!({
            "Logical_Switch": {A: {"modify": {"external_ids": ["map", [["k", "v"], ["n", "m"]]]}}},
            "Logical_Switch_Port": {C: {"modify": {"addresses": ["set", ["m1", "m3"]], "tag": ["set", []]}}}})))
        .unwrap();
    let a = replica.table("Logical_Switch").unwrap().get(uuid(A)).unwrap();
    assert_eq!(a.get("external_ids"), Some(&string_map([("owner", "x"), ("n", "m")])));
    assert_eq!(a.read::<String>("name").unwrap(), "a");
    let port = replica.table("Logical_Switch_Port").unwrap().get(uuid(C)).unwrap();
    assert_eq!(port.get("addresses"), Some(&Datum::set(["m2".into(), "m3".into()])));
    assert_eq!(port.get("tag"), Some(&Datum::empty_set()));
    let change = changes.table("Logical_Switch").next().unwrap().1;
    assert_eq!(
        change.before.as_ref().unwrap().get("external_ids"),
        Some(&string_map([("owner", "x"), ("k", "v")]))
    );
    assert_eq!(change.after.as_ref(), Some(a));
    assert!(!changes.touches("Odd") && changes.touches("Logical_Switch_Port"));
}

#[test]
fn the_words_of_the_rfc_give_the_same() {
    let mut replica = Replica::new(&layouts());
    let row = |name: &str| json!({"name": name, "ports": ["set", []], "external_ids": ["map", []]});
    let apply = |replica: &mut Replica, json: Value| replica.apply(told(Format::OldAndNew, &json)).unwrap();
    apply(&mut replica, json!({"Logical_Switch": {A: {"new": row("a")}, B: {"new": row("b")}}}));
    let json = json!({"Logical_Switch": {A: {"old": {"name": "a"}, "new": row("c")}, B: {"old": row("b")}}});
    let changes = apply(&mut replica, json);
    assert_eq!(changes.len(), 2);
    assert_eq!(names(replica.table("Logical_Switch").unwrap().iter()), ["c"]);
}

#[test]
fn what_cannot_follow_is_an_error() {
    for (json, text) in [
        (json!({A: {"insert": {}}}), "insert"),
        (json!({C: {"modify": {}}}), "modify"),
        (json!({C: {"delete": null}}), "delete"),
    ] {
        let error = two_switches().apply(differences(&json!({"Logical_Switch": json}))).unwrap_err();
        assert_eq!(error.change, text);
    }
}

#[test]
fn what_is_not_in_the_words_of_the_protocol_is_refused() {
    for json in [
        json!([]),
        json!({"Logical_Switch": []}),
        json!({"Logical_Switch": {"x": {"insert": {}}}}),
        json!({"Logical_Switch": {A: {}}}),
        json!({"Logical_Switch": {A: {"new": {}}}}),
        json!({"Logical_Switch": {A: {"insert": {"name": 1}}}}),
    ] {
        let text = json.to_string();
        assert!(TableUpdates::parse(text.as_bytes(), &layouts(), Format::Difference).is_err(), "{text}");
    }
    assert!(TableUpdates::parse(b"{} x", &layouts(), Format::Difference).is_err());
}

#[test]
fn notifications_and_replies_carry_a_transaction() {
    let json = json!([true, A, {"Logical_Switch": {B: {"delete": null}}}]).to_string();
    let told = Told::parse_since(json.as_bytes(), &layouts()).unwrap();
    assert_eq!((told.head, told.transaction, told.updates.len()), (json!(true), Some(uuid(A)), 1));
    let told = Told::parse(br#"["m",{}]"#, &layouts(), Format::OldAndNew).unwrap();
    assert_eq!((told.head, told.transaction), (json!("m"), None));
    assert!(Told::parse_since(br#"["m",{}]"#, &layouts()).is_err());
}

#[test]
fn rows_are_found_by_column_element_and_key() {
    let mut replica = two_switches();
    let find = |replica: &Replica, owner: &str| {
        names(replica.table("Logical_Switch").unwrap().find_key("external_ids", "owner", owner))
    };
    assert_eq!(find(&replica, "y"), ["b"]);
    replica
        .apply(differences(&json!({
            "Logical_Switch": {A: {"modify": {"external_ids": ["map", [["owner", "y"]]]}}},
            "Logical_Switch_Port": {C: {"modify": {"addresses": ["set", ["m1", "m3"]]}}}})))
        .unwrap();
    assert_eq!(find(&replica, "y"), ["a", "b"]);
    assert_eq!(find(&replica, "x"), [""; 0]);
    let ports = replica.table("Logical_Switch_Port").unwrap();
    assert_eq!(names(ports.find("name", "p")), ["p"]);
    assert_eq!(names(ports.find("addresses", "m3")), ["p"]);
    assert_eq!(ports.find("addresses", "m1").count(), 0);
    // Not indexed: found all the same.
    assert_eq!(names(ports.find("tag", 5)), ["p"]);
    assert_eq!(ports.find("nothing", 5).count(), 0);
}

#[test]
fn a_copy_is_not_touched_by_what_comes_after() {
    let mut replica = two_switches();
    let copy = replica.clone();
    replica.apply(differences(&json!({"Logical_Switch": {A: {"delete": null}}}))).unwrap();
    assert_eq!(copy.row_count(), 3);
    assert_eq!(copy.table("Logical_Switch").unwrap().find_key("external_ids", "owner", "x").count(), 1);
    assert_eq!(replica.table("Logical_Switch").unwrap().find_key("external_ids", "owner", "x").count(), 0);
    assert!(std::ptr::eq(
        copy.table("Logical_Switch_Port").unwrap(),
        replica.table("Logical_Switch_Port").unwrap()
    ));
}

#[test]
fn a_reload_tells_only_what_is_different() {
    let mut replica = two_switches();
    let before = replica.clone();
    let dump = differences(&json!({
        "Logical_Switch": {
            A: {"initial": {"name": "a", "external_ids": ["map", [["k", "v"], ["owner", "x"]]]}},
            C: {"initial": {"name": "c", "external_ids": ["map", [["owner", "y"]]]}}},
        "Logical_Switch_Port": {C: {"initial": {"name": "p", "tag": 6, "addresses": ["set", ["m1", "m2"]]}}}}));
    let changes = replica.reload(&layouts(), dump).unwrap();
    let told: Vec<_> = changes
        .iter()
        .map(|(table, uuid, change)| (&**table, *uuid, change.before.is_some(), change.after.is_some()))
        .collect();
    assert_eq!(
        told,
        [
            ("Logical_Switch", uuid(B), true, false),
            ("Logical_Switch", uuid(C), false, true),
            ("Logical_Switch_Port", uuid(C), true, true)
        ]
    );
    let switches = replica.table("Logical_Switch").unwrap();
    assert_eq!(names(switches.iter()), ["a", "c"]);
    assert_eq!(names(switches.find_key("external_ids", "owner", "y")), ["c"]);
    assert_eq!(replica.changes_since(&before), changes);
    assert!(std::ptr::eq(
        before.table("Logical_Switch").unwrap().get(uuid(A)).unwrap().get("name").unwrap(),
        switches.get(uuid(A)).unwrap().get("name").unwrap()
    ));
}

#[test]
fn a_reload_under_another_schema_makes_all_rows_anew() {
    let mut replica = two_switches();
    let narrow = Selection::new().columns("Logical_Switch", &["name"]).resolve(&sample()).layouts;
    assert!(replica.has_layouts(&layouts()) && !replica.has_layouts(&narrow));
    let json = json!({"Logical_Switch": {A: {"initial": {"name": "a"}}}}).to_string();
    let dump = TableUpdates::parse(json.as_bytes(), &narrow, Format::Difference).unwrap();
    let changes = replica.reload(&narrow, dump).unwrap();
    assert_eq!(changes.len(), 3);
    assert_eq!(replica.row_count(), 1);
    let record = replica.table("Logical_Switch").unwrap().get(uuid(A)).unwrap();
    assert_eq!(record.get("ports"), None);
    assert!(record.read::<Option<i64>>("ports").unwrap_err().to_string().contains("was not selected"));
}

#[test]
fn changes_add_up() {
    let mut replica = two_switches();
    let start = replica.clone();
    let mut sum = ChangeSet::default();
    for json in [
        json!({"Logical_Switch": {A: {"modify": {"name": "z"}}, C: {"insert": {"name": "c"}}}}),
        json!({"Logical_Switch": {A: {"modify": {"name": "a"}}, B: {"delete": null}}}),
        json!({"Logical_Switch": {C: {"modify": {"name": "d"}}}}),
    ] {
        sum.merge(replica.apply(differences(&json)).unwrap());
    }
    assert_eq!(sum, replica.changes_since(&start));
    assert_eq!(sum.len(), 2);
}

type State = BTreeMap<u8, (String, BTreeMap<String, String>)>;

fn any_state() -> impl Strategy<Value = State> {
    btree_map(0..12_u8, ("[ab]", btree_map("owner|k", "[xyz]", 0..3)), 0..12)
}

fn dump_of(state: &State) -> TableUpdates {
    let rows: serde_json::Map<String, Value> = state
        .iter()
        .map(|(number, (name, ids))| {
            let ids: Vec<_> = ids.iter().collect();
            let uuid = Uuid::from_bytes([*number; 16]);
            (uuid.to_string(), json!({"initial": {"name": name, "external_ids": ["map", ids]}}))
        })
        .collect();
    differences(&json!({"Logical_Switch": rows}))
}

fn owners(replica: &Replica, owner: &str) -> (Vec<Uuid>, Vec<Uuid>) {
    let table = replica.table("Logical_Switch").unwrap();
    let key = Atom::from("owner");
    let is_match = |record: &&Record| match record.get("external_ids") {
        Some(Datum::Map(map)) => map.get(&key) == Some(&Atom::from(owner)),
        _ => false,
    };
    let indexed = table.find_key("external_ids", "owner", owner).map(Record::uuid).collect();
    (indexed, table.iter().filter(is_match).map(Record::uuid).collect())
}

proptest! {
    /// From any state to any other by reload: content, indexes and changes are right.
    #[test]
    fn reloads_lead_to_the_dump(states in prop::collection::vec(any_state(), 1..5)) {
        let mut replica = Replica::new(&layouts());
        for state in &states {
            let before = replica.clone();
            let changes = replica.reload(&layouts(), dump_of(state)).unwrap();
            let mut fresh = Replica::new(&layouts());
            fresh.apply(dump_of(state)).unwrap();
            prop_assert!(replica.changes_since(&fresh).is_empty());
            prop_assert_eq!(&replica.changes_since(&before), &changes);
            for owner in ["x", "y", "z"] {
                let (indexed, scanned) = owners(&replica, owner);
                prop_assert_eq!(indexed, scanned);
            }
        }
    }
}
