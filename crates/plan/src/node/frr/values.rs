//! Values that users write as text: durations, prefixes, names, communities. What comes out is fit for FRR.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use underlay_desired::frr::{Community, PrefixRange};
use underlay_net::Family;

/// Longest name of a link or VRF.
const LONGEST_LINK: usize = 15;
/// Longest name of a BFD profile in FRR.
const LONGEST_PROFILE: usize = 63;
/// Longest password that TCP's signatures allow.
const LONGEST_PASSWORD: usize = 80;

/// Whole seconds of a duration like `1m30s`; what is below a second is dropped.
pub(super) fn seconds(text: &str) -> Result<u16, String> {
    let bad = || format!("{text:?} is no duration like 1m30s");
    if text == "0" {
        return Ok(0);
    }
    let mut rest = text;
    let mut micros: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let unit_end = rest[digits..].find(|letter: char| letter.is_ascii_digit());
        let (unit, after) = rest[digits..].split_at(unit_end.unwrap_or(rest.len() - digits));
        let factor: u64 = match unit {
            "h" => 3_600_000_000,
            "m" => 60_000_000,
            "s" => 1_000_000,
            "ms" => 1000,
            "us" | "µs" => 1,
            _ => return Err(bad()),
        };
        micros += u128::from(number) * u128::from(factor);
        rest = after;
    }
    if text.is_empty() {
        return Err(bad());
    }
    u16::try_from(micros / 1_000_000).map_err(|_| format!("{text} is more than 65535 seconds"))
}

/// A prefix without host bits.
pub(super) fn prefix(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text.parse().map_err(|_| format!("{text:?} is no prefix like 10.0.0.0/24"))?;
    Ok(net.trunc())
}

/// Prefixes inside a prefix by length.
pub(super) fn range(text: &str, ge: Option<u32>, le: Option<u32>) -> Result<PrefixRange, String> {
    let prefix = prefix(text)?;
    let bits = Family::of_net(&prefix).bits();
    let length = |bound: Option<u32>, word: &str| match bound {
        // Unset is written as 0 too.
        None | Some(0) => Ok(None),
        Some(bound) => u8::try_from(bound)
            .ok()
            .filter(|bound| (prefix.prefix_len()..=bits).contains(bound))
            .map(Some)
            .ok_or_else(|| format!("{word} {bound} is not between the length of {prefix} and {bits}")),
    };
    let (at_least, at_most) = (length(ge, "ge")?, length(le, "le")?);
    match (at_least, at_most) {
        (Some(low), Some(high)) if low > high => Err(format!("ge {low} is more than le {high}")),
        _ => Ok(PrefixRange { prefix, at_least, at_most }),
    }
}

/// `64512:100`, or `large:64512:1:100`.
pub(super) fn community(text: &str) -> Result<Community, String> {
    fn numbers<T: FromStr>(text: &str) -> Option<Vec<T>> {
        text.split(':').map(|number| number.parse().ok()).collect()
    }
    let read = match text.strip_prefix("large:") {
        Some(large) => numbers(large).and_then(|numbers| match numbers[..] {
            [first, second, third] => Some(Community::Large(first, second, third)),
            _ => None,
        }),
        None => numbers(text).and_then(|numbers| match numbers[..] {
            [high, low] => Some(Community::Standard(high, low)),
            _ => None,
        }),
    };
    read.ok_or_else(|| format!("{text:?} is no community like 64512:100 or large:64512:1:100"))
}

/// The name of a link or of a VRF.
pub(super) fn link(name: &str) -> Result<String, String> {
    word(name, LONGEST_LINK).ok_or_else(|| format!("{name:?} is no name of a link or VRF"))
}

/// The name of a BFD profile.
pub(super) fn profile(name: &str) -> Result<String, String> {
    word(name, LONGEST_PROFILE).ok_or_else(|| format!("{name:?} is no name that FRR takes for a BFD profile"))
}

/// A password, never shown.
pub(super) fn password(text: &str) -> Result<&str, String> {
    if text.is_empty() || text.len() > LONGEST_PASSWORD || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("a password has 1 to {LONGEST_PASSWORD} visible ASCII characters and no space"));
    }
    Ok(text)
}

/// Our end of a session with a peer: an address of the same family, or a link.
pub(super) fn source(text: &str, peer: IpAddr) -> Result<String, String> {
    match text.parse::<IpAddr>() {
        Ok(address) if Family::of(address) == Family::of(peer) => Ok(address.to_string()),
        Ok(address) => Err(format!("{address} is not of the address family of {peer}")),
        Err(_) => link(text),
    }
}

/// One word of FRR's configuration.
fn word(name: &str, longest: usize) -> Option<String> {
    let fits = !name.is_empty()
        && name.len() <= longest
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.@:+".contains(&byte));
    fits.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_users_write_them() {
        for (text, want) in
            [("90s", 90), ("1m30s", 90), ("1h", 3600), ("0", 0), ("0s", 0), ("1500ms", 1), ("1h0m5s", 3605)]
        {
            assert_eq!(seconds(text), Ok(want), "{text}");
        }
        for text in ["", "s", "10", "10x", "-1s", "1s5", "100h", "99999999999999999999s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bounds_lie_in_order() {
        assert!(range("10.0.0.0/16", Some(24), Some(24)).is_ok());
        assert_eq!(range("10.0.0.0/16", Some(0), None), range("10.0.0.0/16", None, None));
        assert!(range("10.0.0.0/16", Some(8), None).is_err());
        assert!(range("10.0.0.0/16", None, Some(33)).is_err());
        assert!(range("10.0.0.0/16", Some(25), Some(24)).is_err());
    }

    #[test]
    fn communities_are_of_two_sizes() {
        assert_eq!(community("64512:100"), Ok(Community::Standard(64512, 100)));
        assert_eq!(community("large:1:2:4294967295"), Ok(Community::Large(1, 2, u32::MAX)));
        for text in ["", "1", "1:2:3", "65536:1", "large:1:2", "large:1:2:3:4"] {
            assert!(community(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_line(text in any::<String>()) {
            let _ = (seconds(&text), prefix(&text), community(&text));
            for good in [link(&text), profile(&text), password(&text).map(str::to_owned)].into_iter().flatten() {
                prop_assert!(!good.contains(char::is_whitespace));
            }
        }
    }
}
