//! What a column should hold, as the database says it, and whether it holds that already.
//!
//! In: columns of a plan and of a replica. Out: values to write. Nearly all columns of nearly all rows are right nearly
//! always: to find that takes no memory.

use std::collections::BTreeMap;

use underlay_desired::ovn::{Column, Row};
use underlay_desired::owner::ROW_MARK;
use underlay_ovsdb::{Atom, Datum, Record};

/// A column without references, as the database says it. Where a row has room for our mark, `external_ids` has it.
pub(crate) fn datum(row: &Row, column: &str, value: &Column) -> Datum {
    let text = |text: &String| Atom::from(text.as_str());
    match value {
        Column::Bool(flag) => Datum::one(Atom::Boolean(*flag)),
        Column::Integer(number) => Datum::one(Atom::Integer(*number)),
        Column::Text(one) => Datum::one(text(one)),
        Column::Texts(texts) => Datum::set(texts.iter().map(text)),
        Column::Integers(numbers) => Datum::set(numbers.iter().map(|number| Atom::Integer(*number))),
        Column::Map(map) => match mark_in(row, column) {
            Some(id) => marked(id, map),
            None => Datum::map(map.iter().map(|(key, value)| (text(key), text(value)))),
        },
        Column::Numbers(map) => {
            Datum::map(map.iter().map(|(key, number)| (text(key), Atom::Integer(*number))))
        }
        Column::Rows(_) => Datum::empty_set(),
    }
}

/// Whether a column without references holds what it should.
pub(crate) fn holds(row: &Row, column: &str, value: &Column, have: &Datum) -> bool {
    let is = |atom: &Atom, text: &str| matches!(atom, Atom::String(have) if **have == *text);
    match (value, have) {
        (Column::Text(text), Datum::Set(set)) => set.single().is_some_and(|atom| is(atom, text)),
        (Column::Texts(texts), Datum::Set(set)) => {
            let atoms = set.as_slice();
            atoms.len() == texts.len() && atoms.iter().zip(texts).all(|(atom, text)| is(atom, text))
        }
        (Column::Map(map), Datum::Map(pairs)) => {
            let mark = mark_in(row, column);
            let right = |(key, value): &(Atom, Atom)| {
                let Atom::String(key) = key else { return false };
                let wanted = mark.filter(|_| **key == *ROW_MARK);
                wanted.or_else(|| map.get(&**key).map(String::as_str)).is_some_and(|text| is(value, text))
            };
            let expected = map.len() + usize::from(mark.is_some() && !map.contains_key(ROW_MARK));
            let pairs = pairs.as_slice();
            pairs.len() == expected && pairs.iter().all(right)
        }
        (Column::Rows(_), _) => false,
        _ => datum(row, column, value) == *have,
    }
}

/// The mark that a column carries, where it does.
fn mark_in<'a>(row: &'a Row, column: &str) -> Option<&'a str> {
    let carries = column == "external_ids" && row.id.table.natural_key().is_none();
    carries.then_some(row.id.id.as_str())
}

/// The map with our mark in it.
pub(crate) fn marked(id: &str, map: &BTreeMap<String, String>) -> Datum {
    let pairs = map.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Datum::map(pairs.chain([(ROW_MARK, id)]).map(|(key, value)| (key.into(), value.into())))
}

/// The mark that a record carries, if it does.
pub(crate) fn mark(record: &Record) -> Option<&str> {
    let Some(Datum::Map(pairs)) = record.get("external_ids") else { return None };
    pairs.as_slice().iter().find_map(|pair| match pair {
        (Atom::String(key), Atom::String(id)) if **key == *ROW_MARK => Some(&**id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use underlay_desired::ovn::Table;
    use underlay_desired::why::Why;

    use super::*;

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof!["[ab]{0,2}", Just(ROW_MARK.to_owned())]
    }

    fn any_column() -> impl Strategy<Value = Column> {
        prop_oneof![
            any::<bool>().prop_map(Column::Bool),
            (0..3_i64).prop_map(Column::Integer),
            any_text().prop_map(Column::Text),
            prop::collection::btree_set(any_text(), 0..3).prop_map(Column::Texts),
            prop::collection::btree_set(0..3_i64, 0..3).prop_map(Column::Integers),
            prop::collection::btree_map(any_text(), any_text(), 0..3).prop_map(Column::Map),
            prop::collection::btree_map(any_text(), 0..3_i64, 0..3).prop_map(Column::Numbers),
        ]
    }

    proptest! {
        #[test]
        fn a_column_holds_what_it_should_exactly_if_nothing_were_to_be_written(
            want in any_column(), other in any_column(), named in any_text(), mark in any::<bool>(),
        ) {
            let column = if mark { "external_ids" } else { "options" };
            let row = Row::new(Table::LogicalRouter, named, &Why::default());
            for have in [datum(&row, column, &want), datum(&row, column, &other), datum(&row, "options", &want)] {
                prop_assert_eq!(holds(&row, column, &want, &have), datum(&row, column, &want) == have);
            }
        }
    }
}
