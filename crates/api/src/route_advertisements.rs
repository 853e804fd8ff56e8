//! `RouteAdvertisements`: which routes of which networks are told to which BGP peers.
#![expect(clippy::duplicated_attributes, reason = "several columns of one type")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{is_default, schema};

/// Condition type: the resource is valid and what it asks for has been configured.
pub const ACCEPTED: &str = "Accepted";
/// Condition type: the routes are there and traffic follows them.
pub const READY: &str = "Ready";
/// Condition type: nodes took all routes that peers told of the networks. It is there once they did not.
pub const ROUTES_IMPORTED: &str = "RoutesImported";

/// What to advertise, for which networks, from which nodes, and in which VRF.
#[derive(CustomResource, KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "k8s.ovn.org",
    version = "v1",
    kind = "RouteAdvertisements",
    plural = "routeadvertisements",
    singular = "routeadvertisements",
    shortname = "ra",
    status = "RouteAdvertisementsStatus",
    derive = "Default",
    derive = "PartialEq",
    // Elsewhere it can be stored without a spec, and is then read with an empty one; here it cannot.
    attr = "cfg_attr(all(), serde(default), schemars(extend(\"required\" = [\"spec\"])))",
    doc = "Advertises routes to pods and egress addresses over BGP.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.status",
        description = "Accepted, or why not."
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the routes are there."
    ),
    printcolumn(
        name = "Target VRF",
        type_ = "string",
        json_path = ".spec.targetVRF",
        description = "Where the routes are advertised. Empty is the default VRF."
    ),
    printcolumn(
        name = "Advertisements",
        type_ = "string",
        json_path = ".spec.advertisements",
        description = "What is advertised."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!('PodNetwork' in self.advertisements) || \
        !(has(self.nodeSelector.matchLabels) || has(self.nodeSelector.matchExpressions))"
    ).message(
        "If 'PodNetwork' is selected for advertisement, a 'nodeSelector' can't be specified as it needs to be \
        advertised on all nodes"
    ),
    validation = Rule::new(
        "self.networkSelectors.all(s, s.networkSelectionType in \
        ['DefaultNetwork', 'ClusterUserDefinedNetworks', 'ClusterUserDefinedNetwork'])"
    ).message("Only DefaultNetwork or ClusterUserDefinedNetworks can be selected"),
    validation = Rule::new(
        "self.networkSelectors.filter(s, s.networkSelectionType in \
        ['ClusterUserDefinedNetworks', 'ClusterUserDefinedNetwork']).size() <= 1"
    ).message(
        "ClusterUserDefinedNetworks and ClusterUserDefinedNetwork are two spellings of one type: use one of them"
    ),
)]
#[schemars(extend("required" = ["networkSelectors", "nodeSelector", "frrConfigurationSelector", "advertisements"]))]
pub struct RouteAdvertisementsSpec {
    /// The VRF in which the routes are advertised, by the BGP routers that the selected FRRConfigurations have there.
    ///
    /// Leave it out, or write `default`, for the node's default VRF. `auto` advertises each network in its own VRF. Any
    /// other name is that VRF. Networks that live in another VRF than this one have their routes leaked into it, and
    /// its routes leaked into theirs: they are then no longer isolated from each other.
    #[serde(rename = "targetVRF", skip_serializing_if = "Option::is_none")]
    pub target_vrf: Option<String>,

    /// The networks whose routes are advertised, at most one selector of each type.
    #[serde(default)]
    #[schemars(length(min = 1, max = 5))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["networkSelectionType".to_owned()]))]
    pub network_selectors: Vec<NetworkSelector>,

    /// The nodes that advertise. An empty selector is all nodes, and must be used with `PodNetwork`: a pod network
    /// that only some nodes advertise would be cut in two.
    #[serde(default)]
    #[schemars(schema_with = "schema::label_selector")]
    pub node_selector: LabelSelector,

    /// The FRRConfigurations, in any namespace, that say which BGP peers the nodes have. For each node they are copied
    /// with the routes added. An empty selector is all of them.
    #[serde(default)]
    #[schemars(schema_with = "schema::label_selector")]
    pub frr_configuration_selector: LabelSelector,

    /// What is advertised, each kind once.
    #[serde(default)]
    #[schemars(length(min = 1, max = 2))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        // Without a message: the rule itself is what users of this resource know.
        validation = "self.all(x, self.exists_one(y, x == y))"
    )]
    pub advertisements: Vec<AdvertisementType>,
}

impl RouteAdvertisementsSpec {
    /// The target VRF with its spellings resolved.
    pub fn target(&self) -> TargetVrf<'_> {
        match self.target_vrf.as_deref() {
            None | Some("" | "default") => TargetVrf::Default,
            Some("auto") => TargetVrf::Auto,
            Some(name) => TargetVrf::Named(name),
        }
    }

    /// Whether this kind of route is advertised.
    pub fn advertises(&self, what: &AdvertisementType) -> bool {
        self.advertisements.contains(what)
    }
}

/// Where routes are advertised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetVrf<'a> {
    /// In the node's default VRF: the field is missing, empty or `default`.
    Default,
    /// Each network in its own VRF: `auto`.
    Auto,
    /// In the VRF of this name.
    Named(&'a str),
}

words! {
    /// A kind of routes.
    pub enum AdvertisementType {
        /// The prefixes of pods.
        PodNetwork = "PodNetwork",
        /// The addresses that EgressIP resources have assigned to nodes.
        EgressIp = "EgressIP",
    }
}

words! {
    /// A kind of networks to select from.
    pub enum NetworkSelectionType {
        /// The cluster's default network.
        DefaultNetwork = "DefaultNetwork",
        /// Networks of ClusterUserDefinedNetwork resources. The singular means the same.
        ClusterUserDefinedNetworks = "ClusterUserDefinedNetworks" | "ClusterUserDefinedNetwork",
        /// Primary networks of UserDefinedNetwork resources.
        PrimaryUserDefinedNetworks = "PrimaryUserDefinedNetworks",
        /// Secondary networks of UserDefinedNetwork resources.
        SecondaryUserDefinedNetworks = "SecondaryUserDefinedNetworks",
        /// Networks of NetworkAttachmentDefinition resources.
        NetworkAttachmentDefinitions = "NetworkAttachmentDefinitions",
    }
}

// What a selector without its type is read as: the API server refuses to store one.
impl Default for NetworkSelectionType {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

/// Selects networks of one kind. The selector that belongs to the kind must be given, and no other.
#[derive(KubeSchema, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "has(self.clusterUserDefinedNetworkSelector) == \
        (self.networkSelectionType in ['ClusterUserDefinedNetworks', 'ClusterUserDefinedNetwork'])"
    ).message(
        "Inconsistent selector: both networkSelectionType ClusterUserDefinedNetworks and \
        clusterUserDefinedNetworkSelector have to be set or neither"
    ),
    validation = Rule::new(
        "has(self.primaryUserDefinedNetworkSelector) == (self.networkSelectionType == 'PrimaryUserDefinedNetworks')"
    ).message(
        "Inconsistent selector: both networkSelectionType PrimaryUserDefinedNetworks and \
        primaryUserDefinedNetworkSelector have to be set or neither"
    ),
    validation = Rule::new(
        "has(self.secondaryUserDefinedNetworkSelector) == \
        (self.networkSelectionType == 'SecondaryUserDefinedNetworks')"
    ).message(
        "Inconsistent selector: both networkSelectionType SecondaryUserDefinedNetworks and \
        secondaryUserDefinedNetworkSelector have to be set or neither"
    ),
    validation = Rule::new(
        "has(self.networkAttachmentDefinitionSelector) == \
        (self.networkSelectionType == 'NetworkAttachmentDefinitions')"
    ).message(
        "Inconsistent selector: both networkSelectionType NetworkAttachmentDefinitions and \
        networkAttachmentDefinitionSelector have to be set or neither"
    ),
)]
#[schemars(extend("required" = ["networkSelectionType"]))]
pub struct NetworkSelector {
    /// The kind of networks: `DefaultNetwork` or `ClusterUserDefinedNetworks` (`ClusterUserDefinedNetwork` is the
    /// same). The other kinds are known and cannot be advertised yet.
    #[serde(default)]
    pub network_selection_type: NetworkSelectionType,

    /// Which ClusterUserDefinedNetworks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_user_defined_network_selector: Option<ClusterUserDefinedNetworkSelector>,

    /// Which namespaces' primary UserDefinedNetworks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_user_defined_network_selector: Option<PrimaryUserDefinedNetworkSelector>,

    /// Which secondary UserDefinedNetworks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary_user_defined_network_selector: Option<NamespacedNetworkSelector>,

    /// Which NetworkAttachmentDefinitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_attachment_definition_selector: Option<NamespacedNetworkSelector>,
}

/// Selects cluster-wide networks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["networkSelector"]))]
pub struct ClusterUserDefinedNetworkSelector {
    /// Labels of the networks. An empty selector is all of them.
    #[schemars(schema_with = "schema::label_selector")]
    pub network_selector: LabelSelector,
}

/// Selects the primary networks of namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["namespaceSelector"]))]
pub struct PrimaryUserDefinedNetworkSelector {
    /// Labels of the namespaces. An empty selector is all of them.
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: LabelSelector,
}

/// Selects networks in namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("required" = ["namespaceSelector", "networkSelector"]))]
pub struct NamespacedNetworkSelector {
    /// Labels of the namespaces. An empty selector is all of them.
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: LabelSelector,

    /// Labels of the networks in them. An empty selector is all of them.
    #[schemars(schema_with = "schema::label_selector")]
    pub network_selector: LabelSelector,
}

/// What has become of the advertisements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct RouteAdvertisementsStatus {
    /// In short: `Accepted`, or `Not Accepted` and why.
    #[serde(skip_serializing_if = "is_default")]
    pub status: String,

    /// In full. `Accepted` says whether the resource is valid and configured, `Ready` whether the routes are there,
    /// and `RoutesImported` is there once nodes refused routes that peers told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_a_spelling_of_no_target() {
        for (text, want) in [
            (None, TargetVrf::Default),
            (Some(""), TargetVrf::Default),
            (Some("default"), TargetVrf::Default),
            (Some("auto"), TargetVrf::Auto),
            (Some("blue"), TargetVrf::Named("blue")),
        ] {
            let spec = RouteAdvertisementsSpec { target_vrf: text.map(str::to_owned), ..Default::default() };
            assert_eq!(spec.target(), want, "{text:?}");
        }
    }

    #[test]
    fn both_spellings_select_the_same_and_unknown_words_stay() {
        let plural = NetworkSelectionType::from("ClusterUserDefinedNetworks");
        assert_eq!(NetworkSelectionType::from("ClusterUserDefinedNetwork"), plural);
        assert_eq!(NetworkSelectionType::from("Later").as_str(), "Later");
    }
}
