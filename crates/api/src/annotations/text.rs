//! Words and JSON in annotations, and what to say when they are wrong.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;
use serde::Serialize;
use serde::de::DeserializeOwned;
use underlay_net::Mac;

/// How much of a wrong text an error repeats.
const QUOTED: usize = 60;

/// Reads JSON.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Writes JSON, without spaces.
pub fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("strings, numbers, lists and maps with text keys are always JSON")
}

/// Text in quotes, cut if it is long: errors end up in events and conditions.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// An address and the length of its subnet.
pub fn address_in_net(text: &str) -> Result<IpNet, String> {
    word(text, "an address with a prefix length: write it like 10.244.1.5/24")
}

/// A subnet. Bits behind its length do not count.
pub fn subnet(text: &str) -> Result<IpNet, String> {
    word::<IpNet>(text, "a subnet: write it like 10.244.1.0/24").map(|net| net.trunc())
}

/// An address.
pub fn address(text: &str) -> Result<IpAddr, String> {
    word(text, "an IP address")
}

/// A MAC address.
pub fn mac(text: &str) -> Result<Mac, String> {
    word(text, "a MAC address: write it like 0a:58:0a:f4:01:05")
}

/// A decimal number within bounds.
pub fn number(text: &str, bounds: RangeInclusive<u16>) -> Result<u16, String> {
    // The standard parser takes a sign; nobody writes one.
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten().filter(|number| bounds.contains(number));
    number.ok_or_else(|| {
        format!("{} is not a number from {} to {}", quoted(text), bounds.start(), bounds.end())
    })
}

/// Something that must not be empty.
pub fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Each text of a list, read by the same reader.
pub fn each<T>(texts: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    texts.iter().map(|text| read(text)).collect()
}

/// Each value of a list as text.
pub fn texts<T: Display>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

/// A list that also has a single copy: the copy counts where the list is missing, and must be its first element where
/// both are there.
pub fn list_or_single(list: Vec<String>, single: &str, names: (&str, &str)) -> Result<Vec<String>, String> {
    match list.first() {
        _ if single.is_empty() => Ok(list),
        None => Ok(vec![single.to_owned()]),
        Some(first) if first == single => Ok(list),
        Some(first) => {
            let (list, single_name) = names;
            Err(format!("{single_name} {} is not the first of {list}, {}", quoted(single), quoted(first)))
        }
    }
}

/// The single copy of a list: its element if it has just one.
pub fn single(list: &[String]) -> String {
    match list {
        [only] => only.clone(),
        _ => String::new(),
    }
}

fn word<T: FromStr>(text: &str, what: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{} is not {what}", quoted(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(quoted("ü"), "\"ü\"");
        assert_eq!(quoted(&"ü".repeat(QUOTED + 1)), format!("\"{}\"...", "ü".repeat(QUOTED)));
    }

    #[test]
    fn numbers_have_digits_and_bounds() {
        assert_eq!(number("5000", 2..=5000), Ok(5000));
        for text in ["", "1", "5001", "+2", "-2", " 2", "2.0", "0x2", "99999999999999999999"] {
            assert!(number(text, 2..=5000).is_err(), "{text:?} was taken");
        }
    }
}
