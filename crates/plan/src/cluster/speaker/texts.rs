//! Prefixes as they are written in configurations. A node may have a thousand, and all are looked at in every plan: while
//! they are what was written before, none is written again.

use std::fmt::{self, Write};
use std::sync::Arc;

use ipnet::IpNet;
use underlay_api::Shared;

use super::Families;

/// No prefix is longer: eight groups of four digits, what separates them, and three digits for the length.
const LONGEST: usize = 43;

/// Prefixes in the order of their texts, each once. If that is what `there` says, it is that very list.
pub fn texts<'a>(nets: impl Iterator<Item = &'a IpNet>, there: Option<&Shared<String>>) -> Families<String> {
    let mut texts: Vec<Text> = nets.map(Text::of).collect();
    texts.sort_unstable();
    texts.dedup();
    let is = |there: &&Shared<String>| there.iter().map(String::as_str).eq(texts.iter().map(Text::as_str));
    let list = there.filter(is).map(Arc::clone);
    let list = list.unwrap_or_else(|| texts.iter().map(|text| text.as_str().to_owned()).collect());
    Families::new(list, String::as_str)
}

/// The text of a prefix, in place. Behind it there is nothing but zeros, so the order is that of texts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Text {
    bytes: [u8; LONGEST],
    length: u8,
}

impl Text {
    fn of(net: &IpNet) -> Self {
        let mut text = Self { bytes: [0; LONGEST], length: 0 };
        // It has room for every prefix.
        let _ = write!(text, "{net}");
        text
    }

    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let place = self.bytes[usize::from(self.length)..].get_mut(..more.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(more.as_bytes());
        self.length += u8::try_from(more.len()).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn prefixes_are_in_the_order_of_their_texts() {
        let longest = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128";
        assert_eq!(longest.len(), LONGEST);
        let nets = nets(&[longest, "9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/8"]);
        let want = ["10.0.0.0/16", "10.0.0.0/8", "9.0.0.0/8", longest];
        assert_eq!(texts(nets.iter(), None).all().as_ref(), want);
    }

    #[test]
    fn what_is_there_is_not_written_again() {
        let nets = nets(&["10.0.0.0/8", "9.0.0.0/8"]);
        let there: Shared<String> = ["10.0.0.0/8", "9.0.0.0/8"].map(str::to_owned).into();
        assert!(Arc::ptr_eq(texts(nets.iter(), Some(&there)).all(), &there));
        let other: Shared<String> = ["10.0.0.0/8".to_owned()].into();
        assert_eq!(texts(nets.iter(), Some(&other)).all(), &there);
    }
}
