//! Why something should be: the objects it came from.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An object of the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Its kind, as in manifests.
    pub kind: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectRef {
    /// An object without a namespace.
    pub fn cluster(kind: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: None, name: name.to_owned() }
    }

    /// An object in a namespace.
    pub fn namespaced(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: Some(namespace.to_owned()), name: name.to_owned() }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(formatter, "{} {namespace}/{}", self.kind, self.name),
            None => write!(formatter, "{} {}", self.kind, self.name),
        }
    }
}

/// The objects something came from. Nothing is planned without at least one. Thousands of items have the same reason, so
/// they share it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Why(Arc<BTreeSet<ObjectRef>>);

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Why {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeSet::deserialize(deserializer).map(|objects| Self(Arc::new(objects)))
    }
}

impl Why {
    /// One object.
    pub fn from_object(object: ObjectRef) -> Self {
        Self(Arc::new(BTreeSet::from([object])))
    }

    /// These objects and one more.
    #[must_use]
    pub fn and(mut self, object: ObjectRef) -> Self {
        Arc::make_mut(&mut self.0).insert(object);
        self
    }

    /// All of them, in order.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.0.iter()
    }
}
