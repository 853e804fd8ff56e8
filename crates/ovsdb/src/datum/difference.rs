//! How the server tells what changed in a column, and how that is put onto the value we have.
//!
//! In: a value and another value or a difference. Out: the difference or the other value. A column that holds at most
//! one value is told anew. Of a set come the elements that joined or left. Of a map come the pairs that joined or left,
//! and of a key that stays the new value; a pair that is already there as it is told is one that left.
//!
//! All three are involutions: the function that makes the difference of two values also puts it onto the first.

use std::cmp::Ordering;

use super::{Atom, AtomMap, AtomSet, Datum};

impl Datum {
    /// What turns this value into the other one. `composite` says whether the column can hold more than one value.
    #[must_use]
    pub fn difference(&self, other: &Self, composite: bool) -> Self {
        match (self, other) {
            (Self::Set(one), Self::Set(other)) if composite => {
                Self::Set(AtomSet(toggled(one.as_slice(), other.as_slice(), Ord::cmp).into()))
            }
            (Self::Map(one), Self::Map(other)) if composite => {
                let by_key = |one: &(Atom, Atom), other: &(Atom, Atom)| one.0.cmp(&other.0);
                Self::Map(AtomMap(toggled(one.as_slice(), other.as_slice(), by_key).into()))
            }
            _ => other.clone(),
        }
    }

    /// This value with a difference put onto it.
    #[must_use]
    pub fn apply(&self, difference: &Self, composite: bool) -> Self {
        self.difference(difference, composite)
    }
}

/// What is in only one of the two, in order; of entries with the same key and another value the second's. The first may
/// be very large and the second small: between two entries of the second, the first is taken over as it is.
fn toggled<T: Clone + PartialEq>(mut one: &[T], other: &[T], order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let mut result = Vec::with_capacity(one.len() + other.len());
    for second in other {
        let (smaller, rest) = one.split_at(smaller_than(one, |first| order(first, second)));
        result.extend_from_slice(smaller);
        one = rest;
        match one.split_first() {
            Some((first, rest)) if order(first, second).is_eq() => {
                if first != second {
                    result.push(second.clone());
                }
                one = rest;
            }
            _ => result.push(second.clone()),
        }
    }
    result.extend_from_slice(one);
    result
}

/// How many entries come first. Looked for in steps that grow: it is often none, and sometimes nearly all.
fn smaller_than<T>(entries: &[T], order: impl Fn(&T) -> Ordering) -> usize {
    let mut step = 1;
    while entries.get(step - 1).is_some_and(|entry| order(entry).is_lt()) {
        step *= 2;
    }
    let known = step / 2;
    let end = entries.len().min(step);
    known + entries[known..end].partition_point(|entry| order(entry).is_lt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::datum::tests::{any_datum, any_type};
    use crate::schema::ColumnType;

    fn two_of_a_type() -> impl Strategy<Value = (ColumnType, Datum, Datum)> {
        any_type().prop_flat_map(|ty| {
            let (one, other) = (any_datum(&ty), any_datum(&ty));
            (Just(ty), one, other)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_difference_put_onto_the_first_gives_the_second((ty, a, b) in two_of_a_type()) {
            let difference = a.difference(&b, ty.is_composite());
            prop_assert_eq!(a.apply(&difference, ty.is_composite()), b);
        }

        #[test]
        fn nothing_changed_is_told_as_nothing((ty, a, _) in two_of_a_type()) {
            if ty.is_composite() {
                prop_assert!(a.difference(&a, true).is_empty());
            }
        }
    }

    fn strings(atoms: &[&str]) -> Datum {
        Datum::set(atoms.iter().map(|&text| Atom::String(text.into())))
    }

    fn pairs(pairs: &[(&str, &str)]) -> Datum {
        Datum::map(pairs.iter().map(|&(k, v)| (Atom::String(k.into()), Atom::String(v.into()))))
    }

    #[test]
    fn elements_of_a_set_join_and_leave() {
        assert_eq!(strings(&["a", "b"]).apply(&strings(&["b", "c"]), true), strings(&["a", "c"]));
    }

    #[test]
    fn an_optional_value_is_told_anew() {
        assert_eq!(strings(&["a"]).apply(&strings(&["b"]), false), strings(&["b"]));
        assert_eq!(strings(&["a"]).apply(&strings(&[]), false), strings(&[]));
    }

    #[test]
    fn keys_of_a_map_join_change_and_leave() {
        let have = pairs(&[("changes", "1"), ("leaves", "2"), ("stays", "3")]);
        let told = pairs(&[("changes", "9"), ("joins", "4"), ("leaves", "2")]);
        assert_eq!(have.apply(&told, true), pairs(&[("changes", "9"), ("joins", "4"), ("stays", "3")]));
    }
}
