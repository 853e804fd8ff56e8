//! Annotations of networks and of what is generated for them.

use std::collections::BTreeSet;

use super::Annotation;
use super::text::{from_json, name, number, quoted, to_json};

/// The number of a network, `0` to `4095`; 0 is the default network. On each of its network attachment definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkId(pub u16);

impl NetworkId {
    /// The default network's.
    pub const DEFAULT: Self = Self(0);
    /// The last number.
    pub const LAST: u16 = 4095;
}

impl Annotation for NetworkId {
    const KEY: &'static str = "k8s.ovn.org/network-id";

    fn decode(text: &str) -> Result<Self, String> {
        number(text, 0..=Self::LAST).map(Self)
    }

    fn render(&self) -> String {
        self.0.to_string()
    }
}

/// The name of a network. On each of its network attachment definitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetworkName(pub String);

impl Annotation for NetworkName {
    const KEY: &'static str = "k8s.ovn.org/network-name";

    fn decode(text: &str) -> Result<Self, String> {
        name(text).map(Self)
    }

    fn render(&self) -> String {
        self.0.clone()
    }
}

/// Keys of a network's switches and routers between nodes: of a primary Layer2 network `[16711684,16715779]`, the switch
/// and the router; of any other `[]`. On each of its network attachment definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TunnelKeys(pub Vec<u32>);

impl TunnelKeys {
    /// The key of a network's switch is this and its number.
    pub const SWITCHES: u32 = 16_711_683;
    /// The first key of a router.
    pub const FIRST_ROUTER: u32 = Self::SWITCHES + 4096;
    /// The last key.
    pub const LAST: u32 = (1 << 24) - 1;
}

impl Annotation for TunnelKeys {
    const KEY: &'static str = "k8s.ovn.org/tunnel-keys";

    fn decode(text: &str) -> Result<Self, String> {
        let keys: Vec<u32> = from_json(text)?;
        match keys.iter().find(|key| !(1..=Self::LAST).contains(*key)) {
            Some(key) => Err(format!("{key} is not a key from 1 to {}", Self::LAST)),
            None => Ok(Self(keys)),
        }
    }

    fn render(&self) -> String {
        to_json(&self.0)
    }
}

/// The RouteAdvertisements that advertise a network: `["blue","red"]`. On each of its network attachment definitions,
/// where an empty list stays when the last one goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advertisers(pub BTreeSet<String>);

impl Annotation for Advertisers {
    const KEY: &'static str = "k8s.ovn.org/route-advertisements";

    fn decode(text: &str) -> Result<Self, String> {
        from_json(text).map(Self)
    }

    fn render(&self) -> String {
        to_json(&self.0)
    }
}

/// What an FRRConfiguration was generated from: `<RouteAdvertisements>/<FRRConfiguration>/<node>`. The key is the same
/// as that of [`Advertisers`], on another kind of object; it is also the key of a label whose value is the
/// RouteAdvertisements alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GeneratedFrom {
    /// The RouteAdvertisements that asked for it.
    pub advertisements: String,
    /// The FRRConfiguration it started from, in the same namespace.
    pub source: String,
    /// The node it is for.
    pub node: String,
}

impl Annotation for GeneratedFrom {
    const KEY: &'static str = Advertisers::KEY;

    fn decode(text: &str) -> Result<Self, String> {
        match text.split('/').collect::<Vec<_>>().as_slice() {
            [advertisements, source, node]
                if ![advertisements, source, node].iter().any(|part| part.is_empty()) =>
            {
                Ok(Self {
                    advertisements: (*advertisements).to_owned(),
                    source: (*source).to_owned(),
                    node: (*node).to_owned(),
                })
            }
            _ => Err(format!("{} is not three names with slashes between them", quoted(text))),
        }
    }

    fn render(&self) -> String {
        format!("{}/{}/{}", self.advertisements, self.source, self.node)
    }
}
