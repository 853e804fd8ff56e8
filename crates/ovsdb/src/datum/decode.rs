//! JSON to values, directed by the column's type: only the type tells `3` the integer from `3` the real.
//!
//! The values are made straight from the text; there is no tree of JSON in between, which for a first dump of many
//! megabytes would cost several times the memory of the result.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Unexpected, Visitor};

use super::{Atom, AtomMap, AtomSet, Datum, Real, UuidName};
use crate::schema::{AtomicType, ColumnType};

/// Reads one value of a column of this type.
///
/// Only the shape is judged. Ranges and enumerations are the server's business, and [`ColumnType::check`]'s.
#[derive(Debug, Clone, Copy)]
pub struct DatumSeed<'a>(pub &'a ColumnType);

impl<'de> DeserializeSeed<'de> for DatumSeed<'_> {
    type Value = Datum;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Datum, D::Error> {
        let key = self.0.key.kind;
        match &self.0.value {
            None => deserializer.deserialize_any(SetVisitor(key)).map(Datum::Set),
            Some(value) => deserializer.deserialize_seq(MapVisitor(key, value.kind)).map(Datum::Map),
        }
    }
}

/// The word that opens a JSON array.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Tag {
    Set,
    Map,
    Uuid,
    NamedUuid,
}

/// A set, or the bare atom that stands for a set of one.
struct SetVisitor(AtomicType);

impl<'de> Visitor<'de> for SetVisitor {
    type Value = AtomSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} or a set of them", self.0)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<AtomSet, E> {
        AtomVisitor(self.0).visit_bool(flag).map(single)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<AtomSet, E> {
        AtomVisitor(self.0).visit_i64(number).map(single)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<AtomSet, E> {
        AtomVisitor(self.0).visit_u64(number).map(single)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<AtomSet, E> {
        AtomVisitor(self.0).visit_f64(number).map(single)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<AtomSet, E> {
        AtomVisitor(self.0).visit_str(text).map(single)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AtomSet, A::Error> {
        let set = match opening(&mut seq)? {
            Tag::Set => required(seq.next_element_seed(AtomsSeed(self.0))?)?,
            tag => single(reference(self.0, &tag, &mut seq)?),
        };
        closing(&mut seq)?;
        Ok(set)
    }
}

fn single(atom: Atom) -> AtomSet {
    AtomSet(vec![atom].into())
}

/// The elements between the brackets of a set.
struct AtomsSeed(AtomicType);

impl<'de> DeserializeSeed<'de> for AtomsSeed {
    type Value = AtomSet;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AtomSet, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for AtomsSeed {
    type Value = AtomSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "elements of type {}", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AtomSet, A::Error> {
        let mut atoms = Vec::new();
        while let Some(atom) = seq.next_element_seed(AtomSeed(self.0))? {
            atoms.push(atom);
        }
        Ok(atoms.into_iter().collect())
    }
}

/// A map, never bare.
struct MapVisitor(AtomicType, AtomicType);

impl<'de> Visitor<'de> for MapVisitor {
    type Value = AtomMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a map of {} to {}", self.0, self.1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AtomMap, A::Error> {
        let Tag::Map = opening(&mut seq)? else {
            return Err(A::Error::invalid_value(Unexpected::Other("another array"), &self));
        };
        let map = required(seq.next_element_seed(PairsSeed(self.0, self.1))?)?;
        closing(&mut seq)?;
        Ok(map)
    }
}

/// The pairs between the brackets of a map.
struct PairsSeed(AtomicType, AtomicType);

impl<'de> DeserializeSeed<'de> for PairsSeed {
    type Value = AtomMap;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<AtomMap, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for PairsSeed {
    type Value = AtomMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pairs of {} and {}", self.0, self.1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AtomMap, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = seq.next_element_seed(PairSeed(self.0, self.1))? {
            pairs.push(pair);
        }
        Ok(pairs.into_iter().collect())
    }
}

struct PairSeed(AtomicType, AtomicType);

impl<'de> DeserializeSeed<'de> for PairSeed {
    type Value = (Atom, Atom);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(Atom, Atom), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for PairSeed {
    type Value = (Atom, Atom);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a pair of {} and {}", self.0, self.1)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(Atom, Atom), A::Error> {
        let key = required(seq.next_element_seed(AtomSeed(self.0))?)?;
        let value = required(seq.next_element_seed(AtomSeed(self.1))?)?;
        closing(&mut seq)?;
        Ok((key, value))
    }
}

struct AtomSeed(AtomicType);

impl<'de> DeserializeSeed<'de> for AtomSeed {
    type Value = Atom;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Atom, D::Error> {
        deserializer.deserialize_any(AtomVisitor(self.0))
    }
}

struct AtomVisitor(AtomicType);

impl<'de> Visitor<'de> for AtomVisitor {
    type Value = Atom;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}", self.0)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Atom, E> {
        match self.0 {
            AtomicType::Boolean => Ok(Atom::Boolean(flag)),
            _ => Err(E::invalid_type(Unexpected::Bool(flag), &self)),
        }
    }

    // Every whole number up to 2^53 is the same as a real; the server writes larger reals with an exponent.
    #[allow(clippy::cast_precision_loss)]
    fn visit_i64<E: Error>(self, number: i64) -> Result<Atom, E> {
        match self.0 {
            AtomicType::Integer => Ok(Atom::Integer(number)),
            AtomicType::Real => self.visit_f64(number as f64),
            _ => Err(E::invalid_type(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Atom, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Atom, E> {
        match (self.0, Real::new(number)) {
            (AtomicType::Real, Some(real)) => Ok(Atom::Real(real)),
            _ => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Atom, E> {
        match self.0 {
            AtomicType::String => Ok(Atom::String(text.into())),
            _ => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Atom, A::Error> {
        let tag = opening(&mut seq)?;
        let atom = reference(self.0, &tag, &mut seq)?;
        closing(&mut seq)?;
        Ok(atom)
    }
}

/// What follows `"uuid"` or `"named-uuid"`.
fn reference<'de, A: SeqAccess<'de>>(kind: AtomicType, tag: &Tag, seq: &mut A) -> Result<Atom, A::Error> {
    let expected = AtomVisitor(kind);
    match (kind, tag) {
        (AtomicType::Uuid, Tag::Uuid) => {
            let text: String = required(seq.next_element()?)?;
            text.parse().map(Atom::Uuid).map_err(A::Error::custom)
        }
        (AtomicType::Uuid, Tag::NamedUuid) => {
            let text: String = required(seq.next_element()?)?;
            let name = UuidName::new(&text);
            name.map(Atom::NamedUuid)
                .ok_or_else(|| A::Error::invalid_value(Unexpected::Str(&text), &expected))
        }
        _ => Err(A::Error::invalid_type(Unexpected::Seq, &expected)),
    }
}

fn opening<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<Tag, A::Error> {
    required(seq.next_element()?)
}

fn required<T, E: Error>(element: Option<T>) -> Result<T, E> {
    element.ok_or_else(|| E::custom("an array is too short"))
}

fn closing<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<(), A::Error> {
    match seq.next_element::<serde::de::IgnoredAny>()? {
        None => Ok(()),
        Some(_) => Err(A::Error::custom("an array is too long")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(ty: &ColumnType, json: &serde_json::Value) -> Result<Datum, String> {
        DatumSeed(ty).deserialize(json).map_err(|error| error.to_string())
    }

    fn column(key: AtomicType, value: Option<AtomicType>) -> ColumnType {
        ColumnType { key: key.into(), value: value.map(Into::into), min: 0, max: None }
    }

    #[test]
    fn a_bare_atom_is_a_set_of_one() {
        let strings = column(AtomicType::String, None);
        assert_eq!(read(&strings, &json!("a")), read(&strings, &json!(["set", ["a"]])));
        let uuids = column(AtomicType::Uuid, None);
        let uuid = json!(["uuid", "7932ce18-669b-425e-83cd-436cf7abbf11"]);
        assert_eq!(read(&uuids, &uuid), read(&uuids, &json!(["set", [uuid]])));
    }

    #[test]
    fn the_type_decides_what_a_number_is() {
        let read_one = |kind| read(&column(kind, None), &json!(3));
        assert_eq!(read_one(AtomicType::Integer), Ok(Datum::one(Atom::Integer(3))));
        assert_eq!(read_one(AtomicType::Real), Ok(Datum::one(Atom::Real(Real(3.0)))));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let strings = column(AtomicType::String, None);
        let numbers = column(AtomicType::Integer, None);
        let uuids = column(AtomicType::Uuid, None);
        let map = column(AtomicType::String, Some(AtomicType::String));
        for (ty, json) in [
            (&strings, json!(1)),
            (&strings, json!(null)),
            (&strings, json!({})),
            (&strings, json!([])),
            (&strings, json!(["set"])),
            (&strings, json!(["set", "a"])),
            (&strings, json!(["set", ["a"], "b"])),
            (&strings, json!(["set", [["set", []]]])),
            (&strings, json!(["map", []])),
            (&strings, json!(["bag", []])),
            (&strings, json!(["uuid", "7932ce18-669b-425e-83cd-436cf7abbf11"])),
            (&numbers, json!(1.5)),
            (&numbers, json!(u64::MAX)),
            (&numbers, json!(true)),
            (&uuids, json!("7932ce18-669b-425e-83cd-436cf7abbf11")),
            (&uuids, json!(["uuid", "7932ce18"])),
            (&uuids, json!(["named-uuid", "a b"])),
            (&map, json!("a")),
            (&map, json!(["set", []])),
            (&map, json!(["map", [["a"]]])),
            (&map, json!(["map", [["a", "b", "c"]]])),
            (&map, json!(["map", [["a", 1]]])),
        ] {
            assert!(read(ty, &json).is_err(), "{json} read as {ty:?}");
        }
    }
}
