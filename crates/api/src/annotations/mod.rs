//! Annotations: every key once, each with the type of its value.
//!
//! In: text that anyone with the right to annotate may have written. Out: a value, or an error that names the
//! annotation and says what is wrong; and the text that the other programs of the ecosystem read.

mod gateway;
mod network;
mod node;
mod pair;
mod pod;
mod request;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use gateway::{EgressGateway, Gateway, GatewayMode, L3Gateway};
pub use network::{Advertisers, GeneratedFrom, NetworkId, NetworkName, TunnelKeys};
pub use node::{
    ChassisId, EncapIps, GatewayMtuSupport, HostCidrs, Layer2Topology, Layer2TunnelIds, MasqueradeSubnets,
    NetworkIds, NodeId, NodeSubnets, PrimaryAddresses, RefusedRoutes, TransitAddresses,
};
pub use pair::Pair;
pub use pod::{PodNetwork, PodNetworks, PodRoute, Role};
pub use request::{
    DefaultNetworkRequest, NetworkRequest, NetworkRequests, PrimaryClaim, UdnClaimReference, primary_claim,
};

/// The name of the default network, where networks are told apart by name.
pub const DEFAULT_NETWORK: &str = "default";

/// An annotation that does not say what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {key}: {problem}")]
pub struct BadAnnotation {
    /// Its key.
    pub key: &'static str,
    /// What is wrong with its text.
    pub problem: String,
}

/// The value of an annotation.
pub trait Annotation: Sized {
    /// Key of the annotation.
    const KEY: &'static str;

    /// Reads the text. The error says what is wrong with it.
    fn decode(text: &str) -> Result<Self, String>;

    /// Writes the text.
    fn render(&self) -> String;

    /// Whether the value is said by leaving the annotation out.
    fn is_silent(&self) -> bool {
        false
    }

    /// Reads the text. The error names the annotation too.
    fn parse(text: &str) -> Result<Self, BadAnnotation> {
        Self::decode(text).map_err(|problem| BadAnnotation { key: Self::KEY, problem })
    }

    /// Reads the annotation of an object, if it is there.
    fn of(object: &ObjectMeta) -> Result<Option<Self>, BadAnnotation> {
        let text = object.annotations.as_ref().and_then(|annotations| annotations.get(Self::KEY));
        text.map(|text| Self::parse(text)).transpose()
    }

    /// Sets the annotation, or removes it where that says the same.
    fn put(&self, annotations: &mut BTreeMap<String, String>) {
        if self.is_silent() {
            annotations.remove(Self::KEY);
        } else {
            annotations.insert(Self::KEY.to_owned(), self.render());
        }
    }
}
