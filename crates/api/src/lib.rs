//! What users and peers write: resources, annotations and conditions, as types.
//!
//! In: objects and annotation texts of the Kubernetes API, some written by people, some by other programs, none to be
//! trusted. Out: typed values or an error that says what is wrong, and the same texts again. Nothing is decided here:
//! whether a value makes sense is for those who have the whole picture.
//!
//! Reading is generous, so that one odd object never ends a watch: fields we do not know are kept or passed over, words
//! we do not know are kept as they are, and a field that the API server should have insisted on may still be missing.
//! What is left (a text where a number must be) is for `kube::core::DeserializeGuard`, which watches wrap around these
//! types.

pub mod annotations;
pub mod conditions;
pub mod crds;
pub mod egress_ip;
pub mod frr;
pub mod ipam_claim;
pub mod kubevirt;
pub mod nad;
pub mod network;
pub mod route_advertisements;
mod schema;
mod shared;
mod words;

pub use annotations::{Annotation, BadAnnotation};
pub use egress_ip::EgressIP;
pub use frr::{BGPSessionState, FRRConfiguration, FRRNodeState};
pub use ipam_claim::IPAMClaim;
pub use kubevirt::{VirtualMachineInstance, VirtualMachineInstanceMigration};
pub use nad::NetworkAttachmentDefinition;
pub use network::{ClusterUserDefinedNetwork, UserDefinedNetwork};
pub use route_advertisements::RouteAdvertisements;
pub use shared::Shared;

/// Fields of a peer's object that this version does not know. They are handed on as they came.
pub type Unknown = std::collections::BTreeMap<String, serde_json::Value>;

/// Whether a value is what its absence means, and need not be written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
