//! `NetworkAttachmentDefinition`: a network that pods can be attached to, and the CNI configuration inside it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Unknown, is_default};

/// Where the default network is defined, unless configured otherwise: namespace and name.
pub const DEFAULT_NETWORK: (&str, &str) = ("ovn-kubernetes", "default");
/// The name under which the CNI plugin is installed.
pub const PLUGIN: &str = "ovn-k8s-cni-overlay";

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

/// The CNI configuration of a network of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetConf {
    /// Version of the CNI specification.
    pub cni_version: String,
    /// Name of the network.
    pub name: String,
    /// Name of the plugin's program.
    #[serde(rename = "type")]
    pub plugin: String,
    /// What only user-defined networks have.
    #[serde(flatten)]
    pub other: Unknown,
}

/// The text is not a CNI configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a CNI configuration: {0}")]
pub struct BadNetConf(String);

impl NetConf {
    /// The default network as others write it, letter for letter: who compares texts finds no difference.
    pub const DEFAULT_NETWORK: &str =
        r#"{"cniVersion": "1.1.0", "name": "ovn-kubernetes", "type": "ovn-k8s-cni-overlay"}"#;

    /// The configuration of the default network.
    pub fn default_network() -> Self {
        Self {
            cni_version: "1.1.0".to_owned(),
            name: "ovn-kubernetes".to_owned(),
            plugin: PLUGIN.to_owned(),
            other: Unknown::new(),
        }
    }

    /// Reads a configuration.
    pub fn parse(text: &str) -> Result<Self, BadNetConf> {
        serde_json::from_str(text).map_err(|error| BadNetConf(error.to_string()))
    }

    /// Whether the network is one of ours.
    pub fn is_ours(&self) -> bool {
        self.plugin == PLUGIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_networks_text_is_its_configuration() {
        assert_eq!(NetConf::parse(NetConf::DEFAULT_NETWORK), Ok(NetConf::default_network()));
    }

    #[test]
    fn a_definition_without_spec_is_read() {
        let text = r#"{"kind":"NetworkAttachmentDefinition","metadata":{"name":"a"}}"#;
        let read: NetworkAttachmentDefinition = serde_json::from_str(text).unwrap();
        assert_eq!(read.spec, NetworkAttachmentDefinitionSpec::default());
    }

    #[test]
    fn what_is_no_configuration_says_so() {
        for text in ["", "[]", "{}", r#"{"name":"a"}"#] {
            let error = NetConf::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("not a CNI configuration: "), "{text:?}: {error}");
        }
    }
}
