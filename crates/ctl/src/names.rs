//! How lists and prefixes are written for people.

use ipnet::IpNet;

/// Names, as many as one likes to read.
pub fn some_of(names: &[String]) -> String {
    const MANY: usize = 5;
    match names.len().checked_sub(MANY) {
        Some(more @ 1..) => format!("{} and {more} more", names[..MANY].join(", ")),
        _ => names.join(", "),
    }
}

/// A prefix, or the address that it is.
pub fn short(prefix: IpNet) -> String {
    if prefix.prefix_len() == prefix.max_prefix_len() {
        prefix.addr().to_string()
    } else {
        prefix.to_string()
    }
}

/// A number of things.
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
