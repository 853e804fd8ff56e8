//! The definitions of our resources, as installed in a cluster.
//!
//! Those of peers are for clusters where the peer is not installed; where it is, its own definitions stay.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation,
};
use kube::CustomResourceExt;

use crate::schema::polish;
use crate::{
    BGPSessionState, ClusterUserDefinedNetwork, EgressIP, FRRConfiguration, FRRNodeState, IPAMClaim,
    NetworkAttachmentDefinition, RouteAdvertisements, UserDefinedNetwork,
};

/// All definitions, by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut definitions = vec![
        BGPSessionState::crd(),
        ClusterUserDefinedNetwork::crd(),
        EgressIP::crd(),
        FRRConfiguration::crd(),
        FRRNodeState::crd(),
        IPAMClaim::crd(),
        NetworkAttachmentDefinition::crd(),
        RouteAdvertisements::crd(),
        UserDefinedNetwork::crd(),
    ];
    definitions.iter_mut().for_each(finish);
    definitions.sort_by_key(file_name);
    definitions
}

/// The file that holds a definition: `<group>_<plural>.yaml`.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural)
}

fn finish(definition: &mut CustomResourceDefinition) {
    let kind = &definition.spec.names.kind;
    definition.spec.names.list_kind = Some(format!("{kind}List"));
    for version in &mut definition.spec.versions {
        let Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }) = &mut version.schema else {
            continue;
        };
        polish(schema);
        // A missing spec is read as an empty one; that is no reason to write it down.
        for part in schema.properties.iter_mut().flat_map(|parts| parts.values_mut()) {
            part.default = None;
        }
    }
}
