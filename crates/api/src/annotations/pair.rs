//! A value for each address family, as `{"ipv4":"100.88.0.2/16","ipv6":"fd97::2/64"}`.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::text::{address_in_net, from_json, quoted, to_json};

/// An IPv4 and an IPv6 address with their prefix lengths, or one of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pair {
    /// The IPv4 one.
    pub ipv4: Option<Ipv4Net>,
    /// The IPv6 one.
    pub ipv6: Option<Ipv6Net>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Texts {
    #[serde(skip_serializing_if = "String::is_empty")]
    ipv4: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    ipv6: String,
}

impl Pair {
    /// Those that are there, IPv4 first.
    pub fn nets(&self) -> impl Iterator<Item = IpNet> {
        self.ipv4.map(IpNet::from).into_iter().chain(self.ipv6.map(IpNet::from))
    }

    pub(super) fn decode(text: &str) -> Result<Self, String> {
        let texts: Texts = from_json(text)?;
        let ipv4 =
            family(&texts.ipv4, "ipv4", |net| if let IpNet::V4(net) = net { Some(net) } else { None })?;
        let ipv6 =
            family(&texts.ipv6, "ipv6", |net| if let IpNet::V6(net) = net { Some(net) } else { None })?;
        if ipv4.is_none() && ipv6.is_none() {
            return Err("has neither ipv4 nor ipv6".to_owned());
        }
        Ok(Self { ipv4, ipv6 })
    }

    pub(super) fn render(&self) -> String {
        let text = |net: Option<String>| net.unwrap_or_default();
        to_json(&Texts {
            ipv4: text(self.ipv4.map(|net| net.to_string())),
            ipv6: text(self.ipv6.map(|net| net.to_string())),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ipv4.is_none() && self.ipv6.is_none()
    }
}

fn family<T>(text: &str, name: &str, pick: impl Fn(IpNet) -> Option<T>) -> Result<Option<T>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let net = address_in_net(text)?;
    pick(net).map(Some).ok_or_else(|| format!("{} is not {name}", quoted(text)))
}
