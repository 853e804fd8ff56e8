//! Values of columns.
//!
//! In: Rust values, or JSON through [`DatumSeed`]. Out: [`Datum`], a set or a map of atoms in one order only, and its
//! JSON. A column that holds exactly one value is a set with one element, as in the protocol.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::uuid::Uuid;

mod decode;
mod difference;

pub use decode::DatumSeed;

/// A finite number with a total order.
#[derive(Clone, Copy, Default)]
pub struct Real(f64);

impl Real {
    /// Zero.
    pub const ZERO: Self = Self(0.0);

    /// This number, unless it is infinite or none at all: JSON has no words for those.
    pub fn new(number: f64) -> Option<Self> {
        // Adding zero turns minus zero into zero, so that equal numbers are one value.
        number.is_finite().then_some(Self(number + 0.0))
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Ord for Real {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Real {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Real {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Real {}

impl fmt::Debug for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The name that stands for a row's UUID inside the transaction that inserts it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UuidName(Arc<str>);

impl UuidName {
    /// Names follow the protocol's rule for identifiers: letters, digits and underscores, no digit first.
    pub fn new(name: &str) -> Option<Self> {
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let goes_on_well = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (starts_well && goes_on_well).then(|| Self(name.into()))
    }

    /// The nth name of a transaction.
    pub(crate) fn nth(number: usize) -> Self {
        Self(format!("row{number}").into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atom {
    /// A whole number.
    Integer(i64),
    /// A number.
    Real(Real),
    /// Yes or no.
    Boolean(bool),
    /// Text.
    String(Arc<str>),
    /// A reference to a row.
    Uuid(Uuid),
    /// A reference to a row that the same transaction inserts.
    NamedUuid(UuidName),
}

impl Atom {
    /// Whether this is what the server puts into a column that nobody wrote.
    pub fn is_default(&self) -> bool {
        match self {
            Self::Integer(number) => *number == 0,
            Self::Real(number) => *number == Real::ZERO,
            Self::Boolean(flag) => !flag,
            Self::String(text) => text.is_empty(),
            Self::Uuid(uuid) => *uuid == Uuid::ZERO,
            Self::NamedUuid(_) => false,
        }
    }

    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Integer(_) => "integer",
            Self::Real(_) => "real",
            Self::Boolean(_) => "boolean",
            Self::String(_) => "string",
            Self::Uuid(_) | Self::NamedUuid(_) => "uuid",
        }
    }
}

impl Serialize for Atom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(number) => serializer.serialize_i64(*number),
            Self::Real(number) => serializer.serialize_f64(number.0),
            Self::Boolean(flag) => serializer.serialize_bool(*flag),
            Self::String(text) => serializer.serialize_str(text),
            Self::Uuid(uuid) => ("uuid", uuid).serialize(serializer),
            Self::NamedUuid(name) => ("named-uuid", name.as_str()).serialize(serializer),
        }
    }
}

/// Values in one piece of memory, which copies share; none at all where there are no values. Rows are many and much alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Piece<T>(Option<Arc<[T]>>);

impl<T> Piece<T> {
    const EMPTY: Self = Self(None);

    fn as_slice(&self) -> &[T] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The values, to be changed, if no copy shares them.
    fn own(&mut self) -> &mut [T] {
        self.0.as_mut().and_then(Arc::get_mut).unwrap_or_default()
    }
}

impl<T> From<Vec<T>> for Piece<T> {
    fn from(values: Vec<T>) -> Self {
        Self((!values.is_empty()).then(|| values.into()))
    }
}

impl<T> Default for Piece<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Atoms in order, each once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct AtomSet(Piece<Atom>);

impl AtomSet {
    /// The atoms in order.
    pub fn as_slice(&self) -> &[Atom] {
        self.0.as_slice()
    }

    /// Whether this atom is in it.
    pub fn contains(&self, atom: &Atom) -> bool {
        self.as_slice().binary_search(atom).is_ok()
    }

    /// The one atom of a set that has one.
    pub fn single(&self) -> Option<&Atom> {
        match self.as_slice() {
            [atom] => Some(atom),
            _ => None,
        }
    }
}

impl FromIterator<Atom> for AtomSet {
    fn from_iter<I: IntoIterator<Item = Atom>>(atoms: I) -> Self {
        let mut atoms: Vec<Atom> = atoms.into_iter().collect();
        atoms.sort_unstable();
        atoms.dedup();
        Self(atoms.into())
    }
}

impl Serialize for AtomSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_slice() {
            [atom] => atom.serialize(serializer),
            atoms => ("set", atoms).serialize(serializer),
        }
    }
}

/// Keys in order, each once, with their values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct AtomMap(Piece<(Atom, Atom)>);

impl AtomMap {
    /// The pairs in order of their keys.
    pub fn as_slice(&self) -> &[(Atom, Atom)] {
        self.0.as_slice()
    }

    /// The value of a key.
    pub fn get(&self, key: &Atom) -> Option<&Atom> {
        let pairs = self.as_slice();
        let at = pairs.binary_search_by(|(have, _)| have.cmp(key)).ok()?;
        pairs.get(at).map(|(_, value)| value)
    }
}

/// Of two pairs with one key the later wins.
impl FromIterator<(Atom, Atom)> for AtomMap {
    fn from_iter<I: IntoIterator<Item = (Atom, Atom)>>(pairs: I) -> Self {
        let mut pairs: Vec<(Atom, Atom)> = pairs.into_iter().collect();
        // The sort is stable: reversed, the last of the pairs with one key is first and survives.
        pairs.reverse();
        pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
        pairs.dedup_by(|(later, _), (kept, _)| later == kept);
        Self(pairs.into())
    }
}

impl Serialize for AtomMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ("map", self.as_slice()).serialize(serializer)
    }
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Datum {
    /// Any number of atoms; one, where the column holds exactly one value.
    Set(AtomSet),
    /// Atoms by key.
    Map(AtomMap),
}

impl Datum {
    /// A column that holds one value.
    pub fn one(atom: Atom) -> Self {
        Self::Set(AtomSet(vec![atom].into()))
    }

    /// The set without elements.
    pub const fn empty_set() -> Self {
        Self::Set(AtomSet(Piece::EMPTY))
    }

    /// The map without pairs.
    pub const fn empty_map() -> Self {
        Self::Map(AtomMap(Piece::EMPTY))
    }

    /// A set of these.
    pub fn set(atoms: impl IntoIterator<Item = Atom>) -> Self {
        Self::Set(atoms.into_iter().collect())
    }

    /// A map of these.
    pub fn map(pairs: impl IntoIterator<Item = (Atom, Atom)>) -> Self {
        Self::Map(pairs.into_iter().collect())
    }

    /// How many elements or pairs there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Set(set) => set.as_slice().len(),
            Self::Map(map) => map.as_slice().len(),
        }
    }

    /// Whether there is no element or pair.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shares memory with another value where the two are alike: all of it, or single texts of a map.
    pub(crate) fn share_with(&mut self, other: &Self) {
        if self == other {
            self.clone_from(other);
        } else if let (Self::Map(map), Self::Map(other)) = (self, other) {
            for (pair, like) in map.0.own().iter_mut().zip(other.as_slice()) {
                let sides = [(&mut pair.0, &like.0), (&mut pair.1, &like.1)];
                sides
                    .into_iter()
                    .filter(|(own, like)| *own == *like)
                    .for_each(|(own, like)| own.clone_from(like));
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::de::DeserializeSeed;
    use serde_json::json;

    use super::*;
    use crate::schema::{AtomicType, ColumnType};

    pub fn any_atom(kind: AtomicType) -> BoxedStrategy<Atom> {
        match kind {
            AtomicType::Integer => any::<i64>().prop_map(Atom::Integer).boxed(),
            AtomicType::Real => {
                any::<f64>().prop_filter_map("finite", Real::new).prop_map(Atom::Real).boxed()
            }
            AtomicType::Boolean => any::<bool>().prop_map(Atom::Boolean).boxed(),
            // Few and short, so that sets and maps of a pair of cases meet each other.
            AtomicType::String => {
                prop_oneof!["[a-e]{1,2}", ".{0,6}"].prop_map(|text| Atom::String(text.into())).boxed()
            }
            AtomicType::Uuid => {
                any::<[u8; 16]>().prop_map(|bytes| Atom::Uuid(Uuid::from_bytes(bytes))).boxed()
            }
        }
    }

    pub fn any_kind() -> impl Strategy<Value = AtomicType> {
        prop::sample::select(vec![
            AtomicType::Integer,
            AtomicType::Real,
            AtomicType::Boolean,
            AtomicType::String,
            AtomicType::Uuid,
        ])
    }

    pub fn any_type() -> impl Strategy<Value = ColumnType> {
        (any_kind(), prop::option::of(any_kind()), any::<bool>(), any::<bool>()).prop_map(
            |(key, value, optional, many)| ColumnType {
                key: key.into(),
                value: value.map(Into::into),
                min: usize::from(!optional),
                max: if many { None } else { Some(1) },
            },
        )
    }

    /// A value that fits the type.
    pub fn any_datum(ty: &ColumnType) -> BoxedStrategy<Datum> {
        let count = ty.min..=if ty.is_composite() { 8 } else { 1 };
        let key = any_atom(ty.key.kind);
        match &ty.value {
            None => vec(key, count).prop_map(Datum::set).boxed(),
            Some(value) => vec((key, any_atom(value.kind)), count).prop_map(Datum::map).boxed(),
        }
    }

    fn typed_datum() -> impl Strategy<Value = (ColumnType, Datum)> {
        any_type().prop_flat_map(|ty| {
            let datum = any_datum(&ty);
            (Just(ty), datum)
        })
    }

    proptest! {
        #[test]
        fn json_round_trip((ty, datum) in typed_datum()) {
            let text = serde_json::to_string(&datum).unwrap();
            let mut json = serde_json::Deserializer::from_str(&text);
            prop_assert_eq!(DatumSeed(&ty).deserialize(&mut json).unwrap(), datum);
        }
    }

    proptest! {
        #[test]
        fn a_value_that_shares_memory_is_the_same_value(
            (datum, other) in any_type().prop_flat_map(|ty| (any_datum(&ty), any_datum(&ty))),
        ) {
            let mut sharing = datum.clone();
            sharing.share_with(&other);
            prop_assert_eq!(&sharing, &datum);
            let mut alone: Datum = match &datum {
                Datum::Set(set) => Datum::set(set.as_slice().iter().cloned()),
                Datum::Map(map) => Datum::map(map.as_slice().iter().cloned()),
            };
            alone.share_with(&other);
            prop_assert_eq!(alone, datum);
        }
    }

    #[test]
    fn rows_that_are_alike_have_their_texts_once() {
        let text = |text: &str| Atom::String(text.into());
        let one = Datum::map([(text("mark"), text("a")), (text("owner"), text("import"))]);
        let mut other = Datum::map([(text("mark"), text("b")), (text("owner"), text("import"))]);
        other.share_with(&one);
        let (Datum::Map(one), Datum::Map(other)) = (&one, &other) else { panic!("not maps") };
        let same = |one: &Atom, other: &Atom| match (one, other) {
            (Atom::String(one), Atom::String(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let ((mark, a), (owner, import)) = (&one.as_slice()[0], &one.as_slice()[1]);
        let ((mark_too, b), (owner_too, import_too)) = (&other.as_slice()[0], &other.as_slice()[1]);
        assert!(same(mark, mark_too) && same(owner, owner_too) && same(import, import_too) && a != b);
    }

    #[test]
    fn one_element_is_written_bare_and_others_are_tagged() {
        let name = UuidName::new("row1").unwrap();
        let json = |datum: Datum| serde_json::to_value(datum).unwrap();
        assert_eq!(json(Datum::one(Atom::Integer(3))), json!(3));
        assert_eq!(json(Datum::empty_set()), json!(["set", []]));
        assert_eq!(json(Datum::one(Atom::NamedUuid(name))), json!(["named-uuid", "row1"]));
        assert_eq!(
            json(Datum::set([Atom::String("b".into()), Atom::String("a".into()), Atom::String("b".into())])),
            json!(["set", ["a", "b"]])
        );
        assert_eq!(
            json(Datum::map([(Atom::String("k".into()), Atom::Boolean(true))])),
            json!(["map", [["k", true]]])
        );
    }

    #[test]
    fn the_later_pair_of_one_key_wins() {
        let map: AtomMap = [(1, "a"), (0, "b"), (1, "c")]
            .map(|(k, v)| (Atom::Integer(k), Atom::String(v.into())))
            .into_iter()
            .collect();
        assert_eq!(map.get(&Atom::Integer(1)), Some(&Atom::String("c".into())));
        assert_eq!(map.as_slice().len(), 2);
    }

    #[test]
    fn names_follow_the_rule_for_identifiers() {
        assert!(UuidName::new("_a1").is_some());
        for name in ["", "1a", "a-b", "é"] {
            assert!(UuidName::new(name).is_none(), "{name}");
        }
    }

    #[test]
    fn minus_zero_is_zero() {
        assert_eq!(Real::new(-0.0), Real::new(0.0));
        assert_eq!(Real::new(f64::NAN), None);
    }
}
