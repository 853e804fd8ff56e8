//! MAC addresses, and how they follow from IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// First bytes of every derived address: locally administered, unicast.
const PREFIX: [u8; 2] = [0x0a, 0x58];

/// A MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address that belongs to an IP address: every part of the system derives the same one.
    pub fn of(address: IpAddr) -> Self {
        let tail: [u8; 4] = match address {
            IpAddr::V4(v4) => v4.octets(),
            // The text, not the bytes: that is what others hash.
            IpAddr::V6(v6) => {
                let digest = Sha256::digest(v6.to_string());
                [digest[0], digest[1], digest[2], digest[3]]
            }
        };
        Self([PREFIX[0], PREFIX[1], tail[0], tail[1], tail[2], tail[3]])
    }

    /// The link-local address that a kernel derives from this one (EUI-64).
    pub fn link_local(self) -> Ipv6Addr {
        let mac = self.0;
        let mut address = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 0x02, mac[1], mac[2], 0xff, 0xfe, 0, 0, 0];
        address[13..].copy_from_slice(&mac[3..]);
        Ipv6Addr::from(address)
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let separator = if place == 0 { "" } else { ":" };
            write!(formatter, "{separator}{byte:02x}")?;
        }
        Ok(())
    }
}

/// Text that is no MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a MAC address: write it like 0a:58:0a:f4:01:05")]
pub struct BadMac(String);

impl FromStr for Mac {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Self, BadMac> {
        let bad = || BadMac(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(bad)?;
            // `from_str_radix` takes a sign; an address has none.
            if !part.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(bad());
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() { Err(bad()) } else { Ok(Self(bytes)) }
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn derived_addresses_are_those_of_the_ecosystem() {
        assert_eq!(Mac::of("10.244.1.5".parse().unwrap()).to_string(), "0a:58:0a:f4:01:05");
        assert_eq!(Mac::of("fe80::1".parse().unwrap()).to_string(), "0a:58:6d:6d:c1:50");
    }

    #[test]
    fn link_local_follows_eui_64() {
        let mac: Mac = "0a:58:0a:f4:01:05".parse().unwrap();
        assert_eq!(mac.link_local().to_string(), "fe80::858:aff:fef4:105");
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "",
            "0a:58",
            "0a:58:0a:f4:01:05:06",
            "0a-58-0a-f4-01-05",
            "+a:58:0a:f4:01:05",
            "g0:58:0a:f4:01:05",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text:?} was taken");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(bytes: [u8; 6]) {
            prop_assert_eq!(Mac(bytes).to_string().parse(), Ok(Mac(bytes)));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<Mac>();
        }
    }
}
