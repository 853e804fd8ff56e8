//! The marks that say "ours". An edge removes only what carries its mark; without it, nothing is touched.

/// Key in `external_ids` of OVN and OVS rows; the value is the row's id in the plan.
pub const ROW_MARK: &str = "underlay/id";
/// Protocol number of kernel routes, rules and addresses that are ours.
pub const ROUTE_PROTOCOL: u8 = 85;
/// Protocol number of kernel routes that FRR's bgpd installed.
pub const BGP_PROTOCOL: u8 = 186;
/// Cookie of `OpenFlow` flows that are ours.
pub const FLOW_COOKIE: u64 = 0x0000_0000_0def_f105;
/// The one nftables table that is ours, family `inet`.
pub const NFT_TABLE: &str = "underlay";
/// Field manager of everything we write to the Kubernetes API.
pub const FIELD_MANAGER: &str = "underlay";
