//! Lists that many objects have in common. What is generated for thousands of nodes says the same of thousands of
//! networks on each: there is one such list then, and everybody holds it. In manifests they are lists like others.

use std::sync::Arc;

/// A list that others may hold too.
pub type Shared<T> = Arc<[T]>;

/// Lists that are shared as a whole.
pub mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Shared;

    pub fn serialize<S: Serializer, T: Serialize>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        list.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Shared<T>, D::Error> {
        Vec::deserialize(deserializer).map(Into::into)
    }
}

/// Lists of what is shared one by one.
pub mod items {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer, T: Serialize>(
        items: &[Arc<T>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(items.iter().map(AsRef::as_ref))
    }

    pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Vec<Arc<T>>, D::Error> {
        let items = Vec::deserialize(deserializer)?;
        Ok(items.into_iter().map(Arc::new).collect())
    }
}
