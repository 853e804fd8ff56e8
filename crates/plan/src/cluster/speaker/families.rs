//! What neighbors are told, for each according to the addresses it exchanges routes of.

use std::sync::Arc;

use underlay_api::Shared;
use underlay_net::Family;

/// A list of prefixes: all of it, and the part of each family. Neighbors share them, however many there are.
#[derive(Debug, Clone)]
pub struct Families<T> {
    all: Shared<T>,
    v4: Shared<T>,
    v6: Shared<T>,
}

impl<T> Default for Families<T> {
    fn default() -> Self {
        Self { all: Shared::default(), v4: Shared::default(), v6: Shared::default() }
    }
}

impl<T: Clone> Families<T> {
    /// This list, whose items have their prefix as a text.
    pub fn new(all: Shared<T>, text: impl Fn(&T) -> &str) -> Self {
        let is = |item: &T, family| family_of(text(item)) == family;
        let of = |family| {
            if all.iter().all(|item| is(item, family)) {
                return Arc::clone(&all);
            }
            all.iter().filter(|item| is(item, family)).cloned().collect()
        };
        Self { v4: of(Family::V4), v6: of(Family::V6), all }
    }

    /// All of it.
    pub fn all(&self) -> &Shared<T> {
        &self.all
    }

    /// The part for who exchanges routes of this family, or of both.
    pub fn of(&self, family: Option<Family>) -> &Shared<T> {
        match family {
            None => &self.all,
            Some(Family::V4) => &self.v4,
            Some(Family::V6) => &self.v6,
        }
    }
}

/// The family of a prefix that was written by us.
fn family_of(text: &str) -> Family {
    if text.contains(':') { Family::V6 } else { Family::V4 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families(texts: &[&str]) -> Families<String> {
        Families::new(texts.iter().map(ToString::to_string).collect(), |text| text)
    }

    #[test]
    fn each_family_has_its_part_in_order() {
        let both = families(&["10.2.0.0/24", "fd00::/64", "10.1.0.0/24"]);
        assert_eq!(both.of(Some(Family::V4)).as_ref(), ["10.2.0.0/24", "10.1.0.0/24"]);
        assert_eq!(both.of(Some(Family::V6)).as_ref(), ["fd00::/64"]);
        assert_eq!(both.of(None).len(), 3);
    }

    #[test]
    fn a_list_of_one_family_is_there_once() {
        let one = families(&["10.1.0.0/24"]);
        assert!(Arc::ptr_eq(one.all(), one.of(Some(Family::V4))));
        assert!(one.of(Some(Family::V6)).is_empty());
    }
}
