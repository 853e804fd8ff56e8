//! Row identifiers: the text of RFC 4122 in, sixteen bytes out, and back.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// Identifies a row for as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid([u8; 16]);

/// The text is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a UUID")]
pub struct NotAUuid(String);

/// Where the dashes stand in the text.
const DASHES: [usize; 4] = [8, 13, 18, 23];

impl Uuid {
    /// All zeros: no row has it, and a server that keeps no history gives it as every transaction's id.
    pub const ZERO: Self = Self([0; 16]);

    /// A UUID of these bytes, in the order they are written.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 36 || DASHES.iter().any(|&dash| text[dash] != b'-') {
            return None;
        }
        let mut digits =
            text.iter().enumerate().filter(|(at, _)| !DASHES.contains(at)).map(|(_, byte)| *byte);
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            *byte = hex_digit(digits.next()?)? << 4 | hex_digit(digits.next()?)?;
        }
        Some(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl FromStr for Uuid {
    type Err = NotAUuid;

    fn from_str(text: &str) -> Result<Self, NotAUuid> {
        Self::parse(text).ok_or_else(|| NotAUuid(text.to_owned()))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As the protocol writes it where a UUID is not a value but a name, such as a transaction's: plain text.
impl Serialize for Uuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_round_trip(bytes: [u8; 16]) {
            let uuid = Uuid::from_bytes(bytes);
            prop_assert_eq!(uuid.to_string().parse::<Uuid>().unwrap(), uuid);
        }

        #[test]
        fn any_text_is_judged_without_panic(text in "[0-9a-fé-]{30,40}") {
            let _ = text.parse::<Uuid>();
        }
    }

    #[test]
    fn written_as_the_server_writes_it() {
        let text = "7932ce18-669b-425e-83cd-436cf7abbf11";
        assert_eq!(text.parse::<Uuid>().unwrap().to_string(), text);
        assert_eq!(text.to_uppercase().parse::<Uuid>().unwrap().to_string(), text);
    }

    #[test]
    fn refuses_what_is_not_a_uuid() {
        for text in [
            "",
            "7932ce18669b425e83cd436cf7abbf11",
            "7932ce18-669b-425e-83cd-436cf7abbf1g",
            "7932ce18-669b-425e-83cd-436cf7abbf110",
        ] {
            assert!(text.parse::<Uuid>().is_err(), "{text}");
        }
    }
}
