//! The marks that say "ours". An edge removes only what carries its mark; without it, nothing is touched.

/// Key in `external_ids` of rows of OVN and Open vSwitch; the value is the row's id in the plan.
pub const ROW_MARK: &str = "underlay/id";

/// Key in `external_ids` of routes that BGP brought into a router of OVN; the value is the router and the destination.
pub const IMPORT_MARK: &str = "underlay/import";

/// Protocol number of our routes, rules, neighbours and, where the kernel keeps one, addresses.
pub const PROTOCOL: u8 = 85;

/// Group of the links that we make. It is given as a link is made, so that none is ever without it.
pub const LINK_GROUP: u32 = 85;

/// Protocol number of routes that BGP brought.
pub const BGP_PROTOCOL: u8 = 186;

/// Our nftables table, of family `inet`. All in it is ours.
pub const NFT_TABLE: &str = "underlay";

/// High half of the cookies of our flows; the low half tells one flow from another.
pub const FLOW_MARK: u32 = 0x0def_f105;

/// Field manager of what we apply to the Kubernetes API from the cluster manager.
pub const CLUSTER_MANAGER: &str = "underlay-cluster";

/// Field manager of what a node's agent applies to the Kubernetes API.
pub const AGENT_MANAGER: &str = "underlay-agent";

/// First part of the names of FRR's lists and route maps that are ours. A VRF, a peer and a direction follow; none of
/// them can hold a slash, so that two different ones never share a name.
pub const FRR_PREFIX: &str = "underlay/";
