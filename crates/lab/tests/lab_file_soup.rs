//! Whatever is in a lab file, reading it ends with a topology or an error that names a line of it.

use proptest::prelude::*;
use underlay_lab::file::{DEFAULT, parse};

/// Pieces that mean something to the parser, so that soup of them gets further than random bytes.
const PIECES: &[&str] = &[
    "nodes:",
    "routers:",
    "hosts:",
    "segments:",
    "links:",
    "kubernetes:",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "name: ",
    "x",
    "machine: ",
    "addresses: ",
    "ends: ",
    "members: ",
    "bgp: ",
    "asn: ",
    "gateways: ",
    "controlPlane: ",
    "true",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "10.0.0.1/8",
    "::/0",
    "\"",
    "'",
    "&a ",
    "*a",
    "<<: ",
    "|\n",
    "4294967296",
    "-1",
    "~",
    "\t",
    "#",
    ":",
    "podSubnets: ",
    "0.0.0.0/0",
    "frr: ",
    "mtu: ",
    "---\n",
    "!!binary ",
    "%YAML 9\n",
    "\u{feff}",
    "é",
];

/// The error points into the file, or at the file as a whole.
fn is_sane(text: &str) {
    if let Err(error) = parse("soup.yaml", text) {
        // To YAML a lone carriage return ends a line too. What follows the last end is a line, even if it is empty.
        let ends = text.replace("\r\n", "\n").matches(['\n', '\r']).count();
        let lines = u64::try_from(ends + 1).unwrap_or(u64::MAX);
        assert!(error.line <= lines, "line {} of {lines}: {}", error.line, error.message);
        assert!(!error.message.is_empty());
    }
}

#[test]
fn carriage_returns_end_lines() {
    is_sane(" \r\r\0");
    is_sane("\r\n\r\n\0");
}

proptest! {
    #[test]
    fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        is_sane(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn pieces_never_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..60)) {
        is_sane(&pieces.concat());
    }

    #[test]
    fn a_bitten_default_file_never_panics(
        from in 0..DEFAULT.len(),
        length in 0..200usize,
        piece in proptest::sample::select(PIECES),
    ) {
        let mut bytes = DEFAULT.as_bytes().to_vec();
        bytes.splice(from..(from + length).min(DEFAULT.len()), piece.bytes());
        is_sane(&String::from_utf8_lossy(&bytes));
    }
}
