//! BGP neighbors, and what passes between them and us.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::list;
use crate::words::words;
use crate::{Shared, Unknown, is_default};

/// A BGP peer. It has an `address` or, unnumbered, an `interface`; and an `asn` or a `dynamicASN`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "they are the fields of the resource")]
pub struct Neighbor {
    /// The number of the peer's autonomous system. 0 is none.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(range(min = 0, max = 4_294_967_295_u32))]
    pub asn: u32,

    /// Takes the number from the peer itself: `internal` if it must be our own, `external` if it must be another.
    #[serde(rename = "dynamicASN", skip_serializing_if = "Option::is_none")]
    pub dynamic_asn: Option<DynamicAsn>,

    /// Shows this number to the peer instead of the router's own. Only towards other autonomous systems.
    #[serde(rename = "localASN", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub local_asn: Option<u32>,

    /// The peer's IP address.
    #[serde(skip_serializing_if = "is_default")]
    pub address: String,

    /// The node's interface at which the peer is, for sessions without configured addresses. Both address families
    /// are exchanged.
    #[serde(skip_serializing_if = "is_default")]
    pub interface: String,

    /// Our own end of the session: an address, or an interface whose address is used.
    #[serde(rename = "sourceaddress", skip_serializing_if = "is_default")]
    pub source_address: String,

    /// The peer's TCP port. 179 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16384))]
    pub port: Option<u16>,

    /// The password of the session. Prefer `passwordSecret`: this one is readable by all who can read this resource.
    #[serde(skip_serializing_if = "is_default")]
    pub password: String,

    /// A secret of type `kubernetes.io/basic-auth` whose key `password` is the password, in the namespace of the
    /// program that configures FRR.
    #[serde(skip_serializing_if = "is_default")]
    pub password_secret: SecretReference,

    /// After how long without a word the peer counts as dead, like `1m30s`. 180 s without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold_time: Option<String>,

    /// How often to send a sign of life, like `30s`. 60 s without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive_time: Option<String>,

    /// How long to wait between attempts to connect, in whole seconds, like `10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {
            "rule": "duration(self) >= duration('1s') && duration(self) < duration('65536s')",
            "message": "connect time should be between 1 seconds to 65535",
        },
        {
            "rule": "duration(self).getSeconds() * 1000 == duration(self).getMilliseconds()",
            "message": "connect time should contain a whole number of seconds",
        },
    ]))]
    pub connect_time: Option<String>,

    /// The peer may be more than one hop away.
    #[serde(rename = "ebgpMultiHop", skip_serializing_if = "is_default")]
    pub ebgp_multi_hop: bool,

    /// The BFD profile that watches over the session. Without it, BFD is off.
    #[serde(skip_serializing_if = "is_default")]
    pub bfd_profile: String,

    /// Keeps forwarding along the known routes while the peer restarts. Takes effect with the next connection.
    #[serde(skip_serializing_if = "is_default")]
    pub enable_graceful_restart: bool,

    /// What the peer hears from us, of unicast routes.
    #[serde(skip_serializing_if = "is_default")]
    pub to_advertise: Advertise,

    /// What we take from the peer, of unicast routes.
    #[serde(skip_serializing_if = "is_default")]
    pub to_receive: Receive,

    /// Has no effect any more; `dualStackAddressFamily` took its place.
    #[serde(rename = "disableMP", skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub disable_mp: bool,

    /// Exchanges routes of both address families, not only of the one that the session runs on.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("default" = false))]
    pub dual_stack_address_family: bool,

    /// The kinds of routes: `unicast` for IPv4 or IPv6 routes, `evpn` for Ethernet VPN.
    pub address_families: AddressFamilies,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

words! {
    /// Where the number of the peer's autonomous system comes from.
    pub enum DynamicAsn {
        /// From the peer, and it must be our own.
        Internal = "internal",
        /// From the peer, and it must not be our own.
        External = "external",
    }
}

words! {
    /// A kind of routes.
    pub enum AddressFamily {
        /// IPv4 or IPv6 routes, as the session's addresses.
        Unicast = "unicast",
        /// Ethernet VPN.
        Evpn = "evpn",
    }
}

/// The kinds of routes of a neighbor: unicast, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct AddressFamilies(#[schemars(length(max = 2))] pub Vec<AddressFamily>);

impl Default for AddressFamilies {
    fn default() -> Self {
        Self(vec![AddressFamily::Unicast])
    }
}

/// A secret by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// Its name.
    #[serde(skip_serializing_if = "is_default")]
    pub name: String,

    /// Its namespace.
    #[serde(skip_serializing_if = "is_default")]
    pub namespace: String,
}

/// What a peer hears from us.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Advertise {
    /// Prefixes of the router that may be advertised.
    #[serde(skip_serializing_if = "is_default")]
    pub allowed: AllowedOut,

    /// Prefixes that are advertised with a local preference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_local_pref: Vec<LocalPrefPrefixes>,

    /// Prefixes that are advertised with a community.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with_community: Vec<CommunityPrefixes>,

    /// The next hop of what is advertised, where it is not our end of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_hop: Option<NextHop>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// What a peer may hear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AllowedOut {
    /// The prefixes, each one a prefix of the router.
    #[serde(with = "list", skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub prefixes: Shared<String>,

    /// `filtered` lets these prefixes through, `all` every prefix of the router.
    pub mode: AllowMode,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

words! {
    /// What a list of prefixes lets through.
    #[derive(Default)]
    pub enum AllowMode {
        /// Everything.
        All = "all",
        /// What is in the list.
        #[default]
        Filtered = "filtered",
    }
}

/// Prefixes with a local preference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct LocalPrefPrefixes {
    /// The prefixes. They must be among those that may be advertised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub prefixes: Vec<String>,

    /// The local preference: the highest one wins.
    #[serde(skip_serializing_if = "is_default")]
    pub local_pref: u32,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Prefixes with a community.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct CommunityPrefixes {
    /// The prefixes. They must be among those that may be advertised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1))]
    pub prefixes: Vec<String>,

    /// The community, like `64512:100`, or `large:64512:1:100` for a large one.
    #[serde(skip_serializing_if = "is_default")]
    pub community: String,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Next hops to advertise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct NextHop {
    /// For IPv4 prefixes.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "ipv4"))]
    pub ipv4: String,

    /// For IPv6 prefixes.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "ipv6"))]
    pub ipv6: String,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// What we take from a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Receive {
    /// Prefixes that are taken.
    #[serde(skip_serializing_if = "is_default")]
    pub allowed: AllowedIn,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// What is taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct AllowedIn {
    /// The prefixes.
    #[serde(with = "list", skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<PrefixSelector>")]
    pub prefixes: Shared<PrefixSelector>,

    /// `filtered` lets these prefixes through, `all` whatever the peer says.
    pub mode: AllowMode,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A prefix, or the prefixes in it that have some length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct PrefixSelector {
    /// The prefix.
    #[serde(skip_serializing_if = "is_default")]
    #[schemars(extend("format" = "cidr"))]
    pub prefix: String,

    /// Takes prefixes in it that are at least this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub ge: Option<u32>,

    /// Takes prefixes in it that are at most this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 128))]
    pub le: Option<u32>,

    /// Fields of later versions.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
