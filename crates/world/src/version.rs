//! Which writing of an object a record was read from.

use kube::Resource;

/// The version of an object, as the API server counts them. A write that names it is refused once somebody else has
/// written. It is no news by itself: all versions are equal, so that two records which mean the same are.
#[derive(Debug, Clone, Default)]
pub struct Version(Option<Box<str>>);

impl Version {
    /// That of an object.
    pub fn of(object: &impl Resource) -> Self {
        Self(object.meta().resource_version.as_deref().map(Box::from))
    }

    /// As the API server writes it; nothing where it is not known.
    pub fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl PartialEq for Version {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Version {}
