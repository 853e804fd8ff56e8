//! What the status of a network says: types, reasons and sentences.

/// Condition type: the namespaces that are to have the network have it.
pub const NETWORK_CREATED: &str = "NetworkCreated";
/// Condition type: every node has its part of the network.
pub const NETWORK_ALLOCATION_SUCCEEDED: &str = "NetworkAllocationSucceeded";
/// Condition type: pods reach those on other nodes the way the network asks for.
pub const TRANSPORT_ACCEPTED: &str = "TransportAccepted";
/// Condition type: some node has a part of the network.
pub const NODES_SELECTED: &str = "NodesSelected";

/// Reason of [`NETWORK_CREATED`]: it is so.
pub const ATTACHMENT_CREATED: &str = "NetworkAttachmentDefinitionCreated";
/// Reason of [`NETWORK_CREATED`]: the network is going.
pub const ATTACHMENT_DELETED: &str = "NetworkAttachmentDefinitionDeleted";
/// Reason of [`NETWORK_CREATED`] of a ClusterUserDefinedNetwork: something is wrong, in one namespace at least.
pub const ATTACHMENT_SYNC_ERROR: &str = "NetworkAttachmentDefinitionSyncError";
/// Reason of [`NETWORK_CREATED`] of a UserDefinedNetwork: something is wrong.
pub const SYNC_ERROR: &str = "SyncError";
/// Reason of [`NETWORK_CREATED`]: the VTEP that the network names is not there.
pub const VTEP_NOT_FOUND: &str = "VTEPNotFound";
/// Reason of [`NETWORK_CREATED`]: the VTEP that the network names is not accepted.
pub const VTEP_NOT_ACCEPTED: &str = "VTEPNotAccepted";
/// Reason of [`NETWORK_CREATED`]: its VXLAN networks cannot be made.
pub const EVPN_CONFIG_ERROR: &str = "EVPNConfigError";

/// Reason of [`NETWORK_ALLOCATION_SUCCEEDED`] when it is so.
pub const ALLOCATION_SUCCEEDED: &str = "NetworkAllocationSucceeded";
/// Reason of [`NETWORK_ALLOCATION_SUCCEEDED`] when some node has no part of the network.
pub const INTERNAL_ERROR: &str = "InternalError";
/// Reason of the event about a node that has no part of the network.
pub const ALLOCATION_FAILED: &str = "NetworkAllocationFailed";
/// Reason of [`NODES_SELECTED`].
pub const DYNAMIC_ALLOCATION: &str = "DynamicAllocation";

/// Reason of [`TRANSPORT_ACCEPTED`]: nodes have tunnels to each other.
pub const GENEVE_ACCEPTED: &str = "GeneveTransportAccepted";
/// Reason of [`TRANSPORT_ACCEPTED`]: accepted RouteAdvertisements tell nodes where to find pods.
pub const NO_OVERLAY_ACCEPTED: &str = "NoOverlayTransportAccepted";
/// Reason of [`TRANSPORT_ACCEPTED`]: no RouteAdvertisements select the network.
pub const NO_OVERLAY_MISSING: &str = "NoOverlayRouteAdvertisementsIsMissing";
/// Reason of [`TRANSPORT_ACCEPTED`]: those that do are not accepted.
pub const NO_OVERLAY_NOT_ACCEPTED: &str = "NoOverlayRouteAdvertisementsNotAccepted";
/// Reason of [`TRANSPORT_ACCEPTED`]: the EVPN counterpart of [`NO_OVERLAY_ACCEPTED`].
pub const EVPN_ACCEPTED: &str = "EVPNTransportAccepted";
/// Reason of [`TRANSPORT_ACCEPTED`]: the EVPN counterpart of [`NO_OVERLAY_MISSING`].
pub const EVPN_MISSING: &str = "EVPNRouteAdvertisementsIsMissing";
/// Reason of [`TRANSPORT_ACCEPTED`]: the EVPN counterpart of [`NO_OVERLAY_NOT_ACCEPTED`].
pub const EVPN_NOT_ACCEPTED: &str = "EVPNRouteAdvertisementsNotAccepted";
/// Reason of [`TRANSPORT_ACCEPTED`]: the cluster does not advertise routes at all.
pub const ADVERTISEMENTS_NOT_ENABLED: &str = "RouteAdvertisementsNotEnabled";

/// Message of [`ATTACHMENT_CREATED`] on a UserDefinedNetwork.
pub const CREATED: &str = "NetworkAttachmentDefinition has been created";
/// Message of [`ATTACHMENT_DELETED`] on a UserDefinedNetwork.
pub const DELETED: &str = "NetworkAttachmentDefinition is being deleted";
/// Message of [`ALLOCATION_SUCCEEDED`].
pub const ALLOCATED: &str = "Network allocation succeeded for all synced nodes.";
/// Message of [`GENEVE_ACCEPTED`].
pub const GENEVE_CONFIGURED: &str = "Geneve transport has been configured.";
/// Message of [`NO_OVERLAY_ACCEPTED`].
pub const NO_OVERLAY_CONFIGURED: &str = "No-overlay transport has been configured.";
/// Message of [`EVPN_ACCEPTED`].
pub const EVPN_CONFIGURED: &str = "Transport has been configured as 'EVPN'.";
/// Message of [`NO_OVERLAY_MISSING`] and [`EVPN_MISSING`].
pub const NOBODY_ADVERTISES: &str = "No RouteAdvertisements CR is advertising the pod networks.";
/// Message of [`DYNAMIC_ALLOCATION`] when no node has a part of the network.
pub const NO_NODES: &str = "no nodes currently rendered with network";

/// Message of [`ATTACHMENT_CREATED`] on a ClusterUserDefinedNetwork. The namespaces come in order.
pub fn created_in(namespaces: &[&str]) -> String {
    format!(
        "NetworkAttachmentDefinition has been created in following namespaces: [{}]",
        namespaces.join(", ")
    )
}

/// Message of [`ATTACHMENT_DELETED`] on a ClusterUserDefinedNetwork: what still goes, as `<namespace>/<name>`.
pub fn deleted_in(attachments: &[&str]) -> String {
    format!("NetworkAttachmentDefinition are being deleted: [{}]", attachments.join(" "))
}

/// Message of [`INTERNAL_ERROR`]: a node without its part of the network.
pub fn allocation_failed(node: &str) -> String {
    format!("Network allocation failed for at least one node: {node}, check UDN events for more info.")
}

/// Message of the event [`ALLOCATION_FAILED`].
pub fn allocation_failed_because(node: &str, problem: &str) -> String {
    format!("Error occurred for node {node}: {problem}")
}

/// Message of [`NO_OVERLAY_NOT_ACCEPTED`] and [`EVPN_NOT_ACCEPTED`].
pub fn not_accepted(advertisements: &[&str]) -> String {
    format!(
        "RouteAdvertisements CR {} advertises the pod subnets, but its status is not accepted.",
        advertisements.join(", ")
    )
}

/// Message of [`ADVERTISEMENTS_NOT_ENABLED`]: `NoOverlay` or `EVPN` needs what the cluster does not do.
pub fn advertisements_not_enabled(transport: &str) -> String {
    format!("RouteAdvertisements feature is not enabled but required for {transport} transport.")
}

/// Message of [`DYNAMIC_ALLOCATION`] when some nodes have a part of the network.
pub fn nodes(count: usize) -> String {
    format!("{count} node(s) rendered with network")
}

/// Message about a namespace that is to have a primary network and lacks the label for it.
pub fn namespace_without_label(namespace: &str) -> String {
    format!(
        "invalid primary network state for namespace \"{namespace}\": a valid primary user defined network or network \
        attachment definition custom resource, and required namespace label \"{}\" must both be present",
        super::PRIMARY_NETWORK_LABEL
    )
}

/// Message about a namespace that has another primary network already: the name of its attachment definition.
pub fn primary_exists(namespace: &str, attachment: &str) -> String {
    format!("primary network already exist in namespace \"{namespace}\": \"{attachment}\"")
}

/// Message about an attachment definition of somebody else's with the name that ours would have.
pub fn foreign_attachment(namespace: &str, name: &str) -> String {
    format!("foreign NetworkAttachmentDefinition with the desired name already exist [{namespace}/{name}]")
}

/// Message about a network that cannot go because pods use it: `<namespace>/<pod>`.
pub fn in_use(namespace: &str, name: &str, pods: &[&str]) -> String {
    format!(
        "failed to delete NetworkAttachmentDefinition [{namespace}/{name}]: network in use by the following pods: [{}]",
        pods.join(" ")
    )
}

/// Message about a network that cannot be rendered as an attachment definition.
pub fn not_rendered(problem: &str) -> String {
    format!("failed to generate NetworkAttachmentDefinition: failed to render CNI network config: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_those_that_users_know() {
        for (sentence, known) in [
            (
                created_in(&["a", "b"]),
                "NetworkAttachmentDefinition has been created in following namespaces: [a, b]",
            ),
            (created_in(&[]), "NetworkAttachmentDefinition has been created in following namespaces: []"),
            (deleted_in(&["a/n", "b/n"]), "NetworkAttachmentDefinition are being deleted: [a/n b/n]"),
            (
                allocation_failed("n1"),
                "Network allocation failed for at least one node: n1, check UDN events for more info.",
            ),
            (allocation_failed_because("n1", "full"), "Error occurred for node n1: full"),
            (
                not_accepted(&["a", "b"]),
                "RouteAdvertisements CR a, b advertises the pod subnets, but its status is not accepted.",
            ),
            (
                advertisements_not_enabled("NoOverlay"),
                "RouteAdvertisements feature is not enabled but required for NoOverlay transport.",
            ),
            (nodes(2), "2 node(s) rendered with network"),
            (
                namespace_without_label("test"),
                "invalid primary network state for namespace \"test\": a valid primary user defined network or network \
                attachment definition custom resource, and required namespace label \
                \"k8s.ovn.org/primary-user-defined-network\" must both be present",
            ),
            (primary_exists("x", "nad"), "primary network already exist in namespace \"x\": \"nad\""),
            (
                foreign_attachment("ns", "name"),
                "foreign NetworkAttachmentDefinition with the desired name already exist [ns/name]",
            ),
            (
                in_use("ns", "name", &["ns/a", "ns/b"]),
                "failed to delete NetworkAttachmentDefinition [ns/name]: network in use by the following pods: [ns/a ns/b]",
            ),
            (
                not_rendered("why"),
                "failed to generate NetworkAttachmentDefinition: failed to render CNI network config: why",
            ),
        ] {
            assert_eq!(sentence, known);
        }
    }
}
