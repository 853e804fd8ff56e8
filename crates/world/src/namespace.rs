//! A namespace as we see it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use underlay_api::network::PRIMARY_NETWORK_LABEL;

/// A namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is on its way out: nothing can be made in it any more.
    pub ending: bool,
}

impl Namespace {
    /// Reads a namespace.
    pub fn read(object: v1::Namespace) -> Self {
        let ending = object.metadata.deletion_timestamp.is_some();
        Self { labels: object.metadata.labels.unwrap_or_default(), ending }
    }

    /// Whether its pods wait for a primary network of their own.
    pub fn wants_primary(&self) -> bool {
        self.labels.contains_key(PRIMARY_NETWORK_LABEL)
    }
}
