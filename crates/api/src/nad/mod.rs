//! `NetworkAttachmentDefinition`: a network that pods can be attached to, and the CNI configuration inside it.

mod netconf;
mod texts;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use netconf::{BadNetConf, NetConf};

use crate::is_default;

/// Where the default network is defined, unless configured otherwise: namespace and name.
pub const DEFAULT_NETWORK: (&str, &str) = ("ovn-kubernetes", "default");
/// The name under which the CNI plugin is installed.
pub const PLUGIN: &str = "ovn-k8s-cni-overlay";
/// Subnets for the routers of a primary network whose definition names none.
pub const DEFAULT_JOIN_SUBNETS: [&str; 2] = ["100.65.0.0/16", "fd99::/64"];
/// Subnets between the routers of a primary Layer2 network, as long as its own do not overlap with them.
pub const DEFAULT_TRANSIT_SUBNETS: [&str; 2] = ["100.88.0.0/16", "fd97::/64"];

/// How pods are attached to a network.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "k8s.cni.cncf.io",
    version = "v1",
    kind = "NetworkAttachmentDefinition",
    plural = "network-attachment-definitions",
    singular = "network-attachment-definition",
    shortname = "net-attach-def",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    // A definition without a spec is legal: it names a configuration file on the nodes.
    attr = "cfg_attr(all(), serde(default))",
    doc = "A network that pods can be attached to."
)]
#[serde(default, rename_all = "camelCase")]
pub struct NetworkAttachmentDefinitionSpec {
    /// The CNI configuration, as JSON.
    #[serde(skip_serializing_if = "is_default")]
    pub config: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_without_spec_is_read() {
        let text = r#"{"kind":"NetworkAttachmentDefinition","metadata":{"name":"a"}}"#;
        let read: NetworkAttachmentDefinition = serde_json::from_str(text).unwrap();
        assert_eq!(read.spec, NetworkAttachmentDefinitionSpec::default());
    }
}
