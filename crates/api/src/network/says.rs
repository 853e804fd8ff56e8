//! What is said about a definition that is refused: by the API server, and by our reading of what was stored without
//! being asked. Users know most of these sentences, so they stay as they are.

pub const CIDR_INVALID: &str = "CIDR is invalid";
pub const IP_INVALID: &str = "IP is invalid";
pub const CIDR_FAMILIES: &str = "When 2 CIDRs are set, they must be from different IP families";
pub const IP_FAMILIES: &str = "When 2 IPs are set, they must be from different IP families";

pub const LAYER3_BLOCK: &str = "spec.layer3 is required when topology is Layer3 and forbidden otherwise";
pub const LAYER2_BLOCK: &str = "spec.layer2 is required when topology is Layer2 and forbidden otherwise";
pub const LOCALNET_BLOCK: &str =
    "spec.localnet is required when topology is Localnet and forbidden otherwise";
pub const JOIN_SPELLINGS: &str =
    "joinSubnets is given twice, here and beside the topology, with different values: give it once";

pub const NO_OVERLAY_LAYER3: &str = "transport 'NoOverlay' is only supported for Layer3 primary networks";
pub const NO_OVERLAY_REQUIRED: &str = "spec.noOverlay is required when type transport is 'NoOverlay'";
pub const NO_OVERLAY_FORBIDDEN: &str = "spec.noOverlay is forbidden when transport type is not 'NoOverlay'";
pub const NO_OVERLAY_OPTIONS: &str = "noOverlayOptions is required if and only if transport is 'NoOverlay'";
pub const NO_OVERLAY_SPELLINGS: &str =
    "noOverlay and noOverlayOptions are two spellings of one field and say different things: use one of them";

pub const EVPN_PRIMARY: &str = "transport 'EVPN' is only supported for Layer2 or Layer3 primary networks";
pub const EVPN_REQUIRED: &str = "spec.evpn field is required when transport is 'EVPN'";
pub const EVPN_FORBIDDEN: &str = "spec.evpn field is forbidden when transport is not 'EVPN'";
pub const EVPN_MAC_VRF_REQUIRED: &str =
    "spec.evpn.macVRF field is required for Layer2 topology when transport is 'EVPN'";
pub const EVPN_IP_VRF_REQUIRED: &str =
    "spec.evpn.ipVRF field is required for Layer3 topology when transport is 'EVPN'";
pub const EVPN_MAC_VRF_FORBIDDEN: &str =
    "spec.evpn.macVRF field is forbidden for Layer3 topology when transport is 'EVPN'";
pub const EVPN_NO_VRF: &str = "at least one of macVRF or ipVRF must be specified";
pub const EVPN_SAME_VNI: &str = "macVRF and ipVRF must use different VNIs";

pub const UPLINKS_PRIMARY: &str = "spec.uplinks is supported only for primary Layer2 and Layer3 networks";
pub const UPLINKS_EVPN: &str = "spec.uplinks is not supported with EVPN transport";

pub const TOPOLOGY_IMMUTABLE: &str = "Topology is immutable";
pub const TRANSPORT_IMMUTABLE: &str = "Transport is immutable";
pub const NO_OVERLAY_IMMUTABLE: &str = "NoOverlay is immutable";
pub const UPLINKS_IMMUTABLE: &str = "uplinks is immutable";
pub const ROLE_IMMUTABLE: &str = "role is immutable";
pub const MTU_IMMUTABLE: &str = "mtu is immutable";
pub const JOIN_IMMUTABLE: &str = "joinSubnets is immutable";
pub const EXCLUDE_IMMUTABLE: &str = "excludeSubnets is immutable";
pub const LAYER2_IMMUTABLE: &str = "Layer2 is immutable";
pub const LOCALNET_IMMUTABLE: &str = "Localnet is immutable";
pub const SECONDARY_IMMUTABLE: &str = "Subnets is immutable for Secondary role";
pub const SUBNETS_REMOVED: &str = "Removing existing subnets is not allowed";
pub const HOST_SUBNET_IMMUTABLE: &str = "hostSubnet is immutable";

pub const SECONDARY_SUBNETS: &str = "Secondary networks may define at most 2 subnets";
pub const SECONDARY_FAMILIES: &str =
    "When 2 CIDRs are set for Secondary networks, they must be from different IP families";
pub const JOIN_PRIMARY: &str = "JoinSubnets is only supported for Primary network";
pub const MTU_IPV6: &str = "MTU should be greater than or equal to 1280 when IPv6 subnet is used";
pub const MTU_IPV6_LOCALNET: &str = "MTU should be greater than or equal to 1280 when an IPv6 subnet is used";
pub const SUBNETS_OVERLAP: &str = "Subnets must not overlap or contain each other";
pub const SUBNETS_TWICE: &str = "Subnets with same CIDR are not allowed";
pub const HOST_SUBNETS_DIFFER: &str = "Subnets from the same IP family must use the same hostSubnet value";
pub const HOST_SUBNET_SIZE: &str = "HostSubnet must be smaller than CIDR subnet";
pub const HOST_SUBNET_UNSET: &str = "cannot use a host subnet length mask shorter than or equal to the cluster subnet \
    mask. Without hostSubnet, nodes get parts of length 24, or 64 for IPv6: give a longer one";
pub const HOST_SUBNET_IPV4: &str = "HostSubnet must < 32 for ipv4 CIDR";
pub const HOST_SUBNET_IPV6: &str = "IPv6 only supports /64 host subnets";

pub const SUBNETS_REQUIRED: &str = "Subnets is required with ipam.mode is Enabled or unset";
pub const SUBNETS_FORBIDDEN: &str = "Subnets must be unset when ipam.mode is Disabled";
pub const DISABLED_SECONDARY: &str = "Disabled ipam.mode is only supported for Secondary network";
pub const GUEST_SUBNETS: &str = "Subnets is required when ipam.mode is GuestAssigned";
pub const GUEST_PRIMARY: &str = "GuestAssigned ipam.mode is only supported for Primary network";
pub const GUEST_LAYER2: &str = "GuestAssigned ipam.mode is only supported for Layer2 network";
pub const PERSISTENT_ENABLED: &str = "lifecycle Persistent is only supported when ipam.mode is Enabled";

pub const GATEWAYS_PRIMARY: &str = "defaultGatewayIPs is only supported for Primary network";
pub const GATEWAYS_INSIDE: &str =
    "defaultGatewayIPs must belong to one of the subnets specified in the subnets field";
pub const GATEWAYS_FAMILIES: &str = "defaultGatewayIPs must be specified for all IP families";
pub const GATEWAYS_INFRASTRUCTURE: &str = "defaultGatewayIPs have to belong to infrastructureSubnets";
pub const RESERVED_SUBNETS: &str = "reservedSubnets must be unset when subnets is unset";
pub const RESERVED_PRIMARY: &str = "reservedSubnets is only supported for Primary network";
pub const RESERVED_INSIDE: &str =
    "reservedSubnets must be subnetworks of the networks specified in the subnets field";
pub const RESERVED_MASKED: &str = "reservedSubnets must be a masked network address (no host bits set)";
pub const INFRASTRUCTURE_SUBNETS: &str = "infrastructureSubnets must be unset when subnets is unset";
pub const INFRASTRUCTURE_PRIMARY: &str = "infrastructureSubnets is only supported for Primary network";
pub const INFRASTRUCTURE_INSIDE: &str =
    "infrastructureSubnets must be subnetworks of the networks specified in the subnets field";
pub const INFRASTRUCTURE_MASKED: &str =
    "infrastructureSubnets must be a masked network address (no host bits set)";
pub const INFRASTRUCTURE_RESERVED: &str = "infrastructureSubnets and reservedSubnets must not overlap";
pub const EXCLUDE_SUBNETS: &str = "excludeSubnets must be unset when subnets is unset";
pub const EXCLUDE_INSIDE: &str =
    "excludeSubnets must be subnetworks of the networks specified in the subnets field";

pub const LOCALNET_SUBNETS: &str =
    "Subnets is required with ipam.mode is Enabled or unset, and forbidden otherwise";
pub const PHYSICAL_NAME: &str = "physicalNetworkName cannot contain `,` or `:` characters";
pub const VLAN_ACCESS: &str =
    "vlan access config is required when vlan mode is 'Access', and forbidden otherwise";
