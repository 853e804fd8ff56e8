//! Endpoint slices for those who write them: what the cluster's controllers say of the endpoints of services, and what
//! was made of it for networks of tenants, letter by letter, to be put right.

use std::collections::BTreeMap;

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::Deserialize;
use underlay_net::Family;

use crate::kind::key_of;
use crate::service::SERVICE_NAME;
use crate::{Key, Version};

/// Label that says who looks after a slice.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// Who looks after slices for networks of tenants.
pub const OURS: &str = "endpointslice-mirror-controller.k8s.ovn.org";
/// Those who look after the cluster's own: one for services with a selector, one for Endpoints that people write. What
/// others write is theirs to write for networks too.
pub const SOURCES: [&str; 2] =
    ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

/// An endpoint slice, watched for its own sake and not for the service it belongs to.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct AnySlice(pub EndpointSlice);

/// An endpoint slice as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// Namespace and name.
    pub key: Key,
    /// Its identity: another one of the same name has another one.
    pub uid: String,
    /// Which writing of it this is.
    pub version: Version,
    /// The family of its addresses; nothing if it has names instead.
    pub family: Option<Family>,
    /// Ports that every endpoint has.
    pub ports: Option<Vec<EndpointPort>>,
    /// Endpoints. Where one is a pod of a source, its address is left out: in another network it is another.
    pub endpoints: Vec<Endpoint>,
    /// Whose it is.
    pub origin: Origin,
}

/// Whose a slice is.
#[derive(Debug, Clone, PartialEq)]
pub enum Origin {
    /// The cluster's: it tells of the endpoints of a service in the default network.
    Cluster {
        /// Name of the service.
        service: String,
        /// Its version.
        version: String,
    },
    /// Ours: it was made from one of the cluster's.
    Ours {
        /// Labels.
        labels: BTreeMap<String, String>,
        /// Annotations.
        annotations: BTreeMap<String, String>,
        /// Owners.
        owners: Vec<OwnerReference>,
        /// Whether it is on its way out.
        ending: bool,
    },
}

impl Slice {
    /// Reads a slice; nothing for one that is neither a source nor ours. A source on its way out is none any more.
    pub fn read(object: EndpointSlice) -> Option<Self> {
        let version = Version::of(&object);
        let EndpointSlice { address_type, mut endpoints, metadata, ports } = object;
        let labels = metadata.labels.clone().unwrap_or_default();
        let manager = labels.get(MANAGED_BY)?.as_str();
        let ending = metadata.deletion_timestamp.is_some();
        let origin = if manager == OURS {
            let annotations = metadata.annotations.clone().unwrap_or_default();
            let owners = metadata.owner_references.clone().unwrap_or_default();
            Origin::Ours { labels, annotations, owners, ending }
        } else {
            let service = labels.get(SERVICE_NAME).filter(|_| SOURCES.contains(&manager) && !ending)?.clone();
            endpoints.iter_mut().filter(|endpoint| pod_of(endpoint).is_some()).for_each(|endpoint| {
                endpoint.addresses = Vec::new();
            });
            Origin::Cluster { service, version: metadata.resource_version.clone().unwrap_or_default() }
        };
        for endpoint in &mut endpoints {
            // The API takes no word of it any more.
            endpoint.deprecated_topology = None;
        }
        let family = match address_type.as_str() {
            "IPv4" => Some(Family::V4),
            "IPv6" => Some(Family::V6),
            _ => None,
        };
        let (key, uid) = (key_of(&metadata), metadata.uid.unwrap_or_default());
        Some(Self { key, uid, version, family, ports, endpoints, origin })
    }

    /// Whether it is ours.
    pub fn is_ours(&self) -> bool {
        matches!(self.origin, Origin::Ours { .. })
    }
}

/// The pod that an endpoint is, if it is one: its name, and its identity if that is told.
pub fn pod_of(endpoint: &Endpoint) -> Option<(&str, Option<&str>)> {
    let target = endpoint.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"))?;
    Some((target.name.as_deref()?, target.uid.as_deref()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(manager: &str, ending: bool) -> Option<Slice> {
        let mut metadata = json!({
            "name": "web-x", "namespace": "red", "uid": "u", "resourceVersion": "7",
            "labels": { MANAGED_BY: manager, SERVICE_NAME: "web" },
        });
        if ending {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        let endpoints = json!([
            { "addresses": ["10.244.0.5"], "targetRef": { "kind": "Pod", "name": "a", "uid": "p" } },
            { "addresses": ["192.0.2.1"], "targetRef": { "kind": "Node", "name": "n" } },
        ]);
        let object = json!({ "metadata": metadata, "addressType": "IPv4", "endpoints": endpoints });
        Slice::read(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn sources_and_ours_are_read_and_nothing_else() {
        let source = read(SOURCES[0], false).unwrap();
        assert_eq!(source.origin, Origin::Cluster { service: "web".to_owned(), version: "7".to_owned() });
        assert_eq!(source.endpoints[0].addresses, [] as [&str; 0], "of the other network");
        assert_eq!(source.endpoints[1].addresses, ["192.0.2.1"], "no pod, and the same everywhere");
        assert_eq!(pod_of(&source.endpoints[0]), Some(("a", Some("p"))));
        assert!(read(SOURCES[1], false).is_some());
        assert_eq!(read(SOURCES[0], true), None);
        assert_eq!(read("somebody", false), None);
        let ours = read(OURS, true).unwrap();
        assert!(ours.is_ours());
        assert_eq!(ours.endpoints[0].addresses, ["10.244.0.5"]);
    }
}
