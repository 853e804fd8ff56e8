//! What FRR prints and what users write in its words: read, written, read again, and compared with another.
#![no_main]

use libfuzzer_sys::fuzz_target;
use underlay_frr::diff::{Daemon, Running, difference, surplus};
use underlay_frr::tree::{parse, redact};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (want, have) = text.split_once('\0').unwrap_or((&text, ""));
    let (want, have) = (parse(want), parse(have));
    assert_eq!(parse(&want.text()), want, "what was read is read again from what we write");
    let running = Running::from(Daemon::ALL.map(|daemon| (daemon, have.clone())));
    for command in difference(&want, &running, &have) {
        assert!(!command.line.contains('\n') && !redact(&command.line).is_empty());
    }
    let same = Running::from(Daemon::ALL.map(|daemon| (daemon, want.clone())));
    assert!(surplus(&want, &same).is_empty());
});
